"""Loops of pooling over one or two dimensions; see `kernels/pooling.py`."""

import math

import numpy as np

from oneflow_lite.eager_loops import Loop


@Loop
def _largest(part, begin, end, x, y, places, kernel, stride, before, dilation):
    _, height, width = x.shape
    _, rows, columns = y.shape
    for i in range(begin, end):
        for r in range(rows):
            top = r * stride[0] - before[0]
            for c in range(columns):
                left = c * stride[1] - before[1]
                found = -1
                best = x[i, 0, 0]
                for k in range(kernel[0]):
                    h = top + k * dilation[0]
                    if h < 0 or h >= height:
                        continue
                    for m in range(kernel[1]):
                        w = left + m * dilation[1]
                        if w < 0 or w >= width:
                            continue
                        value = x[i, h, w]
                        better = (value > best) | (value != value) | (found < 0)
                        best = value if better else best
                        found = h * width + w if better else found
                y[i, r, c] = best
                places[i, r, c] = found


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
def _means(part, begin, end, x, y, by_row, by_column, kernel, stride, before):
    _, height, width = x.shape
    _, rows, columns = y.shape
    for i in range(begin, end):
        for r in range(rows):
            top = r * stride[0] - before[0]
            for c in range(columns):
                left = c * stride[1] - before[1]
                total = 0.0
                for h in range(max(top, 0), min(top + kernel[0], height)):
                    for w in range(max(left, 0), min(left + kernel[1], width)):
                        total += x[i, h, w]
                y[i, r, c] = total / (by_row[r] * by_column[c])


@Loop
def _spread(part, begin, end, dy, dx, by_row, by_column, kernel, stride, before):
    _, height, width = dx.shape
    _, rows, columns = dy.shape
    for i in range(begin, end):
        for h in range(height):
            for w in range(width):
                dx[i, h, w] = 0
        for r in range(rows):
            top = r * stride[0] - before[0]
            for c in range(columns):
                left = c * stride[1] - before[1]
                share = dy[i, r, c] / (by_row[r] * by_column[c])
                for h in range(max(top, 0), min(top + kernel[0], height)):
                    for w in range(max(left, 0), min(left + kernel[1], width)):
                        dx[i, h, w] += share


def _of_planes(x, size):
    """Return x as planes, (planes, height, width)."""
    rows, columns = size if len(size) == 2 else (1, *size)
    return x.reshape(-1, rows, columns)


def _pairs(*geometry):
    """Return sizes, steps and offsets for two dimensions."""
    return [each if len(each) == 2 else (neutral, *each) for each, neutral in geometry]


def max_pool(x, *, kernel_size, stride, padding, dilation, output_size):
    spatial = len(kernel_size)
    if spatial > 2 or x.dtype.char not in "fd" or not x.size:
        return None
    shape = (*x.shape[: x.ndim - spatial], *output_size)
    y, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    geometry = _pairs((kernel_size, 1), (stride, 1), (padding, 0), (dilation, 1))
    source = _of_planes(x, x.shape[x.ndim - spatial :])
    results = _of_planes(y, output_size), _of_planes(places, output_size)
    return (y, places) if _largest(len(source), source, *results, *geometry) else None


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
    """Return by what the sums of each row and column of windows are divided."""
    rows, columns = output_size if len(output_size) == 2 else (1, *output_size)
    if not isinstance(divisor, tuple):
        return np.full(rows, float(divisor)), np.ones(columns)
    by = [np.array(counts, np.float64) for counts in divisor]
    return by if len(by) == 2 else [np.ones(1), *by]


def avg_pool(x, *, kernel_size, stride, padding, output_size, divisor):
    spatial = len(kernel_size)
    if spatial > 2 or x.dtype.char not in "fd" or not x.size:
        return None
    y = np.empty((*x.shape[: x.ndim - spatial], *output_size), x.dtype)
    planes = _of_planes(x, x.shape[x.ndim - spatial :]), _of_planes(y, output_size)
    geometry = _pairs((kernel_size, 1), (stride, 1), (padding, 0))
    made = _means(len(planes[0]), *planes, *_divisors(divisor, output_size), *geometry)
    return y if made else None


def avg_pool_grad(dy, *, input_size, kernel_size, stride, padding, output_size, divisor):
    spatial = len(kernel_size)
    if spatial > 2 or dy.dtype.char not in "fd" or not dy.size:
        return None
    dx = np.empty((*dy.shape[: dy.ndim - spatial], *input_size), dy.dtype)
    planes = _of_planes(dy, output_size), _of_planes(dx, input_size)
    geometry = _pairs((kernel_size, 1), (stride, 1), (padding, 0))
    made = _spread(len(planes[0]), *planes, *_divisors(divisor, output_size), *geometry)
    return dx if made else None
