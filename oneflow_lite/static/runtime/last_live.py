"""Last-live instructions: after which of them nothing needs a variable any more.

A run counts them down and drops the variable at zero, which frees its memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from oneflow_lite.static.runtime.dependencies import happens_before
from oneflow_lite.static.runtime.instruction import Instruction, needs_buffer


@attrs.define(eq=False)
class LastLive:
    """The uses of each variable, by name, as names of instructions.

    Attributes
    ----------
    before_shrink : dict of str to list of str
        All that make the variable or need its memory under this name.
    after_shrink : dict of str to list of str
        Those of them that come before no other one.
    """

    before_shrink: dict[str, list[str]]
    after_shrink: dict[str, list[str]]


def find_last_live(
    instructions: Sequence[Instruction],
    names: Sequence[str],
    downstream: Sequence[Sequence[int]],
) -> LastLive:
    """Find the last uses of the variables.

    An op that makes a view of a variable, or looks at its shape alone, does not prolong its life:
    the view holds the memory as long as the view itself is used.
    """
    after = happens_before(downstream)
    uses: list[list[int]] = [[] for _ in names]
    views: list[list[int]] = [[] for _ in names]
    for instruction in instructions:
        op = instruction.op
        for slot in instruction.slots:
            needs = op is None or slot in instruction.outputs or needs_buffer(op, names[slot])
            (uses if needs else views)[slot].append(instruction.index)
    every, last = {}, {}
    for slot, name in enumerate(names):
        used = uses[slot] or views[slot]  # a parameter may be used by nothing but a view
        users = sum(1 << i for i in used)
        final = [i for i in used if not after[i] & users]
        every[name] = [instructions[i].name for i in used]
        last[name] = [instructions[i].name for i in final]
    return LastLive(every, last)


def viewed_slots(instruction: Instruction) -> tuple[int, ...]:
    """Return the slot of what an instruction makes a view of, if it does."""
    op = instruction.op
    if op is None or op.viewed is None:
        return ()
    slot = instruction.inputs[op.inputs.index(op.viewed)]
    return () if slot is None or slot in instruction.outputs else (slot,)
