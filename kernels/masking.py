"""Kernels that choose elements by a boolean mask."""

from oneflow_lite.errors import ShapeError, arg_error
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import broadcast, in_c_order, like_first, masked, of_shape
from oneflow_lite.kernels.numerics import copied, select_if_quicker, zeros
from oneflow_lite.ops.registry import register_kernel


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


@register_kernel("masked_scatter", infer=in_c_order(like_first), sbp="whole")
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


@register_kernel("masked_scatter_grad", infer=of_shape)
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
