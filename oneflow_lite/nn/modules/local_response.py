"""Normalization over neighbouring channels, which has nothing to learn."""

from __future__ import annotations

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.tensors.tensor import Tensor

_SHOWN = "{size}, alpha={alpha}, beta={beta}, k={k}"


@layer("local_response_norm", shows=_SHOWN)
class LocalResponseNorm(Module):
    """Divides (N, C, *) by (`k` + `alpha` · mean of x² over `size` neighbouring channels)^`beta`.

    >>> flow.nn.LocalResponseNorm(3, 9.0, 1.0)(flow.ones(1, 3, 1)).flatten()
    tensor([0.1429, 0.1000, 0.1429])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0


@layer(shows=_SHOWN)
class CrossMapLRN2d(Module):
    """`LocalResponseNorm` of images (N, C, H, W), as Torch had it.

    With an even `size` only size - 1 channels are summed; the sum is divided by `size` all the
    same. In PyTorch the first channel stays in the sums of channels that are not its neighbours.

    >>> flow.nn.CrossMapLRN2d(3, 9.0, 1.0)(flow.ones(1, 3, 1, 1)).flatten()
    tensor([0.1429, 0.1000, 0.1429])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        if input.ndim != 4:
            raise arg_error(
                "CrossMapLRN2d",
                "input",
                expected="4 dimensions",
                got=f"shape {input.shape}",
                hint="use LocalResponseNorm for others",
                kind=ArgumentError,
            )
        window = 2 * ((self.size - 1) // 2) + 1
        alpha = self.alpha * window / self.size
        return F.local_response_norm(input, window, alpha, self.beta, self.k)


guard_all(globals())
