"""Kernels that put arrays together, repeat them and move their elements around."""

from oneflow_lite.registry import register_kernel


@register_kernel("cat")
def cat(xp, *xs, dim):
    return xp.concatenate(xs, axis=dim)


@register_kernel("stack")
def stack(xp, *xs, dim):
    return xp.stack(xs, axis=dim)


@register_kernel("repeat")
def repeat(xp, x, *, sizes):
    """`sizes` counts copies, one for each dimension of the result."""
    return xp.tile(x, sizes)


@register_kernel("flip")
def flip(xp, x, *, dims):
    return xp.flip(x, dims).copy()


@register_kernel("roll")
def roll(xp, x, *, shifts, dims):
    return xp.roll(x, shifts, dims)
