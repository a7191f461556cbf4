"""Convolution layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_choice, check_int, check_ndim
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.modules.factory import Weighted, sizes
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.tensor import Tensor


class _ConvNd(Weighted):
    """The common base of all convolutions; `_spatial` is the number of spatial dimensions."""

    _spatial: ClassVar[int]
    transposed: ClassVar[bool] = False
    _padding_modes: ClassVar[tuple[str, ...]] = ("zeros", "reflect", "replicate", "circular")
    weight: Parameter
    bias: Parameter | None
    padding: tuple[int, ...] | str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
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
        self.output_padding = (0,) * n
        self.padding_mode = check_choice(op, "padding_mode", padding_mode, self._padding_modes)
        self._make(device, dtype, weight=True, bias=bias)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        outer, inner = self.out_channels, self.in_channels
        # A transposed convolution has the filters of the convolution whose gradient it is.
        if self.transposed:
            outer, inner = inner, outer
        shape = (outer, inner // self.groups, *self.kernel_size)
        return {"weight": shape, "bias": (self.out_channels,)}

    def _channels(self, argument: str, value: Any) -> int:
        channels = check_int(type(self).__name__, argument, value, 0)
        if channels % self.groups:
            raise arg_error(
                type(self).__name__,
                argument,
                expected=f"a multiple of groups={self.groups}",
                got=channels,
                hint="change the channels or the groups",
                kind=ArgumentError,
            )
        return channels

    def _check_padding(self, padding: Any) -> tuple[int, ...] | str:
        op = type(self).__name__
        if self.transposed or not isinstance(padding, str):
            return sizes(op, "padding", padding, self._spatial, 0)
        if padding == "same" and any(step != 1 for step in self.stride):
            raise arg_error(
                op,
                "padding",
                expected="numbers where stride is not 1",
                got="'same'",
                hint="use stride=1 or give the padding",
                kind=ArgumentError,
            )
        return check_choice(op, "padding", padding, ("same", "valid"))

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """The padding for F.pad: (left, right) from the last dimension on."""
        result: list[int] = []
        for d in reversed(range(self._spatial)):
            if not isinstance(self.padding, str):
                result += [self.padding[d]] * 2
            else:
                same = self.padding == "same"
                total = self.dilation[d] * (self.kernel_size[d] - 1) if same else 0
                result += [total // 2, total - total // 2]  # PyTorch gives the odd one to the right
        return result

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolved input."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with given filters; PyTorch's scripts override it."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":  # zeros are padded by the convolution itself
            borders = self._reversed_padding_repeated_twice
            input, padding = F.pad(input, borders, mode=self.padding_mode), 0
        convolve = getattr(F, f"conv{self._spatial}d")
        result: Tensor = convolve(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )
        return result

    def extra_repr(self) -> str:
        """Return the sizes, and the options that differ from their defaults."""
        zeros, ones = (0,) * self._spatial, (1,) * self._spatial
        return self._told(
            "in_channels out_channels",
            "kernel_size stride",
            padding=zeros,
            dilation=ones,
            output_padding=zeros,
            groups=1,
            bias=True,
            padding_mode="zeros",
        )


class Conv1d(_ConvNd):
    """Cross-correlation of an input (N, C, L) or (C, L) with `out_channels` kernels.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of input and output, both divisible by `groups`.
    kernel_size, stride, dilation : int or tuple of ints, one for each spatial dimension
        Size of the kernel, step of the kernel, and spacing of its elements.
    padding : int, tuple of ints, "same" or "valid"
        Added on both sides.
    groups : int
        Blocks of channels that are convolved apart.
    bias : bool
        Whether a bias is added to each output channel.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        The entries of the padding.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Conv1d(3, 8, 5, padding=2)(flow.ones(4, 3, 20)).shape
    (4, 8, 20)
    """

    _spatial = 1


class Conv2d(_ConvNd):
    """Cross-correlation of an input (N, C, H, W) or (C, H, W) with `out_channels` kernels.

    The parameters are those of `Conv1d`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Conv2d(1, 20, 5)(flow.ones(2, 1, 28, 28)).shape
    (2, 20, 24, 24)
    """

    _spatial = 2


class Conv3d(_ConvNd):
    """Cross-correlation of an input (N, C, D, H, W) or (C, D, H, W) with `out_channels` kernels.

    The parameters are those of `Conv1d`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Conv3d(1, 4, (1, 2, 3))(flow.ones(2, 1, 5, 5, 5)).shape
    (2, 4, 5, 4, 3)
    """

    _spatial = 3


class _ConvTransposeNd(_ConvNd):
    """The common base of transposed convolutions."""

    transposed = True
    _padding_modes = ("zeros",)
    padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        added = sizes(type(self).__name__, "output_padding", output_padding, self._spatial, 0)
        geometry = (kernel_size, stride, padding, dilation, groups)
        super().__init__(in_channels, out_channels, *geometry, bias, padding_mode, device, dtype)
        self.output_padding = added

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the convolved input; `output_size` chooses among sizes that a stride allows."""
        added = self.output_padding
        if output_size is not None:
            added = self._added_for(input, output_size)
        convolve = getattr(F, f"conv_transpose{self._spatial}d")
        given = (self.stride, self.padding, added, self.groups, self.dilation)
        result: Tensor = convolve(input, self.weight, self.bias, *given)
        return result

    def _added_for(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """Return the output padding that leads to this size, given with or without (N, C)."""
        op, n = type(self).__name__, self._spatial
        check_ndim(op, input, (n + 1, n + 2))
        if not isinstance(output_size, (tuple, list)):
            expected, got = f"{n} or {input.ndim} ints", repr(output_size)
            hint = "pass a tuple"
            raise arg_error(op, "output_size", expected, got, hint, ArgumentTypeError)
        wanted = [check_int(op, "output_size", size) for size in output_size]
        wanted = wanted[input.ndim - n :] if len(wanted) == input.ndim else wanted
        least = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(
                input.shape[-n:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        ]
        # A convolution of stride s takes s sizes to the same size, so its gradient may choose.
        most = [size + s - 1 for size, s in zip(least, self.stride, strict=True)]
        fits = len(wanted) == n and all(
            low <= size <= high for low, size, high in zip(least, wanted, most, strict=True)
        )
        if not fits:
            expected = f"{n} or {input.ndim} ints, the last {n} from {least} to {most}"
            hint = "choose a size that stride and padding allow"
            raise arg_error(op, "output_size", expected, output_size, hint, ArgumentError)
        return tuple(size - low for size, low in zip(wanted, least, strict=True))


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of an input (N, C, L) or (C, L): the gradient of `Conv1d`.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of input and output, both divisible by `groups`.
    kernel_size, stride, dilation : int or tuple of ints, one for each spatial dimension
        Size of the kernel, step between its places in the output, and spacing of its elements.
    padding : int or tuple of ints
        Cut off on both sides.
    output_padding : int or tuple of ints
        Added at the end; less than stride or dilation.
    groups : int
        Blocks of channels that are convolved apart.
    bias : bool
        Whether a bias is added to each output channel.
    padding_mode : {"zeros"}
        The only mode.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> up = flow.nn.ConvTranspose1d(3, 8, 4, stride=2, padding=1)
    >>> up(flow.ones(2, 3, 5)).shape, up(flow.ones(2, 3, 5), output_size=(11,)).shape
    ((2, 8, 10), (2, 8, 11))
    """

    _spatial = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of an input (N, C, H, W) or (C, H, W): the gradient of `Conv2d`.

    The parameters are those of `ConvTranspose1d`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.ConvTranspose2d(3, 8, 4, stride=2, padding=1)(flow.ones(2, 3, 5, 6)).shape
    (2, 8, 10, 12)
    """

    _spatial = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of an input (N, C, D, H, W) or (C, D, H, W): the gradient of `Conv3d`.

    The parameters are those of `ConvTranspose1d`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.ConvTranspose3d(3, 8, 2, stride=2)(flow.ones(3, 2, 3, 4)).shape
    (8, 4, 6, 8)
    """

    _spatial = 3


guard_all(globals())
