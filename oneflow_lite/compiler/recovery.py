"""Recovery: a replay that an exception stopped leaves the same as an eager run stopped there.

A replay copies everything outside that it is going to write. When it is stopped, the copies are put
back and the function is run eagerly. At the op at which the replay was stopped the function meets
the exception, and its own handlers handle it. This is needed only until the function is *settled*:
from some op on, mostly the first one of an optimizer's step, nothing happens any more but ops, and
no handler waits. A replay that is stopped after that has done the same as the eager run would have;
it leaves the gradients and whatever has been stored by then. It counts all writes, also those to
come: one too many is noticed in vain, and one too few would not be noticed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.compiler.results import Ending
from oneflow_lite.errors import CaptureError
from oneflow_lite.interpreter.explain import explain
from oneflow_lite.interpreter.stack import AutogradInterpreter, EagerInterpreter, count_after
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.program import OpDesc, generators_of
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.tensors.mode import StateChange
from oneflow_lite.tensors.tensor import Tensor


class Recovery:
    """The recovery of one recording: its Program, and the function once nothing but ops is left.

    `settled` is the number of the first call from which nothing else happened, `total` how many
    were recorded. `keeps` says whether a replay has to call `keep`.
    """

    def __init__(self, core: InterpreterCore, settled: int, total: int, ending: Ending) -> None:
        self._core, self._total, self._ending = core, total, ending
        ops = core.plan.block.ops
        leaves = core.runner.in_order and ending.left is not None
        self._settled = settled if leaves else total + 1
        self._numbers: dict[OpDesc | None, int] = {None: total}
        for op, following in zip(reversed(ops), [None, *reversed(ops)], strict=False):
            self._numbers[op] = op.number if op.number >= 0 else self._numbers[following]
        later = [op for op in ops if self._numbers[op] >= self._settled]
        core.runner.divides_at = later[0] if later else None
        self._kept = self._places(op for op in ops if self._numbers[op] < self._settled)
        self._all = self._places(ops)
        # An operand that NumPy overwrites is lost when NumPy then raises a warning.
        self._exposed = any(self._places(op for op in later if KERNELS.get(op.type).ufunc))
        self._generators = list({id(g): g for op in ops for g in generators_of(op.attrs)}.values())
        self.keeps = bool(any(self._kept) or self._exposed or self._generators)

    def _places(self, ops: Iterable[OpDesc]) -> tuple[list[int], list[int]]:
        """Return which feeds and which persistable variables some ops write."""
        plan = self._core.plan
        written: set[str] = set()
        for op in ops:
            homes = [plan.in_place[name] for name in op.outputs if name in plan.in_place]
            written.update(plan.roots.get(name, name) for name in (*op.written, *homes))
        return (
            [i for i, name in enumerate(plan.feeds) if name in written],
            [i for i, name in enumerate(self._core.external_names) if name in written],
        )

    def keep(self, feeds: Sequence[Any], externals: Sequence[Any]) -> Kept:
        """Copy the arrays that a replay will overwrite and might have to put back."""
        everything = self._exposed and _warnings_raise()
        written_feeds, written_externals = self._all if everything else self._kept
        arrays = [externals[i] for i in written_externals] + [feeds[i] for i in written_feeds]
        undo = [partial(array.__setitem__, ..., array.copy()) for array in arrays]
        undo += [partial(g.set_state, g.get_state()) for g in self._generators]
        return Kept(undo, everything)

    def recover(
        self,
        error: BaseException,
        tensors: Sequence[Tensor],
        fetched: list[Any],
        kept: Kept | None,
        again: Callable[[], Any],
    ) -> Any:
        """Bring about what an eager run leaves, or returns, that meets an exception here.

        `fetched` is what the Program has given, if it came to its end; `kept` is None where it had
        not begun. `again` runs the function eagerly.
        """
        try:
            if fetched:
                self._ending.complete(tensors, fetched, error)
                raise error
            stop = self._core.runner.stop_of(error, fetched)
            number = 0
            if stop is not None:
                # Of a plan that has taken over, the ops that no call has recorded come first.
                number = max(self._numbers.get(stop.op, getattr(stop.op, "number", 0)), 0)
            if stop is not None and number >= self._settled and not (kept and kept.everything):
                self._ending.leave(tensors, stop.values, number)
                raise error
            if kept is not None:
                kept.put_back()
            elif isinstance(error, Exception) and stop is None:
                number = self._total  # an option that is wrong, which the function will find
            if stop is None and isinstance(error, CaptureError):  # this mode cannot run it
                raise error
            if isinstance(error, (MemoryError, RecursionError)):  # which was, perhaps, the replay's
                return again()
            at = None if stop is None else stop.traceback
            stopper = _Stopper(number, error.with_traceback(at))
        finally:
            del error
        with StateChange(interpreter=AutogradInterpreter(stopper)):
            value = again()
        stopper.finish()
        return value


class Kept(NamedTuple):
    """The calls that put back everything that a replay may overwrite."""

    undo: Sequence[Callable[[], Any]]
    everything: bool

    def put_back(self) -> None:
        """Make everything as it was."""
        try:
            for each in self.undo:
                each()
        except BaseException:  # an interrupt; half of it is the one thing that nobody can use
            for each in self.undo:
                each()
            raise


class _Stopper(EagerInterpreter):
    """Runs a number of ops eagerly, and then raises, once."""

    def __init__(self, number: int, error: BaseException) -> None:
        self._left = number
        self._error: BaseException | None = error

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op, or raise in its place."""
        if not self._left:
            if self._error is not None:
                count_after(op_expr, inputs, self._error)  # as an op that raises does
            self.finish(op_expr, inputs)
        self._left -= 1
        return super().apply(op_expr, inputs, attrs)

    def finish(self, op_expr: OpExpr | None = None, inputs: tuple[Any, ...] = ()) -> None:
        """Raise unless that has been done, in the place of an op that is called."""
        error, self._error = self._error, None
        try:
            if error is not None:
                if op_expr is not None and isinstance(error, Exception):
                    explain(op_expr, inputs, error)
                raise error
        finally:
            del error


def _warnings_raise() -> bool:
    """Return whether a warning of NumPy's arithmetic may become an exception."""
    if not {"ignore", "warn"}.issuperset(np.geterr().values()):
        return True
    for action, message, category, module, line in warnings.filters:
        decides = action == "error" or (message is None and module is None and not line)
        if issubclass(RuntimeWarning, category) and decides:  # no other filter is asked
            return action == "error"
    return False
