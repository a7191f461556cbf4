"""Kernels that repeat elements and move them around."""

from oneflow_lite.kernels.infer_rules import in_c_order, like_first, tiled
from oneflow_lite.kernels.numerics import copied
from oneflow_lite.registry import register_kernel


@register_kernel("repeat", infer=tiled)
def repeat(xp, x, *, sizes):
    """`sizes` counts copies, one for each dimension of the result."""
    return xp.tile(x, sizes)


@register_kernel("flip", infer=in_c_order(like_first))
def flip(xp, x, *, dims, out=None):
    return copied(xp.flip(x, dims), out)


@register_kernel("roll", infer=in_c_order(like_first))
def roll(xp, x, *, shifts, dims):
    """Without `dims` there is one shift, of the flattened array."""
    return xp.roll(x, shifts[0]) if dims is None else xp.roll(x, shifts, dims)
