"""Programs in the explorer's document: analysis, machine code, and the times of a run.

All parts are read off the objects that run: the `InterpreterCore`, its runner, and the events of a
profile. The steps of the queue come from the work queue's own scheduler, which goes through the
instructions without running them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from oneflow_lite.profiler.events import FunctionEvent
from oneflow_lite.profiler.recorder import names_of_threads, replaced
from oneflow_lite.profiler.session import profile
from oneflow_lite.random import fork_rng
from oneflow_lite.static.fusion.cuda_source import cuda_source_of
from oneflow_lite.static.ir.program import Block, Location, OpDesc, Program, VarDesc
from oneflow_lite.static.ir.scope import Scope, global_scope
from oneflow_lite.static.ir.texts import FEW, listed
from oneflow_lite.static.lazy.default_programs import default_main_program
from oneflow_lite.static.runtime.executor import Executor
from oneflow_lite.static.runtime.instruction import Instruction
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.prepared_run import PreparedRun
from oneflow_lite.static.runtime.straight_line import StraightLine
from oneflow_lite.static.runtime.streams import CoreStreams, RunStreams
from oneflow_lite.static.runtime.takeover import TakesOver
from oneflow_lite.static.runtime.work_queue import WorkQueue, _Run
from oneflow_lite.tensors.mode import StateChange

T = TypeVar("T")
Part = dict[str, Any]
Events = Sequence[FunctionEvent]
_ROUNDS = 5  # runs of a rehearsal: the page shows the fastest
_MEASURED = 20  # runs of each Program in a block that are measured


def program_part(
    program: Program | None = None,
    feed: Mapping[str, Any] | Iterable[str] | None = None,
    fetch_list: Sequence[Any] | None = None,
    scope: Scope | None = None,
    *,
    executor: Executor | None = None,
    number: int = 0,
    title: str = "Program",
    values: bool = True,
    cuda: bool = False,
) -> Part:
    """Return a Program as it is analysed for its feeds and fetches.

    With arrays to feed, its run is measured on copies: the scope, the arrays and the random
    generator stay as they are.

    Parameters
    ----------
    program, fetch_list, scope
        As for `Executor.run`.
    feed : dict of arrays by name, or names
        With names alone nothing runs.
    executor : Executor, optional
        Whose analysis is shown; by default the analysis of a new executor.
    number, title, values, cuda
        As for `core_part`.

    Returns
    -------
    dict
        See `core_part`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, ShapeError, DTypeError
        As `Executor.run` does.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.explore.programs import program_part
    >>> main = flow.static.Program()
    >>> with flow.static.program_guard(main):
    ...     y = flow.static.data("x", [2]).exp()
    >>> part = program_part(main, {"x": [1.0, 2.0]}, [y])
    >>> [instruction["name"] for instruction in part["instructions"]]
    ['feed(x)', 'exp', 'fetch(exp_0)']
    >>> [event["instructions"] for event in part["time_line"]["events"]]
    [[], [1]]
    """
    executor = Executor() if executor is None else executor
    program = default_main_program() if program is None else program
    core = executor.analyse(program, feed, fetch_list)
    times: tuple[Events, str] = [], "no arrays were fed"
    if isinstance(feed, Mapping):
        copy = _copied(global_scope() if scope is None else scope)
        for hook in program.before_run:
            hook(copy)
        arrays = executor._prepare(program, feed, fetch_list).given(feed, copy)
        times = rehearsed(core, *arrays)
    return core_part(core, *times, number=number, title=title, values=values, cuda=cuda)


def core_part(
    core: InterpreterCore,
    events: Events = (),
    unmeasured: str = "",
    *,
    number: int = 0,
    title: str = "Program",
    values: bool = True,
    cuda: bool = False,
) -> Part:
    """Return an analysed Program as data.

    Parameters
    ----------
    core : InterpreterCore
    events : sequence of FunctionEvent
        Of one of its runs, for the time line.
    unmeasured : str
        The reason where events are empty.
    number : int
        The id of the part.
    title : str
    values : bool
        Whether constants, attributes of ops and generated code are in it.
    cuda : bool
        Whether groups are written as CUDA kernels, too.

    Returns
    -------
    dict
        Instructions and variables are known by their place in "instructions" and "variables":

        - "id", "title", "mode", "place"
        - "feeds", "fetches": names
        - "passes": "name", "fired" and "saved" of each `PassReport`
        - "variables": "name", "kind" ("feed", "parameter", "persistable", "constant" or
          "temporary"), "shape", "dtype", "device", "bytes", "view_of" (a variable or None),
          "value" (text or None)
        - "instructions": "name", "kind", "op", "role", "queue", "stream", "device", "inputs"
          (variables; None for an omitted input, or one used for its shape alone), "outputs",
          "waits_for" (the number of instructions before it), "source" (file and line, or None),
          "attrs" (text), "blocks" (the ops of each of its sub-blocks, as text)
        - "edges": [from, to, kind] for each conflict; the kind is "direct", "synchronous" or
          "event", and "" for an edge that longer ways imply
        - "last_live": for each variable its users "before" the analysis shrank the list, and
          "after": the variable is dropped once these have run
        - "memory": see `_memory`
        - "queue": see `_queue`
        - "machine_code": see `_machine_code`
        - "code": the Python function that replays run, once there is one
        - "time_line": see `time_line`; None without a measured run, for the reason in "unmeasured"
    """
    plan, block = core.plan, core.plan.block
    names = list(core.slots)
    by_name = {instruction.name: instruction.index for instruction in core.instructions}
    kept = core.edge_kinds
    runner = core.runner
    return {
        "id": number,
        "title": title,
        "mode": core.mode,
        "place": str(plan.place),
        "feeds": list(plan.feeds),
        "fetches": list(core.fetches),
        "passes": [{"name": r.name, "fired": r.fired, "saved": r.saved} for r in core.reports],
        "variables": [_variable(block.var(name), core, values) for name in names],
        "instructions": [_instruction(each, core, values) for each in core.instructions],
        "edges": [
            [i, j, kept.get((i, j), "")]
            for i, followers in enumerate(core.downstream_before_shrink)
            for j in followers
        ],
        "last_live": [
            {
                "before": [by_name[user] for user in core.last_live_ops_before_shrink[name]],
                "after": [by_name[user] for user in core.last_live_ops[name]],
            }
            for name in names
        ],
        "memory": _memory(core),
        "queue": _queue(core),
        "machine_code": _machine_code(core, values, cuda),
        "code": runner.source if values and isinstance(runner, StraightLine) else "",
        "time_line": time_line(core, events) if events else None,
        "unmeasured": unmeasured,
    }


class Watch:
    """Looks at the Programs that an Executor runs in a block.

    The first runs of each Program are measured; the fastest is the time line.

    Parameters
    ----------
    values : bool
        As for `core_part`.
    """

    def __init__(self, values: bool = True) -> None:
        self.values = values
        self._seen: dict[InterpreterCore, Measured] = {}
        self._shown: list[Part] = []

    def __enter__(self) -> Watch:
        run = PreparedRun.run

        def watched(prepared: PreparedRun, feed: Mapping[str, Any], scope: Scope) -> list[Any]:
            seen = self._seen.setdefault(prepared.core, Measured())
            return seen.measured(lambda: run(prepared, feed, scope))

        self._put = replaced(PreparedRun, "run", watched)
        next(self._put)
        return self

    def __exit__(self, *_: object) -> None:
        next(self._put, None)

    def show(self, part: Part) -> None:
        """Take in a Program that is not run in the block, as `program_part` describes it."""
        self._shown.append({**part, "id": len(self._shown)})

    def parts(self) -> list[Part]:
        """Return the Programs in the order of their first runs; see `core_part`."""
        parts = list(self._shown)
        for i, (core, seen) in enumerate(self._seen.items(), len(parts)):
            title = f"Program {i + 1}"
            parts.append(core_part(core, seen.best, number=i, title=title, values=self.values))
        return parts


class Measured:
    """Runs of a Program or a call, the first of which are measured.

    Attributes
    ----------
    best : sequence of FunctionEvent
        Of the fastest run.
    """

    def __init__(self, most: int = _MEASURED) -> None:
        self.best: Events = []
        self._left = most

    @property
    def goes_on(self) -> bool:
        """Whether the next run is measured."""
        return bool(self._left)

    def measured(self, run: Callable[[], T]) -> T:
        """Return the result of `run`, and measure the run unless enough runs were measured."""
        if not self._left:
            return run()
        self._left -= 1
        with profile() as measured:
            result = run()
        self.keep(events_of(measured))
        return result

    def keep(self, events: Events) -> None:
        """Take note of the events of a run."""
        if events and (not self.best or _length(events) < _length(self.best)):
            self.best = events


def placed(location: Location | None) -> list[Any] | None:
    """Return a line of the user's code for the document: file and number."""
    return None if location is None else [location.filename, location.line]


