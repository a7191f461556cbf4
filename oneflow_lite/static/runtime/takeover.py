"""TakesOver: a plan that runs on NumPy at first, and partly as machine code once that is built.

The plan alone decides at which run the building pays. A thread begins at half of that count, and
machine code takes over at the first run after it is done: no run waits. Under
`flow.use_deterministic_algorithms(True)` it takes over at the run that the plan decided, which
waits if it must. Then a seeded program gives the same bits however long the building takes. On a
CUDA device a small Program is launched as a CUDA graph from then on, where it may be.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device, cuda_place
from oneflow_lite.arrays.locks import make_future, make_lock
from oneflow_lite.errors import CaptureError
from oneflow_lite.ops import eager_loops
from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.fusion.building import switching_fast
from oneflow_lite.static.fusion.cuda_source import CUDA_DTYPES
from oneflow_lite.static.fusion.eager import load_machine
from oneflow_lite.static.fusion.group import DTYPES
from oneflow_lite.static.fusion.updates import is_update
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.cuda_graph import CudaGraph
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.runner import Stop
from oneflow_lite.static.runtime.straight_line import Bound, StraightLine

# Seconds, of one core: to build a group and to read each op of it; by the type of the device, to
# call a function of NumPy's or CuPy's and to write or read a byte of a result on its way.
_TO_BUILD, _TO_BUILD_AN_OP = 0.8, 0.012
_CALLS_OF_AN_UPDATE = 5
_TO_CALL = {"cpu": 6e-7, "cuda": 5e-6}
_TO_PASS_A_BYTE = {"cpu": 4e-10, "cuda": 1e-12}
_AT_LEAST, _AT_MOST = 32, 20_000
_ERRORS = frozenset(("raise", "call"))  # what `numpy.errstate` may ask for


class use_jit:
    """Choose whether machine code may run: Programs analysed from now on, and eager kernels.

    They may, on the CPU where the extra `jit` is installed, and on CUDA devices. Works as a
    function and as a context manager.

    Parameters
    ----------
    enabled : bool

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> with flow.use_jit(False):
    ...     double = flow.compile(lambda x: x * 2)
    ...     double(flow.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, enabled: bool) -> None:
        self._before = eager_loops.enabled
        eager_loops.enabled = bool(enabled)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        eager_loops.enabled = self._before


def may_fuse(place: Device) -> bool:
    """Return whether Programs on a device may run as machine code."""
    return eager_loops.enabled and (place.type != "cpu" or eager_loops.has_numba())


def run_of_takeover(plan: ExecutionPlan) -> int:
    """Return the run from which machine code pays; 0 when there is none to be made."""
    kind = plan.place.type
    dtypes = DTYPES if kind == "cpu" else CUDA_DTYPES
    ops = elements = 0
    for op in plan.block.ops:
        output = plan.block.var(op.outputs[0]) if op.outputs else None
        if output is None or output.dtype not in dtypes:
            continue
        if kind == "cpu" and is_update(op):
            ops += _CALLS_OF_AN_UPDATE
            elements += _CALLS_OF_AN_UPDATE * output.nbytes
        elif scalar_of(op.type, op.attrs) is not None or _has_loop(plan, op):
            ops += 1
            elements += output.nbytes
    if ops < 2 and not any(_has_loop(plan, op) for op in plan.block.ops):
        return 0
    saved = ops * _TO_CALL[kind] + 3 * elements * _TO_PASS_A_BYTE[kind]
    runs = math.ceil((_TO_BUILD + ops * _TO_BUILD_AN_OP) / saved)
    return min(max(runs, _AT_LEAST), _AT_MOST)


def _has_loop(plan: ExecutionPlan, op: OpDesc) -> bool:
    """Return whether eager mode would ask for a loop by hand: on the CPU, for an array as large."""
    first = op.inputs[0] if plan.place.type == "cpu" and op.inputs else None
    return first is not None and eager_loops.asks(op.type, math.prod(plan.block.var(first).shape))


