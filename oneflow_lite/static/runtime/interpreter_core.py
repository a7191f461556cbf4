"""InterpreterCore: a Program analysed for given feeds and fetches, and run many times.

Passes rewrite the ops, then the analysis lists instructions, their dependencies and the last uses
of variables; `run` replays the result in one of four modes. A straight line is planned by its first
run: many a recording never has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.arrays.device import CPU, Device
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.static.ir.program import Program
from oneflow_lite.static.runtime.cuda_graph import CudaGraph
from oneflow_lite.static.runtime.dependencies import find_dependencies
from oneflow_lite.static.runtime.instruction import build_instructions
from oneflow_lite.static.runtime.last_live import find_last_live
from oneflow_lite.static.runtime.passes import BUILDING, DEFAULT_PASSES, run_passes
from oneflow_lite.static.runtime.passes.grouping import compiled_last
from oneflow_lite.static.runtime.plan import ExecutionPlan, MemoryPlan, PassReport
from oneflow_lite.static.runtime.runner import Runner
from oneflow_lite.static.runtime.straight_line import StraightLine
from oneflow_lite.static.runtime.streams import CoreStreams
from oneflow_lite.static.runtime.takeover import TakesOver, may_fuse, run_of_takeover
from oneflow_lite.static.runtime.transfers import insert_transfers
from oneflow_lite.static.runtime.verification import verify
from oneflow_lite.static.runtime.work_queue import WorkQueue

MODES = ("straight_line", "numpy", "work_queue", "cuda_graph")
_TABLES = frozenset(
    """
    constants dependency_count downstream downstream_before_shrink edge_kinds instructions
    last_live_ops last_live_ops_before_shrink slots streams
    """.split()
)
# Passes whose results hold only for the order of the Program.
_ONE_ORDER = frozenset(("addto", "inplace", "buffer_planning"))
_SMALL = 1 << 20  # bytes of feeds and fetches, which a CUDA graph has to copy


class InterpreterCore:
    """A Program, ready to run.

    Parameters
    ----------
    program : Program
    feeds, fetches : sequence of str
        Variables that are given at each run, and returned after it.
    place : Device
    passes : sequence of str, optional
        The passes to run; by default all that fit the mode.
    mode : {"straight_line", "numpy", "work_queue", "cuda_graph"}
        "straight_line" runs one op after the other with planned memory. After some runs, groups of
        ops run as machine code where the extra `jit` is installed, or on a CUDA device, where a
        small Program becomes a CUDA graph then. "numpy" does the same with NumPy's or CuPy's
        functions alone. "work_queue" runs whatever is ready, on threads and streams. "cuda_graph"
        captures the whole run as CUDA graphs.
    fuses_until : int, optional
        The number of the op from which on none is fused.

    Attributes
    ----------
    fetches : tuple of str
        As they were named; `plan.fetches` may name copies of them that transfers made.
    external_names : tuple of str
        The persistable variables that a run takes.
    written : frozenset of str
        Those among them and the feeds that a run writes.
    instructions : list of Instruction
        Feeds, transfers, ops and fetches, in the order of the Program.
    dependency_count : list of int
        For each instruction, how many others must be done before it.
    downstream, downstream_before_shrink : list of list of int
        The instructions that wait for each one, without and with the edges that others imply.
    edge_kinds : dict of (int, int) to str
        "direct", "synchronous" or "event"; see `Dependencies`.
    last_live_ops, last_live_ops_before_shrink : dict of str to list of str
        By variable the instructions after which it is dropped, and all that use it.
    slots : dict of str to int
        Numbers of the variables.
    plan : ExecutionPlan

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
    >>> main = flow.static.Program()
    >>> with flow.static.program_guard(main):
    ...     x = flow.static.data("x", [2])
    ...     y = flow.exp(x) * flow.relu(x)
    >>> core = InterpreterCore(main, ["x"], [y.name])
    >>> [instruction.name for instruction in core.instructions]
    ['feed(x)', 'exp', 'relu', 'mul', 'fetch(mul_2)']
    >>> core.downstream
    [[1, 2], [3], [3], [4], []]
    >>> core.last_live_ops["x"]
    ['exp', 'relu']
    """

    plan: ExecutionPlan
    runner: Runner

    def __init__(
        self,
        program: Program,
        feeds: Sequence[str],
        fetches: Sequence[str],
        place: Device = CPU,
        *,
        passes: Sequence[str] | None = None,
        mode: str = "straight_line",
        fuses_until: int | None = None,
    ) -> None:
        if mode not in MODES:
            raise arg_error(
                "InterpreterCore",
                "mode",
                expected=" or ".join(map(repr, MODES)),
                got=repr(mode),
                hint="name one of these",
                kind=ArgumentError,
            )
        if passes is None:
            in_order = mode in ("straight_line", "numpy")
            passes = [p for p in DEFAULT_PASSES if in_order or p not in _ONE_ORDER]
        self.mode = mode
        self._program, self._passes, self.fetches = program, passes, tuple(fetches)
        self._fuses_until = fuses_until
        self._may_fuse = mode == "straight_line" and may_fuse(place)  # `use_jit` is asked now
        self._draft = draft = ExecutionPlan.of(program, feeds, fetches, place)
        insert_transfers(draft)
        # No other pass changes the variables outside that a run takes or writes.
        run_passes(draft, [name for name in passes if name == "dead_code"])
        self.external_names = draft.external_names
        written = {draft.roots[name] for op in draft.block.ops for name in op.written}
        self.written = frozenset(written.intersection((*draft.feeds, *self.external_names)))
        if mode in ("work_queue", "cuda_graph"):
            self.runner = self._make_runner()

    def __getattr__(self, name: str) -> Any:
        """Make the plan, the runner or the tables when they are looked at.

        Threads that do so at once get the same ones, and an interrupt leaves nothing half made.
        """
        if name in _TABLES:
            tables = self._tables()
        elif name == "plan":
            tables = {name: _planned(self._draft, self._passes, self._fuses_until)}
        elif name == "runner":
            tables = {name: self._make_runner()}
        else:
            raise AttributeError(f"an InterpreterCore has no attribute {name!r}")
        for each, made in tables.items():
            vars(self).setdefault(each, made)
        return vars(self)[name]

    def _tables(self) -> dict[str, Any]:
        slots, instructions = build_instructions(self.plan, self.fetches)
        names = list(slots)
        edges = find_dependencies(instructions, names)
        last_live = find_last_live(instructions, names, edges.downstream)
        return {
            "slots": slots,
            "instructions": instructions,
            "downstream": edges.downstream,
            "downstream_before_shrink": edges.downstream_before_shrink,
            "dependency_count": edges.dependency_count,
            "edge_kinds": edges.kinds,
            "last_live_ops": last_live.after_shrink,
            "last_live_ops_before_shrink": last_live.before_shrink,
            "constants": [self.plan.block.var(name).value for name in names],
            "streams": CoreStreams(instructions, slots),
        }

    def _make_runner(self) -> Runner:
        if self.mode == "work_queue":
            return WorkQueue(self)
        if self.mode == "cuda_graph":
            return CudaGraph(self)
        run = run_of_takeover(self.plan) if self._may_fuse else 0
        if not run:
            return StraightLine(self.plan, self.external_names)
        draft, program, passes = self._draft, self._program, self._passes
        fetches, place = self.fetches, draft.place

        def fused(boundary: int | None, compiles: bool = True) -> ExecutionPlan:
            # Groups that are joined need no code of their own. Where a group that stays apart gets
            # none, its ops stay as they are, and the passes have to know so beforehand.
            for when in ("last", "at once") if compiles else ("never",):
                plan = _planned(draft, (*passes, *BUILDING), boundary, when)
                if when != "last" or compiled_last(plan):
                    break
            return plan

        def graphed(boundary: int | None) -> CudaGraph:
            core = InterpreterCore(
                program,
                draft.feeds,
                fetches,
                place,
                passes=[p for p in (*passes, "fusion") if p not in _ONE_ORDER],
                mode="cuda_graph",
                fuses_until=boundary,
            )
            graph = core.runner
            assert isinstance(graph, CudaGraph)
            ops = core.plan.block.ops if boundary is not None else ()
            graph.divides_at = next((op for op in ops if op.number >= (boundary or 0)), None)
            return graph

        copied = {*self.plan.feeds, *self.plan.fetches}
        is_small = sum(self.plan.block.var(name).nbytes for name in copied) <= _SMALL
        is_graph = place.type == "cuda" and is_small
        return TakesOver(self.plan, self.external_names, fused, run, graphed if is_graph else None)

    @property
    def memory_plan(self) -> MemoryPlan:
        """The places of temporaries in memory."""
        return self.plan.memory_plan

    @property
    def reports(self) -> list[PassReport]:
        """The reports of the passes."""
        return self.plan.reports

    def run(self, feeds: Sequence[Any], externals: Sequence[Any]) -> list[Any]:
        """Run once.

        Parameters
        ----------
        feeds : sequence of array
            In the order of the feeds; an op that writes one writes the array given.
        externals : sequence of array
            In the order of `external_names`; those that ops write are written.

        Returns
        -------
        list of array
            In the order of the fetches; results of ops are in memory of their own.
        """
        return self.runner.run(feeds, externals)

    def check(self) -> None:
        """Check the analysis against the rules, pair by pair; raise where it is wrong."""
        verify(self)

    def __str__(self) -> str:
        """The tables of the analysis."""
        rows = [("", "instruction", "stream", "waits for", "then")]
        for i, instruction in enumerate(self.instructions):
            then = [f"{j} {self.edge_kinds.get((i, j), '')}" for j in self.downstream[i]]
            stream = instruction.stream or "host"
            count = str(self.dependency_count[i])
            rows.append((str(i), instruction.name, stream, count, ", ".join(then)))
        lives = [("variable", "last used by")]
        lives += [(name, ", ".join(users)) for name, users in self.last_live_ops.items()]
        plan = self.memory_plan
        memory = [("buffer", "offset", "bytes")]
        memory += [(name, str(at), str(size)) for name, (at, size) in plan.places.items()]
        total = f"{plan.arena_bytes} bytes instead of {plan.unshared_bytes}"
        return "\n\n".join([_table(rows), _table(lives), f"{_table(memory)}\n{total}"])

    __repr__ = __str__


def _planned(draft: ExecutionPlan, passes: Sequence[str], *options: Any) -> ExecutionPlan:
    """Return a plan after these passes, made from one that none but `dead_code` has changed."""
    plan = draft.copy(*options)
    run_passes(plan, [name for name in passes if name != "dead_code"])
    return plan


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines)
