"""Ops between tensors of one rank and global tensors."""

from oneflow_lite.ops.registry import register_kernel


@register_kernel("local_to_global", effect=True)
def local_to_global(xp, x, *, placement, sbp, shape):
    """Return the global array of which x is this rank's part; copies are the first rank's."""
    return placement.hold(placement.agreed(xp, x, sbp), sbp, shape, x.dtype)


@register_kernel("global_to_local", effect=True)
def global_to_local(xp, x):
    """Return a copy of this rank's part."""
    return x.local.copy()


@register_kernel("global_to_global", effect=True)
def global_to_global(xp, x, *, placement, sbp, grad_sbp):
    """Return the same tensor in another signature, or on another placement."""
    return placement.boxed(x, sbp)
