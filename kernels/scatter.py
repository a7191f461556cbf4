"""Kernels that read or write along one dimension at places given by an index array."""

from math import prod

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.batches import into_merged, merged, parted
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import (
    add_at,
    check_range,
    lost,
    on_host,
    positions_along,
    sum_rows,
    take,
    wrapped,
)
from oneflow_lite.kernels.infer_rules import (
    gathered,
    in_c_order,
    indices_like,
    like_first,
    mask_like,
    mask_of_dim,
    mask_of_shape,
    of_shape,
    taken,
)
from oneflow_lite.kernels.numerics import copied, zeros
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way, letters

_MANY = 1 << 16  # numbers to add, as many as there are to add to, from which sums of rows pay


def _beside(shapes, attrs):
    """Split any dimension but `dim` where all arrays have one size; an index vector is whole."""
    full = [s for s in shapes if len(s) == len(shapes[0])]
    sizes = [*full, attrs["shape"]] if "shape" in attrs else full
    for d, n in enumerate(shapes[0]):
        if d != attrs["dim"] and all(len(s) == len(sizes[0]) and s[d] == n for s in sizes):
            yield Way(tuple(d if len(s) == len(shapes[0]) else "B" for s in shapes), (d,))


def _gathered(call, x, index, *, dim):
    """Gather along the dimension behind the batch; numbers count as vectors of one number."""
    y = call.run(call.front(0, 1), call.front(1, 1), dim=dim + 1 if dim >= 0 else dim)
    return y if call.ndim(0) else call.F.reshape(y, shape=(call.size, *call.shape(1)))


def _gathered_back(call, dy, index, *, dim, shape):
    dim = dim + 1 if dim >= 0 else dim
    shape = (call.size, *(shape or (1,)))
    dx = call.run(call.front(0, 1), call.front(1, 1), dim=dim, shape=shape)
    return dx if call.attrs["shape"] else call.F.reshape(dx, shape=(call.size,))


@register_kernel("gather", infer=gathered, sbp=_beside, batch=_gathered, linear="x")
def gather(xp, x, index, *, dim, out=None):
    check_range(xp, "gather", "index", index, x.shape[dim] if x.ndim else 1)
    return take(xp, x.reshape(-1), positions_along(xp, index, dim, x.shape), None, out)


@register_kernel("gather_grad", infer=of_shape, sbp=_beside, batch=_gathered_back)
@in_float32
def gather_grad(xp, dy, index, *, dim, shape, out=None):
    dx = zeros(xp, shape, dy.dtype, out)
    add_at(xp, dx.reshape(-1), positions_along(xp, index, dim, shape), dy)
    return dx


@register_kernel(
    "scatter", infer=in_c_order(like_first), reuses="x", sbp=_beside, batch="front", linear="x+src"
)
def scatter(xp, x, index, src, *, dim, out=None):
    y, positions = _target(xp, "scatter", x, index, dim, out)
    y.reshape(-1)[positions.reshape(-1)] = src.reshape(-1)
    return y


@register_kernel(
    "scatter_add",
    infer=in_c_order(like_first),
    reuses="x",
    sbp=_beside,
    batch="front",
    linear="x+src",
)
@in_float32
def scatter_add(xp, x, index, src, *, dim, out=None):
    y, positions = _target(xp, "scatter_add", x, index, dim, out)
    add_at(xp, y.reshape(-1), positions, src)
    return y


@register_kernel(
    "scatter_multiply", infer=in_c_order(like_first), reuses="x", sbp=_beside, batch="front"
)
@in_float32
def scatter_multiply(xp, x, index, src, *, dim, out=None):
    y, positions = _target(xp, "scatter", x, index, dim, out)
    flat, positions, src = y.reshape(-1), positions.reshape(-1), src.reshape(-1)
    if on_host(xp):
        xp.multiply.at(flat, positions, src)
        return y
    # No atomics multiply: each round takes at most one factor for each position.
    while positions.size:
        rest = lost(xp, positions, flat.size)
        flat[positions[~rest]] *= src[~rest]
        positions, src = positions[rest], src[rest]
    return y


# The same under a name that has a gradient: scatter(reduce="multiply") has none, as in PyTorch.
register_kernel(
    "scatter_prod", infer=in_c_order(like_first), reuses="x", sbp=_beside, batch="front"
)(scatter_multiply)


