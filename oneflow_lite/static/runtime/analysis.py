"""The tables of an analysed Program, as its runners and their check read them."""

from __future__ import annotations

from typing import Any, Protocol

from oneflow_lite.static.runtime.instruction import Instruction
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.streams import CoreStreams


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
