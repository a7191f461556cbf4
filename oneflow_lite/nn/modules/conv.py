"""Convolution layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_int
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import parameter, sizes
from oneflow_lite.nn.modules.linear import reset_weight_and_bias
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """What Conv1d and Conv2d have in common."""

    _spatial: ClassVar[int]
    weight: Parameter
    bias: Parameter | None
    padding: tuple[int, ...] | str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        op, n = type(self).__name__, self._spatial
        self.groups = check_int(op, "groups", groups, 1)
        self.in_channels = self._channels("in_channels", in_channels)
        self.out_channels = self._channels("out_channels", out_channels)
        self.kernel_size = sizes(op, "kernel_size", kernel_size, n, 1)
        self.stride = sizes(op, "stride", stride, n, 1)
        self.dilation = sizes(op, "dilation", dilation, n, 1)
        self.padding = self._check_padding(padding)
        self.padding_mode = _one_of(op, "padding_mode", padding_mode, _PADDING_MODES)
        shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        self.weight = parameter(shape, device, dtype)
        self.register_parameter("bias", parameter(shape[:1], device, dtype) if bias else None)
        self.reset_parameters()

    def _channels(self, argument: str, value: Any) -> int:
        channels = check_int(type(self).__name__, argument, value, 1)
        if channels % self.groups:
            raise bad_argument(
                ArgumentError,
                type(self).__name__,
                argument,
                expected=f"a multiple of groups={self.groups}",
                got=channels,
                mend="change the channels or the groups",
            )
        return channels

    def _check_padding(self, padding: Any) -> tuple[int, ...] | str:
        op = type(self).__name__
        if not isinstance(padding, str):
            return sizes(op, "padding", padding, self._spatial, 0)
        if padding == "same" and any(step != 1 for step in self.stride):
            raise bad_argument(
                ArgumentError,
                op,
                "padding",
                expected="numbers where stride is not 1",
                got="'same'",
                mend="use stride=1 or give the padding",
            )
        return _one_of(op, "padding", padding, ("same", "valid"))

    def _borders(self) -> tuple[int, ...]:
        """Return what F.pad needs to pad the input: (left, right) from the last dimension on."""
        if self.padding == "valid":
            return (0, 0) * self._spatial
        result: list[int] = []
        for d in reversed(range(self._spatial)):
            if self.padding == "same":
                total = self.dilation[d] * (self.kernel_size[d] - 1)
                result += [total // 2, total - total // 2]
            else:
                result += [int(self.padding[d])] * 2
        return tuple(result)

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        reset_weight_and_bias(self.weight, self.bias)

    def _convolve(self, conv: Callable[..., Tensor], input: Tensor) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._borders(), mode=self.padding_mode)
            padding = 0
        return conv(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """Return the sizes, and the options that differ from their defaults."""
        n = self._spatial
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0,) * n:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * n:
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class Conv1d(_Conv):
    """Cross-correlation of an input (N, C, L) with `out_channels` kernels.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of input and output, both divisible by `groups`.
    kernel_size, stride, dilation : int or tuple of one int
        Size of the kernel, step of the kernel, and spacing of its elements.
    padding : int, tuple of one int, "same" or "valid"
        Added on both sides.
    groups : int
        Blocks of channels that are convolved apart.
    bias : bool
        Whether a bias is added to each output channel.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding consists of.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Conv1d(3, 8, 5, padding=2)(flow.ones(4, 3, 20)).shape
    (4, 8, 20)
    """

    _spatial = 1

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolved input."""
        return self._convolve(F.conv1d, input)


class Conv2d(_Conv):
    """Cross-correlation of an input (N, C, H, W) with `out_channels` kernels.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of input and output, both divisible by `groups`.
    kernel_size, stride, dilation : int or tuple of two ints
        Size of the kernel, step of the kernel, and spacing of its elements.
    padding : int, tuple of two ints, "same" or "valid"
        Added on all sides.
    groups : int
        Blocks of channels that are convolved apart.
    bias : bool
        Whether a bias is added to each output channel.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding consists of.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Conv2d(1, 20, 5)(flow.ones(2, 1, 28, 28)).shape
    (2, 20, 24, 24)
    """

    _spatial = 2

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolved input."""
        return self._convolve(F.conv2d, input)


def _one_of(op: str, argument: str, value: Any, choices: tuple[str, ...]) -> str:
    if value in choices:
        return str(value)
    raise bad_argument(
        ArgumentError,
        op,
        argument,
        expected="one of " + ", ".join(map(repr, choices)),
        got=repr(value),
        mend="choose one of these",
    )