def _register_extreme(op_type_name, function):
    @register_kernel(
        op_type_name, infer=in_c_order(like_first), reuses="x", sbp=_beside, batch="front"
    )
    def scatter_extreme(xp, x, index, src, *, dim, out=None):
        y, positions = _target(xp, "scatter_reduce", x, index, dim, out)
        flat, positions, src = y.reshape(-1), positions.reshape(-1), src.reshape(-1)
        combine = getattr(xp, function)
        if on_host(xp):
            combine.at(flat, positions, src)
            return y
        # Not all dtypes have such atomics: sorted by position and value, the ends of each group
        # are its extremes; a NaN, which counts, is always last.
        order, first, last = _groups(xp, positions, xp.argsort(src))
        low, high = src[order[first]], src[order[last]]
        if function == "minimum":
            high = xp.where(high == high, low, high)
        places = positions[order[first]]
        flat[places] = combine(flat[places], high)
        return y


_register_extreme("scatter_amax", "maximum")
_register_extreme("scatter_amin", "minimum")


def _as_both(x, index, src, y, **attrs):
    return ArraySpec(x.shape, x.dtype), ArraySpec(index.shape, x.dtype)


@register_kernel("scatter_tie_weights", infer=in_c_order(_as_both), sbp=_beside, batch="front")
def scatter_tie_weights(xp, x, index, src, y, *, dim):
    """1 / (number of ties) where x, and src at its places, equal the extremum y; 0 elsewhere."""
    positions = positions_along(xp, index, dim, x.shape)
    ties, ties_of_src = _equal(x, y), _equal(src, take(xp, y.reshape(-1), positions, None))
    number = xp.array(ties, x.dtype)
    add_at(xp, number.reshape(-1), positions, ties_of_src.astype(x.dtype))
    shares = ties_of_src / take(xp, number.reshape(-1), positions, None)
    return ties / xp.maximum(number, 1), shares


def _equal(x, y):
    return (x == y) | ((x != x) & (y != y))  # with a NaN the extremum is NaN: the NaNs are its ties


def _order_and_masks(index, **attrs):
    shape, truth = (prod(index.shape),), np.dtype(bool)
    return ArraySpec(shape, np.dtype(np.int64)), ArraySpec(shape, truth), ArraySpec(shape, truth)


@register_kernel("scatter_groups", infer=_order_and_masks)
def scatter_groups(xp, index, *, dim, shape):
    """Return an order in which values for one place stand together, and where places change.

    The order is one of the flattened index; the masks are True at the first and at the last value
    of each place.
    """
    return _groups(xp, positions_along(xp, index, dim, shape).reshape(-1))


def _groups(xp, positions, order=None):
    """Return a stable order by position (of values in this order already) and its boundaries."""
    if order is None:
        order = xp.argsort(positions, kind="stable")
    else:
        order = order[xp.argsort(positions[order], kind="stable")]
    places = positions[order]
    first = xp.ones(places.shape, bool)
    first[1:] = places[1:] != places[:-1]
    last = xp.ones(places.shape, bool)
    last[:-1] = first[1:]
    return order, first, last


@register_kernel("scatter_mask", infer=mask_of_shape, sbp=_beside, batch="front")
def scatter_mask(xp, index, *, dim, shape):
    """Return a mask of `shape` that is True where scatter writes."""
    check_range(xp, "scatter", "index", index, shape[dim] if shape else 1)
    mask = xp.zeros(shape, bool)
    mask.reshape(-1)[positions_along(xp, index, dim, shape).reshape(-1)] = True
    return mask


@register_kernel("scatter_overwritten", infer=mask_like, sbp="whole", batch="front")
def scatter_overwritten(xp, index, *, dim, shape):
    """Return where scatter's value was overwritten by a later one."""
    return lost(xp, positions_along(xp, index, dim, shape), prod(shape))


@register_kernel("index_from_zero", infer=indices_like, batch="pointwise")
def index_from_zero(xp, index, *, size, op, argument, negative=True):
    """Return indices counted from 0; `argument` of the functor `op` gave them."""
    check_range(xp, op, argument, index, size, negative)
    return wrapped(xp, index, size)


def _target(xp, op, x, index, dim, out):
    """Return a copy of x in C order, and the checked positions in it."""
    check_range(xp, op, "index", index, x.shape[dim] if x.ndim else 1)
    return copied(x, out), positions_along(xp, index, dim, x.shape)


