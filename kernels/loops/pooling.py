"""Loops of pooling over one or two dimensions; see `kernels/pooling.py`."""

import functools
import math

import numpy as np

from oneflow_lite.arrays.threads import threads
from oneflow_lite.ops.eager_loops import Loop

_TAPS = 16  # of a window, at most: they are written out, so that the innermost loop decides nothing

# A tap that lies in the padding stands for the window's first or last tap inside, which changes
# neither the maximum nor its place. So rows and the columns at the border read by tables.
_LARGEST = """\
def group(part, begin, end, x, y, places, row_at, column_at, inner):
    _, rows, columns = y.shape
    wide = x.shape[2]
    first, last = inner
    left = column_at[first, 0]
    for i in range(begin, end):
        for r in range(rows):
            {lines}
            best, at = y[i, r], places[i, r]
            for b in range(columns - (last - first)):
                c = b if b < first else b + (last - first)
                value, place = line0[column_at[c, 0]], int32(start0 + column_at[c, 0])
                {border}
                best[c] = value
                at[c] = place
            {inside}
            best, at = best[first:last], at[first:last]
            for c in range(best.size):
                value, place = inside0[c * {right}], start0
                {taps}
                best[c] = value
                at[c] = place + left + c * {right}
"""
_TAP = """\
new = {line}{k}[{at}]
better = (new > value) | (new != new)
value = new if better else value
place = int32(start{k} + {by}) if better else place
"""


@functools.cache
def _largest(kernel_size, right, aside):
    """Return the loop over windows of one kind, with all their taps written out."""
    rows, columns = kernel_size
    lines = [
        line
        for k in range(rows)
        for line in (f"line{k} = x[i, row_at[r, {k}]]", f"start{k} = int32(row_at[r, {k}] * wide)")
    ]
    others = [(k, m) for k in range(rows) for m in range(columns)][1:]
    border = [
        _TAP.format(line="line", k=k, at=f"column_at[c, {m}]", by=f"column_at[c, {m}]")
        for k, m in others
    ]
    inside = [f"inside{k} = line{k}[left:]" for k in range(rows)]
    taps = [
        _TAP.format(line="inside", k=k, at=f"c * {right} + {m * aside}", by=m * aside)
        for k, m in others
    ]
    parts = {"lines": _written(3, lines), "border": _written(4, border)}
    parts |= {"inside": _written(3, inside), "taps": _written(4, taps)}
    return Loop(_LARGEST.format(right=right, **parts))


def _written(level, texts):
    """Return lines of a loop's text at their level."""
    return ("\n" + 4 * level * " ").join("\n".join(texts).splitlines())