def _variable(desc: VarDesc, core: InterpreterCore, values: bool) -> Part:
    root = core.plan.roots.get(desc.name, desc.name)
    shown = values and desc.value is not None and desc.value.size <= FEW
    return {
        "name": desc.name,
        "kind": desc.kind,
        "shape": list(desc.shape),
        "dtype": str(desc.dtype),
        "device": str(desc.device),
        "bytes": desc.nbytes,
        "view_of": None if root == desc.name else core.slots.get(root),
        "value": listed(desc.value) if shown else None,
    }


def _instruction(each: Instruction, core: InterpreterCore, values: bool) -> Part:
    op = each.op
    return {
        "name": each.name,
        "kind": each.kind,
        "op": None if op is None else op.type,
        "role": None if op is None else op.role,
        "queue": each.queue,
        "stream": each.stream,
        "device": str(each.device),
        "inputs": list(each.inputs),
        "outputs": list(each.outputs),
        "waits_for": core.dependency_count[each.index],
        "source": None if op is None else placed(op.location),
        "attrs": op.attrs_text if values and op is not None else "",
        "blocks": [] if op is None else [_listing(block, values) for block in op.blocks],
    }


def _listing(block: Block, values: bool) -> list[str]:
    """Return the ops of a sub-block; ops of an inner block are indented below their op."""
    lines = []
    for op in block.ops:
        told = op if values else OpDesc(op.type, op.inputs, op.outputs)
        lines.append(told.to_text())
        lines += [f"  {line}" for inner in op.blocks for line in _listing(inner, values)]
    return lines


