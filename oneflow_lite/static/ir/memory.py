"""The memory of variables: their layouts, and which of them may share it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from oneflow_lite.arrays.array_spec import Strides, c_strides
from oneflow_lite.arrays.device import device_of, on_device
from oneflow_lite.static.ir.program import OpDesc, VarDesc


def memory_roots(ops: Iterable[OpDesc]) -> dict[str, str]:
    """Return for each variable its root: the variable in whose memory it lies.

    A variable that no view op made is its own root. A view op may copy, as reshape does for some
    layouts. Its output counts as a view all the same, which costs at most an edge or a longer life.
    """
    roots: dict[str, str] = {}
    for op in ops:
        for name in op.reads:
            roots.setdefault(name, name)
        viewed = op.viewed
        for name in op.new_outputs:
            roots[name] = name if viewed is None else roots[viewed]
    return roots


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


def strides_of(desc: VarDesc) -> tuple[int, ...]:
    """Return the strides in bytes; 0 for dimensions of size 1, where they have no meaning."""
    return _strides(desc.shape, desc.dtype.itemsize, desc.strides)


@functools.lru_cache(4096)
def _strides(shape: tuple[int, ...], itemsize: int, strides: Strides | None) -> Strides:
    strides = c_strides(shape, itemsize) if strides is None else strides
    return tuple([0 if n == 1 else s for n, s in zip(shape, strides, strict=False)])


def is_in_c_order(desc: VarDesc) -> bool:
    """Return whether the elements lie in C order."""
    return desc.strides is None or strides_of(desc) == _strides(
        desc.shape, desc.dtype.itemsize, None
    )


def is_dense(desc: VarDesc) -> bool:
    """Return whether the layout is C order, or C order with dimensions permuted."""
    expected = desc.dtype.itemsize
    for stride, size in sorted(zip(strides_of(desc), desc.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def same_layout(x: VarDesc, y: VarDesc) -> bool:
    """Return whether an array of `x` can stand for an array of `y`."""
    return (
        x.shape == y.shape
        and x.dtype == y.dtype
        and x.device == y.device
        and strides_of(x) == strides_of(y)
    )
