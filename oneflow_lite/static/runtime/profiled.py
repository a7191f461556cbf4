"""Stand-ins for replays while a profile is on: see `profiler/recorder.py`.

The function of a replay gets a twin that reads the clock around each line; the bytes that a line
moves are known before. Instructions of the other modes are timed by a stand-in for
`Instruction.execute`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from threading import get_ident
from time import perf_counter as clock
from typing import Any

from oneflow_lite.ops.function_writer import compiled
from oneflow_lite.profiler.recorder import (
    FILLS,
    Lines,
    Put,
    Recorder,
    What,
    name_of_parts,
    replaced,
    together,
)
from oneflow_lite.static.ir.location import GENERATED
from oneflow_lite.static.ir.program import Block, OpDesc
from oneflow_lite.static.runtime.instruction import Instruction, needs_buffer
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.straight_line import Bound, StraightLine, _Desk

_MADE = re.compile(r"\b((?:v\d+, )*v\d+),? = ")  # what a line assigns

_PREPARES = What("(profiler: prepares a replay)", "profiler")


def _what(op: OpDesc, plan: ExecutionPlan | None = None) -> What:
    parts = next((e.ops for e in plan.loops if e.outputs == op.outputs), ()) if plan else ()
    name = name_of_parts(op.type, parts) if parts else op.type
    return What(name, "op", str(op.location or ""), parts, op=op)


def bytes_of(op: OpDesc, block: Block) -> tuple[int, int]:
    """Return the bytes that an op reads and writes; those of a view are nobody's."""
    if op.viewed is not None:
        return 0, 0
    unread = op.written if op.type in FILLS else ()
    read = [name for name in op.reads if name not in unread and needs_buffer(op, name)]
    written = (*op.written, *op.new_outputs)
    reads, writes = (sum(block.var(name).nbytes for name in names) for names in (read, written))
    return reads, writes


def _twin(desk: _Desk, recorder: Recorder) -> Any:
    """Return the function of a replay that also reads the clock at the end of each of its lines."""
    plain, block = desk.function, desk.plan.block
    head, *lines = desk.source.splitlines()
    whats = tuple([_what(op, desk.plan) for op in desk.lines])
    moved = [bytes_of(op, block) for op in desk.lines]
    note = Lines(whats, tuple([n for n, _ in moved]), tuple([n for _, n in moved]))
    names = {
        **plain.__globals__,
        **{f"what{i}_": what for i, what in enumerate(whats)},
        "clock_": clock, "log_": recorder.log.extend, "thread_": get_ident, "note_": note,
        "made_": recorder.made, "results_": recorder.results,
    }  # fmt: skip
    for i, op in enumerate(desk.lines):
        body, *dying = lines[i].strip().split("; del ")
        parts = ["times_ = [clock_()]; time_ = times_.append"] if i == 0 else []
        parts += [body, "time_(clock_())"]
        if recorder.options.memory and op.viewed is None:
            new = [name for group in _MADE.findall(body) for name in group.split(", ")]
            parts += [f"made_(what{i}_, {name})" for name in new]
        if recorder.results and desk.writer:
            kept: Sequence[str] = op.new_outputs
            if op.type == "joined":  # its calls use memory again before the line is over
                later = {*desk.plan.fetches, *[n for o in desk.lines[i + 1 :] for n in o.reads]}
                kept = [n for n in kept if n in later]
            names[f"results{i}_"] = kept
            arrays = "".join(f"{desk.writer.name(n)}, " for n in kept)
            parts.append(f"results_(results{i}_, ({arrays}))")
        parts += [f"del {name}" for name in dying]
        lines[i] = "    " + "; ".join(parts)
    if desk.lines:
        lines[-1] += "; log_((note_, thread_(), times_))"
    made: dict[str, Any] = {}
    exec(compiled("\n".join([head, *lines]) + "\n", GENERATED), names, made)
    return made["run"]


def _replays(recorder: Recorder) -> Iterator[None]:
    """Stand in for the functions of straight lines."""
    fill_bound, make_desk = StraightLine.fill_bound, StraightLine._desk
    extend, memory = recorder.log.extend, recorder.options.memory
    standing: dict[_Desk, tuple[Any, Any]] = {}  # the plain function, and its twin
    whats: dict[ExecutionPlan, What] = {}

    def stand_in(desk: _Desk) -> None:
        plain, twin = standing.get(desk, (None, None))
        if desk.function is twin and twin is not None:
            return
        start, plain = clock(), desk.function
        desk.function = twin = _twin(desk, recorder)
        standing[desk] = plain, twin
        extend((_PREPARES, start, clock(), get_ident(), 0, 0, None))
        if memory and desk.plan.memory_plan.places:
            recorder.made(_PREPARES, desk.arena)

    def timed_desk(self: StraightLine, externals: tuple[Any, ...], desk: _Desk | None) -> _Desk:
        made = make_desk(self, externals, desk)
        stand_in(made)
        return made

    def timed_fill(
        self: StraightLine, fetched: list[Any], feeds: Sequence[Any], bound: Bound | None = None
    ) -> None:
        for desk in list((bound or self._bound)[1]):
            stand_in(desk)
        plan = self.plan
        what = whats.get(plan) or whats.setdefault(
            plan, What(f"replay of {len(plan.block.ops)} ops", "replay")
        )
        start = clock()
        try:
            fill_bound(self, fetched, feeds, bound)
        finally:
            extend((what, start, clock(), get_ident(), 0, 0, None))
        if memory:
            for array in fetched:
                recorder.made(what, array)

    yield from together(
        replaced(StraightLine, "fill_bound", timed_fill),
        replaced(StraightLine, "_desk", timed_desk),
    )
    for desk, (plain, twin) in standing.items():
        if desk.function is twin:
            desk.function = plain


def _instructions(recorder: Recorder) -> Iterator[None]:
    """Stand in for how a queue runs an instruction."""
    execute, extend = Instruction.execute, recorder.log.extend
    whats: dict[Instruction, What] = {}

    def timed_execute(self: Instruction, slots: list[Any]) -> None:
        if self.op is None:
            execute(self, slots)
            return
        what = whats.get(self) or whats.setdefault(self, _what(self.op))
        given = [None if slot is None else slots[slot] for slot in self.inputs]
        start = clock()
        execute(self, slots)
        end = clock()
        read = written = 0
        if self.op.viewed is None:
            read = sum(getattr(x, "nbytes", 0) for x in {id(x): x for x in given}.values())
            written = sum(getattr(slots[slot], "nbytes", 0) for slot in self.outputs)
        details = recorder.details(given)
        extend((what, start, end, get_ident(), read, written, details))
        if recorder.options.memory and self.op.viewed is None:
            for slot in self.outputs:
                recorder.made(what, slots[slot])
        if recorder.results is not None:
            recorder.results(self.op.outputs, [slots[slot] for slot in self.outputs])

    yield from replaced(Instruction, "execute", timed_execute)


instruments: list[Put] = [_replays, _instructions]
