"""Kernels of pooling over the trailing dimensions, as many as `kernel_size` or `output_size` has.

The dimensions before them (batch and channels) number the planes. Positions in a plane are counted
in C order, as in PyTorch.
"""

import functools
import math

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import add_at, check_range, take
from oneflow_lite.kernels.infer_rules import gathered, pooled, pooled_with_index, unpooled
from oneflow_lite.kernels.numerics import zeros
from oneflow_lite.kernels.pieces import by_planes
from oneflow_lite.kernels.windows import (
    FEW,
    along,
    inside,
    last_first,
    lines,
    overhang,
    padded,
    positions_of_few,
    sliding_windows,
    split,
    take_larger,
    with_size,
)
from oneflow_lite.ops.registry import register_kernel


@register_kernel("max_pool", infer=pooled_with_index)
@by_planes(np.int64)
def max_pool(xp, x, *, kernel_size, stride, padding, dilation, output_size):
    """Return maxima, and where in their plane they stand: the first of equals, or the last NaN."""
    size = x.shape[x.ndim - len(kernel_size) :]
    after = overhang(size, kernel_size, stride, padding, dilation, output_size)
    source = padded(xp, x, padding, after, _lowest(x.dtype))
    geometry = (kernel_size, output_size, stride, dilation)
    if xp is np and not any(padding) and (rows := _rows_of_few(size, source.shape, *geometry)):
        positions, firsts, places = rows
        windows = source.take(positions)
        winners = windows.argmax(-1)
        winners += firsts
        y = windows.take(winners)
        largest = y.item(y.argmax())  # NaN if there is one; a sum could overflow, and warn
        if largest == largest:  # of several NaNs in a window this took the first
            return y, places.take(winners)
    return _largest(xp, source, size, kernel_size, stride, padding, dilation, output_size)


def _largest(xp, x, size, *windows):
    """Return the maxima of windows of padded planes, and their places in planes of `size`."""
    is_float = x.dtype.kind == "f"
    y, tap = _largest_by_dimension(xp, x, is_float and xp is not np, *windows)
    if is_float and xp is np and y.size and np.isnan(y.max()):
        y, tap = _largest_by_dimension(xp, x, True, *windows)
    kernel_size, stride, padding, dilation, output_size = windows
    indices = xp.asarray(_positions(kernel_size, dilation, None, size)).take(tap)
    indices += xp.asarray(_positions(output_size, stride, padding, size))
    return y, indices


