"""Kernels of adaptive pooling over the trailing dimensions, as many as `output_size` has."""

import itertools
import math

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import pooled, pooled_with_index, unpooled
from oneflow_lite.kernels.windows import along, last_first, split, with_size
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
    lead, size = split(x.shape, len(output_size))
    y = xp.empty((*lead, *output_size), x.dtype)
    indices = xp.empty(y.shape, np.int64)
    numbers = xp.arange(math.prod(size)).reshape(size)
    ranges = [_ranges(m, n) for m, n in zip(size, output_size, strict=True)]
    for cell, window in zip(np.ndindex(*output_size), itertools.product(*ranges), strict=True):
        part = x[(..., *window)]
        part = part.reshape(*lead, math.prod(part.shape[len(lead) :]))
        y[(..., *cell)] = part.max(-1)
        indices[(..., *cell)] = numbers[window].reshape(-1).take(part.argmax(-1))
    return y, indices


def _ranges(size, count):
    """Return the windows of adaptive pooling; neighbours overlap by at most one element."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
