"""Arrays in the memory layout that a variable of a Program has."""

from __future__ import annotations

from typing import Any

from oneflow_lite.arrays.device import device_of, on_device
from oneflow_lite.static.ir.program import VarDesc


def shaped(piece: Any, desc: VarDesc) -> Any:
    """Return one-dimensional memory in the shape and layout of a variable."""
    strides = desc.strides
    if strides is None:
        return piece.reshape(desc.shape)
    order = sorted(range(len(desc.shape)), key=lambda dim: (-strides[dim], dim))
    back = sorted(range(len(order)), key=order.__getitem__)
    return piece.reshape([desc.shape[dim] for dim in order]).transpose(back)


def laid_out(array: Any, desc: VarDesc) -> Any:
    """Return an array in the layout of a variable: views of it were captured for that one."""
    strides = desc.strides
    if array.flags.c_contiguous if strides is None else array.strides == strides:
        return array
    with on_device(device_of(array)) as xp:
        made = shaped(xp.empty(array.size, array.dtype), desc)
        made[...] = array
    return made
