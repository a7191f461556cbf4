"""Dependencies: which instructions must come before which, with no edge that follows from others.

Two instructions conflict when either writes memory that both use; then they keep their order.
Memory is told apart by `memory_roots`, so a view conflicts with its base. Feeds, and ops that draw
random numbers, talk to other processes or give nothing back, keep their order as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs

from oneflow_lite.static.ir.memory import memory_roots
from oneflow_lite.static.runtime.instruction import Instruction, has_side_effects, shape_only

Resource = tuple[str, str]
DIRECT, SYNCHRONOUS, EVENT = "direct", "synchronous", "event"


@attrs.define(eq=False)
class Dependencies:
    """The edges between instructions, by index.

    Attributes
    ----------
    downstream_before_shrink : list of list of int
        For each instruction those that must wait for it by one of the rules.
    downstream : list of list of int
        The same without the edges that follow from others.
    dependency_count : list of int
        How many edges of `downstream` lead to each instruction.
    kinds : dict of (int, int) to str
        How an edge of `downstream` is kept: "direct" (the same thread and stream go on with the
        other), "synchronous" (the other may start once this one has returned), or "event" (another
        stream, or the caller, waits for work on a device).
    """

    downstream_before_shrink: list[list[int]]
    downstream: list[list[int]]
    dependency_count: list[int]
    kinds: dict[tuple[int, int], str]


def accesses(
    instruction: Instruction, names: Sequence[str], roots: dict[str, str]
) -> tuple[set[Resource], set[Resource]]:
    """Return the resources that an instruction reads, and the resources that it writes.

    A variable is two resources: the array object, which is made once, and the memory, which it
    shares with its views.
    """
    op = instruction.op
    if op is None:
        given = [names[slot] for slot in instruction.inputs if slot is not None]
        made = [names[slot] for slot in instruction.outputs]
        views: list[str] = []
        written: Iterable[str] = ()
    else:
        given = [name for name in op.reads if name not in shape_only(op)]
        made = list(op.new_outputs)
        views = made if op.viewed is not None else []
        written = op.written
    reads = {("array", name) for name in given}
    reads |= {("memory", roots.get(name, name)) for name in given}
    writes = {("array", name) for name in made}
    writes |= {("memory", roots.get(name, name)) for name in made if name not in views}
    writes |= {("memory", roots.get(name, name)) for name in written}
    if instruction.kind == "feed":
        writes.add(("order", "feeds"))
    if op is not None and has_side_effects(op):
        writes.add(("order", "side effects"))
    return reads, writes


def find_dependencies(instructions: Sequence[Instruction], names: Sequence[str]) -> Dependencies:
    """Analyse a list of instructions.

    Parameters
    ----------
    instructions : sequence of Instruction
    names : sequence of str
        The variable of each slot.
    """
    before_shrink = _edges(instructions, names)
    downstream = shrink(before_shrink)
    count = [0] * len(instructions)
    for followers in downstream:
        for j in followers:
            count[j] += 1
    return Dependencies(before_shrink, downstream, count, _kinds(instructions, downstream))


def _edges(instructions: Sequence[Instruction], names: Sequence[str]) -> list[list[int]]:
    roots = memory_roots(i.op for i in instructions if i.op is not None)
    writer: dict[Resource, int] = {}
    readers: defaultdict[Resource, list[int]] = defaultdict(list)
    downstream: list[list[int]] = [[] for _ in instructions]
    for j, instruction in enumerate(instructions):
        reads, writes = accesses(instruction, names, roots)
        before = {writer[resource] for resource in reads | writes if resource in writer}
        for resource in writes:
            before.update(readers.pop(resource, ()))
            writer[resource] = j
        for resource in reads - writes:
            readers[resource].append(j)
        for i in sorted(before):
            downstream[i].append(j)
    return downstream


def happens_before(downstream: Sequence[Sequence[int]]) -> list[int]:
    """Return for each instruction the set of its successors, as the bits of an int."""
    after = [0] * len(downstream)
    for i in reversed(range(len(downstream))):
        for j in downstream[i]:
            after[i] |= 1 << j | after[j]
    return after


def shrink(downstream: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the edges without those that longer paths imply."""
    after = happens_before(downstream)
    kept = []
    for followers in downstream:
        reached = 0
        needed = []
        for j in sorted(followers):  # a longer path to j begins with a smaller follower
            if not reached >> j & 1:
                needed.append(j)
                reached |= after[j]
        kept.append(needed)
    return kept


def _kinds(
    instructions: Sequence[Instruction], downstream: Sequence[Sequence[int]]
) -> dict[tuple[int, int], str]:
    kinds = {}
    for i, followers in enumerate(downstream):
        here = instructions[i].stream
        direct = None
        for j in followers:
            there = instructions[j].stream
            if direct is None and here == there:
                direct = j
                kinds[i, j] = DIRECT
            elif here in ("", "d2h") or here == there:
                kinds[i, j] = SYNCHRONOUS
            else:
                kinds[i, j] = EVENT
    return kinds
