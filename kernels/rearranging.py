"""Kernels that repeat elements and move them around."""

import numpy as np

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.kernels.index_arrays import on_host
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


def _check_repeats(repeats, output_size):
    if repeats.size and repeats.min() < 0:
        raise bad_argument(
            ArgumentError,
            "repeat_interleave",
            "repeats",
            expected="counts of at least 0",
            got=int(repeats.min()),
            mend="clamp them",
        )
    if output_size is not None and output_size != repeats.sum():
        raise bad_argument(
            ArgumentError,
            "repeat_interleave",
            "output_size",
            expected=f"the sum of repeats, {int(repeats.sum())}",
            got=output_size,
            mend="leave it out, and it is counted",
        )


def _repeated(repeats, *, output_size):
    return None if output_size is None else ArraySpec((output_size,), np.dtype(np.int64))


@register_kernel(
    "repeat_index", infer=_repeated, dynamic_shape=lambda _, output_size: output_size is None
)
def repeat_index(xp, repeats, *, output_size):
    """Return each position as often as `repeats` says there; counted here without `output_size`."""
    if on_host(xp):
        _check_repeats(repeats, output_size)
        return np.repeat(np.arange(repeats.size), repeats)
    ends = xp.cumsum(repeats)
    total = output_size if output_size is not None else int(ends[-1]) if ends.size else 0
    return xp.searchsorted(ends, xp.arange(total), side="right")