def _largest_by_dimension(xp, x, may_be_nan, *windows):
    """Return the maxima and the number of the window's tap that each is, the first of equals.

    The maxima of rows serve all windows that they meet. Masked copies branch on every element. So
    the number of the winning tap, which only grows while taps are compared in order, is kept by
    `maximum` instead.
    """
    lead, _ = split(x.shape, len(windows[0]))
    y, tap, step = x, None, 1
    dtype = np.min_scalar_type(math.prod(windows[0]))
    for axis, k, s, p, d, n in last_first(lead, *windows):
        lines = [along(axis, slice(i * d, i * d + (n - 1) * s + 1, s)) for i in range(k)]
        largest = y[lines[0]].copy()
        chosen = xp.zeros(largest.shape, dtype) if tap is None else tap[lines[0]].copy()
        if p:  # begin at the first tap outside of the padding, which even -inf does not exceed
            first = step * -(-np.maximum(p - np.arange(n) * s, 0) // d)
            chosen += xp.asarray(first, dtype).reshape(-1, *(1,) * (x.ndim - 1 - axis))
        for i, line in enumerate(lines[1:], 1):
            candidate = y[line] if s == 1 else y[line].copy()
            better = candidate > largest
            if may_be_nan:
                better |= candidate != candidate
            number = dtype.type(i * step) if tap is None else tap[line] + dtype.type(i * step)
            xp.maximum(largest, candidate, out=largest)
            xp.maximum(chosen, better * number, out=chosen)
        y, tap, step = largest, chosen, step * k
    return y, tap


@functools.lru_cache(64)
def _rows_of_few(size, shape, kernel_size, output_size, stride, dilation):
    """Return windows as rows: C-order positions of taps, the first of each row, places in a plane.

    None for many elements: see `positions_of_few`.
    """
    positions = positions_of_few(shape, kernel_size, output_size, stride, dilation)
    if positions is None:
        return None
    positions = np.ascontiguousarray(np.moveaxis(positions, 0, -1))
    firsts = np.arange(0, positions.size, positions.shape[-1]).reshape(positions.shape[:-1])
    starts = _positions(output_size, stride, (0,) * len(size), size)
    places = starts[..., None] + _positions(kernel_size, dilation, None, size)
    return positions, firsts, np.broadcast_to(places, positions.shape).copy()


@register_kernel("fractional_max_pool", infer=pooled_with_index, sbp="b*,b*->b", batch="front")
@in_float32
def fractional_max_pool(xp, x, samples, *, kernel_size, output_size):
    """Return maxima of windows at nearly equal distances, moved by `samples` in [0, 1).

    samples (N, C, spatial) shift each plane's windows along each dimension: width and height in two
    dimensions, depth, height and width in three (PyTorch's orders).
    B. Graham, "Fractional Max-Pooling", 2014.
    """
    lead, size = split(x.shape, len(kernel_size))
    if len(size) == 2:
        samples = samples[..., ::-1]
    starts = _starts(xp, lead, size)
    for axis, (m, k, n) in enumerate(zip(size, kernel_size, output_size, strict=True)):
        shift = samples[..., axis].reshape(*lead, 1).astype(x.dtype)
        step = x.dtype.type(m - k) / x.dtype.type(max(n - 1, 1))
        first = xp.floor((xp.arange(n, dtype=x.dtype) + shift) * step) - xp.floor(shift * step)
        first[..., -1] = m - k
        rest = size[axis + 1 :]
        where = (*lead, *(1,) * axis, n, *(1,) * len(rest))
        starts = starts + first.astype(np.int64).reshape(where) * math.prod(rest)
    offsets = _positions(kernel_size, (1,) * len(size), None, size)
    flat = x.reshape(x.size)
    y = flat.take(starts)
    tap = xp.zeros(y.shape, np.min_scalar_type(offsets.size))
    take_larger(xp, y, tap, (flat.take(starts + int(offset)) for offset in offsets[1:]))
    return y, starts - _starts(xp, lead, size) + xp.asarray(offsets).take(tap)


@register_kernel("max_unpool", infer=pooled, sbp="b*,b*->b", linear="x")
def max_unpool(xp, x, indices, *, output_size):
    """Return planes of zeros with x at these positions; of equal positions the last counts."""
    op = f"max_unpool{len(output_size)}d"
    check_range(xp, op, "indices", indices, math.prod(output_size))
    return plane_put(xp, x, indices, input_size=output_size, disjoint=True)


@register_kernel("plane_take", infer=gathered, sbp="b*,b*->b", linear="x")
def plane_take(xp, x, indices, *, spatial, out=None):
    """Return the elements at these positions of each plane."""
    lead, size = split(x.shape, spatial)
    return take(xp, x.reshape(x.size), indices + _starts(xp, lead, size), None, out)


@register_kernel("plane_put", infer=unpooled, sbp="b*,b*->b", linear="y")
def plane_put(xp, y, indices, *, input_size, disjoint, out=None):
    """Add y into planes of zeros at these positions; `disjoint`: no position occurs twice."""
    lead, _ = split(y.shape, len(input_size))
    x = zeros(xp, (*lead, *input_size), y.dtype, out)
    positions = indices + _starts(xp, lead, input_size)
    if disjoint:
        x.put(positions, y)
    else:
        add_at(xp, x.reshape(x.size), positions, y)
    return x


@register_kernel("avg_pool", infer=pooled, linear="x")
@by_planes()
@in_float32
def avg_pool(xp, x, *, kernel_size, stride, padding, output_size, divisor):
    """Sum the windows dimension by dimension and divide by `divisor`.

    The divisor is a number, or a tuple of factors for each dimension: a window is divided by their
    product.
    """
    lead, size = split(x.shape, len(kernel_size))
    once = (1,) * len(size)
    after = overhang(size, kernel_size, stride, padding, once, output_size)
    y = padded(xp, x, padding, after)
    geometry = (kernel_size, output_size, stride, once)
    one = math.prod(output_size) == 1
    positions = positions_of_few(y.shape, *geometry) if xp is np and not one else None
    if positions is not None:
        return _divided(np, np.add.reduce(y.take(positions), 0), divisor)
    if one or (xp is np and y.size <= FEW):  # one sum is quicker
        windows = sliding_windows(xp, y, *geometry)
        axes = tuple(range(len(lead), len(lead) + len(size)))
        return _divided(xp, windows.sum(axes), divisor)
    for axis, k, s, n in last_first(lead, kernel_size, stride, output_size):
        first, *rest = lines(axis, k, n, s)
        total = y[first].copy()
        for place in rest:
            total += y[place]
        y = total
    return _divided(xp, y, divisor)


@register_kernel("avg_pool_grad", infer=unpooled)
@by_planes()
@in_float32
def avg_pool_grad(xp, dy, *, input_size, kernel_size, stride, padding, output_size, divisor):
    lead, _ = split(dy.shape, len(kernel_size))
    once = (1,) * len(input_size)
    after = overhang(input_size, kernel_size, stride, padding, once, output_size)
    padded_size = tuple([b + m + a for b, m, a in zip(padding, input_size, after, strict=True)])
    dx = _divided(xp, dy.copy(), divisor)
    if kernel_size == stride:  # each element is in one window, or between them
        total = xp.zeros((*lead, *padded_size), dy.dtype)
        geometry = (kernel_size, output_size, stride, once)
        one = math.prod(output_size) == 1
        positions = positions_of_few(total.shape, *geometry) if xp is np and not one else None
        if positions is not None:
            total.put(positions, dx)  # put repeats dx for every tap
        else:
            windows = sliding_windows(xp, total, *geometry)
            windows[...] = dx.reshape(*lead, *once, *output_size)
        dx = total
    else:
        for axis, k, s, n, m in last_first(lead, kernel_size, stride, output_size, padded_size):
            total = xp.zeros(with_size(dx.shape, axis, m), dy.dtype)
            for place in lines(axis, k, n, s):
                total[place] += dx
            dx = total
    return dx[inside(input_size, padding)].copy() if any((*padding, *after)) else dx


@register_kernel("adaptive_avg_pool", infer=pooled, linear="x")
@in_float32
def adaptive_avg_pool(xp, x, *, output_size):
    """Average dimension by dimension: the windows are products of ranges."""
    lead, _ = split(x.shape, len(output_size))
    y = x
    for axis, n in last_first(lead, output_size):
        total = xp.empty(with_size(y.shape, axis, n), y.dtype)
        for i, window in enumerate(_ranges(y.shape[axis], n)):
            sums = y[along(axis, window)].sum(axis)
            total[along(axis, i)] = sums / (window.stop - window.start)
        y = total
    return y


@register_kernel("adaptive_avg_pool_grad", infer=unpooled)
@in_float32
def adaptive_avg_pool_grad(xp, dy, *, input_size):
    lead, _ = split(dy.shape, len(input_size))
    dx = dy
    for axis, m in last_first(lead, input_size):
        total = xp.zeros(with_size(dx.shape, axis, m), dy.dtype)
        for i, window in enumerate(_ranges(m, dx.shape[axis])):
            target = total[along(axis, window)]
            target += dx[along(axis, slice(i, i + 1))] / (window.stop - window.start)
        dx = total
    return dx


@register_kernel("adaptive_max_pool", infer=pooled_with_index)
def adaptive_max_pool(xp, x, *, output_size):
    """Take maxima dimension by dimension, and carry the positions of the maxima along."""
    lead, size = split(x.shape, len(output_size))
    y, indices, step = x, None, 1
    for axis, n, m in last_first(lead, output_size, size):
        where = (n, *(1,) * (x.ndim - 1 - axis))
        number = np.arange(n, dtype=np.int64).reshape(where)
        first = number * m // n
        last = -(-(number + 1) * m // n) - 1
        longest = max((last - first).ravel().tolist(), default=0) + 1
        first, last = xp.asarray(first), xp.asarray(last)
        # A shorter window meets its last element twice, so that all have as many picks.
        picks = [xp.minimum(first + k, last).reshape(-1) for k in range(longest)]
        source = y
        y = source.take(picks[0], axis)
        tap = xp.zeros(y.shape, np.min_scalar_type(len(picks)))
        take_larger(xp, y, tap, (source.take(each, axis) for each in picks[1:]))
        chosen = xp.minimum(first + tap, last)
        if indices is None:
            indices = chosen
        else:
            indices = chosen * step + xp.take_along_axis(indices, chosen, axis)
        step *= m
    return y, indices


def _ranges(size, count):
    """Return the windows of adaptive pooling; neighbours overlap by at most one element."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _lowest(dtype):
    """Return a number that no element is smaller than."""
    return -math.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _starts(xp, lead, size):
    """Return where each plane begins in the whole array."""
    make = _starts_of_few if xp is np and math.prod(lead) <= FEW else _starts_of_many
    return make(xp, lead, size)


def _starts_of_many(xp, lead, size):
    starts = xp.arange(math.prod(lead)) * math.prod(size)
    return starts.reshape(*lead, *(1,) * len(size))


_starts_of_few = functools.lru_cache(64)(_starts_of_many)


@functools.lru_cache(64)
def _positions(counts, steps, before, size):
    """Return the C-order positions in a plane of `size` of a grid; as a vector without `before`."""
    positions = np.zeros((), np.int64)
    for n, step, b, m in zip(counts, steps, before or (0,) * len(size), size, strict=True):
        positions = positions[..., None] * m + (np.arange(n) * step - b)
    return positions if before else positions.reshape(-1)


def _divided(xp, y, divisor):
    """Divide y in place."""
    if not isinstance(divisor, tuple):
        y /= divisor
        return y
    for axis, counts in enumerate(reversed(divisor)):
        y /= xp.asarray(counts, y.dtype).reshape(-1, *(1,) * axis)
    return y
