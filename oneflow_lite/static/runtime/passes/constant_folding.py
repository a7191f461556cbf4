"""Constant folding: ops that depend on constants alone are computed once, before the first run."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.device import on_device
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, is_pure, writes
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport

MAX_BYTES = 1 << 20  # of one op's outputs, which the plan keeps as long as it lives


def fold_constants(plan: ExecutionPlan) -> PassReport:
    """Evaluate ops whose inputs are constants, or that have none, with their own kernels.

    A result that is written, or fetched under any name, is made in every run. The bytes saved are
    those of the results that runs need not compute.
    """
    block = plan.block
    memory = MemoryGroups.of_plan(plan)
    taken = {memory.of(n) for op in block.ops for n in writes(op)}
    taken.update(map(memory.of, plan.fetches))
    kept: list[OpDesc] = []
    nbytes = 0
    for op in block.ops:
        inputs = [None if n is None else block.var(n) for n in op.inputs]
        outputs = [block.var(n) for n in op.outputs]
        size = sum(y.nbytes for y in outputs)
        if (
            size > MAX_BYTES
            or any([x is not None and x.value is None for x in inputs])
            or not is_pure(op, block)
            or any([memory.of(y.name) in taken or y.device != plan.place for y in outputs])
            or (values := _evaluate(plan, op, [x and x.value for x in inputs])) is None
        ):
            kept.append(op)
            continue
        for y, value in zip(outputs, values, strict=True):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            y.value = value
        nbytes += 0 if op.viewed else size
    folded = len(block.ops) - len(kept)
    if folded:
        block.ops[:] = kept
    return PassReport("constant_folding", folded, {"ops": folded, "bytes": nbytes})


def _evaluate(plan: ExecutionPlan, op: OpDesc, inputs: list[Any]) -> list[Any] | None:
    """Return the arrays that an op makes; None when it raises, as it will then do in the run."""
    attrs = dict(op.attrs)
    if not inputs:  # of an op that creates: the device is an attribute
        attrs.pop("device", None)
    try:
        with on_device(plan.place) as xp, np.errstate(all="ignore"):
            result = op_expr(op.type).kernel(xp)(*inputs, **attrs)
    except Exception:
        return None
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(op.outputs):
        return None
    return [np.asarray(y) if isinstance(y, np.generic) else y for y in results]
