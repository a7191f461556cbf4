"""Kernels that repeat elements and move them around."""

from oneflow_lite.registry import register_kernel


@register_kernel("repeat")
def repeat(xp, x, *, sizes):
    """`sizes` counts copies, one for each dimension of the result."""
    return xp.tile(x, sizes)


@register_kernel("flip")
def flip(xp, x, *, dims):
    return xp.flip(x, dims).copy()


@register_kernel("roll")
def roll(xp, x, *, shifts, dims):
    """Without `dims` there is one shift, of the flattened array."""
    return xp.roll(x, shifts[0]) if dims is None else xp.roll(x, shifts, dims)
