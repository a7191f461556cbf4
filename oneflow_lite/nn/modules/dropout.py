"""Dropout layers: in training mode they set elements or channels to zero at random."""

from __future__ import annotations

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.tensors.tensor import Tensor


@layer(shows="p={p}, inplace={inplace}")
class _DropoutNd(Module):
    """The common base: the probability to be dropped, and whether the input is overwritten."""

    p: float = 0.5
    inplace: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise arg_error(
                type(self).__name__,
                "p",
                expected="a probability from 0 to 1",
                got=self.p,
                hint="pass the share to drop",
                kind=ArgumentError,
            )


@layer("dropout", also="training")
class Dropout(_DropoutNd):
    """In training mode zeroes each element with probability `p` and scales the rest by 1/(1 - p).

    >>> flow.nn.Dropout(0.9).eval()(flow.ones(3))
    tensor([1., 1., 1.])
    """


@layer("dropout1d", also="training")
class Dropout1d(_DropoutNd):
    """In training mode zeroes channels of (N, C, L) or (C, L), and scales the rest by 1/(1 - p).

    >>> flow.nn.Dropout1d(1.0)(flow.ones(2, 3))
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """


@layer("dropout2d", also="training")
class Dropout2d(_DropoutNd):
    """In training mode zeroes channels of (N, C, H, W), and scales the rest by 1/(1 - p).

    >>> flow.nn.Dropout2d(1.0)(flow.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """


@layer("dropout3d", also="training")
class Dropout3d(_DropoutNd):
    """In training mode zeroes channels of (N, C, D, H, W) or (C, D, H, W), and scales the rest.

    >>> flow.nn.Dropout3d(1.0)(flow.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """


class AlphaDropout(_DropoutNd):
    """In training mode sets elements to the limit of `SELU`, keeping mean 0 and variance 1.

    `inplace` has no effect, as in PyTorch (Klambauer et al., 2017).

    >>> flow.nn.AlphaDropout().eval()(flow.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with elements dropped, or in evaluation mode the input."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Does what `AlphaDropout` does, to whole channels of (N, C, *).

    >>> flow.nn.FeatureAlphaDropout().eval()(flow.ones(1, 3))
    tensor([[1., 1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with channels dropped, or in evaluation mode the input."""
        return F.feature_alpha_dropout(input, self.p, self.training)


guard_all(globals())
