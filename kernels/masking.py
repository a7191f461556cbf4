"""Kernels that choose elements by a boolean mask."""

from oneflow_lite.errors import ShapeError, bad_argument
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.registry import register_kernel


@register_kernel("masked_fill")
def masked_fill(xp, x, mask, *, value):
    return xp.where(mask, x.dtype.type(value), x)


@register_kernel("masked_select")
def masked_select(xp, x, mask):
    """x and mask have one shape."""
    return x[mask].reshape(-1)


@register_kernel("masked_select_grad")
def masked_select_grad(xp, dy, mask):
    dx = xp.zeros(mask.shape, dy.dtype)
    dx[mask] = dy
    return dx


@register_kernel("masked_scatter")
def masked_scatter(xp, x, mask, source):
    """x and mask have one shape; the k-th True element takes the k-th element of source."""
    order = mask.reshape(-1).cumsum()
    if on_host(xp) and order.size and order[-1] > source.size:
        raise bad_argument(
            ShapeError,
            "masked_scatter",
            "source",
            expected=f"at least {order[-1]} elements, one for each True in mask",
            got=f"shape {source.shape}",
            mend="pass a larger source",
        )
    if not source.size:
        return x.copy()
    order -= 1
    taken = source.reshape(-1).take(order.clip(0, source.size - 1)).reshape(mask.shape)
    return xp.where(mask, taken, x)


@register_kernel("masked_scatter_grad")
def masked_scatter_grad(xp, dy, mask, *, shape):
    """Return the gradient of source: what it gave, in order, then zeros."""
    chosen = dy[mask].reshape(-1)
    dsource = xp.zeros(shape, dy.dtype)
    dsource.reshape(-1)[: chosen.size] = chosen
    return dsource


@register_kernel("nonzero")
def nonzero(xp, x):
    if not x.ndim:  # CuPy's argwhere wants a dimension
        return xp.zeros((int(x != 0), 0), xp.int64)
    return xp.argwhere(x)
