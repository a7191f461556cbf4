"""Loops of pooling over one or two dimensions; see `kernels/pooling.py`."""

import functools
import math

import numpy as np

from oneflow_lite.kernels.windows import overhang, padded
from oneflow_lite.ops.eager_loops import Loop

_TAPS = 16  # of a window, at most: they are written out, so that the innermost loop decides nothing

_LARGEST = """\
def group(part, begin, end, x, y, places, wide):
    _, rows, columns = y.shape
    for i in range(begin, end):
        for r in range(rows):
            {lines}
            best, at = y[i, r], places[i, r]
            for c in range(columns):
                value, tap = line0[c * {right}], int32(0)
                {taps}
                best[c] = value
                at[c] = (r * {down} * wide + c * {right}) + tap
"""
_TAP_OF_LARGEST = """\
new = line{k}[c * {right} + {m}]
better = (new > value) | (new != new)
value = new if better else value
tap = int32({down} * wide + {m}) if better else tap
"""
_MEAN = """\
def group(part, begin, end, x, y, by_row, by_column):
    _, rows, columns = y.shape
    for i in range(begin, end):
        for r in range(rows):
            {lines}
            line, by = y[i, r], by_row[r]
            for c in range(columns):
                value = real(0.0)
                {taps}
                line[c] = value / (by * by_column[c])
"""
_TAP_OF_MEAN = "value += line{k}[c * {right} + {m}]\n"


@functools.cache
def _windows(whole, tap, kernel_size, stride, dilation):
    """Return the loop over windows of one kind, which lie inside of x."""
    (rows, columns), (down, right), (apart, aside) = kernel_size, stride, dilation
    lines = [f"line{k} = x[i, r * {down} + {k * apart}]" for k in range(rows)]
    taps = [
        line
        for k in range(rows)
        for m in range(columns)
        for line in tap.format(k=k, m=m * aside, right=right, down=k * apart).splitlines()
    ]
    written = whole.format(
        lines=("\n" + 12 * " ").join(lines),
        taps=("\n" + 16 * " ").join(taps),
        down=down,
        right=right,
        apart=apart,
        aside=aside,
    )
    return Loop(written)


@Loop
def _put(part, begin, end, y, places, x, wrong):
    for i in range(begin, end):
        for j in range(x.shape[1]):
            x[i, j] = 0
        for j in range(y.shape[1]):
            place = places[i, j]
            if place < 0 or place >= x.shape[1]:
                wrong[part] = 1
            else:
                x[i, place] += y[i, j]


@Loop
def _spread(part, begin, end, dy, dx, by_row, by_column, kernel, stride, before):
    _, height, width = dx.shape
    _, rows, columns = dy.shape
    step = stride[1]
    for i in range(begin, end):
        dx[i] = 0
        for r in range(rows):
            for k in range(kernel[0]):
                h = r * stride[0] - before[0] + k
                if h < 0 or h >= height:
                    continue
                for m in range(kernel[1]):
                    left = m - before[1]
                    first = max(0, -(left // step))
                    last = min(columns, (width - 1 - left) // step + 1)
                    share, by = dy[i, r, first:last], by_column[first:last]
                    target = dx[i, h, left + first * step :: step]
                    for c in range(share.size):
                        target[c] += share[c] / (by_row[r] * by[c])


def _of_planes(x, size):
    """Return x as planes, (planes, height, width)."""
    rows, columns = size if len(size) == 2 else (1, *size)
    return x.reshape(-1, rows, columns)


def _pairs(*geometry):
    """Return sizes, steps and offsets for two dimensions."""
    return [tuple(each) if len(each) == 2 else (neutral, *each) for each, neutral in geometry]


def _source(x, spatial, geometry, output_size, value):
    """Return x as planes with padding, in which all windows lie."""
    kernel_size, stride, padding, dilation = geometry
    planes = _of_planes(x, x.shape[x.ndim - spatial :])
    after = overhang(planes.shape[1:], kernel_size, stride, padding, dilation, output_size)
    return planes.shape[2], padded(np, planes, padding, after, value)


def max_pool(x, *, kernel_size, stride, padding, dilation, output_size):
    spatial = len(kernel_size)
    if spatial > 2 or x.dtype.char not in "fd" or not x.size or math.prod(kernel_size) > _TAPS:
        return None
    if any(padding):  # the loop begins at the first tap, which may lie in the padding
        return None
    shape = (*x.shape[: x.ndim - spatial], *output_size)
    y, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    geometry = _pairs((kernel_size, 1), (stride, 1), (padding, 0), (dilation, 1))
    results = _of_planes(y, output_size), _of_planes(places, output_size)
    wide, source = _source(x, spatial, geometry, results[0].shape[1:], -math.inf)
    loop = _windows(_LARGEST, _TAP_OF_LARGEST, geometry[0], geometry[1], geometry[3])
    return (y, places) if loop(len(source), source, *results, wide) else None


def plane_put(y, indices, *, input_size, disjoint, out=None):
    spatial = len(input_size)
    if y.dtype.char not in "fd" or y.shape != indices.shape or not y.size:
        return None
    shape = (*y.shape[: y.ndim - spatial], *input_size)
    x = np.empty(shape, y.dtype) if out is None else out
    count = math.prod(shape[: y.ndim - spatial])
    wrong = np.zeros(64, np.int64)
    lines = [each.reshape(count, -1) for each in (y, indices, x)]
    return x if _put(count, *lines, wrong) and not wrong.any() else None


def _divisors(divisor, output_size):
    """Return the divisors of the sums of each row and column of windows."""
    rows, columns = output_size if len(output_size) == 2 else (1, *output_size)
    if not isinstance(divisor, tuple):
        return np.full(rows, float(divisor)), np.ones(columns)
    by = [np.array(counts, np.float64) for counts in divisor]
    return by if len(by) == 2 else [np.ones(1), *by]


def avg_pool(x, *, kernel_size, stride, padding, output_size, divisor):
    spatial = len(kernel_size)
    if spatial > 2 or x.dtype.char not in "fd" or not x.size or math.prod(kernel_size) > _TAPS:
        return None
    y = np.empty((*x.shape[: x.ndim - spatial], *output_size), x.dtype)
    geometry = _pairs((kernel_size, 1), (stride, 1), (padding, 0), ((1,) * spatial, 1))
    results = _of_planes(y, output_size)
    _, source = _source(x, spatial, geometry, results.shape[1:], 0)
    loop = _windows(_MEAN, _TAP_OF_MEAN, geometry[0], geometry[1], (1, 1))
    return y if loop(len(source), source, results, *_divisors(divisor, output_size)) else None


def avg_pool_grad(dy, *, input_size, kernel_size, stride, padding, output_size, divisor):
    spatial = len(kernel_size)
    if spatial > 2 or dy.dtype.char not in "fd" or not dy.size:
        return None
    dx = np.empty((*dy.shape[: dy.ndim - spatial], *input_size), dy.dtype)
    planes = _of_planes(dy, output_size), _of_planes(dx, input_size)
    geometry = _pairs((kernel_size, 1), (stride, 1), (padding, 0))
    made = _spread(len(planes[0]), *planes, *_divisors(divisor, output_size), *geometry)
    return dx if made else None