# --- Entries named by a vector of indices ---------------------------------------------------------


def _around(shapes, attrs):
    x, index = shapes
    d = attrs["dim"] if "dim" in attrs else attrs["dims"][0]
    names = [None if k == d else k for k in range(len(x))]
    own = [f"i{k}" for k in range(len(index))]
    return letters([names, own], [[*names[:d], *own, *names[d + 1 :]]], shapes)


def _batch_of_selected(call, x, index, *, dim):
    if not call.batched[1]:
        return call.run(x, index, dim=dim + 1)
    F, rest = call.F, index.ndim - 1
    if call.batched[0]:
        index = into_merged(call, index, x.shape[dim + 1])
        x = merged(call, x, dim)
    y = call.run(x, F.reshape(index, shape=(prod(index.shape),)), dim=dim)
    y = parted(call, y, dim)
    if rest == 1:
        return y
    return F.reshape(y, shape=(*y.shape[: dim + 1], *index.shape[1:], *y.shape[dim + 2 :]))


@register_kernel("index_select", infer=taken, sbp=_around, linear="x", batch=_batch_of_selected)
def index_select(xp, x, index, *, dim, out=None):
    check_range(xp, "index_select", "index", index, x.shape[dim])
    return take(xp, x, index, dim, out)


def _batch_of_named(call, x, index, source, *, dim, **attrs):
    if not call.batched[1]:
        return call.run(call.front(0), index, call.front(2), dim=dim + 1, **attrs)
    x, source = call.front(0), call.front(2)
    if x.ndim == 1:
        return NotImplemented
    index = into_merged(call, index, x.shape[dim + 1])
    index = call.F.reshape(index, shape=(prod(index.shape),))
    y = call.run(merged(call, x, dim), index, merged(call, source, dim), dim=dim, **attrs)
    return parted(call, y, dim)


@register_kernel("index_add", sbp=_beside, batch=_batch_of_named, linear="x+source")
@in_float32
def index_add(xp, x, index, source, *, dim, alpha=1):
    check_range(xp, "index_add", "index", index, x.shape[dim])
    # With `dim` first, each index names one run of memory.
    y = xp.array(xp.moveaxis(x, dim, 0), order="C")
    moved = xp.moveaxis(source, dim, 0)
    moved = moved if alpha == 1 else moved * x.dtype.type(alpha)
    width, floating = prod(y.shape[1:]), x.dtype.char in "fd"
    if xp is np and floating and moved.size >= max(y.size, _MANY):  # a product of a sparse matrix
        y += sum_rows(np, moved.reshape(-1, width), index.reshape(-1), len(y)).reshape(y.shape)
    else:
        positions = index.astype(xp.int64).reshape(-1, 1) * width + xp.arange(width)
        add_at(xp, y.reshape(-1), positions, moved)
    return xp.moveaxis(y, 0, dim)


@register_kernel(
    "index_copy",
    infer=in_c_order(like_first),
    reuses="x",
    sbp=_beside,
    batch=_batch_of_named,
    linear="x+source",
)
def index_copy(xp, x, index, source, *, dim, out=None):
    check_range(xp, "index_copy", "index", index, x.shape[dim])
    y = copied(x, out)
    # In C order, so that of two values for one element the later one stays.
    y[(slice(None),) * dim + (index,)] = xp.ascontiguousarray(source)
    return y


def _batch_of_masks(call, index, *, dim, shape):
    mask = call.F.full(
        shape=(call.size, shape[dim]),
        value=0,
        dtype=np.dtype(bool),
        device=call.level.device_of(call),
    )
    ones = call.F.ones_like(call.F.cast(index, dtype=np.dtype(bool)))
    index = call.F.index_from_zero(index, size=shape[dim], op="index_fill", argument="index")
    mask = call.F.scatter(mask, index, ones, dim=1)
    return call.F.reshape(mask, shape=(*mask.shape, *(1,) * (len(shape) - 1 - dim)))


@register_kernel("index_mask", infer=mask_of_dim, batch=_batch_of_masks)
def index_mask(xp, index, *, dim, shape):
    """Return a mask that broadcasts to `shape` and is True at the indices along `dim`."""
    size = shape[dim]
    check_range(xp, "index_fill", "index", index, size, negative=True)
    mask = xp.zeros(size, bool)
    mask[index] = True
    return mask.reshape((size,) + (1,) * (len(shape) - 1 - dim))
