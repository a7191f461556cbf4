"""Loops that add values up at places given by an index array.

With an index out of range the call goes to NumPy's kernel, which raises.
"""

import math

import numpy as np

from oneflow_lite.ops.eager_loops import Loop

_PARTS = 64  # more threads than this are not told apart


@Loop
def _add_rows(part, begin, end, source, index, y, scale, wrong):
    # Threads divide the columns: so no two of them add to one place, and the order stays.
    height = y.shape[0]
    for k in range(index.size):
        row = index[k]
        if row < 0:
            row += height
        if row < 0 or row >= height:
            wrong[part] = 1
            continue
        target, values = y[row, begin:end], source[k, begin:end]
        for j in range(values.size):
            target[j] += values[j] * scale


@Loop
def _add_along(part, begin, end, source, index, y, wrong):
    # (outer, n, inner) each; steps are those of outer
    _, height, _ = y.shape
    _, n, inner = index.shape
    for i in range(begin, end):
        if inner == 1:
            values, places, target = source[i, :, 0], index[i, :, 0], y[i, :, 0]
            for k in range(n):
                row = places[k]
                if row < 0 or row >= height:
                    wrong[part] = 1
                else:
                    target[row] += values[k]
            continue
        for k in range(n):
            for j in range(inner):
                row = index[i, k, j]
                if row < 0 or row >= height:
                    wrong[part] = 1
                else:
                    y[i, row, j] += source[i, k, j]


def _int64(index):
    return index.dtype.char in "lq" and index.dtype.itemsize == 8


def _rows_added(values, index, y):
    """Add rows of values to rows of y; return whether the loop ran and all indices were right."""
    if not values.size or not _int64(index) or values.dtype is not y.dtype:
        return False
    wrong = np.zeros(_PARTS, np.int64)
    scale = y.dtype.type(1)
    made = _add_rows(values.shape[1], values, index.reshape(-1), y, float(scale), wrong)
    return made and not wrong.any()


def getitem_advanced_grad(dy, *indices, dims, shape, out=None):
    if dims != (0,) or dy.dtype.char not in "fd" or len(shape) < 2 or not dy.flags.c_contiguous:
        return None
    rows, width = indices[0].size, math.prod(shape[1:])
    if not rows or width == 1 or not _int64(indices[0]):
        return None
    y = np.zeros(shape, dy.dtype)
    if not _rows_added(dy.reshape(rows, width), indices[0], y.reshape(-1, width)):
        return None
    if out is None:
        return y
    out[...] = y
    return out


def index_add(x, index, source, *, dim, alpha=1):
    if dim or alpha != 1 or x.ndim < 2 or x.dtype.char not in "fd" or not _int64(index):
        return None
    if not (x.flags.c_contiguous and source.flags.c_contiguous) or not index.size:
        return None
    if index.min() < 0:
        return None
    y, width = x.copy(), math.prod(x.shape[1:])
    done = _rows_added(source.reshape(index.size, width), index, y.reshape(-1, width))
    return y if done else None


def _added_along(y, index, source, dim):
    """Add source to y at the index along `dim`; None where NumPy serves the call."""
    fits = all(
        [n == m for k, (n, m) in enumerate(zip(y.shape, index.shape, strict=True)) if k != dim]
    )
    if not fits or source.shape != index.shape or source.dtype is not y.dtype or not index.size:
        return None
    if not _int64(index) or not (index.flags.c_contiguous and source.flags.c_contiguous):
        return None
    outer, inner = math.prod(y.shape[:dim]), math.prod(y.shape[dim + 1 :])
    wrong = np.zeros(_PARTS, np.int64)
    lines = [each.reshape(outer, -1, inner) for each in (source, index, y)]
    return y if _add_along(outer, *lines, wrong) and not wrong.any() else None


def scatter_add(x, index, src, *, dim, out=None):
    if not x.ndim or x.dtype.char not in "fd" or not x.flags.c_contiguous or out is not None:
        return None
    return _added_along(x.copy(), index, src, dim)


def gather_grad(dy, index, *, dim, shape, out=None):
    if not shape or dy.dtype.char not in "fd" or out is not None:
        return None
    return _added_along(np.zeros(shape, dy.dtype), index, dy, dim)
