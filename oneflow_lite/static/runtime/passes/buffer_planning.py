"""Buffer planning: temporaries that do not live at the same time share one piece of memory."""

from __future__ import annotations

from oneflow_lite.static.runtime.passes.memory import MemoryGroups, plannable
from oneflow_lite.static.runtime.plan import ExecutionPlan, MemoryPlan, PassReport

ALIGNMENT = 64  # bytes: a cache line, which also suits vector instructions


def plan_buffers(plan: ExecutionPlan) -> PassReport:
    """Give every plannable temporary a place, each in the smallest gap that holds it.

    The pass fires once for every variable with a place. The bytes saved are the sum of separate
    buffers less the size of the shared piece.
    """
    memory = MemoryGroups.of_plan(plan)
    block = plan.block
    names = plannable(plan)
    result = MemoryPlan()
    live: list[tuple[int, int, int]] = []  # begin, end and last use, sorted by begin
    for position, op in enumerate(block.ops):
        live = [entry for entry in live if entry[2] >= position]
        for name in op.outputs:
            if name not in names or name in result.places:
                continue
            nbytes = block.var(name).nbytes
            source = plan.in_place.get(name)
            if source is None:
                size = aligned(nbytes)
                offset = _best_gap(live, size)
                live.append((offset, offset + size, memory.last_use(name)))
                live.sort()
                result.arena_bytes = max(result.arena_bytes, offset + size)
            elif source in result.places:
                offset = result.places[source][0]
            else:  # it is in the memory of a view, which has no place of its own
                continue
            result.places[name] = (offset, nbytes)
            result.unshared_bytes += aligned(nbytes)
    plan.memory_plan = result
    saved = result.unshared_bytes - result.arena_bytes
    return PassReport("buffer_planning", len(result.places), {"bytes": saved})


def aligned(nbytes: int) -> int:
    """Round up to whole units of alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _best_gap(live: list[tuple[int, int, int]], size: int) -> int:
    """Return where the smallest gap that is large enough begins, or else the end of all."""
    best: tuple[int, int] | None = None
    end = 0
    for begin, after, _ in live:
        gap = begin - end
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, end)
        end = after
    return end if best is None else best[1]
