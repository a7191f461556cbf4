"""Runner: the common part of all ways to run a plan, and the place at which a run was stopped.

Analysis is the tables of an analysed Program, which the runners and their check read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, TracebackType
from typing import Any, Protocol

import attrs

from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.instruction import Instruction
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.streams import CoreStreams


@attrs.define
class Stop:
    """The place of a run at which an exception ended it.

    Attributes
    ----------
    op : OpDesc or None
        The op that was not done, or not for sure. All ops recorded before it were done, and none
        after it. None when all were done.
    traceback : traceback or None
        Of the exception, from the op's kernel inwards.
    values : mapping of int to array
        The fetches that were there, by their numbers.
    """

    op: OpDesc | None
    traceback: TracebackType | None = None
    values: Mapping[int, Any] = attrs.field(factory=dict)


class Runner(ABC):
    """Base of what runs a plan.

    A run that begins while another one is on its way, in a thread or because a signal, a finalizer
    or a kernel calls, has memory of its own.

    Attributes
    ----------
    in_order : bool
        Whether ops run one after the other, as they were recorded.
    divides_at : OpDesc or None
        An op that must not run in one step with those before it; to be set before the first run.
    """

    in_order = True
    divides_at: OpDesc | None = None

    def run(self, feeds: Sequence[Any], externals: Sequence[Any]) -> list[Any]:
        """Run once; see `InterpreterCore.run`."""
        fetched: list[Any] = []
        self.fill(fetched, feeds, externals)
        fetched.pop()
        return fetched

    @abstractmethod
    def fill(self, fetched: list[Any], feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        """Run once, and put the fetches, and False after them, into a list.

        The list is empty as long as there is anything left to do.
        """

    def bind(self, externals: Sequence[Any]) -> Any:
        """Take over arrays for the persistable variables, for `fill_bound`."""
        self._bound: Any = tuple(externals), []

    def fill_bound(self, fetched: list[Any], feeds: Sequence[Any]) -> None:
        """Run once as `fill` does, with the arrays that `bind` took over."""
        self.fill(fetched, feeds, self._bound[0])

    @abstractmethod
    def stop_of(self, error: BaseException, fetched: list[Any]) -> Stop | None:
        """Say where the run that an exception ended was; None when it had not begun.

        `fetched` is the list that it was given: a signal handler may have begun another run.
        """


def frames(error: BaseException) -> Iterator[TracebackType]:
    """Go through the traceback of an exception, from where it was caught inwards."""
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def within(error: BaseException, code: CodeType) -> TracebackType | None:
    """Return the traceback of an exception from what this code called inwards."""
    return next((at.tb_next for at in frames(error) if at.tb_frame.f_code is code), None)


def of_stream(idle: list[Any], stream: Any) -> Any:
    """Take an item that no CUDA stream but this one has used; raise `IndexError` without any."""
    for one in idle[::-1]:
        if one.used_on is None or one.used_on == stream:
            try:
                idle.remove(one)
            except ValueError:  # another thread was faster
                continue
            return one
    raise IndexError


class Analysis(Protocol):
    """The tables that `InterpreterCore` fills; its docstring explains them."""

    plan: ExecutionPlan
    instructions: list[Instruction]
    slots: dict[str, int]
    constants: list[Any]
    external_names: tuple[str, ...]
    written: frozenset[str]
    dependency_count: list[int]
    downstream: list[list[int]]
    edge_kinds: dict[tuple[int, int], str]
    last_live_ops: dict[str, list[str]]
    streams: CoreStreams
