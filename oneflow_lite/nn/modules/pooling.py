"""Pooling layers: each window of the input becomes a number.

Options are a number for all dimensions, or a number for each. `stride` is the size of the window by
default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.nn.modules.utils import _ntuple
from oneflow_lite.tensors.tensor import Tensor


class _Strided(Module):
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None
    padding: int | Sequence[int]
    _spatial: ClassVar[int] = 0  # where the options are kept as tuples, of so many numbers

    def __post_init__(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size
        if self._spatial:
            for name in ("kernel_size", "stride", "padding"):
                setattr(self, name, _ntuple(self._spatial)(getattr(self, name)))


@layer(
    shows="kernel_size={kernel_size}, stride={stride}, padding={padding}, "
    "dilation={dilation}, ceil_mode={ceil_mode}"
)
class _MaxPoolNd(_Strided):
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None = None
    padding: int | Sequence[int] = 0
    dilation: int | Sequence[int] = 1
    return_indices: bool = False
    ceil_mode: bool = False


@layer("max_pool1d")
class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of (N, C, L) or (C, L).

    dilation: the distance between the elements of a window.
    return_indices: whether the positions of the maxima are returned too, as `MaxUnpool1d` needs.
    ceil_mode: whether a last, partial window counts.

    >>> flow.nn.MaxPool1d(2)(flow.tensor([[[1.0, 3.0, 2.0, 5.0]]]))
    tensor([[[3., 5.]]])
    """


@layer("max_pool2d")
class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (N, C, H, W) or (C, H, W); options as in `MaxPool1d`.

    >>> flow.nn.MaxPool2d(2)(flow.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """


@layer("max_pool3d")
class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W); options as in `MaxPool1d`.

    >>> flow.nn.MaxPool3d((1, 2, 2))(flow.ones(1, 3, 2, 8, 8)).shape
    (1, 3, 2, 4, 4)
    """


@layer()
class _MaxUnpoolNd(_Strided):
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None = None
    padding: int | Sequence[int] = 0


@layer("max_unpool1d", "input, indices, output_size=None")
class MaxUnpool1d(_MaxUnpoolNd):
    """Maxima where they stood before max pooling, among zeros.

    It is called with the maxima, their positions, and the size before pooling if several are
    possible.

    >>> pool, unpool = flow.nn.MaxPool1d(2, return_indices=True), flow.nn.MaxUnpool1d(2)
    >>> unpool(*pool(flow.tensor([[1.0, 3.0, 2.0, 5.0]])))
    tensor([[0., 3., 0., 5.]])
    """

    _spatial = 1


@layer("max_unpool2d", "input, indices, output_size=None")
class MaxUnpool2d(_MaxUnpoolNd):
    """Maxima of images where they stood before max pooling; called as `MaxUnpool1d`.

    >>> pool, unpool = flow.nn.MaxPool2d(2, return_indices=True), flow.nn.MaxUnpool2d(2)
    >>> unpool(*pool(flow.tensor([[[1.0, 3.0], [2.0, 5.0]]])))
    tensor([[[0., 0.],
             [0., 5.]]])
    """

    _spatial = 2


@layer("max_unpool3d", "input, indices, output_size=None")
class MaxUnpool3d(_MaxUnpoolNd):
    """Maxima of volumes where they stood before max pooling; called as `MaxUnpool1d`.

    >>> pool, unpool = flow.nn.MaxPool3d(2, return_indices=True), flow.nn.MaxUnpool3d(2)
    >>> unpool(*pool(flow.ones(1, 4, 4, 4))).sum()
    tensor(8.)
    """

    _spatial = 3


@layer(shows="kernel_size={kernel_size}, stride={stride}, padding={padding}")
class _AvgPoolNd(_Strided):
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None = None
    padding: int | Sequence[int] = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


@layer("avg_pool1d")
class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L) or (C, L).

    ceil_mode: whether a last, partial window counts.
    count_include_pad: whether padded zeros count in the mean.

    >>> flow.nn.AvgPool1d(2)(flow.tensor([[[1.0, 3.0, 2.0, 6.0]]]))
    tensor([[[2., 4.]]])
    """

    _spatial = 1


@layer("avg_pool2d")
class AvgPool2d(_AvgPoolNd):
    """The mean of each window of (N, C, H, W) or (C, H, W); options as in `AvgPool1d`.

    divisor_override: divides the sums instead of the number of elements.

    >>> flow.nn.AvgPool2d(2)(flow.tensor([[[[1.0, 3.0], [2.0, 6.0]]]]))
    tensor([[[[3.]]]])
    """

    divisor_override: int | None = None


@layer("avg_pool3d")
class AvgPool3d(_AvgPoolNd):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W); options as in `AvgPool2d`.

    >>> flow.nn.AvgPool3d(2)(flow.ones(1, 2, 4, 4)).flatten()
    tensor([1., 1., 1., 1.])
    """

    divisor_override: int | None = None


@layer()
class _LPPoolNd(Module):
    norm_type: float
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None = None
    ceil_mode: bool = False


