"""Convolution: what users call; arguments are checked here and handed to dispatch."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_ndim, check_tensor
from oneflow_lite.functors.padding import pad
from oneflow_lite.functors.shape import squeeze, unsqueeze
from oneflow_lite.functors.spatial import check_sizes
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

CONV = op_expr("conv")


@register_functor("conv1d")
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Correlate sequences with filters.

    y[n, o, s] = Σ_c Σ_k weight[o, c, k] input[n, c, s·stride + k·dilation - padding] + bias[o]

    Parameters
    ----------
    input : Tensor
        (N, C, L), or (C, L) for one sequence.
    weight : Tensor
        (O, C / groups, K), of the same dtype.
    bias : Tensor, optional
        (O,)
    stride, dilation : int or tuple of one int
        Step of the filter, and spacing of its elements.
    padding : int, tuple of one int, "same" or "valid"
        Zeros added on both sides. "same" keeps L (with an odd total, the last zero goes to the
        end) and needs stride 1; "valid" is 0.
    groups : int
        Blocks of channels that are correlated apart.

    Returns
    -------
    Tensor
        (N, O, L') or (O, L') with L' = ⌊(L + 2·padding - dilation·(K - 1) - 1) / stride⌋ + 1.

    Raises
    ------
    ShapeError
        When shapes, sizes or groups do not fit.
    DTypeError
        When the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1., 2., 4., 8.]])
    >>> flow.conv1d(x, flow.tensor([[[-1., 1.]]]))
    tensor([[1., 2., 4.]])
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@register_functor("conv2d")
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Correlate images with filters.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W), or (C, H, W) for one image.
    weight : Tensor
        (O, C / groups, KH, KW), of the same dtype.
    bias : Tensor, optional
        (O,)
    stride, padding, dilation : int or tuple of two ints
        As in `conv1d`, for height and width; `padding` may be "same" or "valid".
    groups : int
        Blocks of channels that are correlated apart.

    Returns
    -------
    Tensor
        (N, O, H', W') or (O, H', W'), with sizes as in `conv1d`.

    Raises
    ------
    ShapeError
        When shapes, sizes or groups do not fit.
    DTypeError
        When the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.arange(9.).reshape(1, 1, 3, 3)
    >>> flow.conv2d(x, flow.ones(1, 1, 2, 2))
    tensor([[[[ 8., 12.],
              [20., 24.]]]])
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def _conv(
    op: str,
    spatial: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    check_ndim(op, input, (spatial + 1, spatial + 2))
    check_ndim(op, weight, (spatial + 2,), "weight")
    kernel_size = weight.shape[2:]
    stride = check_sizes(op, "stride", stride, spatial)
    dilation = check_sizes(op, "dilation", dilation, spatial)
    _check_channels(op, input.shape[-1 - spatial], weight, bias, groups)
    _check_dtypes(op, input, weight, bias)
    if isinstance(padding, str):
        input, padding = _pad_by_name(op, input, padding, kernel_size, stride, dilation)
    else:
        padding = check_sizes(op, "padding", padding, spatial, 0)
    for size, p, k, d in zip(input.shape[-spatial:], padding, kernel_size, dilation, strict=True):
        if size + 2 * p < d * (k - 1) + 1:
            raise bad_argument(
                ShapeError,
                op,
                "weight",
                expected=f"filters that fit into the padded input, shape {input.shape} with "
                f"padding {padding}",
                got=f"shape {weight.shape} with dilation {dilation}",
                mend="use smaller filters or more padding",
            )
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if input.ndim == spatial + 2:
        return dispatch(CONV, (input, weight, bias), attrs)
    return squeeze(dispatch(CONV, (unsqueeze(input, 0), weight, bias), attrs), 0)


def _check_channels(
    op: str, channels: int, weight: Tensor, bias: Tensor | None, groups: int
) -> None:
    if check_int(op, "groups", groups) < 1 or weight.shape[0] % groups:
        raise bad_argument(
            ShapeError,
            op,
            "groups",
            expected=f"a positive divisor of the {weight.shape[0]} output channels",
            got=groups,
            mend="change the groups, or the filters",
        )
    if channels != weight.shape[1] * groups:
        raise bad_argument(
            ShapeError,
            op,
            "input",
            expected=f"{weight.shape[1] * groups} channels, for weight of shape {weight.shape} "
            f"and groups={groups}",
            got=f"{channels} channels",
            mend="match the channels",
        )
    if bias is not None and check_tensor(op, "bias", bias).shape != weight.shape[:1]:
        raise bad_argument(
            ShapeError,
            op,
            "bias",
            expected=f"shape {weight.shape[:1]}, one element for each output channel",
            got=f"shape {bias.shape}",
            mend="match the output channels",
        )


def _check_dtypes(op: str, input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype != input.dtype:
            raise bad_argument(
                DTypeError,
                op,
                name,
                expected=f"dtype {input.dtype}, that of the input",
                got=other.dtype,
                mend="convert one of them with .to(dtype)",
            )


def _pad_by_name(
    op: str,
    input: Tensor,
    padding: str,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the input, and the padding that is left for the op to add on both sides."""
    if padding == "valid":
        return input, (0,) * len(stride)
    if padding != "same" or any(step != 1 for step in stride):
        raise bad_argument(
            ShapeError,
            op,
            "padding",
            expected="'same' with stride 1, 'valid', or ints",
            got=f"{padding!r} with stride {stride}",
            mend="give the padding in numbers",
        )
    totals = [d * (k - 1) for k, d in zip(kernel_size, dilation, strict=True)]
    if any(total % 2 for total in totals):
        ends = [size for total in reversed(totals) for size in (0, total % 2)]
        input = pad(input, tuple(ends))
    return input, tuple([total // 2 for total in totals])
