"""Addto: sums, mostly of gradients, accumulate in the memory of one of their terms."""

from __future__ import annotations

from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.memory import same_layout
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.inplace import DyingOperands, takes_as_out
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, is_library, makes_into_out
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport


def add_in_place(plan: ExecutionPlan) -> PassReport:
    """Write sums over a term, and results that `copy_` moves directly to their target.

    An in-place op of a user is recorded as `t = op(x, y)` and `copy_(x, t)`. With t in the memory
    of x there is nothing to copy: `copy_` finds that source and target are the same. It stays in
    the plan, for runs that give every variable its own memory. Memory from outside is not written
    before the `copy_`: an interruption in between would show it.

    The bytes saved are those of the buffers and of the copies.
    """
    dying = DyingOperands(plan)
    fired, nbytes = _write_home(plan, dying.memory)
    for position, op in enumerate(plan.block.ops):
        operands = list(dying.of(op, position)) if op.type == "add" else []
        if operands:
            # the term that already holds a sum, so that one buffer serves all terms
            operand = next((n for n in operands if n in plan.in_place), operands[0])
            plan.in_place[op.outputs[0]] = operand
            fired += 1
            nbytes += plan.block.var(operand).nbytes
    return PassReport("addto", fired, {"bytes": nbytes})


def _write_home(plan: ExecutionPlan, memory: MemoryGroups) -> tuple[int, int]:
    fired = nbytes = 0
    var, ops = plan.block.var, plan.block.ops
    for position, copy in enumerate(ops):
        if copy.type != "copy_" or not is_library(copy):
            continue
        target, result = copy.inputs
        if target is None or result is None or result == target:
            continue
        made_at = memory.made_at.get(result, -1)
        if (
            made_at >= 0
            and memory.dies_at(result, position)
            and var(result).shape
            and same_layout(var(target), var(result))
            and _may_write(ops[made_at], target, memory)
            and not _is_used(ops[made_at + 1 : position], target, memory)
            and (made_at + 1 == position or not memory.is_held(target))
        ):
            plan.in_place[result] = target
            fired += 1
            nbytes += 2 * var(result).nbytes
    return fired, nbytes


def _may_write(op: OpDesc, target: str, memory: MemoryGroups) -> bool:
    """Return whether an op may write its result to a variable, which it may read as well.

    A function of the array module handles overlapping operands, and raises before it writes. Other
    kernels may write temporaries only, which do not outlive an exception.
    """
    if not makes_into_out(op) or not op.schema.reuses:
        return False
    if KERNELS.get(op.type).ufunc is not None:
        return True
    return (
        not memory.is_held(target)
        and takes_as_out(op, target)
        and not any([n != target and memory.of(n) == memory.of(target) for n in op.reads])
    )


def _is_used(ops: list[OpDesc], name: str, memory: MemoryGroups) -> bool:
    piece = memory.of(name)
    return any([memory.of(n) == piece for op in ops for n in (*op.reads, *op.outputs)])
