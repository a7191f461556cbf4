"""Arrays made from nothing but attributes."""

from oneflow_lite.registry import register_kernel


@register_kernel("full")
def full(xp, *, shape, value, dtype):
    return xp.full(shape, value, dtype)


@register_kernel("empty")
def empty(xp, *, shape, dtype):
    return xp.empty(shape, dtype)


@register_kernel("zeros_like")
def zeros_like(xp, x):
    return xp.zeros(x.shape, x.dtype)


@register_kernel("ones_like")
def ones_like(xp, x):
    return xp.ones(x.shape, x.dtype)


@register_kernel("arange")
def arange(xp, *, start, end, step, dtype):
    return xp.arange(start, end, step, dtype)


@register_kernel("linspace")
def linspace(xp, *, start, end, steps, dtype):
    return xp.linspace(start, end, steps).astype(dtype)


@register_kernel("eye")
def eye(xp, *, n, m, dtype):
    return xp.eye(n, m, dtype=dtype)
