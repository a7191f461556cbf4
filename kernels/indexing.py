"""Kernels of x[...] and x[...] = value: basic indices are views, index arrays copy.

A basic index is one tuple of int, slice, None and Ellipsis that holds an Ellipsis wherever it would
give a scalar otherwise. Index arrays come as inputs; `dims` says at which dimension each begins.
"""

from math import prod

import numpy as np

from oneflow_lite.errors import IndexRangeError, ShapeError, arg_error
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


@register_kernel("getitem_advanced", infer=chosen, dynamic_shape=_by_mask, sbp=_taken, linear="x")
def getitem_advanced(xp, x, *indices, dims):
    try:
        if len(indices) == 1 and indices[0].dtype.kind != "b" and x.flags.c_contiguous:
            return x.take(indices[0], axis=dims[0])  # quicker than x[index]
        return x[numpy_index(indices, dims)]
    except IndexError as error:
        raise _explained(xp, "getitem", x.shape, indices, dims, error) from None


@register_kernel("getitem_advanced_grad", infer=put_back, sbp=_given_back)
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


@register_kernel("setitem_", mutates="x", infer=written, sbp=_untouched)
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


@register_kernel("setitem_grad", infer=in_c_order(like_first), reuses="dy", sbp=_untouched)
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