@functools.lru_cache(64)
def _places(size, count, kernel, stride, before, dilation):
    """Return where each window's taps lie, (windows, taps), and which windows lie inside.

    None where a window has no tap inside.
    """
    start = (np.arange(count) * stride - before)[:, None]
    first = np.maximum(-(start // dilation), 0)
    last = np.minimum((size - 1 - start) // dilation, kernel - 1)
    if (first > last).any():
        return None
    at = start + np.clip(np.arange(kernel), first, last) * dilation
    inside = np.flatnonzero((first == 0) & (last == kernel - 1))
    return at, (int(inside[0]), int(inside[-1]) + 1) if inside.size else (0, 0)


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


_MEAN = """\
def group(part, begin, end, x, y, by_row, by_column, kept, zero, left, down, above):
    # rows are summed first, into a line with zeros on both sides
    _, height, width = x.shape
    _, rows, columns = y.shape
    sums = kept[part]
    sums[:] = 0
    within = sums[left : left + width]
    for i in range(begin, end):
        for r in range(rows):
            top = r * down - above
            {lines}
            for w in range(width):
                within[w] = {column}
            line, by = y[i, r], by_row[r]
            for c in range(columns):
                line[c] = ({row}) / (by * by_column[c])
"""
_SPREAD = """\
def group(part, begin, end, dy, dx, by_row, by_column, kept, kernel, down, before):
    _, height, width = dx.shape
    _, rows, columns = dy.shape
    sums = kept[part]
    wide = sums.size - columns
    total, line = sums[:wide], sums[wide:]
    for i in range(begin, end):
        for h in range(height):
            first = max(0, (h + before[0] - kernel[0]) // down + 1)
            last = min(rows, (h + before[0]) // down + 1)
            line[:] = 0
            for r in range(first, last):
                for c in range(columns):
                    line[c] += dy[i, r, c] / by_row[r]
            for c in range(columns):
                line[c] /= by_column[c]
            total[:] = 0
            for m in range(kernel[1]):
                for c in range(columns):
                    total[c * {right} + m] += line[c]
            dx[i, h] = total[before[1] : before[1] + width]
"""


@functools.cache
def _mean(kernel_size, right):
    rows, columns = kernel_size
    lines = [f"line{k} = x[i, top + {k}] if 0 <= top + {k} < height else zero" for k in range(rows)]
    column = " + ".join([f"line{k}[w]" for k in range(rows)])
    row = " + ".join([f"sums[c * {right} + {m}]" for m in range(columns)])
    return Loop(_MEAN.format(lines=_written(3, lines), column=column, row=row))


@functools.cache
def _spread(right):
    return Loop(_SPREAD.format(right=right))


def _of_planes(x, size):
    """Return x as planes, (planes, height, width)."""
    rows, columns = size if len(size) == 2 else (1, *size)
    return x.reshape(-1, rows, columns)


def _pairs(*geometry):
    """Return sizes, steps and offsets for two dimensions."""
    return [tuple(each) if len(each) == 2 else (neutral, *each) for each, neutral in geometry]


def max_pool(x, *, kernel_size, stride, padding, dilation, output_size):
    spatial = len(kernel_size)
    if spatial > 2 or x.dtype.char not in "fd" or not x.size or math.prod(kernel_size) > _TAPS:
        return None
    shape = (*x.shape[: x.ndim - spatial], *output_size)
    y, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    planes = _of_planes(x, x.shape[x.ndim - spatial :])
    results = _of_planes(y, output_size), _of_planes(places, output_size)
    geometry = _pairs((kernel_size, 1), (stride, 1), (padding, 0), (dilation, 1))
    kernel, (_, right), _, (_, aside) = geometry
    sizes = zip(planes.shape[1:], results[0].shape[1:], *geometry, strict=True)
    tables = [_places(*each) for each in sizes]
    if None in tables:
        return None
    (row_at, _), (column_at, inner) = tables
    loop = _largest(kernel, right, aside)
    return (y, places) if loop(len(planes), planes, *results, row_at, column_at, inner) else None


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


def _divisors(divisor, output_size, dtype):
    """Return the divisors of the sums of each row and column of windows."""
    rows, columns = output_size if len(output_size) == 2 else (1, *output_size)
    if not isinstance(divisor, tuple):
        return np.full(rows, divisor, dtype), np.ones(columns, dtype)
    by = [np.array(counts, dtype) for counts in divisor]
    return by if len(by) == 2 else [np.ones(1, dtype), *by]


def avg_pool(x, *, kernel_size, stride, padding, output_size, divisor):
    spatial = len(kernel_size)
    if spatial > 2 or x.dtype.char not in "fd" or not x.size or max(kernel_size) > _TAPS:
        return None
    y = np.empty((*x.shape[: x.ndim - spatial], *output_size), x.dtype)
    planes = _of_planes(x, x.shape[x.ndim - spatial :]), _of_planes(y, output_size)
    kernel, (down, right), before = _pairs((kernel_size, 1), (stride, 1), (padding, 0))
    reach = (planes[1].shape[2] - 1) * right + kernel[1]
    kept = np.empty((threads(), max(reach, before[1] + planes[0].shape[2])), x.dtype)
    by, zero = _divisors(divisor, output_size, x.dtype), np.zeros(planes[0].shape[2], x.dtype)
    loop = _mean(kernel, right)
    fits = loop(len(planes[0]), *planes, *by, kept, zero, before[1], down, before[0])
    return y if fits else None


def avg_pool_grad(dy, *, input_size, kernel_size, stride, padding, output_size, divisor):
    spatial = len(kernel_size)
    if spatial > 2 or dy.dtype.char not in "fd" or not dy.size:
        return None
    dx = np.empty((*dy.shape[: dy.ndim - spatial], *input_size), dy.dtype)
    planes = _of_planes(dy, output_size), _of_planes(dx, input_size)
    kernel, (down, right), before = _pairs((kernel_size, 1), (stride, 1), (padding, 0))
    (_, _, columns), (_, _, width) = (each.shape for each in planes)
    reach = max((columns - 1) * right + kernel[1], before[1] + width)
    kept = np.empty((threads(), reach + columns), dy.dtype)
    by = _divisors(divisor, output_size, dy.dtype)
    loop = _spread(right)
    return dx if loop(len(planes[0]), *planes, *by, kept, kernel, down, before) else None
