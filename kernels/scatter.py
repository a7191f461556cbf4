"""Kernels that read or write along one dimension at places given by an index array."""

from math import prod

from oneflow_lite.kernels.index_arrays import (
    add_at,
    check_range,
    lost,
    on_host,
    positions_along,
    take,
    wrapped,
)
from oneflow_lite.kernels.infer_rules import (
    gathered,
    in_c_order,
    indices_like,
    like_first,
    mask_like,
    mask_of_shape,
    of_shape,
)
from oneflow_lite.kernels.numerics import copied, zeros
from oneflow_lite.registry import register_kernel


@register_kernel("gather", infer=gathered)
def gather(xp, x, index, *, dim, out=None):
    check_range(xp, "gather", "index", index, x.shape[dim] if x.ndim else 1)
    return take(xp, x.reshape(-1), positions_along(xp, index, dim, x.shape), None, out)


@register_kernel("gather_grad", infer=of_shape)
def gather_grad(xp, dy, index, *, dim, shape, out=None):
    dx = zeros(xp, shape, dy.dtype, out)
    add_at(xp, dx.reshape(-1), positions_along(xp, index, dim, shape), dy)
    return dx


@register_kernel("scatter", infer=in_c_order(like_first), reuses="x")
def scatter(xp, x, index, src, *, dim, out=None):
    y, positions = _target(xp, "scatter", x, index, dim, out)
    y.reshape(-1)[positions.reshape(-1)] = src.reshape(-1)
    return y


@register_kernel("scatter_add", infer=in_c_order(like_first), reuses="x")
def scatter_add(xp, x, index, src, *, dim, out=None):
    y, positions = _target(xp, "scatter_add", x, index, dim, out)
    add_at(xp, y.reshape(-1), positions, src)
    return y


@register_kernel("scatter_multiply", infer=in_c_order(like_first), reuses="x")
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


@register_kernel("scatter_mask", infer=mask_of_shape)
def scatter_mask(xp, index, *, dim, shape):
    """Return a mask of `shape` that is True where scatter writes."""
    check_range(xp, "scatter", "index", index, shape[dim] if shape else 1)
    mask = xp.zeros(shape, bool)
    mask.reshape(-1)[positions_along(xp, index, dim, shape).reshape(-1)] = True
    return mask


@register_kernel("scatter_overwritten", infer=mask_like)
def scatter_overwritten(xp, index, *, dim, shape):
    """Return where scatter's value was overwritten by a later one."""
    return lost(xp, positions_along(xp, index, dim, shape), prod(shape))


@register_kernel("index_from_zero", infer=indices_like)
def index_from_zero(xp, index, *, size, op, argument):
    """Return indices counted from 0; `argument` of the functor `op` gave them."""
    check_range(xp, op, argument, index, size, negative=True)
    return wrapped(xp, index, size)


def _target(xp, op, x, index, dim, out):
    """Return a copy of x in C order, and the checked positions in it."""
    check_range(xp, op, "index", index, x.shape[dim] if x.ndim else 1)
    return copied(x, out), positions_along(xp, index, dim, x.shape)
