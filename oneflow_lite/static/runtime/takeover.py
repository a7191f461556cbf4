"""TakesOver: a plan that runs on NumPy at first, and partly as machine code from a certain run on.

Which run that is depends on the plan alone: what is saved by then should pay for the building. So a
seeded program gives the same bits however long the building takes, with a cold cache and a warm
one. The code is built by a thread of its own, which begins at half of that count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any

from oneflow_lite import eager_loops
from oneflow_lite.device import CPU
from oneflow_lite.scalar_expression import scalar_of
from oneflow_lite.static.fusion.loops import DTYPES, REDUCTIONS
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.straight_line import Bound, StraightLine

# Seconds, of one core: to build a group and to read each op of it, to call a NumPy function, and to
# write or read a byte of a result on its way through memory.
_TO_BUILD, _TO_BUILD_AN_OP = 0.8, 0.012
_TO_CALL, _TO_PASS_A_BYTE = 6e-7, 4e-10
_AT_LEAST, _AT_MOST = 32, 20_000
_enabled = True


class use_jit:
    """Choose whether machine code may run: Programs analysed from now on, and eager kernels.

    It may, where the extra `jit` is installed. Works as a function and as a context manager.

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
        global _enabled
        self._before = _enabled
        _enabled = eager_loops.enabled = bool(enabled)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        global _enabled
        _enabled = eager_loops.enabled = self._before


def _has_numba() -> bool:
    return eager_loops.has_numba()


def run_of_takeover(plan: ExecutionPlan) -> int:
    """Return the run from which machine code pays; 0 when there is none to be made."""
    if not _enabled or plan.place is not CPU or not _has_numba():
        return 0
    ops = elements = 0
    for op in plan.block.ops:
        if op.outputs and (op.type in REDUCTIONS or scalar_of(op.type, op.attrs) is not None):
            output = plan.block.var(op.outputs[0])
            if output.dtype in DTYPES:
                ops += 1
                elements += output.nbytes
    if ops < 2:
        return 0
    saved = ops * _TO_CALL + 3 * elements * _TO_PASS_A_BYTE
    runs = math.ceil((_TO_BUILD + ops * _TO_BUILD_AN_OP) / saved)
    return min(max(runs, _AT_LEAST), _AT_MOST)


class TakesOver(StraightLine):
    """A straight line whose plan is replaced by one with fused ops.

    Parameters
    ----------
    plan : ExecutionPlan
    fused : callable
        Makes the other plan, of the same feeds and fetches; called by another thread.
    run : int
        The run that the other plan is the first to do.
    """

    def __init__(
        self, plan: ExecutionPlan, fused: Callable[[int | None], ExecutionPlan], run: int
    ) -> None:
        super().__init__(plan)
        self._fused: Callable[[int | None], ExecutionPlan] | None = fused
        self._left = run
        self._starts_at = run - run // 2
        self._built: Future[ExecutionPlan] | None = None

    def fill_bound(
        self, found: list[Any], feeds: Sequence[Any], bound: Bound | None = None
    ) -> None:
        """Run with the arrays that `bind` took over."""
        if self._left:
            self._left -= 1
            if self._left == self._starts_at:
                self._build()
            elif not self._left:
                self._take_over()
                bound = None
        super().fill_bound(found, feeds, bound)

    def _build(self) -> None:
        fused, boundary = self._fused, self.divides_at
        assert fused is not None
        self._fused, self._built = None, Future()
        future = self._built

        def build() -> None:
            try:
                future.set_result(fused(None if boundary is None else boundary.number))
            except BaseException as error:
                future.set_exception(error)

        # No daemon: a process must not end in the middle of LLVM.
        Thread(target=build, name="oneflow_lite fusion").start()

    def _take_over(self) -> None:
        built, self._built = self._built, None
        if built is None:
            return
        try:
            plan = built.result()
        except Exception as error:  # the plan that is there goes on
            self.plan.refused.append(repr(error))
            return
        self.plan.refused += plan.refused
        if plan.loops:
            self.plan, self._bound = plan, (self._bound[0], [])