@layer("lp_pool1d")
class LPPool1d(_LPPoolNd):
    """(Σ xᵖ)^(1/p) of each window of (N, C, L) or (C, L), p being `norm_type`.

    >>> flow.nn.LPPool1d(2, 2)(flow.tensor([[3.0, 4.0, 6.0, 8.0]]))
    tensor([[ 5., 10.]])
    """


@layer("lp_pool2d")
class LPPool2d(_LPPoolNd):
    """(Σ xᵖ)^(1/p) of each window of (N, C, H, W) or (C, H, W), p being `norm_type`.

    >>> flow.nn.LPPool2d(1, 2)(flow.ones(1, 2, 4))
    tensor([[[4., 4.]]])
    """


@layer("lp_pool3d")
class LPPool3d(_LPPoolNd):
    """(Σ xᵖ)^(1/p) of each window of (N, C, D, H, W) or (C, D, H, W), p being `norm_type`.

    >>> flow.nn.LPPool3d(1, 2)(flow.ones(1, 2, 2, 4))
    tensor([[[[8., 8.]]]])
    """


@layer(shows="")
class _FractionalMaxPoolNd(Module):
    kernel_size: int | Sequence[int]
    output_size: int | Sequence[int] | None = None
    output_ratio: float | Sequence[float] | None = None
    return_indices: bool = False
    _random_samples: Tensor | None = None
    _spatial: ClassVar[int]

    def __post_init__(self) -> None:
        op, repeated = type(self).__name__, _ntuple(self._spatial)
        size, ratio = self.output_size, self.output_ratio
        if (size is None) == (ratio is None):
            raise arg_error(
                op,
                "output_size",
                expected="this or output_ratio",
                got="neither" if size is None else "both",
                hint="give one of them",
                kind=ArgumentError,
            )
        self.kernel_size = repeated(self.kernel_size)
        if not all(n > 0 for n in self.kernel_size):
            hint = "give the size of the window"
            expected, got = "numbers above 0", self.kernel_size
            raise arg_error(op, "kernel_size", expected, got, hint, ArgumentError)
        if size is not None:
            self.output_size = repeated(size)
            return
        self.output_ratio = repeated(ratio)
        if not all(0 < n < 1 for n in self.output_ratio):
            hint = "give the output's size over the input's"
            raise arg_error(op, "output_ratio", "between 0 and 1", ratio, hint, ArgumentError)


@layer("fractional_max_pool2d")
class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The maximum of windows at random places of (N, C, H, W) or (C, H, W) (Graham, 2014).

    output_size, output_ratio: the size of the result, or its share of the input's, below 1.
    _random_samples: (N, C, 2), from 0 to 1, where the windows are; drawn at each call by default.

    >>> flow.nn.FractionalMaxPool2d(2, output_ratio=0.5)(flow.ones(1, 4, 6)).shape
    (1, 2, 3)
    """

    _spatial = 2


@layer("fractional_max_pool3d")
class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The maximum of windows at random places of volumes; options as in `FractionalMaxPool2d`.

    >>> flow.nn.FractionalMaxPool3d(2, output_size=2)(flow.ones(1, 4, 6, 5)).shape
    (1, 2, 2, 2)
    """

    _spatial = 3


@layer(shows="output_size={output_size}")
class _AdaptiveMaxPoolNd(Module):
    output_size: int | Sequence[int]
    return_indices: bool = False


@layer("adaptive_max_pool1d")
class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima over as many windows of (N, C, L) or (C, L) as the output has places.

    >>> flow.nn.AdaptiveMaxPool1d(2)(flow.tensor([[1.0, 4.0, 2.0]]))
    tensor([[4., 4.]])
    """


@layer("adaptive_max_pool2d")
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima over as many windows of images as the output has places; None keeps a size.

    >>> flow.nn.AdaptiveMaxPool2d((1, None))(flow.ones(2, 3, 5, 7)).shape
    (2, 3, 1, 7)
    """


@layer("adaptive_max_pool3d")
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima over as many windows of volumes as the output has places; None keeps a size.

    >>> flow.nn.AdaptiveMaxPool3d((1, None, 2))(flow.ones(2, 5, 7, 3)).shape
    (2, 1, 7, 2)
    """


@layer()
class _AdaptiveAvgPoolNd(Module):
    output_size: int | Sequence[int]


@layer("adaptive_avg_pool1d")
class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means over as many windows of (N, C, L) or (C, L) as the output has places.

    >>> flow.nn.AdaptiveAvgPool1d(2)(flow.tensor([[1.0, 2.0, 6.0]]))
    tensor([[1.5000, 4.0000]])
    """


@layer("adaptive_avg_pool2d")
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means over as many windows of images as the output has places; None keeps a size.

    >>> flow.nn.AdaptiveAvgPool2d((1, None))(flow.ones(2, 3, 5, 7)).shape
    (2, 3, 1, 7)
    """


@layer("adaptive_avg_pool3d")
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means over as many windows of volumes as the output has places; None keeps a size.

    >>> flow.nn.AdaptiveAvgPool3d((1, None, 2))(flow.ones(2, 5, 7, 3)).shape
    (2, 1, 7, 2)
    """


guard_all(globals())
