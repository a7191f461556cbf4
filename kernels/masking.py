"""Kernels that choose elements by a boolean mask."""

from math import prod

import numpy as np

from oneflow_lite.errors import ShapeError, arg_error
from oneflow_lite.kernels.batches import flat
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import broadcast, in_c_order, like_first, masked, of_shape
from oneflow_lite.kernels.numerics import copied, select_if_quicker, zeros
from oneflow_lite.ops.registry import register_kernel

_INT64 = np.dtype(np.int64)


@register_kernel("masked_fill", infer=broadcast, reuses="x", scalar="where(mask, value, x)")
def masked_fill(xp, x, mask, *, value, out=None):
    chosen = select_if_quicker(xp, mask, value, x, out)
    if chosen is not None:
        return chosen
    if out is None:
        return xp.where(mask, x.dtype.type(value), x)
    xp.copyto(copied(x, out), x.dtype.type(value), where=mask)
    return out


@register_kernel("masked_select", dynamic_shape=True)
def masked_select(xp, x, mask):
    """x and mask have one shape."""
    return x[mask].reshape(-1)


@register_kernel("masked_select_grad", infer=masked)
def masked_select_grad(xp, dy, mask, *, out=None):
    dx = zeros(xp, mask.shape, dy.dtype, out)
    dx[mask] = dy
    return dx


def _batch_of_scattered(call, x, mask, source):
    """The k-th True of an entry takes the k-th element of the entry's source."""
    F, x, mask = call.F, call.front(0), call.front(1)
    source = flat(call, call.front(2))
    if not source.shape[1]:
        return F.clone(x)
    order = F.cumsum(F.cast(flat(call, mask), dtype=_INT64), dim=1)
    ones = F.ones_like(order)
    places = F.clamp(
        F.sub(order, ones), F.sub(ones, ones), F.mul_scalar(ones, factor=source.shape[1] - 1)
    )
    taken = F.reshape(F.gather(source, places, dim=1), shape=mask.shape)
    return F.where(mask, taken, x)


@register_kernel(
    "masked_scatter", infer=in_c_order(like_first), sbp="whole", batch=_batch_of_scattered
)
def masked_scatter(xp, x, mask, source):
    """x and mask have one shape; the k-th True element takes the k-th element of source."""
    order = mask.reshape(-1).cumsum()
    if on_host(xp) and order.size and order[-1] > source.size:
        raise arg_error(
            "masked_scatter",
            "source",
            expected=f"at least {order[-1]} elements, one for each True in mask",
            got=f"shape {source.shape}",
            hint="pass a larger source",
            kind=ShapeError,
        )
    if not source.size:
        return x.copy()
    order -= 1
    taken = source.reshape(-1).take(order.clip(0, source.size - 1)).reshape(mask.shape)
    return xp.where(mask, taken, x)


def _batch_of_given_back(call, dy, mask, *, shape):
    """Add dy up where masked_scatter took its values; what it did not take goes to one more."""
    F, mask = call.F, flat(call, call.front(1))
    size = prod(shape)
    order = F.cumsum(F.cast(mask, dtype=_INT64), dim=1)
    ones = F.ones_like(order)
    places = F.where(mask, F.sub(order, ones), F.mul_scalar(ones, factor=size))
    dy = flat(call, call.front(0))
    device = call.level.device_of(call)
    zero = F.full(shape=(call.size, size + 1), value=0, dtype=dy.dtype, device=device)
    made = F.narrow(F.scatter_add(zero, places, dy, dim=1), dim=1, start=0, length=size)
    return F.reshape(made, shape=(call.size, *shape))


@register_kernel("masked_scatter_grad", infer=of_shape, batch=_batch_of_given_back)
def masked_scatter_grad(xp, dy, mask, *, shape, out=None):
    """Return the gradient of source: dy where the mask is True, in order, then zeros."""
    chosen = dy[mask].reshape(-1)
    dsource = zeros(xp, shape, dy.dtype, out)
    dsource.reshape(-1)[: chosen.size] = chosen
    return dsource


@register_kernel("nonzero", dynamic_shape=True)
def nonzero(xp, x):
    if not x.ndim:  # CuPy's argwhere wants a dimension
        return xp.zeros((int(x != 0), 0), xp.int64)
    return xp.argwhere(x)
