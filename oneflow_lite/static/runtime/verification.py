"""A second, slow check of an analysis: every pair of instructions, by the rules alone.

`InterpreterCore.check` calls it; a run does not.
"""

from __future__ import annotations

import attrs

from oneflow_lite.errors import FlowError
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.instruction import has_side_effects, needs_buffer, shape_only
from oneflow_lite.static.runtime.runner import Analysis


def verify(core: Analysis) -> None:
    """Check that conflicting instructions are ordered, and that variables die when they should.

    Raises
    ------
    FlowError
        Naming the instructions or the variable.
    """
    after = _reachable(core.downstream)
    instructions = core.instructions
    effects = _effects(core)
    for j, second in enumerate(effects):
        for i, first in enumerate(effects[:j]):
            if first.conflicts(second) and j not in after[i]:
                names = f"{instructions[i].name!r} before {instructions[j].name!r}"
                raise _analysis_error(f"nothing orders {names}")
    incoming = [sum(j in followers for followers in core.downstream) for j in range(len(after))]
    if incoming != list(core.dependency_count):
        raise _analysis_error("dependency_count does not count the edges of downstream")
    for i, followers in enumerate(core.downstream):
        for j in followers:
            if j <= i:
                raise _analysis_error(f"an edge leads back to {instructions[j].name!r}")
            if any(j in after[k] for k in followers if k != j):
                raise _analysis_error(
                    f"{instructions[i].name!r} → {instructions[j].name!r} is implied"
                )
    for name in core.slots:
        used = _uses(core, name)
        last = [instructions[i].name for i in used if not any(j in after[i] for j in used)]
        if sorted(last) != sorted(core.last_live_ops[name]):
            raise _analysis_error(
                f"{name!r} is last used by {last}, not by {core.last_live_ops[name]}"
            )


def _analysis_error(what: str) -> FlowError:
    return FlowError(f"InterpreterCore.check(): {what}")


def _reachable(downstream: list[list[int]]) -> list[set[int]]:
    reachable = []
    for i in range(len(downstream)):
        seen: set[int] = set()
        todo = list(downstream[i])
        while todo:
            j = todo.pop()
            if j not in seen:
                seen.add(j)
                todo += downstream[j]
        reachable.append(seen)
    return reachable


@attrs.frozen
class _Effect:
    """The effects of an instruction: on arrays, on memory, and in an order that must be kept."""

    reads: frozenset[str]
    makes: frozenset[str]
    memory_read: frozenset[str]
    memory_written: frozenset[str]
    kept: str

    def conflicts(self, then: _Effect) -> bool:
        """Return whether a later instruction must not come first."""
        return bool(
            (self.kept and self.kept == then.kept)
            or self.makes & (then.reads | then.makes)
            or self.reads & then.makes
            or self.memory_written & (then.memory_read | then.memory_written)
            or self.memory_read & then.memory_written
        )


def _effects(core: Analysis) -> list[_Effect]:
    names = list(core.slots)
    makers = {name: op for op in core.plan.block.ops for name in op.new_outputs}
    effects = []
    for instruction in core.instructions:
        op = instruction.op
        if op is None:
            reads = {names[slot] for slot in instruction.inputs if slot is not None}
            makes = fresh = {names[slot] for slot in instruction.outputs}
            written: set[str] = set()
            kept = instruction.kind if instruction.kind == "feed" else ""
        else:
            reads = set(op.reads) - shape_only(op)
            makes = set(op.new_outputs)
            fresh = makes if op.viewed is None else set()
            written = set(op.written)
            kept = "side effects" if has_side_effects(op) else ""
        content, changed = _owners(makers, reads), _owners(makers, fresh | written)
        effects.append(_Effect(frozenset(reads), frozenset(makes), content, changed, kept))
    return effects


def _owners(makers: dict[str, OpDesc], names: set[str]) -> frozenset[str]:
    """Follow each variable back through the view ops that led to it."""
    owners = set()
    for name in names:
        at: str = name
        while at in makers and makers[at].viewed is not None:
            at = makers[at].viewed or at
        owners.add(at)
    return frozenset(owners)


def _uses(core: Analysis, name: str) -> list[int]:
    slot = core.slots[name]
    all_uses = [i.index for i in core.instructions if slot in i.slots]
    needing = []
    for i in all_uses:
        instruction = core.instructions[i]
        op = instruction.op
        if op is None or slot in instruction.outputs or needs_buffer(op, name):
            needing.append(i)
    return needing or all_uses
