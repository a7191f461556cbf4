"""Pooling: what users call; window arithmetic is done here, the kernels get it ready-made."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ShapeError, bad_argument
from oneflow_lite.functors.checks import check_int, require_floating
from oneflow_lite.functors.elementwise_checks import real
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.spatial import check_planes, check_sizes
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

MAX_POOL = op_expr("max_pool")
AVG_POOL = op_expr("avg_pool")

Sizes = tuple[int, ...]


@register_functor("max_pool1d")
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window of a sequence.

    Among equals the first one takes the gradient; a NaN is larger than every number.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L).
    kernel_size, stride, padding, dilation : int or tuple of one int
        The window, its step (its own size by default), the elements of -inf added on both sides
        (at most half of the window), and the spacing of its elements.
    ceil_mode : bool
        Whether a last window counts that does not lie wholly inside.
    return_indices : bool
        Whether the positions of the maxima are returned too.

    Returns
    -------
    Tensor or tuple of two Tensors
        (N, C, L') or (C, L'), L' = ⌊(L + 2·padding - dilation·(kernel_size - 1) - 1) / stride⌋ + 1,
        rounded up with `ceil_mode`; the positions are int64.

    Raises
    ------
    ShapeError
        When sizes do not fit.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.max_pool1d(flow.tensor([[1., 3., 2., 5.]]), 2, return_indices=True)
    (tensor([[3., 5.]]), tensor([[1, 3]]))
    """
    pooled = _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode)
    return pooled if return_indices else pooled[0]


@register_functor("max_pool2d")
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maximum of each window of an image.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    kernel_size, stride, padding, dilation : int or tuple of two ints
        As in `max_pool1d`, for height and width.
    ceil_mode, return_indices : bool
        As in `max_pool1d`; a position counts the elements of one image, row by row.

    Returns
    -------
    Tensor or tuple of two Tensors
        (N, C, H', W') or (C, H', W'), with sizes as in `max_pool1d`.

    Raises
    ------
    ShapeError
        When sizes do not fit.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.max_pool2d(flow.arange(16.).reshape(1, 1, 4, 4), 2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    pooled = _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode)
    return pooled if return_indices else pooled[0]


def _max_pool(
    op: str,
    spatial: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    check_planes(op, real(op, input), spatial)
    dilation = check_sizes(op, "dilation", dilation, spatial)
    attrs = _windows(op, input, kernel_size, stride, padding, dilation, ceil_mode)
    attrs["dilation"] = dilation
    return dispatch(MAX_POOL, (input,), attrs)


@register_functor("avg_pool1d")
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of a sequence.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L), floating or complex.
    kernel_size, stride, padding : int or tuple of one int
        The window, its step (its own size by default), and the zeros added on both sides.
    ceil_mode : bool
        Whether a last window counts that does not lie wholly inside.
    count_include_pad : bool
        Whether the zeros count.

    Raises
    ------
    ShapeError
        When sizes do not fit.
    DTypeError
        When the input holds integers.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.avg_pool1d(flow.tensor([[1., 3., 2., 6.]]), 2)
    tensor([[2., 4.]])
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


@register_functor("avg_pool2d")
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean of each window of an image.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W), floating or complex.
    kernel_size, stride, padding : int or tuple of two ints
        As in `avg_pool1d`, for height and width.
    ceil_mode, count_include_pad : bool
        As in `avg_pool1d`.
    divisor_override : int, optional
        Divides the sums in place of the number of elements.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ShapeError
        When sizes do not fit, or the divisor is 0.
    DTypeError
        When the input holds integers.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.avg_pool2d(flow.tensor([[[1., 3.], [2., 6.]]]), 2)
    tensor([[[3.]]])
    """
    if out is not None:
        return write_out(
            "avg_pool2d",
            out,
            avg_pool2d,
            input,
            kernel_size,
            stride,
            padding,
            ceil_mode,
            count_include_pad,
            divisor_override,
        )
    if (
        divisor_override is not None
        and check_int("avg_pool2d", "divisor_override", divisor_override) == 0
    ):
        raise bad_argument(
            ShapeError,
            "avg_pool2d",
            "divisor_override",
            expected="a number other than 0",
            got=0,
            mend="leave it out to divide by the number of elements",
        )
    return _avg_pool(
        "avg_pool2d",
        2,
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def _avg_pool(
    op: str,
    spatial: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Any,
) -> Tensor:
    check_planes(op, require_floating(op, input), spatial)
    attrs = _windows(op, input, kernel_size, stride, padding, (1,) * spatial, ceil_mode)
    attrs["divisor"] = divisor or _divisor(input.shape[-spatial:], count_include_pad, **attrs)
    return dispatch1(AVG_POOL, input, attrs)


def _windows(
    op: str,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Sizes,
    ceil_mode: bool,
) -> dict[str, Any]:
    """Return the attributes that say where the windows lie."""
    spatial = len(dilation)
    kernel_size = check_sizes(op, "kernel_size", kernel_size, spatial)
    if stride is None or stride == ():
        stride = kernel_size
    stride = check_sizes(op, "stride", stride, spatial)
    padding = check_sizes(op, "padding", padding, spatial, 0)
    output_size = []
    for n, k, s, p, d in zip(
        input.shape[-spatial:], kernel_size, stride, padding, dilation, strict=True
    ):
        extent = d * (k - 1) + 1
        if p > extent // 2:
            raise bad_argument(
                ShapeError,
                op,
                "padding",
                expected=f"at most half of the window, {extent // 2}",
                got=p,
                mend="pad less, or pad the input with flow.nn.functional.pad",
            )
        room = n + 2 * p - extent
        count = -(-room // s) + 1 if ceil_mode else room // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1  # the last window must begin inside the input or before it
        if count < 1:
            raise bad_argument(
                ShapeError,
                op,
                "kernel_size",
                expected=f"windows that fit into the input, shape {input.shape}",
                got=f"{kernel_size} with padding {padding}",
                mend="use a smaller window or more padding",
            )
        output_size.append(count)
    return {
        "kernel_size": kernel_size,
        "stride": stride,
        "padding": padding,
        "output_size": tuple(output_size),
    }


def _divisor(
    size: Sizes,
    count_include_pad: bool,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    output_size: Sizes,
) -> Any:
    """Return how many elements the windows have: one number, or tuples whose products count."""
    counts = []
    for n, k, s, p, out in zip(size, kernel_size, stride, padding, output_size, strict=True):
        starts = range(-p, out * s - p, s)
        if count_include_pad:
            counts.append(tuple([min(i + k, n + p) - i for i in starts]))
        else:
            counts.append(tuple([min(i + k, n) - max(i, 0) for i in starts]))
    if any(len(set(each)) > 1 for each in counts):
        return tuple(counts)
    number = 1
    for each in counts:
        number *= each[0]
    return number