# Memory


def _memory(core: InterpreterCore) -> Part:
    """Return the place of each variable in memory, and the instructions between which it lives.

    "arena" is the size of the memory that temporaries share, "unshared" the size without sharing.
    "buffers" are pieces of memory, each in use for some instructions: "offset" (None where each run
    allocates), "bytes", "from", "until", "given" (the outside variable in whose memory results are
    written, or None) and "variables", which hold the buffer in turn: "variable", "bytes", "from",
    "until", "views" (of the variable).
    """
    plan, roots = core.plan, core.plan.roots
    first, slots = len(plan.feeds), core.slots
    until: dict[str, int] = {}  # by root: a view keeps its root's memory in use
    views: defaultdict[str, list[int]] = defaultdict(list)
    made: dict[str, int] = {}
    for position, op in enumerate(plan.block.ops, first):
        for name in (*op.reads, *op.outputs):
            until[roots[name]] = position
        for name in op.new_outputs:
            if roots[name] == name:
                made[name] = position
            else:
                views[roots[name]].append(slots[name])
    for position, name in enumerate(plan.fetches, first + len(plan.block.ops)):
        until[roots.get(name, name)] = position
    buffers: list[Part] = []
    buffer_of: dict[str, Part] = {}
    for name, position in made.items():
        source = plan.in_place.get(name)
        root = None if source is None else roots.get(source, source)
        buffer = None if root is None else buffer_of.get(root)
        place = plan.memory_plan.places.get(name)
        if buffer is None:
            given = None if root is None else slots.get(root)
            offset = None if place is None else place[0]
            buffer = {"offset": offset, "bytes": 0, "from": position, "until": 0}
            buffer |= {"given": given, "variables": []}
            buffers.append(buffer)
        buffer_of[name] = buffer
        nbytes = plan.block.var(name).nbytes
        buffer["bytes"] = max(buffer["bytes"], nbytes)
        buffer["until"] = max(buffer["until"], until[name])
        buffer["variables"].append(
            {
                "variable": slots[name],
                "bytes": nbytes,
                "from": position,
                "until": until[name],
                "views": views[name],
            }
        )
    memory_plan = plan.memory_plan
    return {
        "arena": memory_plan.arena_bytes,
        "unshared": memory_plan.unshared_bytes,
        "buffers": buffers,
    }


# The queue


class _Rehearsal(_Run):
    """The scheduler of the work queue on one thread, without kernels; it writes down its steps."""

    def __init__(self, core: InterpreterCore) -> None:
        super().__init__(core, (), [None] * len(core.external_names), None)
        self.streams = RunStreams(CoreStreams((), {}), {})
        self.steps: list[Part] = []
        self._last: int | None = None

    def execute(self, instruction: Instruction) -> None:
        """Do nothing."""

    def finish(self, instruction: Instruction) -> Instruction | None:
        """Count down, and write down the step."""
        downstream = self.core.downstream[instruction.index]
        released = list(dict.fromkeys(self.releases[instruction.index]))
        waiting = {id(each) for queue in self.ready.values() for each in queue}
        following = super().finish(instruction)
        self.steps.append(
            {
                "instruction": instruction.index,
                "direct": self._last == instruction.index,
                "waits": [[j, self.waiting_for[j]] for j in downstream],
                "ready": [
                    each.index
                    for queue in self.ready.values()
                    for each in queue
                    if id(each) not in waiting
                ],
                "next": None if following is None else following.index,
                "dropped": [slot for slot in released if not self.references[slot]],
            }
        )
        self._last = None if following is None else following.index
        return following


