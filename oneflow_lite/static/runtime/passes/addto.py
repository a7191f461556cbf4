"""Addto: sums, gradients above all, accumulate in the memory of one of their terms."""

from __future__ import annotations

from oneflow_lite.registry import KERNELS
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.effects import is_library
from oneflow_lite.static.runtime.passes.plannable import makes_into_out, same_layout
from oneflow_lite.static.runtime.passes.storage import Storage
from oneflow_lite.static.runtime.passes.take_over import TakeOver, takes_as_out
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport


def run(plan: ExecutionPlan) -> PassReport:
    """Let sums write over a term, and results that `copy_` brings home be written there at once.

    An in-place op of a user is recorded as `t = op(x, y)` and `copy_(x, t)`. With t in the memory
    of x nothing is left to be copied: `copy_` finds source and target to be the same. It stays in
    the plan, for a run that gives every variable memory of its own. Memory from outside is not
    written earlier than by the `copy_`: what stops the run in between would show it.

    The bytes saved are those of the buffers left out, and of the copies as well.
    """
    rule = TakeOver(plan)
    fired, nbytes = _write_home(plan, rule.storage)
    for position, op in enumerate(plan.block.ops):
        operands = list(rule.operands(op, position)) if op.type == "add" else []
        if operands:
            # the term that has been summed into already, so that one buffer serves all terms
            operand = next((n for n in operands if n in plan.in_place), operands[0])
            plan.in_place[op.outputs[0]] = operand
            fired += 1
            nbytes += plan.block.var(operand).nbytes
    return PassReport("addto", fired, {"bytes": nbytes})


def _write_home(plan: ExecutionPlan, storage: Storage) -> tuple[int, int]:
    fired = nbytes = 0
    var, ops = plan.block.var, plan.block.ops
    for position, copy in enumerate(ops):
        if copy.type != "copy_" or not is_library(copy):
            continue
        target, result = copy.inputs
        if target is None or result is None or result == target:
            continue
        made_at = storage.made_at.get(result, -1)
        if (
            made_at >= 0
            and storage.dies_at(result, position)
            and var(result).shape
            and same_layout(var(target), var(result))
            and _may_write(ops[made_at], target, storage)
            and not _is_used(ops[made_at + 1 : position], target, storage)
            and (made_at + 1 == position or not storage.is_held(target))
        ):
            plan.in_place[result] = target
            fired += 1
            nbytes += 2 * var(result).nbytes
    return fired, nbytes


def _may_write(op: OpDesc, target: str, storage: Storage) -> bool:
    """Return whether an op may write its result to a variable, which it may read as well.

    A function of the array module sees for itself where operands overlap, and raises before it
    writes. Other kernels only write temporaries, which an exception does not leave behind.
    """
    if not makes_into_out(op) or not op.schema.reuses:
        return False
    if KERNELS.get(op.type).ufunc is not None:
        return True
    return (
        not storage.is_held(target)
        and takes_as_out(op, target)
        and not any([n != target and storage.of(n) == storage.of(target) for n in op.reads])
    )


def _is_used(ops: list[OpDesc], name: str, storage: Storage) -> bool:
    memory = storage.of(name)
    return any([storage.of(n) == memory for op in ops for n in (*op.reads, *op.outputs)])
