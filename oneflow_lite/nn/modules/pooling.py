"""Pooling layers."""

from __future__ import annotations

from typing import Any

from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.tensor import Tensor


class _MaxPool(Module):
    """What MaxPool1d and MaxPool2d have in common."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The maximum of each window of an input (N, C, L).

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or tuple of one int
        The window, its step (by default the window's size), the padding (of -inf) and the
        spacing of the window's elements.
    return_indices : bool
        Whether the positions of the maxima are returned too.
    ceil_mode : bool
        Whether a last, partial window counts.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.MaxPool1d(2)(flow.tensor([[[1.0, 3.0, 2.0, 5.0]]]))
    tensor([[[3., 5.]]])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with their positions when `return_indices`."""
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool2d(_MaxPool):
    """The maximum of each window of an input (N, C, H, W).

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or tuple of two ints
        The window, its step (by default the window's size), the padding (of -inf) and the
        spacing of the window's elements.
    return_indices : bool
        Whether the positions of the maxima are returned too.
    ceil_mode : bool
        Whether last, partial windows count.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.MaxPool2d(2)(flow.ones(1, 3, 8, 8)).shape
    (1, 3, 4, 4)
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with their positions when `return_indices`."""
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class AvgPool1d(Module):
    """The mean of each window of an input (N, C, L).

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of one int
        The window, its step (by default the window's size) and the padding with zeros.
    ceil_mode : bool
        Whether a last, partial window counts.
    count_include_pad : bool
        Whether padded zeros count in the mean.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.AvgPool1d(2)(flow.tensor([[[1.0, 3.0, 2.0, 6.0]]]))
    tensor([[[2., 4.]]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        """Return the options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of an input (N, C, H, W).

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of two ints
        The window, its step (by default the window's size) and the padding with zeros.
    ceil_mode : bool
        Whether last, partial windows count.
    count_include_pad : bool
        Whether padded zeros count in the mean.
    divisor_override : int, optional
        Divides the sums instead of the number of elements.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.AvgPool2d(2)(flow.tensor([[[[1.0, 3.0], [2.0, 6.0]]]]))
    tensor([[[[3.]]]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """Return the options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """Means over as many windows as the output has places, whatever the input's size.

    Parameters
    ----------
    output_size : int or tuple of two
        Height and width of the output; None keeps the input's.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.AdaptiveAvgPool2d((1, None))(flow.ones(2, 3, 5, 7)).shape
    (2, 3, 1, 7)
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        return F.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        """Return the output's size."""
        return f"output_size={self.output_size}"


def _single(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
