"""Integer index arrays on their way through the kernels of indexing, scatter and embedding."""

import functools
import sys

import numpy as np

from oneflow_lite.errors import IndexRangeError, arg_error

# From so many elements on, a sparse matrix of ones adds rows up five to ten times quicker.
_MANY = 4096
# Elements that were added up without it, from which the import of scipy.sparse pays: it takes 50
# to 90 ms, and saves 1 to 3 ns for each.
_WORTH_IT = 1 << 24
_added = [0]


def on_host(xp):
    """Return whether arrays of this module lie in host memory, where looking at values is free."""
    return xp is np


def check_range(xp, op, argument, index, size, negative=False):
    """Raise `IndexRangeError` unless all indices lie in 0 … size-1 (-size … size-1).

    On CUDA nothing is checked: a look at the values would copy them to the host and wait.
    """
    if not on_host(xp) or not index.size:
        return
    low = -size if negative else 0
    if index.max() < size and index.min() >= low:
        return
    wrong = index[(index < low) | (index >= size)]
    raise arg_error(
        op,
        argument,
        expected=f"values from {low} to {size - 1}" if size else "no values for a size of 0",
        got=int(wrong.flat[0]),
        hint="keep the indices inside the tensor",
        kind=IndexRangeError,
    )


def take(xp, x, index, axis, out=None):
    """Return the entries of x at indices that have been checked to lie in 0 … size-1."""
    if out is None or not on_host(xp):
        return x.take(index, axis, out)
    return x.take(index, axis, out, "clip")  # "raise" would write to a copy of `out` first


def wrapped(xp, index, size):
    """Return the indices as int64 counted from 0."""
    index = index.astype(np.int64, copy=False)
    return xp.where(index < 0, index + size, index)


def positions_along(xp, index, dim, shape):
    """Return the C-order positions in an array of `shape` that `index` names along `dim`.

    In all other dimensions an entry of `index` stands for its own place. The result may be
    `index` itself.
    """
    few = xp is np and index.size <= _MANY
    places = _places_of_few if few else functools.partial(_places_around, xp)
    stride, around = places(index.shape, dim, tuple(shape))
    positions = index.astype(np.int64, copy=False)
    if stride != 1:
        positions = positions * stride
    for steps in around:
        positions = xp.add(positions, steps, out=None if positions is index else positions)
    return positions


def _places_around(xp, counts, dim, shape):
    """Return the stride of `dim`, and the offsets of entries by their place in other dimensions."""
    strides = [1] * len(shape)
    for k in range(len(shape) - 1, 0, -1):
        strides[k - 1] = strides[k] * shape[k]
    before = after = None
    for k, size in enumerate(counts):
        if k == dim or size <= 1:
            continue
        steps = xp.arange(0, size * strides[k], strides[k]) if strides[k] else xp.zeros(size, int)
        steps = steps.reshape((size,) + (1,) * (len(counts) - 1 - k))
        if k < dim:
            before = steps if before is None else before + steps
        else:
            after = steps if after is None else after + steps
    around = [steps for steps in (before, after) if steps is not None]
    return strides[dim] if shape else 1, around


_places_of_few = functools.lru_cache(256)(functools.partial(_places_around, np))


def take_along(xp, x, index, dim):
    """Return xp.take_along_axis(x, index, dim) in a third of the time, for indices from 0."""
    if not x.flags.c_contiguous or not x.ndim:
        return xp.take_along_axis(x, index, dim)
    return x.reshape(-1).take(positions_along(xp, index, dim, x.shape))


def add_at(xp, flat, positions, values):
    """Add values into a contiguous 1-d array; values at one position sum up.

    One-dimensional indices take the quick way through `add.at`, 4 to 8 times quicker than rows.
    """
    positions, values = positions.reshape(-1), values.reshape(-1)
    if on_host(xp) or flat.dtype.kind == "f":
        xp.add.at(flat, positions, values)
    elif flat.dtype.kind == "c":
        xp.add.at(flat.real, positions, values.real)
        xp.add.at(flat.imag, positions, values.imag)
    elif flat.dtype == np.int64:  # the atomics know uint64, and its sums have the same bits
        xp.add.at(flat.view(np.uint64), positions, values.view(np.uint64))
    else:  # CUDA has no atomic additions of narrow integers
        wide = flat.astype(np.int32)
        xp.add.at(wide, positions, values.astype(np.int32))
        flat[...] = wide.astype(flat.dtype)


def sparse_pays(elements):
    """Return whether scipy.sparse is imported, or has become worth it with so many elements."""
    if "scipy.sparse" in sys.modules:
        return True
    _added[0] += elements
    return _added[0] > _WORTH_IT


def sum_rows(xp, values, rows, count, out=None):
    """Return `count` rows of zeros with the rows of `values` (2-d) added at `rows`.

    Rows may count from the end, as NumPy's indices.
    """
    number, width = values.shape
    many = on_host(xp) and values.size >= _MANY and width > 1 and values.dtype.char not in "e?"
    many = many and sparse_pays(values.size)
    # SciPy would write outside of the table; add_at, below, raises.
    if many and rows.min() >= -count and rows.max() < count:
        import scipy.sparse

        ones, columns = np.ones(number, values.dtype), np.arange(number + 1)
        places = (ones, wrapped(np, rows, count), columns)
        summed = scipy.sparse.csc_array(places, shape=(count, number)) @ values
        if out is not None:
            out[...] = summed.reshape(out.shape)
        return summed
    if out is None:
        table = xp.zeros((count, width), values.dtype)
    else:
        table = out
        table.fill(0)
    if not on_host(xp):
        rows = wrapped(xp, rows, count)
    positions = rows if width == 1 else rows[:, None] * width + xp.arange(width)
    add_at(xp, table.reshape(-1), positions, values)
    return table


def lost(xp, positions, size):
    """Return where a later entry of `positions` names the same place, so that a write is lost."""
    flat = positions.reshape(-1)
    order = xp.arange(flat.size)
    last = xp.empty(size, np.int64)
    last[flat] = order
    return (last[flat] != order).reshape(positions.shape)
