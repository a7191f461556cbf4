"""Dead code: removes ops whose results reach neither a fetched variable nor outside memory."""

from __future__ import annotations

from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, is_library
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport


def remove_dead_code(plan: ExecutionPlan) -> PassReport:
    """Remove ops that are not needed; `saved` counts them and the bytes of their outputs.

    An op that draws random numbers stays, since later numbers would change. So does an op in which
    other processes take part. A write stays while its memory is read later under any name.
    """
    block = plan.block
    needed = set(plan.fetches)
    kept: list[OpDesc] = []
    read: set[str] = set()  # memory that is read later,
    unseen: list[OpDesc] = []  # but by these ops: most Programs write to no temporary
    nbytes = 0

    def matters(written: str) -> bool:
        if not block.var(written).is_temporary:
            return True
        memory = MemoryGroups.of_plan(plan)
        while unseen:
            read.update(map(memory.of, unseen.pop().reads))
        return memory.of(written) in read or memory.is_held(written)

    for op in reversed(block.ops):
        if (
            op.draws
            or op.has_effect
            or not is_library(op)
            or any([n in needed or not block.var(n).is_temporary for n in op.outputs])
            or any(map(matters, op.written))
        ):
            kept.append(op)
            unseen.append(op)
            needed.update(op.reads)
        else:
            nbytes += sum(block.var(n).nbytes for n in op.new_outputs if op.viewed is None)
    removed = len(block.ops) - len(kept)
    if removed:
        block.ops[:] = kept[::-1]
    return PassReport("dead_code", removed, {"ops": removed, "bytes": nbytes})
