"""Groups as machine code: Numba compiles their loops, and a second thread shares large ones."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit, types

from oneflow_lite.fusion import elementary
from oneflow_lite.fusion.loops import REDUCTIONS, Group, source_of
from oneflow_lite.locks import make_lock
from oneflow_lite.static.ir.program import Block

_LARGE = 1 << 16  # elements from which a second thread pays
_lock = make_lock()
_pool: ThreadPoolExecutor | None = None


@njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, forceinline=True)
def add(total: float, x: Any) -> float:
    """Add in any order, so that several sums may run side by side."""
    return total + float(x)


@njit(error_model="numpy", forceinline=True)
def compensated(total: float, lost: float, x: float) -> Any:
    """Add to a sum and to what its rounding loses (Neumaier 1974)."""
    new = total + x
    if abs(total) >= abs(x):
        lost += (total - new) + x
    elif math.isfinite(new):
        lost += (x - new) + total
    return new, where_finite(lost, new)


@njit(error_model="numpy", forceinline=True)
def where_finite(lost: float, total: float) -> float:
    """Return 0 where a sum is no number any more."""
    return lost if math.isfinite(total) else 0.0


_SCOPE = {
    **elementary.FUNCTIONS,
    "add": add,
    "compensated": compensated,
    "inf": math.inf,
    "nan": math.nan,
    **{n: getattr(np, n) for n in "float32 float64 int32 int64 int16 int8 uint8".split()},
}


def threads() -> int:
    """Return how many threads work on a large group."""
    return max(1, min(int(os.environ.get("OMP_NUM_THREADS", 0) or os.cpu_count() or 1), 64))


def compiled(group: Group, block: Block) -> Callable[..., None]:
    """Return a function of a group's inputs and outputs, as arrays.

    Raises
    ------
    Exception
        Whatever Numba raises where it cannot.
    """
    source = source_of(group, block)
    names = [*group.inputs, *group.outputs]
    arrays = [_array_type(block, name) for name in names]
    sums = group.partial_sums(block)
    arrays += [types.Array(types.float64, 1 + len(shape), "C") for shape in sums]
    made: dict[str, Any] = {}
    exec(compile(source, "<fused group>", "exec"), dict(_SCOPE), made)
    signature = types.void(types.int64, types.int64, types.int64, *arrays)
    options = {"error_model": "numpy", "nogil": True, "boundscheck": False}
    kernel = njit(signature, **options)(made["group"])
    run = _shared(kernel, group, sums)
    run.source = source  # type: ignore[attr-defined]
    return run


def _array_type(block: Block, name: str) -> Any:
    from numba import from_dtype

    desc = block.var(name)
    return types.Array(from_dtype(desc.dtype), len(desc.shape), "C")


def _shared(kernel: Any, group: Group, sums: list[tuple[int, ...]]) -> Callable[..., None]:
    """Return what divides the work among threads, and adds up their sums."""
    steps = group.steps
    parts = threads() if group.rows * group.columns >= _LARGE else 1
    parts = min(parts, max(steps, 1))
    if parts == 1 and not sums:
        return lambda *arrays: kernel(0, 0, steps, *arrays)
    bounds = [steps * i // parts for i in range(parts + 1)]
    ends = [
        (group.outputs.index(op.outputs[0]) - len(group.outputs), _share(op, group))
        for op in group.ops
        if op.type in REDUCTIONS and group.kinds[op.outputs[0]] != "row"
    ]

    def run(*arrays: Any) -> None:
        own = [np.zeros((parts, *shape)) for shape in sums]
        if parts == 1:
            kernel(0, 0, steps, *arrays, *own)
        else:
            others = [
                _threads().submit(kernel, i, bounds[i], bounds[i + 1], *arrays, *own)
                for i in range(1, parts)
            ]
            kernel(0, 0, bounds[1], *arrays, *own)
            for other in others:
                other.result()
        for (position, share), part in zip(ends, own, strict=True):
            out = arrays[position]
            total = part[0] if parts == 1 else part.sum(0)
            out.reshape(-1)[...] = total / share if share != 1 else total

    return run


def _share(op: Any, group: Group) -> float:
    if op.type != "mean":
        return 1
    size = group.rows * group.columns
    return size if group.kinds[op.outputs[0]] == "number" else group.rows


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(threads(), "oneflow_lite fusion")
            os.register_at_fork(after_in_child=_forget)
        return _pool


def _forget() -> None:
    global _pool
    _pool = None
