"""Kernels of x[...] and x[...] = value: basic indices are views, index arrays copy.

A basic index is one tuple of int, slice, None and Ellipsis that holds an Ellipsis wherever it would
give a scalar otherwise. Index arrays come as inputs; `dims` says at which dimension each begins.
"""

from math import prod

import numpy as np

from oneflow_lite.errors import IndexRangeError, ShapeError, arg_error
from oneflow_lite.kernels.batches import entry_numbers
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import check_range, lost, sum_rows, wrapped
from oneflow_lite.kernels.infer_rules import (
    chosen,
    in_c_order,
    like_first,
    of_shape,
    put_back,
    register_view,
    written,
)
from oneflow_lite.kernels.numerics import copied, zeros
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way, letters, same_dims


@register_view("getitem")
def getitem(xp, x, *, index):
    return x[index]


@register_kernel("getitem_grad", infer=of_shape)
def getitem_grad(xp, dy, *, index, shape, out=None):
    dx = zeros(xp, shape, dy.dtype, out)
    dx[index] = dy
    return dx


@register_view("narrow")
def narrow(xp, x, *, dim, start, length):
    return x[(slice(None),) * dim + (slice(start, start + length),)]


@register_view("select")
def select(xp, x, *, dim, index):
    return x[(slice(None),) * dim + (index, ...)]


def _by_mask(x, *indices, **attrs):
    """A mask takes as many elements as are True in it."""
    return any(index.dtype.kind == "b" for index in indices)


def _names(attrs, shape, index):
    """Return names for the dimensions of x, of an index along a dimension, and of x[index]."""
    d = attrs["dims"][0]
    x = [None if k == d else k for k in range(len(shape))]
    own = [f"i{k}" for k in range(len(index))]
    return x, own, [*x[:d], *own, *x[d + 1 :]]


def _taken(shapes, attrs):
    x, *indices = shapes
    if len(indices) > 1 or len(attrs["dims"]) > 1:
        return "whole"
    names, own, out = _names(attrs, x, indices[0])
    return letters([names, own], [out], shapes)


def _given_back(shapes, attrs):
    _dy, *indices = shapes
    if len(indices) > 1 or len(attrs["dims"]) > 1:
        return
    names, own, out = _names(attrs, attrs["shape"], indices[0])
    yield from letters([out, own], [names], shapes)
    if attrs["dims"] == (0,):
        yield Way(("B", "B"), (0,), attrs["shape"][0], run=_put_back)


def _put_back(line, arrays, attrs):
    """Sum the rows that belong to this rank's part."""
    dy, ids = arrays
    ids = line.xp.where(ids < 0, ids + line.size, ids)
    inside = (ids >= line.begin) & (ids < line.end)
    shape = (line.end - line.begin, *attrs["shape"][1:])
    return line.local([dy[inside], ids[inside] - line.begin], {**attrs, "shape": shape})


class _Indices:
    """Index arrays of a batch.

    Where they differ by entry, the number of the entry is an index, too. NumPy then puts the
    dimensions of the indices first, where an entry has them first only if they are apart.
    """

    def __init__(self, call, indices, dims, first):
        self.call, own = call, call.batched[first:]
        self.masks = any(index.dtype.kind == "b" for index in indices)
        together = all(
            begin == dims[0] + sum(_consumed(x) for x in call.inputs[first : first + k])
            for k, begin in enumerate(dims)
        )
        self.differ = any(own)
        self.dims = tuple(d + 1 for d in dims)
        self.indices = indices
        self.place = dims[0] if together and dims else 0
        self.ndim = max([call.ndim(first + k) for k in range(len(indices))], default=0)
        self.fails = self.masks and (self.differ or not together)
        if self.fails or not (self.differ or not together):
            return
        self.differ = True
        self.indices = [
            call.front(first + k, self.ndim) if mine else call.values[first + k]
            for k, mine in enumerate(own)
        ]
        self.indices.insert(0, entry_numbers(call, self.ndim))
        self.dims = (0, *self.dims)

    def back(self, y):
        """Move the dimensions of the indices to their place, in a result."""
        if not self.differ or not self.place:
            return y
        n = self.ndim
        rest = range(n + 1, y.ndim)
        before, after = rest[: self.place], rest[self.place :]
        return self.call.F.permute(y, dims=(0, *before, *range(1, n + 1), *after))

    def there(self, dy):
        """Move the dimensions of the indices to the front, in what meets a result."""
        if not self.differ or not self.place:
            return dy
        n, p = self.ndim, self.place
        dims = (0, *range(p + 1, p + 1 + n), *range(1, p + 1), *range(p + 1 + n, dy.ndim))
        return self.call.F.permute(dy, dims=dims)


