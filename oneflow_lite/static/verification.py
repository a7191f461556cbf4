"""A second, slow opinion on an analysis: every pair of instructions, by the rules and nothing else.

`InterpreterCore.check` calls it; a run does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oneflow_lite.errors import FlowError
from oneflow_lite.static.instruction import Instruction, has_side_effects, needs_buffer, shape_only
from oneflow_lite.static.program import OpDesc

if TYPE_CHECKING:
    from oneflow_lite.static.interpreter_core import InterpreterCore


def verify(core: InterpreterCore) -> None:
    """Check that conflicting instructions are ordered, and that variables die when they should.

    Raises
    ------
    FlowError
        Naming the instructions or the variable.
    """
    after = _reachable(core.downstream)
    instructions = core.instructions
    for j, second in enumerate(instructions):
        for i, first in enumerate(instructions[:j]):
            if _conflict(core, first, second) and j not in after[i]:
                raise _wrong(f"nothing orders {first.name!r} before {second.name!r}")
    incoming = [sum(j in followers for followers in core.downstream) for j in range(len(after))]
    if incoming != list(core.dependency_count):
        raise _wrong("dependency_count does not count the edges of downstream")
    for i, followers in enumerate(core.downstream):
        for j in followers:
            if j <= i:
                raise _wrong(f"an edge leads back to {instructions[j].name!r}")
            if any(j in after[k] for k in followers if k != j):
                raise _wrong(f"{instructions[i].name!r} → {instructions[j].name!r} is implied")
    for name in core.slots:
        used = _uses(core, name)
        last = [instructions[i].name for i in used if not any(j in after[i] for j in used)]
        if sorted(last) != sorted(core.last_live_ops[name]):
            raise _wrong(f"{name!r} is last used by {last}, not by {core.last_live_ops[name]}")


def _wrong(what: str) -> FlowError:
    return FlowError(f"InterpreterCore.check(): {what}")


def _reachable(downstream: list[list[int]]) -> list[set[int]]:
    found = []
    for i in range(len(downstream)):
        seen: set[int] = set()
        todo = list(downstream[i])
        while todo:
            j = todo.pop()
            if j not in seen:
                seen.add(j)
                todo += downstream[j]
        found.append(seen)
    return found


def _conflict(core: InterpreterCore, first: Instruction, second: Instruction) -> bool:
    if first.kind == second.kind == "feed":
        return True
    ops = (first.op, second.op)
    if all(op is not None and has_side_effects(op) for op in ops):
        return True
    read, write, make = _touched(core, first)
    then_read, then_write, then_make = _touched(core, second)
    if make & (then_read | then_make) or read & then_make:
        return True
    one, other = _memory(core, read), _memory(core, then_read)
    return bool(_memory(core, write) & other or one & _memory(core, then_write))


def _touched(core: InterpreterCore, instruction: Instruction) -> tuple[set[str], ...]:
    """Return the variables whose content is read or written, those written, and those made."""
    names = list(core.slots)
    op = instruction.op
    if op is None:
        made = {names[slot] for slot in instruction.outputs}
        return made | {names[s] for s in instruction.inputs if s is not None}, made, made
    made = set(op.new_outputs)
    fresh = made if op.viewed is None else set()
    written = set(op.written)
    return (set(op.reads) - shape_only(op)) | fresh | written, fresh | written, made


def _memory(core: InterpreterCore, names: set[str]) -> set[str]:
    """Follow each variable back through the view ops that led to it."""
    makers: dict[str, OpDesc] = {n: op for op in core.plan.block.ops for n in op.new_outputs}
    found = set()
    for name in names:
        at: str = name
        while at in makers and makers[at].viewed is not None:
            at = makers[at].viewed or at
        found.add(at)
    return found


def _uses(core: InterpreterCore, name: str) -> list[int]:
    slot = core.slots[name]
    all_uses = [i.index for i in core.instructions if slot in i.slots]
    needing = []
    for i in all_uses:
        instruction = core.instructions[i]
        op = instruction.op
        if op is None or slot in instruction.outputs or needs_buffer(op, name):
            needing.append(i)
    return needing or all_uses
