"""Compiled functions in the explorer's document: what they recorded, for which calls, and why.

What `explain()` says, with the guards of each recording in words, its Program, and what became of
the calls that were made while the explorer looked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from oneflow_lite.autograd.mode import StateChange, local
from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.explore.programs import Measured, Part, core_part, events_of, rehearsed
from oneflow_lite.profiler.events import FunctionEvent
from oneflow_lite.profiler.recorder import replaced
from oneflow_lite.profiler.session import profile, record_function
from oneflow_lite.static.compile.compiled_node import CompiledGradFunction
from oneflow_lite.static.compile.face import function_of
from oneflow_lite.static.compile.function import CompiledFunction
from oneflow_lite.static.compile.recording import Recording
from oneflow_lite.tensor import Tensor

_CALLS = 1000  # of one function that are told


def is_compiled(value: Any) -> bool:
    """Return whether `flow.compile` made an object, or its calls were compiled in place."""
    return _function_of(value) is not None


def compiled_part(compiled: Any, *, number: int = 0, values: bool = True) -> Part:
    """Return a compiled function as it is now.

    Parameters
    ----------
    compiled : callable
        What `flow.compile` returned, a method that it decorates, a Module whose `compile` was
        called, or an `nn.Graph`.
    number : int
        The id of the part.
    values : bool
        Whether numbers in guards and reasons, and generated code, are in it.

    Returns
    -------
    dict
        - "id", "name", "mode", "fullgraph"
        - "source": file and line of the function, or None
        - "captures", "hits", "fallbacks", "kept", "dropped", "reasons", "why", "loops": as
          `explain()` has them; "why" is empty without values
        - "recordings": those that are kept, in the order in which a call asks them, see
          `_recording`
        - "refusals": calls that were not kept: "reason", "attempts" (how often calls like it will
          be tried before they stay eager for a while), "left" (calls that stay eager before the
          next attempt), "guards" (for which calls that holds)
        - "calls": what became of the calls that were watched, see `Watch`

    Raises
    ------
    ArgumentTypeError
        For what is not compiled.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.explore.compiled import compiled_part
    >>> scale = flow.compile(lambda x, n: x * n)
    >>> for n in (2, 2, 3):
    ...     y = scale(flow.ones(2), n)
    >>> part = compiled_part(scale)
    >>> part["captures"], part["hits"], part["why"]
    (2, 1, 'n was 2, is 3')
    >>> [r["why"] for r in part["recordings"]]
    ['n was 2, is 3', '']
    >>> [guard["words"] for guard in part["recordings"][0]["guards"]][-1]
    'n is 3'
    """
    function = _function_of(compiled)
    if function is None:
        raise arg_error(
            "explore",
            "compiled",
            expected="what flow.compile returned",
            got=type(compiled).__name__,
            hint="compile it first",
            kind=ArgumentTypeError,
        )
    return _part(function, _Seen(), number, values)


def _function_of(compiled: Any) -> CompiledFunction | None:
    return function_of(vars(compiled).get("_compiled") if _is_graph(compiled) else compiled)


def _is_graph(value: Any) -> bool:
    return any(kind.__module__ == _GRAPH for kind in type(value).__mro__)


_GRAPH = "oneflow_lite.static.graph"


class _Seen:
    """What is known of a function whose calls are watched."""

    def __init__(self) -> None:
        self.calls: list[Part] = []
        self.outcomes: list[tuple[Recording | None, Part]] = []
        self.measured: dict[Recording, Measured] = {}
        self.given: dict[Recording, tuple[list[Any], list[Any]]] = {}
        self.count = 0
