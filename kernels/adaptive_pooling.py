"""Kernels of adaptive pooling over the trailing dimensions, as many as `output_size` has."""

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import pooled, pooled_with_index, unpooled
from oneflow_lite.kernels.windows import along, last_first, split, take_larger, with_size
from oneflow_lite.registry import register_kernel


@register_kernel("adaptive_avg_pool", infer=pooled)
@in_float32
def adaptive_avg_pool(xp, x, *, output_size):
    """Average one dimension after the other: the windows are products of ranges."""
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
    """Take maxima along one dimension after the other, and carry along where they stand."""
    lead, size = split(x.shape, len(output_size))
    y, indices, step = x, None, 1
    for axis, n, m in last_first(lead, output_size, size):
        ranges = _ranges(m, n)
        where = (n, *(1,) * (x.ndim - 1 - axis))
        first = xp.asarray([r.start for r in ranges], np.int64).reshape(where)
        last = xp.asarray([r.stop - 1 for r in ranges], np.int64).reshape(where)
        # A window that is shorter than others meets its last element again.
        taps = [
            xp.minimum(first + k, last).reshape(-1)
            for k in range(max([r.stop - r.start for r in ranges], default=1))
        ]
        source = y
        y = source.take(taps[0], axis)
        tap = xp.zeros(y.shape, np.min_scalar_type(len(taps)))
        take_larger(xp, y, tap, (source.take(each, axis) for each in taps[1:]))
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
