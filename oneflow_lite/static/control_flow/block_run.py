"""Runs sub-blocks: what the kernels of control flow do with the blocks among their attributes."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import attrs

from oneflow_lite.device import CPU, Device, device_of, on_device
from oneflow_lite.static.ir.listing import list_block
from oneflow_lite.static.ir.program import Block, Program, VarDesc
from oneflow_lite.static.ir.tracked import changes
from oneflow_lite.static.runtime.passes import run_passes
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.straight_line import StraightLine, shaped


class BlockNotes:
    """What is kept with a sub-block.

    Attributes
    ----------
    block : weak reference
        The block itself: a copy of it, which begins with the notes of the original, tells by this
        that it needs its own.
    trace : Trace or None
        How it was captured, for its gradient; None for a block that was loaded.
    """

    def __init__(self, block: Block, trace: Any = None) -> None:
        self.block = weakref.ref(block)
        self.trace = trace
        self._runners: dict[Any, StraightLine] = {}
        self._checked: tuple[int, Any] = (-1, None)

    def runner(self, key: Any, block: Block) -> StraightLine:
        """Return what runs the block for given feeds and fetches on a device."""
        if self._checked[0] != changes():  # some Program was changed: was this block?
            values = [desc.value for desc in block.vars.values() if desc.value is not None]
            content = (list_block(block), [id(value) for value in values])
            if content != self._checked[1]:
                self._runners = {}
            self._checked = (changes(), content)
        found = self._runners.get(key)
        if found is None:
            found = self._runners.setdefault(key, _prepare(block, *key))
        return found


def notes_of(block: Block) -> BlockNotes:
    """Return the notes of a block, its own ones."""
    notes: BlockNotes | None = block.notes
    if notes is None or notes.block() is not block:
        notes = block.notes = BlockNotes(block, notes and notes.trace)
    return notes


def run_block(
    block: Block, names: Sequence[str], fetches: tuple[str, ...], arrays: Sequence[Any]
) -> list[Any]:
    """Run a block once.

    Parameters
    ----------
    block : Block
        One that uses no variable of the blocks around it.
    names : sequence of str
        The variables that are given; those that the block does not know are left out.
    fetches : tuple of str
        Variables that ops of the block make.
    arrays : sequence of array
        For `names`.

    Returns
    -------
    list of array
        In memory of their own, in C order.
    """
    known = block.vars
    feeds = []
    given = []
    for name, array in zip(names, arrays, strict=True):
        if name in known:
            feeds.append(name)
            given.append(_laid_out(array, known[name]))
    place = device_of(arrays[0]) if arrays else CPU
    runner = notes_of(block).runner((tuple(feeds), fetches, place), block)
    results = runner.run(given, ())
    return [y if y.flags.c_contiguous else y.copy(order="C") for y in results]


def _prepare(
    block: Block, feeds: tuple[str, ...], fetches: tuple[str, ...], place: Device
) -> StraightLine:
    own = Block(Program())
    own.ops = [op.copy() for op in block.ops]
    own.vars = {name: attrs.evolve(desc) for name, desc in block.vars.items()}
    if place is not CPU:
        with on_device(place) as xp:
            for desc in own.vars.values():
                desc.device = place
                desc.value = None if desc.value is None else xp.asarray(desc.value)
    plan = ExecutionPlan(own, feeds, fetches, place)
    run_passes(plan)
    return StraightLine(plan)


def _laid_out(array: Any, desc: VarDesc) -> Any:
    """Return an array in the layout for which its block was captured."""
    if desc.strides is None:
        return array if array.flags.c_contiguous else array.copy(order="C")
    if array.strides == desc.strides:
        return array
    with on_device(device_of(array)) as xp:
        made = shaped(xp.empty(array.size, array.dtype), desc)
        made[...] = array
    return made