def _batch_of_chosen(call, x, *indices, dims):
    found = _Indices(call, indices, dims, 1)
    if found.fails:
        return call.refuse() if found.differ else NotImplemented
    return found.back(call.run(call.front(0), *found.indices, dims=found.dims))


def _batch_of_put_back(call, dy, *indices, dims, shape):
    found = _Indices(call, indices, dims, 1)
    if found.fails:
        return NotImplemented
    dy = found.there(call.front(0))
    return call.run(dy, *found.indices, dims=found.dims, shape=(call.size, *shape))


def _chosen_by_mask(call, x, value, mask, index, dim, fill):
    """Write one number where the mask of an entry says so."""
    old, own = call.F.getitem(x, index=index), call.batched[2]
    after = old.ndim - 1 - dim - call.ndim(2)
    shape = (call.size if own else 1, *(1,) * dim, *call.shape(2), *(1,) * after)
    mask = call.F.reshape(mask, shape=shape)
    if value is None:
        value = call.F.full(shape=(), value=fill, dtype=x.dtype, device=x.device)
    elif call.batched[1]:
        value = call.F.reshape(value, shape=(call.size, *(1,) * (old.ndim - 1)))
    new = call.F.where(mask, value, old)
    return call.run(x, new, index=index, dims=(), fill=None)


def _batch_of_written(call, x, value, *indices, index, dims, fill=None):
    """Write to all entries; a value is aligned with what the index names."""
    moved = (slice(None), *index) if type(index) is tuple else (slice(None), index)
    found = _Indices(call, indices, dims, 2)
    target = np.broadcast_to(np.empty((), bool), call.shape(0))[index]
    if found.fails and len(indices) == 1 and (value is None or not call.ndim(1)):
        return _chosen_by_mask(call, x, value, indices[0], moved, dims[0], fill)
    if found.fails:
        return NotImplemented
    if value is not None and indices:
        if found.masks:
            return NotImplemented
        shapes = [call.shape(2 + k) for k in range(len(indices))]
        gone = len(indices)
        there = np.broadcast_shapes(*shapes)
        rest = [n for k, n in enumerate(target.shape) if k not in dims]
        whole = (*rest[: found.place], *there, *rest[found.place :])
        assert len(whole) == target.ndim - gone + len(there)
        value = call.front(1, len(whole))
        value = call.F.expand(value, shape=(call.size, *whole))
        value = found.there(value)
    elif value is not None and call.batched[1]:
        value = call.front(1, target.ndim)
    return call.run(x, value, *found.indices, index=moved, dims=found.dims, fill=fill)


def _batch_of_unwritten(call, dy, *indices, index, dims):
    found = _Indices(call, indices, dims, 1)
    if found.fails:
        return NotImplemented
    moved = (slice(None), *index) if type(index) is tuple else (slice(None), index)
    return call.run(call.front(0), *found.indices, index=moved, dims=found.dims)


@register_kernel(
    "getitem_advanced",
    infer=chosen,
    dynamic_shape=_by_mask,
    sbp=_taken,
    linear="x",
    batch=_batch_of_chosen,
)
def getitem_advanced(xp, x, *indices, dims):
    try:
        if len(indices) == 1 and indices[0].dtype.kind != "b" and x.flags.c_contiguous:
            return x.take(indices[0], axis=dims[0])  # quicker than x[index]
        return x[numpy_index(indices, dims)]
    except IndexError as error:
        raise _explained(xp, "getitem", x.shape, indices, dims, error) from None


@register_kernel("getitem_advanced_grad", infer=put_back, sbp=_given_back, batch=_batch_of_put_back)
@in_float32
def getitem_advanced_grad(xp, dy, *indices, dims, shape, out=None):
    kinds = {index.dtype.kind == "b" for index in indices}
    if kinds == {False}:
        return _summed(xp, dy, indices, dims, shape, out)
    dx = zeros(xp, shape, dy.dtype, out)
    if kinds == {True} and len(indices) == 1:  # a mask names no element twice
        dx[numpy_index(indices, dims)] = dy
    else:
        xp.add.at(dx, numpy_index(indices, dims), dy)
    return dx


def _untouched(shapes, attrs):
    x, value = shapes[0], shapes[1] if len(shapes) > 1 else None
    index = attrs["index"]
    ndim = np.broadcast_to(0, x)[index].ndim
    for i, j in same_dims("getitem", x, {"index": index}) if not attrs["dims"] else ():
        k = j - ndim + len(value or ())
        at = k if value and k >= 0 and value[k] == x[i] else "B"
        yield Way((i, at)[: len(shapes)], (i,))


