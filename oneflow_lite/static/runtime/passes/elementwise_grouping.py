"""Elementwise grouping: finds the chains of elementwise ops that could be one loop."""

from __future__ import annotations

from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.plannable import makes_into_out
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport

# Ops that can write over an operand although each element depends on several.
NOT_ELEMENTWISE = frozenset(
    """cumsum_grad index_copy log_softmax log_softmax_grad scatter scatter_add scatter_amax
    scatter_amin scatter_multiply scatter_prod setitem_grad softmax standardize_grad""".split()
)


def run(plan: ExecutionPlan) -> PassReport:
    """Record groups of ops that follow each other, share a shape and keep results to themselves.

    Every result but the last is used inside the group and nowhere else. A run executes the ops one
    by one, in place where the in-place pass found that possible; the ops and bytes saved are those
    of the inner results, which a single loop would not store.
    """
    ops, var = plan.block.ops, plan.block.var
    last_read = {name: i for i, op in enumerate(ops) for name in op.reads}
    last_read.update(dict.fromkeys(plan.fetches, len(ops)))
    plan.groups = []
    saved = {"ops": 0, "bytes": 0}
    for begin, end in _runs(plan):
        while begin < end:
            after = _end_of_group(ops, begin, end, last_read)
            if after > begin + 1:
                group = ops[begin:after]
                plan.groups.append(group)
                saved["ops"] += len(group) - 1
                saved["bytes"] += sum(var(op.outputs[0]).nbytes for op in group[:-1])
            begin = after
    return PassReport("elementwise_grouping", len(plan.groups), saved)


def _runs(plan: ExecutionPlan) -> list[tuple[int, int]]:
    """Return the begin and end of each run of elementwise ops on one shape."""
    found: list[tuple[int, int]] = []
    shape = None
    for position, op in enumerate(plan.block.ops):
        if not (op.schema.reuses and makes_into_out(op)) or op.type in NOT_ELEMENTWISE:
            shape = None
            continue
        output = plan.block.var(op.outputs[0])
        if not output.is_temporary:
            shape = None
            continue
        if output.shape != shape:
            found.append((position, position))
        shape = output.shape
        found[-1] = (found[-1][0], position + 1)
    return found


def _end_of_group(ops: list[OpDesc], begin: int, end: int, last_read: dict[str, int]) -> int:
    """Return the position after the longest group that begins at an op and ends before `end`."""
    after = begin + 1
    inside = begin  # the last op that uses a result of the group so far
    for position in range(begin, end):
        if inside <= position:
            after = position + 1
        inside = max(inside, last_read.get(ops[position].outputs[0], len(ops)))
        if inside >= end:
            break
    return after
