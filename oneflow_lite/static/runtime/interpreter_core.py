"""InterpreterCore: a Program analysed for given feeds and fetches, and run many times.

Passes rewrite the ops, then the analysis lists instructions, their dependencies and the last uses
of variables; `run` replays the result in one of four modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.device import CPU, Device
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.static.ir.program import Program
from oneflow_lite.static.runtime.cuda_graph import CudaGraph
from oneflow_lite.static.runtime.dependencies import find_dependencies
from oneflow_lite.static.runtime.instruction import build_instructions
from oneflow_lite.static.runtime.last_live import find_last_live
from oneflow_lite.static.runtime.passes import BUILDING, DEFAULT_PASSES, run_passes
from oneflow_lite.static.runtime.passes.fusion import compiled_last
from oneflow_lite.static.runtime.plan import ExecutionPlan, MemoryPlan, PassReport
from oneflow_lite.static.runtime.runner import Runner
from oneflow_lite.static.runtime.straight_line import StraightLine
from oneflow_lite.static.runtime.streams import CoreStreams
from oneflow_lite.static.runtime.takeover import TakesOver, run_of_takeover
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
        self.plan = ExecutionPlan.of(program, feeds, fetches, place)
        self.plan.fuses_until = fuses_until
        transfers = insert_transfers(self.plan)
        run_passes(self.plan, passes)
        self.external_names = self.plan.external_names
        self.written = self._written()
        self._listed = tuple(fetches), transfers
        if mode in ("work_queue", "cuda_graph"):
            self._fill_tables()
        self.runner = self._make_runner(program, passes)

    def _written(self) -> frozenset[str]:
        """The variables from outside that a run writes."""
        written = {self.plan.roots[name] for op in self.plan.block.ops for name in op.written}
        return frozenset(written.intersection((*self.plan.feeds, *self.external_names)))

    def __getattr__(self, name: str) -> Any:
        """Fill the tables when one of them is looked at: a straight line does without."""
        if name not in _TABLES:
            raise AttributeError(f"an InterpreterCore has no attribute {name!r}")
        self._fill_tables()
        return vars(self)[name]

    def _fill_tables(self) -> None:
        self.slots, self.instructions = build_instructions(self.plan, *self._listed)
        names = list(self.slots)
        found = find_dependencies(self.instructions, names)
        self.downstream = found.downstream
        self.downstream_before_shrink = found.downstream_before_shrink
        self.dependency_count = found.dependency_count
        self.edge_kinds = found.kinds
        last_live = find_last_live(self.instructions, names, found.downstream)
        self.last_live_ops = last_live.after_shrink
        self.last_live_ops_before_shrink = last_live.before_shrink
        self.constants = [self.plan.block.var(name).value for name in names]
        self.streams = CoreStreams(self.instructions, self.slots)

    def _make_runner(self, program: Program, passes: Sequence[str]) -> Runner:
        if self.mode == "work_queue":
            return WorkQueue(self)
        if self.mode == "cuda_graph":
            return CudaGraph(self)
        run = run_of_takeover(self.plan) if self.mode == "straight_line" else 0
        if not run:
            return StraightLine(self.plan)
        feeds, fetches, place = self.plan.feeds, self._listed[0], self.plan.place

        def fused(boundary: int | None, compiles: bool = True) -> ExecutionPlan:
            # Groups that are joined need no code of their own. Where one of the others gets none,
            # its ops stay as they are, which the passes have to know beforehand.
            for when in ("last", "at once") if compiles else ("never",):
                plan = ExecutionPlan.of(program, feeds, fetches, place)
                insert_transfers(plan)
                plan.fuses_until, plan.compiles = boundary, when
                run_passes(plan, (*passes, *BUILDING))
                if when != "last" or compiled_last(plan):
                    break
            return plan

        def graphed(boundary: int | None) -> CudaGraph:
            core = InterpreterCore(
                program,
                feeds,
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
        return TakesOver(self.plan, fused, run, graphed if is_graph else None)

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


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines)
