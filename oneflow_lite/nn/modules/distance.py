"""Distances between vectors as modules."""

from __future__ import annotations

from dataclasses import InitVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.tensors.tensor import Tensor


@layer("cosine_similarity", "x1, x2", shows="")
class CosineSimilarity(Module):
    """The cosine of the angle between `x1` and `x2` along `dim`.

    >>> flow.nn.CosineSimilarity(dim=0)(flow.tensor([3.0, 4.0]), flow.tensor([4.0, 3.0]))
    tensor(0.9600)
    """

    dim: int = 1
    eps: float = 1e-8


@layer(shows="")
class PairwiseDistance(Module):
    """The `p`-norm of `x1` - `x2` + `eps` along the last dimension.

    >>> flow.nn.PairwiseDistance(eps=0.0)(flow.tensor([3.0, 4.0]), flow.zeros(2))
    tensor(5.)
    """

    p: InitVar[float] = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    def __post_init__(self, p: float) -> None:
        self.norm = p

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


guard_all(globals())
