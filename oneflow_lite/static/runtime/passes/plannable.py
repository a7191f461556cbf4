"""Finds the temporaries that the plan may place: their ops write where they are told to."""

from __future__ import annotations

import functools

from oneflow_lite.static.ir.program import OpDesc, VarDesc
from oneflow_lite.static.runtime.passes.effects import is_control_flow, is_library
from oneflow_lite.static.runtime.passes.memory_groups import MemoryGroups
from oneflow_lite.static.runtime.plan import ExecutionPlan

Shape = tuple[int, ...]


def plannable(plan: ExecutionPlan) -> set[str]:
    """Return the temporaries whose memory later ops, and later runs, may use again.

    Each is the only output of an op that takes `out`, is dense and on the plan's device, and is
    neither fetched nor kept by a control-flow op under any name.
    """
    memory = MemoryGroups.of_plan(plan)
    return {name for name in owned(plan) if not memory.is_held(name)}


def owned(plan: ExecutionPlan) -> set[str]:
    """Return the temporaries whose memory the plan may choose, fetched ones included."""
    found: set[str] = plan.noted("owned", _find_owned)
    return found


def _find_owned(plan: ExecutionPlan) -> set[str]:
    var = plan.block.var
    return {
        name
        for op in plan.block.ops
        for name in (op.outputs if op.type == "fused" else op.outputs[:1])
        if (op.type == "fused" or makes_into_out(op))
        and (desc := var(name)).nbytes
        # NumPy rounds a single complex product differently in place.
        and not (desc.dtype.kind == "c" and desc.nbytes == desc.dtype.itemsize)
        and desc.device == plan.place
        and is_dense(desc)
    }


def makes_into_out(op: OpDesc) -> bool:
    """Return whether an op makes one array, and takes `out` for it."""
    schema = op.schema
    return (
        schema.out
        and not op.returns_tuple
        and len(op.outputs) == 1
        and op.outputs[0] not in op.inputs
        and not (op.written or op.viewed or (schema.random and is_control_flow(op)))
        and is_library(op)
    )


def strides_of(desc: VarDesc) -> tuple[int, ...]:
    """Return the strides in bytes; 0 for dimensions of size 1, where they have no meaning."""
    return _strides(desc.shape, desc.dtype.itemsize, desc.strides)


@functools.lru_cache(4096)
def _strides(shape: Shape, itemsize: int, strides: Shape | None) -> Shape:
    if strides is None:
        found = [itemsize]
        for size in shape[:0:-1]:
            found.append(found[-1] * size)
        strides = tuple(found[::-1])
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
    """Return whether one array can take the other's place."""
    return (
        x.shape == y.shape
        and x.dtype == y.dtype
        and x.device == y.device
        and strides_of(x) == strides_of(y)
    )