def _queue(core: InterpreterCore) -> Part:
    """Return the steps of the queue of instructions, one instruction at a time.

    "start" are the instructions that wait for no other. Each of "steps" has the "instruction" that
    ran; "direct", whether it followed the last step over a direct edge and was in no queue;
    "waits", the counts left of its followers ([instruction, count]); "ready", the instructions that
    entered a queue; "next", the follower over a direct edge or None; and "dropped", the variables
    freed.
    """
    run = _Rehearsal(core)
    start = [i for i, count in enumerate(core.dependency_count) if not count]
    run.result(1)
    return {"start": start, "steps": run.steps}


# Machine code


def _machine_code(core: InterpreterCore, values: bool, cuda: bool) -> Part:
    """Return the ops that become machine code.

    "runs_left" is the most runs before machine code takes over (0 where it has, or where the
    Program gets none), "why_not" the reason to get none. "ops" are the ops in their new order:
    "op", "outputs" (names), "instructions" that it stands for, "group" or None, and "note":
    "divided" for a part of an op (a convolution, and the addition of its bias), "moved" for an op
    that runs earlier than in the Program, else "". "groups" are loops and joined calls: "text" (as
    in `explain()`), "kind", "ops" (types), "instructions", "outputs", "bytes_saved", "source" (for
    Numba, or CUDA), "cuda" (a CUDA kernel, or None), "parts" (the groups in a call, which are not
    counted among the loops). "refused" lists the groups that could not be built, with reasons.
    """
    runner = core.runner
    told: Part = {"runs_left": 0, "why_not": "", "ops": [], "groups": [], "refused": []}
    if not isinstance(runner, TakesOver):
        told["why_not"] = (
            "its mode runs NumPy's functions alone"
            if core.mode != "straight_line"
            else "there is no group of ops that it would pay for, or Numba is not installed, or "
            "flow.use_jit(False) was called"
        )
        return told
    plan = runner.later()
    stands_for = _instructions_of(core, plan)
    groups: list[Part] = []
    for loop in plan.loops:
        entry: Part = {
            "text": str(loop),
            "kind": loop.kind,
            "ops": list(loop.ops),
            "outputs": list(loop.outputs),
            "bytes_saved": loop.bytes_saved,
            "source": loop.source if values else "",
            "cuda": None,
            "parts": [],
            "instructions": [],
        }
        groups.append(entry)
    by_outputs = {tuple(entry["outputs"]): i for i, entry in enumerate(groups)}
    ops = plan.block.ops
    ahead = [len(core.instructions)]  # for each op, the first instruction of the ops from it on
    for op in reversed(ops):
        ahead.append(min(ahead[-1], *stands_for[id(op)], ahead[0]))
    shares = Counter(i for op in ops for i in set(stands_for[id(op)]))
    for op, first in zip(ops, ahead[-2::-1], strict=True):
        number = by_outputs.get(op.outputs) if op.type in ("fused", "joined") else None
        instructions = sorted(stands_for[id(op)])
        divided = any(shares[i] > 1 for i in instructions)
        moved = max(instructions, default=-1) > first
        if number is not None:
            groups[number]["instructions"] = instructions
            inner = op.attrs["run"].ops if op.type == "joined" else [op]
            written = [plan.groups[o.outputs[0]] for o in inner if o.type == "fused"]
            texts = [_cuda(group, plan.block) for group, _ in written] if cuda and values else []
            groups[number]["cuda"] = "\n\n".join(texts) or None
            if op.type == "joined":
                groups[number]["parts"] = [
                    {"ops": list(loop.ops), "outputs": list(loop.outputs)} for _, loop in written
                ]
        told["ops"].append(
            {
                "op": op.type,
                "outputs": list(op.outputs),
                "instructions": instructions,
                "group": number,
                "note": "divided" if divided else "moved" if moved else "",
            }
        )
    return {
        **told,
        "runs_left": runner.left,
        "groups": groups,
        "refused": list(plan.refused),
    }


