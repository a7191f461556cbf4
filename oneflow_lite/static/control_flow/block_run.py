"""Runs the sub-blocks that the kernels of control flow have among their attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from oneflow_lite.arrays.device import CPU, Device, device_of, on_device
from oneflow_lite.static.ir.memory import laid_out
from oneflow_lite.static.ir.program import Block, Program, changes
from oneflow_lite.static.lazy.block_capture import notes_of
from oneflow_lite.static.runtime.passes import run_passes
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.straight_line import StraightLine


def run_block(
    block: Block, names: Sequence[str], fetches: tuple[str, ...], arrays: Sequence[Any]
) -> list[Any]:
    """Run a block once.

    Parameters
    ----------
    block : Block
        One that uses no variable of the blocks around it.
    names : sequence of str
        The variables that are given; names that the block lacks are ignored.
    fetches : tuple of str
        Variables that the block's ops make.
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
            given.append(laid_out(array, known[name]))
    place = device_of(arrays[0]) if arrays else CPU
    results = _runner(block, tuple(feeds), fetches, place).run(given, ())
    return [y if y.flags.c_contiguous else y.copy(order="C") for y in results]


def _runner(
    block: Block, feeds: tuple[str, ...], fetches: tuple[str, ...], place: Device
) -> StraightLine:
    """Return the runner of the block for given feeds and fetches on a device."""
    notes = notes_of(block)
    if notes.checked[0] != changes():  # some Program was changed: was this block?
        values = [desc.value for desc in block.vars.values() if desc.value is not None]
        content = (str(block), [id(value) for value in values])
        if content != notes.checked[1]:
            notes.runners = {}
        notes.checked = (changes(), content)
    key = (feeds, fetches, place)
    runner: StraightLine | None = notes.runners.get(key)
    if runner is None:
        runner = notes.runners.setdefault(key, _prepare(block, *key))
    return runner


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
