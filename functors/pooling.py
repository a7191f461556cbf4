"""Pooling: functions that users call. They compute where windows lie, for the kernels."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import arg_error
from oneflow_lite.functors import spatial as S
from oneflow_lite.functors.declaring.checks import check_int, check_ndim
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    Flag,
    FloatingOrComplex,
    FloatOrFloats,
    Integer,
    IntOrInts,
    Number,
    Positive,
)
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

AVG_POOL, MAX_POOL = op_expr("avg_pool"), op_expr("max_pool")


@S.spatially(
    "functional flow",
    samples="x(2, S), 2; x(1, 2, S), 2, 1, 1, ceil_mode=True; x(1, S), 2, 1, return_indices=True",
    indices=True,
)
def max_pool_nd(
    input: S.RealPlanes,
    kernel_size: S.Sizes,
    stride: S.Stride = None,
    padding: S.Padding = 0,
    dilation: S.Sizes = 1,
    ceil_mode: Flag = False,
    return_indices: Flag = False,
) -> Any:
    """Return the maximum of each window.

    Among equals the first takes the gradient; a NaN is larger than every number. A dimension of
    L elements gets ⌊(L + 2·padding - dilation·(kernel_size - 1) - 1) / stride⌋ + 1 windows.

    padding: elements of -inf added on both sides, at most half of the window.
    ceil_mode: whether a last window counts that does not lie wholly inside.
    return_indices: whether the positions of the maxima are returned too, counted in C order.

    >>> flow.max_pool1d(flow.tensor([[1., 3., 2., 5.]]), 2, return_indices=True)
    (tensor([[3., 5.]]), tensor([[1, 3]]))
    """
    op = f"max_pool{len(dilation)}d"
    windows = _windows(op, input, kernel_size, stride, padding, dilation, ceil_mode)
    pooled = dispatch1(MAX_POOL, input, {**windows, "dilation": dilation})
    return pooled if return_indices else pooled[0]


@functor("flow functional", samples="x(2, 5), 2; x(1, 2, 5), 3, 2, 1, True, False")
def avg_pool1d(
    input: S.FloatingPlanes,
    kernel_size: S.Sizes,
    stride: S.Stride = None,
    padding: S.Padding = 0,
    ceil_mode: Flag = False,
    count_include_pad: Flag = True,
) -> Tensor:
    """Return the mean of each window of a sequence.

    padding, ceil_mode: as in `max_pool1d`, with zeros.
    count_include_pad: whether the zeros count.

    >>> flow.avg_pool1d(flow.tensor([[1., 3., 2., 6.]]), 2)
    tensor([[2., 4.]])
    """
    return avg_pool_nd(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@S.spatially(
    "functional",
    least=2,
    out="same",
    samples="x(2, S), 2; x(1, 2, S), 2, 1, 1, True, False; x(1, S), 2, 1, divisor_override=3",
)
def avg_pool_nd(
    input: S.FloatingPlanes,
    kernel_size: S.Sizes,
    stride: S.Stride = None,
    padding: S.Padding = 0,
    ceil_mode: Flag = False,
    count_include_pad: Flag = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window, as `avg_pool1d` does of a sequence.

    divisor_override: divides the sums in place of the number of elements.
    """
    op, once = f"avg_pool{len(kernel_size)}d", (1,) * len(kernel_size)
    if divisor_override is not None and check_int(op, "divisor_override", divisor_override) == 0:
        hint = "leave it out to divide by the number of elements"
        raise arg_error(op, "divisor_override", "a number other than 0", 0, hint)
    attrs = _windows(op, input, kernel_size, stride, padding, once, ceil_mode)
    size = input.shape[-len(once) :]
    attrs["divisor"] = divisor_override or _divisor(size, count_include_pad, **attrs)
    return dispatch1(AVG_POOL, input, attrs)