@register_kernel("setitem_", mutates="x", infer=written, sbp=_untouched, batch=_batch_of_written)
def setitem_(xp, x, value, *indices, index, dims, fill=None):
    """Write `value`, or the scalar `fill` when there is no value, to x[index][indices at dims]."""
    target = x[index]
    try:
        if not indices:
            target[...] = fill if value is None else value
        elif value is None:
            target[numpy_index(indices, dims)] = fill
        else:  # in C order, so that the last of several values stays
            target[numpy_index(indices, dims)] = xp.asarray(value, order="C")
    except IndexError as error:
        raise _explained(xp, "setitem", target.shape, indices, dims, error) from None
    except ValueError as error:
        raise arg_error(
            "setitem",
            "value",
            expected="a shape that broadcasts to the indexed elements",
            got=f"shape {value.shape} ({error})",
            hint="give one value, or one for each element",
            kind=ShapeError,
        ) from None
    return x


@register_kernel(
    "setitem_grad",
    infer=in_c_order(like_first),
    reuses="dy",
    sbp=_untouched,
    batch=_batch_of_unwritten,
)
def setitem_grad(xp, dy, *indices, index, dims, out=None):
    """Return dy with 0 where setitem_ wrote."""
    dx = copied(dy, out)
    target = dx[index]
    target[numpy_index(indices, dims) if indices else ...] = 0
    return dx


def _names_by_mask(*indices, **attrs):
    return _by_mask(None, *indices)


@register_kernel("setitem_overwritten", dynamic_shape=_names_by_mask)
def setitem_overwritten(xp, *indices, dims, shape):
    """Return where a later value of the same write to `shape` at the indices overwrites a value.

    Dimensions that no index array names have size 1: they do not matter.
    """
    full = numpy_index(indices, dims)
    named = _named_dims(indices, dims)
    sizes = tuple(size if k in named else 1 for k, size in enumerate(shape))
    places = xp.arange(prod(sizes)).reshape(sizes)[full]
    return lost(xp, places, prod(sizes))


def numpy_index(indices, dims):
    """Return an index tuple of index arrays, each at the dimension where it begins."""
    full = []
    dim = 0
    for index, begin in zip(indices, dims, strict=True):
        full += [slice(None)] * (begin - dim) + [index]
        dim = begin + _consumed(index)
    return tuple(full)


def _consumed(index):
    """Return how many dimensions an index array replaces: a mask as many as it has."""
    return index.ndim if index.dtype.kind == "b" else 1


def _named_dims(indices, dims):
    return {
        begin + k
        for index, begin in zip(indices, dims, strict=True)
        for k in range(_consumed(index))
    }


def _summed(xp, dy, indices, dims, shape, out):
    """Sum dy into zeros(shape) at integer indices that may name an element more than once."""
    if dims == (0,):
        rows = indices[0].reshape(-1)
        width = prod(shape[1:])
        dx = sum_rows(xp, dy.reshape(rows.size, width), rows, shape[0], out)
        return dx.reshape(shape) if out is None else out
    together = dims == tuple(range(dims[0], dims[0] + len(dims)))
    place = dims[0] if together else 0  # where x[indices] has the dimensions of the indices
    rows = wrapped(xp, indices[0], shape[dims[0]])
    for index, dim in zip(indices[1:], dims[1:], strict=True):
        rows = rows * shape[dim] + wrapped(xp, index, shape[dim])
    front = tuple(range(rows.ndim))
    moved = xp.moveaxis(dy, tuple(place + k for k in front), front)
    order = [*dims, *(k for k in range(len(shape)) if k not in dims)]
    sizes = [shape[k] for k in order]
    count, width = prod(sizes[: len(dims)]), prod(sizes[len(dims) :])
    dx = sum_rows(xp, moved.reshape(rows.size, width), rows.reshape(-1), count).reshape(sizes)
    if out is None and order == sorted(order):
        return dx
    return copied(dx.transpose(sorted(range(len(shape)), key=order.__getitem__)), out)


def _explained(xp, op, shape, indices, dims, error):
    """Return the error that says which index array does not fit."""
    for index, dim in zip(indices, dims, strict=True):
        if index.dtype.kind != "b":
            try:
                check_range(xp, op, "index", index, shape[dim], negative=True)
            except IndexRangeError as out_of_range:
                return out_of_range
    return arg_error(
        op,
        "index",
        expected="index tensors whose shapes broadcast together",
        got=" and ".join(str(index.shape) for index in indices),
        hint=f"a mask counts with its number of True elements ({error})",
        kind=IndexRangeError,
    )