def _instructions_of(core: InterpreterCore, plan: ExecutionPlan) -> dict[int, list[int]]:
    """Return the instructions that each op of a plan is, or stands for, by the op's identity.

    The later plan of a core has copies of its ops, and groups of ops.
    """
    known: defaultdict[Any, list[int]] = defaultdict(list)
    for each in reversed(core.instructions):
        if each.op is not None:
            known[each.op.type, each.op.inputs, each.op.outputs].append(each.index)

    def of(op: OpDesc) -> list[int]:
        if op.type == "joined":
            inner = op.attrs["run"].ops
        elif op.type == "fused":
            inner = plan.groups[op.outputs[0]][0].ops
        else:
            there = known[op.type, op.inputs, op.outputs]
            whole = made.get(op.outputs[0].partition("@")[0]) if op.outputs else None
            inner, indices = [], [there.pop()] if there else [] if whole is None else [whole]
        indices_of[id(op)] = indices if not inner else [i for part in inner for i in of(part)]
        return indices_of[id(op)]

    indices_of: dict[int, list[int]] = {}
    made = {name: i.index for i in core.instructions if i.op for name in i.op.new_outputs}
    for op in plan.block.ops:
        of(op)
    return indices_of


def _cuda(group: Any, block: Block) -> str:
    try:
        return cuda_source_of(group, block).text
    except ValueError as error:
        return f"// no CUDA kernel: {error}"


# Times


def rehearsed(
    core: InterpreterCore, feeds: Sequence[Any], externals: Sequence[Any]
) -> tuple[Events, str]:
    """Run on copies of arrays; return the events of the fastest run, or why there are none.

    Random generators stay as they are.
    """
    runner: Any
    generators = {}
    for op in _all_ops(core.plan.block):
        if op.has_effect:
            return [], f"a run of {op.type!r} would be noticed outside"
        if (generator := op.attrs.get("generator")) is not None:
            generators[generator] = generator.get_state()
    if isinstance(core.runner, StraightLine):
        runner = StraightLine(core.runner.plan, core.external_names)
    elif core.mode == "work_queue":
        runner = WorkQueue(core)
    else:
        return [], "a CUDA graph is launched as a whole"
    kept = [array.copy() for array in externals]

    def run() -> None:
        for array, mine in zip(externals, kept, strict=True):
            mine[...] = array
        given = [array.copy() for array in feeds]
        with profile() as measured:
            runner.run(given, kept)
        runs.append(events_of(measured))

    runs: list[Events] = []
    try:
        with fork_rng(), StateChange(interpreter=None, trace=None):
            for _ in range(_ROUNDS):
                run()
    finally:
        for generator, state in generators.items():
            generator.set_state(state)
    return min(runs[1:], key=_length), ""  # the first run also warms up


def events_of(measured: profile) -> Events:
    """Return the events of a profile without its own work."""
    return [event for event in measured.events() if event.kind != "profiler"]


def _all_ops(block: Block) -> Iterator[OpDesc]:
    for op in block.ops:
        yield op
        for inner in op.blocks:
            yield from _all_ops(inner)


def _length(events: Events) -> float:
    return max(e.time_range.end for e in events) - min(e.time_range.start for e in events)


def time_line(core: InterpreterCore, events: Events) -> Part:
    """Return the events of one run, in microseconds from its begin.

    "total" is the time from the first event to the last; "threads" are names. Each of "events" has
    "name", "kind" ("replay" around the ops of a straight line, else "op"), "start", "duration",
    "thread" (its place in "threads"), "depth" (events around it), "bytes_read", "bytes_written",
    "instructions" (several for a group), and "parts", the types of the ops of a group.
    """
    runner = core.runner
    plan = runner.plan if isinstance(runner, StraightLine) else core.plan
    indices = _instructions_of(core, plan)
    begin = min(event.time_range.start for event in events)
    threads = list(dict.fromkeys(event.thread for event in events))
    names = names_of_threads()

    def depth(event: FunctionEvent) -> int:
        outer, count = event.cpu_parent, 0
        while outer is not None:
            outer, count = outer.cpu_parent, count + 1
        return count

    return {
        "total": _length(events),
        "threads": [names.get(thread, f"thread {i}") for i, thread in enumerate(threads)],
        "events": [
            {
                "name": event.name,
                "kind": event.kind,
                "start": event.time_range.start - begin,
                "duration": event.cpu_time_total,
                "thread": threads.index(event.thread),
                "depth": depth(event),
                "bytes_read": event.bytes_read,
                "bytes_written": event.bytes_written,
                "instructions": indices.get(id(event.op), []),
                "parts": list(event.parts),
            }
            for event in events
        ],
    }


def _copied(scope: Scope) -> Scope:
    """Return a new scope with copies of all variables that are seen from a scope."""
    copy = Scope()
    here: Scope | None = scope
    while here is not None:
        for name in here.local_var_names():
            if name not in copy and name in here:
                copy.set(name, here.find_var(name))
        here = here.parent
    return copy