@S.spatially("functional", samples="pos(2, S), 2, 2; pos(1, 2, S), 3.0, 2, 1, True")
def lp_pool_nd(
    input: S.FloatingPlanes,
    norm_type: Number,
    kernel_size: S.Sizes,
    stride: S.Stride = None,
    ceil_mode: Flag = False,
) -> Tensor:
    """Return (Σ xᵖ)^(1/p) of each window, p = `norm_type`; for ±inf the largest or least |x|.

    >>> flow.nn.functional.lp_pool1d(flow.tensor([[3., 4., 6., 8.]]), 2, 2)
    tensor([[ 5., 10.]])
    """
    spatial = len(kernel_size)
    if math.isinf(norm_type):
        sign, pool = math.copysign(1, norm_type), getattr(F, f"max_pool{spatial}d")
        return pool(input.abs() * sign, kernel_size, stride, ceil_mode=ceil_mode) * sign
    means = getattr(F, f"avg_pool{spatial}d")(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return (means * math.prod(kernel_size)) ** (1 / norm_type)


@functor("functional", samples="x(1, 4, 3), 3; x(1, 3, 2, 2), 2, 0.5, 1.5, 2.0")
def local_response_norm(
    input: FloatingOrComplex,
    size: Positive,
    alpha: Number = 1e-4,
    beta: Number = 0.75,
    k: Number = 1.0,
) -> Tensor:
    """Divide by (k + α·mean of x² over `size` neighbouring channels)^β.

    input: of shape (N, C, *).
    ShapeError: when the input has fewer than three dimensions.

    >>> flow.nn.functional.local_response_norm(flow.ones(1, 3, 1), 3, 9.0, 1.0).flatten()
    tensor([0.1429, 0.1000, 0.1429])
    """
    shape = input.shape
    if len(shape) < 3:
        check_ndim("local_response_norm", input, (3, 4, 5))
    if not math.prod(shape):
        return input.clone()
    squares = (input * input).reshape(shape[0], 1, shape[1], -1)
    squares = F.pad(squares, (0, 0, size // 2, (size - 1) // 2))
    means = F.avg_pool2d(squares, (size, 1), 1).reshape(shape)
    return input / (means * alpha + k) ** beta


def _windows(
    op: str, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> dict[str, Any]:
    """Return the attributes that say where the windows lie."""
    shape, stride = input.shape, stride or kernel_size
    counts = _counts(op, shape, kernel_size, stride, padding, dilation, ceil)
    windows = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
    return {**windows, "output_size": counts}


@functools.lru_cache(512)
def _counts(
    op: str,
    shape: S.Ints,
    kernel_size: S.Ints,
    stride: S.Ints,
    padding: S.Ints,
    dilation: S.Ints,
    ceil: bool,
) -> S.Ints:
    """Return how many windows each dimension gets, checked."""
    size, counts = shape[-len(dilation) :], []
    for n, k, s, p, d in zip(size, kernel_size, stride, padding, dilation, strict=True):
        extent = d * (k - 1) + 1
        if p > extent // 2:
            expected = f"at most half of the window, {extent // 2}"
            hint = "pad less, or pad the input with flow.nn.functional.pad"
            raise arg_error(op, "padding", expected, p, hint)
        room = n + 2 * p - extent
        count = -(-room // s) + 1 if ceil else room // s + 1
        if ceil and (count - 1) * s >= n + p:
            count -= 1  # the last window must begin inside the input or before it
        if count < 1:
            expected = f"windows that fit into the input, shape {shape}"
            hint = "use a smaller window or more padding"
            raise arg_error(
                op, "kernel_size", expected, f"{kernel_size} with padding {padding}", hint
            )
        counts.append(count)
    return tuple(counts)


@functools.lru_cache(512)
def _divisor(size: S.Ints, count_include_pad: bool, **windows: S.Ints) -> Any:
    """Return the number of elements of a window: a number, or the factors of each dimension."""
    counts = []
    for n, k, s, p, out in zip(size, *windows.values(), strict=True):
        low, high = (-p, n + p) if count_include_pad else (0, n)
        starts = range(-p, out * s - p, s)
        counts.append(tuple([min(i + k, high) - max(i, low) for i in starts]))
    if any(len(set(each)) > 1 for each in counts):
        return tuple(counts)
    return math.prod(each[0] for each in counts)


def _grid_size(op: str, argument: str, value: Any, input: Tensor) -> S.Ints:
    spatial = S.number_of(op)
    if isinstance(value, (tuple, list)) and len(value) == spatial:
        size = input.shape[-spatial:]
        value = [n if wanted is None else wanted for n, wanted in zip(size, value, strict=True)]
    return S.check_sizes(op, argument, value, 0)


_SAYS = "How many windows each dimension gets, or one number for all; None keeps its size."
GridSize = Annotated[Any, S.sizes(_SAYS, ", {first}", _grid_size)]


@S.spatially("functional flow", "functional", samples="x(1, 2, S), 2; x(2, S), 1")
def adaptive_avg_pool_nd(input: S.FloatingPlanes, output_size: GridSize) -> Tensor:
    """Return the means of windows that are as equal as they can be.

    Window i of L' holds the elements ⌊i·L / L'⌋ to ⌈(i + 1)·L / L'⌉ - 1 of L.

    >>> flow.adaptive_avg_pool1d(flow.tensor([[1., 2., 6.]]), 2)
    tensor([[1.5000, 4.0000]])
    """
    size = input.shape[-len(output_size) :]
    if not all(n and m % n == 0 for m, n in zip(size, output_size, strict=True)):
        return F.adaptive_avg_pool(input, output_size=output_size)
    if all(n == 1 for n in output_size):  # the mean of all, which is quicker again
        return input.mean(tuple(range(-len(output_size), 0)), True)
    # Windows of equal size do not overlap: the kernel of avg_pool is quicker.
    step = tuple([m // n for m, n in zip(size, output_size, strict=True)])
    attrs = {"kernel_size": step, "stride": step, "padding": (0,) * len(step)}
    attrs |= {"output_size": output_size, "divisor": math.prod(step)}
    return dispatch1(AVG_POOL, input, attrs)


@S.spatially(
    "functional flow", "functional", samples="x(1, 2, S), 2; x(2, S), 1, True", indices=True
)
def adaptive_max_pool_nd(
    input: S.RealPlanes, output_size: GridSize, return_indices: Flag = False
) -> Any:
    """Return the maxima of the windows of `adaptive_avg_pool1d`; indices as `max_pool1d`."""
    pooled = F.adaptive_max_pool(input, output_size=output_size)
    return pooled if return_indices else pooled[0]


@S.spatially(
    "functional",
    samples=(
        "x(1, 3), np.array([[1, 2, 4]]), 2; x(1, 1, 2), np.array([[[4, 0]]]), 3, 2, 0, (6,)",
        "x(1, 2, 2), np.array([[[0, 3], [9, 14]]]), 2; x(1, 1, 1, 1), np.array([[[[7]]]]), 3",
        "x(1, 1, 2, 1), np.array([[[[0], [9]]]]), 2, (2, 2, 1)",
    ),
)
def max_unpool_nd(
    input: S.RealPlanes,
    indices: Integer,
    kernel_size: S.Sizes,
    stride: S.Stride = None,
    padding: S.Padding = 0,
    output_size: IntOrInts = None,
) -> Tensor:
    """Put maxima back where they stood before max pooling, among zeros.

    Of several maxima with the same position the last is kept; each takes its gradient.

    indices: the positions that max pooling returned, in the shape of the input.
    output_size: the size before pooling; by default, that of windows that just fit.
    IndexRangeError: when a position lies outside (on CUDA the values are not looked at).

    >>> y, indices = flow.max_pool1d(flow.tensor([[1., 3., 2., 5.]]), 2, return_indices=True)
    >>> flow.nn.functional.max_unpool1d(y, indices, 2)
    tensor([[0., 3., 0., 5.]])
    """
    spatial, stride = len(kernel_size), stride or kernel_size
    op = f"max_unpool{spatial}d"
    if indices.shape != input.shape:
        expected = f"shape {input.shape}, that of the input"
        raise arg_error(op, "indices", expected, indices, "pass what max pooling returned")
    geometry = zip(input.shape[-spatial:], stride, padding, kernel_size, strict=True)
    size = fitting = tuple((n - 1) * s - 2 * p + k for n, s, p, k in geometry)
    if output_size is not None:
        size = S.check_sizes(op, "output_size", tuple(output_size)[-spatial:])
    if any(abs(n - m) >= s for n, m, s in zip(size, fitting, stride, strict=True)):
        expected = f"{fitting}, give or take less than the stride {stride}"
        raise arg_error(op, "output_size", expected, output_size, "pass the size before pooling")
    return F.max_unpool(input, indices, output_size=size)


@S.spatially(
    "functional",
    least=2,
    samples=(
        "x(1, S), 2, (2, 3), _random_samples=fixed(np.full((1, 1, 2), 0.6))",
        "x(2, S), (1, 1, 2), (2, 1, 2), _random_samples=fixed(np.full((1, 2, 3), 0.3))",
    ),
    indices=True,
)
def fractional_max_pool_nd(
    input: S.RealPlanes,
    kernel_size: S.Sizes,
    output_size: IntOrInts = None,
    output_ratio: FloatOrFloats = None,
    return_indices: Flag = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maxima of windows at random places (B. Graham, Fractional Max-Pooling, 2014).

    output_size: int or tuple of ints; this or `output_ratio` is needed.
    output_ratio: the size of the result over that of the input, a number or one for each dimension.
    _random_samples: numbers in [0, 1), of shape (N, C, number of dimensions), that say where.

    >>> flow.nn.functional.fractional_max_pool2d(flow.ones(1, 4, 4), 3, output_size=1)
    tensor([[[1.]]])
    """
    spatial = len(kernel_size)
    op, size = f"fractional_max_pool{spatial}d", input.shape[-spatial:]
    if output_size is None:
        ratios = S.check_ratios(op, "output_ratio", output_ratio, spatial)
        output_size = [int(n * ratio) for n, ratio in zip(size, ratios, strict=True)]
    output_size = S.check_sizes(op, "output_size", output_size)
    if any(n + k - 1 > m for n, k, m in zip(output_size, kernel_size, size, strict=True)):
        expected = f"windows of {kernel_size} that begin at different places of {size}"
        raise arg_error(
            op, "output_size", expected, output_size, "ask for fewer or smaller windows"
        )
    wanted, samples = (*input.shape[:-spatial], spatial), _random_samples
    count = math.prod(wanted[:-2])
    if samples is None:
        samples = F.rand(*wanted, dtype=input.dtype, device=input.device)
    elif samples.ndim == 3 and samples.shape[1:] == wanted[-2:] and len(samples) >= count:
        samples = samples[:count].reshape(wanted)  # there may be more than needed
    elif samples.shape != wanted:
        hint = "leave them out to draw them"
        raise arg_error(op, "_random_samples", f"shape {wanted}", samples, hint)
    attrs = {"kernel_size": kernel_size, "output_size": output_size}
    pooled = F.fractional_max_pool(input, samples, **attrs)
    return pooled if return_indices else pooled[0]
