"""Memory read with a geometry of one's own: a view by size and strides, and its gradient.

Sizes, strides and offsets count elements. The offset is that from the first element of the array,
so that it means the same in a copy of the memory.
"""

import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec, address, overlaps, owner
from oneflow_lite.arrays.bfloat16_arrays import adopted, as_plain
from oneflow_lite.errors import ArgumentError, NotDifferentiableError, arg_error
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import add_at, on_host
from oneflow_lite.kernels.infer_rules import of_shape
from oneflow_lite.ops.registry import register_kernel


def _extent(size, stride):
    """Return the lowest and the highest place that a geometry reaches from its first element."""
    low = high = 0
    for n, step in zip(size, stride, strict=True):
        end = (n - 1) * step
        if end < 0:
            low += end
        else:
            high += end
    return low, high


def _within(x, size, stride, offset):
    """Return whether the elements are those of x, which lies in C order."""
    low, high = _extent(size, stride)
    return offset + low >= 0 and offset + high < x.size and x.flags.c_contiguous


def _check_reach(x, size, stride, offset):
    """Raise unless all of the view lies in the memory that x is a part of."""
    if _within(x, size, stride, offset):
        return
    low, high = _extent(size, stride)
    whole = owner(x)
    first, last = _extent(whole.shape, whole.strides)
    distance = address(whole) - address(x)
    start = (distance + first) // x.itemsize
    stop = (distance + last + whole.itemsize) // x.itemsize
    if not whole.size or offset + low < start or offset + high >= stop:
        raise arg_error(
            "as_strided",
            "size",
            expected=f"a view inside the memory of the tensor, {max(stop - start, 0)} elements",
            got=f"size {tuple(size)}, stride {tuple(stride)}, from element {offset - start}",
            hint="take a smaller view",
            kind=ArgumentError,
        )


class _Memory:
    """Memory of x from another element on, for NumPy to make a view of."""

    def __init__(self, x, shape, strides, offset):
        interface = dict(x.__array_interface__, shape=shape, strides=strides)
        address, readonly = interface["data"]
        self.__array_interface__ = interface | {"data": (address + offset, readonly)}
        self.base = x


def _view(xp, x, size, stride, offset):
    shape = tuple(size)
    strides = tuple([step * x.itemsize for step in stride])
    if on_host(xp):
        if type(x) is np.ndarray and _within(x, size, stride, offset):  # a fifth of the time
            return np.ndarray(shape, x.dtype, x, offset * x.itemsize, strides)
        seen = np.asarray(_Memory(x, shape, strides, offset * x.itemsize))
        return seen if seen.dtype.kind != "V" else adopted(seen.view(as_plain(x).dtype))
    strided = xp.lib.stride_tricks.as_strided
    if offset:  # by way of a view that steps from the first element of x to that of the result
        step = x.itemsize if offset > 0 else -x.itemsize
        x = strided(x, (abs(offset) + 1,), (step,))[abs(offset) :]
    return strided(x, shape, strides)


def _described(x, *, size, stride, storage_offset):
    return ArraySpec(tuple(size), x.dtype, tuple([step * x.dtype.itemsize for step in stride]))


@register_kernel("as_strided", view_of="x", infer=_described, sbp="whole", linear="", batch="loop")
def as_strided(xp, x, *, size, stride, storage_offset):
    if 0 in size:
        return _view(xp, x, size, stride, 0)
    _check_reach(x, size, stride, storage_offset)
    y = _view(xp, x, size, stride, storage_offset)
    if on_host(xp) and overlaps(y):
        y.flags.writeable = False  # an element would be written more than once
    return y


def _positions(xp, size, stride, offset):
    places = xp.full((), offset)
    for n, step in zip(size, stride, strict=True):
        places = places[..., None] + xp.arange(n) * step
    return places


def _put(xp, memory, values, stride, offset):
    """Add values to memory where a geometry leads."""
    region = _view(xp, memory, values.shape, stride, offset)
    if overlaps(region):
        places = _positions(xp, values.shape, stride, offset)
        add_at(xp, memory, places, xp.ascontiguousarray(values))
    else:
        region[...] = values


def _get(xp, memory, size, stride, offset):
    """Return a copy of the memory where a geometry leads."""
    return _view(xp, memory, size, stride, offset).copy()


def _share(xp, x, strides, low, memory):
    """Return x with each element divided by the number of elements that share its place."""
    if not overlaps(_view(xp, memory, x.shape, strides, -low)):
        return x
    count = xp.zeros_like(memory, dtype=np.float64)
    _put(xp, count, xp.ones(x.shape), strides, -low)
    return (x / _get(xp, count, x.shape, strides, -low)).astype(x.dtype)


def _check_covered(memory, size, stride, offset, shape, strides, low):
    """Raise unless a view of x reads no memory beside the elements of x; told on the host."""
    first, last = _extent(size, stride)
    if offset + first >= low and offset + last < low + memory.size:
        if memory.size == math.prod(shape):
            return  # x has no gaps
        covered = np.zeros(memory.size, bool)
        _view(np, covered, shape, strides, -low)[...] = True
        if _view(np, covered, size, stride, offset - low).all():
            return
    raise NotDifferentiableError(
        f"as_strided(): the view of size {tuple(size)} and stride {tuple(stride)} reads memory "
        f"that belongs to no element of its input of shape {tuple(shape)}, so that there is no "
        "gradient to return; take it of the tensor that owns the memory"
    )


def _check_shape(op, x, shape):
    """Raise unless x has the shape that an attribute says: more would lie outside the memory."""
    if x.shape != tuple(shape):
        hint = "give it the shape of the attribute"
        raise arg_error(op, "x", f"shape {tuple(shape)}", f"shape {x.shape}", hint)


def _memory_of(xp, shape, strides, dtype):
    """Return zeros for the memory that an array of this geometry spans, and its lowest place."""
    low, high = _extent(shape, strides)
    return xp.zeros(high - low + 1, dtype), low


def _grad_described(dy, *, size, shape, **attrs):
    _check_shape("as_strided_grad", dy, size)
    return of_shape(dy, shape=shape)


@register_kernel("as_strided_grad", infer=_grad_described, batch="loop")
@in_float32
def as_strided_grad(xp, dy, *, size, stride, storage_offset, shape, strides):
    """Add dy up where it was read; elements of x that share a place share its sum."""
    if 0 in size or 0 in shape:
        return xp.zeros(shape, dy.dtype)
    _check_shape("as_strided_grad", dy, size)
    memory, low = _memory_of(xp, shape, strides, dy.dtype)
    _check_covered(memory, size, stride, storage_offset, shape, strides, low)
    _put(xp, memory, dy, stride, storage_offset - low)
    return _share(xp, _get(xp, memory, shape, strides, -low), strides, low, memory)


@register_kernel("as_strided_grad_grad")
def as_strided_grad_grad(xp, ddx, *, size, stride, storage_offset, shape, strides):
    """Apply the adjoint of as_strided_grad."""
    if 0 in size or 0 in shape:
        return xp.zeros(size, ddx.dtype)
    _check_shape("as_strided_grad_grad", ddx, shape)
    memory, low = _memory_of(xp, shape, strides, ddx.dtype)
    _check_covered(memory, size, stride, storage_offset, shape, strides, low)
    _put(xp, memory, _share(xp, ddx, strides, low, memory), strides, -low)
    return _get(xp, memory, size, stride, storage_offset - low)