class TakesOver(StraightLine):
    """A straight line that replaces its plan by a plan with fused ops.

    Parameters
    ----------
    plan, external_names
        As for `StraightLine`.
    fused : callable
        Makes the other plan, of the same feeds and fetches; called by another thread. It takes the
        number of the op from which on none is fused and, if code is only written, False.
    run : int
        The run that the other plan is the first to do.
    graphed : callable, optional
        Makes the CUDA graphs that do what the other plan does; raises `CaptureError` where there
        can be none.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        external_names: Sequence[str],
        fused: Callable[..., ExecutionPlan],
        run: int,
        graphed: Callable[[int | None], CudaGraph] | None = None,
    ) -> None:
        super().__init__(plan, external_names)
        self._fused, self._graphed = fused, graphed
        self.graph: CudaGraph | None = None
        self._left = run
        self._builds_at = min(run, run - run // 2 + 1)
        self._built: Future[tuple[ExecutionPlan, CudaGraph | None]] | None = None
        self._began, self._process = 0.0, 0  # the building, in seconds, and who builds
        self._lock = make_lock()

    def fill_bound(
        self, fetched: list[Any], feeds: Sequence[Any], bound: Bound | None = None
    ) -> None:
        """Run with the arrays that `bind` took over."""
        if self._left and self._count():
            bound = None
        graph = self.graph
        if graph is not None:
            externals = dict(zip(self.external_names, (bound or self._bound)[0] or (), strict=True))
            try:
                graph.fill(fetched, feeds, [externals[name] for name in graph.core.external_names])
            except CaptureError as error:  # while it captured: nothing has run
                self.plan.refused.append(str(error))
                self.graph = None
            else:
                if graph.uncaptured:  # many small graphs, and copies between them, save nothing
                    self.graph = None
                return
        super().fill_bound(fetched, feeds, bound)

    def stop_of(self, error: BaseException, fetched: list[Any]) -> Stop | None:
        """Say where the run that an exception ended was; None when it had not begun."""
        graph = self.graph
        return (graph and graph.stop_of(error, fetched)) or super().stop_of(error, fetched)

    @property
    def left(self) -> int:
        """The most runs before the fused plan takes over, if built by then; 0 once it was tried."""
        return max(self._left - 1, int(self._built is not None))

    @property
    def building(self) -> str:
        """The machine code that is being built, in words; nothing before and after."""
        if self._built is None:
            return ""
        types = [op.type for op in self.plan.block.ops]
        named = ", ".join(types[:4]) + (", ..." if len(types) > 4 else "")
        return (
            f"machine code for {len(types)} ops ({named}), for {time.monotonic() - self._began:.1f}"
            " s so far: until it is there, NumPy runs them"
        )

    def later(self) -> ExecutionPlan:
        """Return the plan that takes over; before it does, one like it that can only be read.

        Its code is written and not made: a group that cannot be made is still among its loops.
        """
        if not self._left:
            return self.plan
        if self.plan.place.type == "cpu":
            load_machine()
        return self._fused(self._boundary, False)

    @property
    def _boundary(self) -> int | None:
        return None if self.divides_at is None else self.divides_at.number

    def _count(self) -> bool:
        """Count a run; return whether the fused plan has just taken over."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            return False  # this thread counts already: a signal handler or a finalizer runs
        with self._lock:
            left, before = self._left, self.plan
            if self._process != os.getpid():  # a fork has no thread of its parent's
                self._built = None
            if left and left <= self._builds_at and self._built is None:
                self._build()
            built = self._built
            self._left = min(left, max(left - 1, 1))
            is_due = left == 1 if eager_loops.deterministic else built and built.done()
            # Loops raise no errors of NumPy's.
            if built is not None and is_due and _ERRORS.isdisjoint(np.geterr().values()):
                self._take_over(built)  # once more at the next run, should it be interrupted
                self._built, self._left = None, 0
            return self.plan is not before

    def _build(self) -> None:
        """Build the fused plan in a thread."""
        fused, graphed, needs_numba = self._fused, self._graphed, self.plan.place.type == "cpu"
        boundary, take_place, future = self._boundary, cuda_place(), make_future()

        def build() -> None:
            graph = None
            try:
                with switching_fast():
                    take_place()
                    if needs_numba:
                        load_machine()
                    plan = fused(boundary)
                    if graphed is not None:
                        with contextlib.suppress(CaptureError):
                            graph = graphed(boundary)
                future.set_result((plan, graph))
            except BaseException as error:
                future.set_exception(error)

        self._began, self._process = time.monotonic(), os.getpid()
        # Not by `threading.Thread`: that takes harm when a signal handler raises while it starts.
        try:
            start_new_thread(build, ())
        except RuntimeError as error:  # there are too many, or the process ends
            future.set_exception(error)
        self._built = future

    def _take_over(self, built: Future[tuple[ExecutionPlan, CudaGraph | None]]) -> None:
        try:
            plan, self.graph = built.result()
        except Exception as error:  # the plan that is there goes on
            self.plan.refused.append(repr(error))
            return
        self.plan.refused += plan.refused
        if plan.loops or any(_has_loop(plan, op) for op in plan.block.ops):
            plan.took_over = True
            self.plan, self._bound = plan, (self._bound[0], [])
