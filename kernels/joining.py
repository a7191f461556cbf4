"""Kernels that put arrays together."""

from oneflow_lite.registry import register_kernel


@register_kernel("cat")
def cat(xp, *xs, dim):
    return xp.concatenate(xs, axis=dim)


@register_kernel("stack")
def stack(xp, *xs, dim):
    new = (slice(None),) * dim + (None,)  # half the time of xp.stack
    return xp.concatenate([x[new] for x in xs], axis=dim)
