"""Finds the results of a call that were made from other results: they get nodes of their own.

These nodes stand one above the other, so that hooks, retained gradients and `grad` meet them as in
the graph of single ops.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from oneflow_lite.autograd.node import AccumulateGrad, Edge
from oneflow_lite.static.compile.results import Entry, NotReplayable, Results
from oneflow_lite.tensor import Tensor


class Stage(NamedTuple):
    """The outputs of one node, none made from another, and the results that they were made from."""

    outputs: tuple[int, ...]
    before: tuple[int, ...]


def stages_of(
    results: Results, alive: Sequence[Tensor], inputs: Collection[Edge], outside: Collection[int]
) -> list[Stage]:
    """Divide the outputs with a graph into stages, the first one first.

    Raises
    ------
    NotReplayable
        When an op has several outputs, and a result was made from one that was not returned; or
        when one of the metas whose ids are `outside` is met elsewhere than at the inputs.
    """
    places: dict[Edge, int] = {}
    outputs: dict[int, Edge] = {}
    ids = {id(y) for y in alive}
    for position, entry in enumerate(results.entries):
        edge = entry.tensor._edge
        if edge is None:
            continue
        if id(entry.tensor) in ids:
            outputs[position] = edge
        elif not _is_view_with_history(entry):
            continue
        places[edge] = position
    numbers: dict[int, int] = {}
    found: dict[int, tuple[list[int], set[int]]] = {}
    for position, edge in sorted(outputs.items(), key=lambda item: item[1][0].sequence_nr):
        before = _sources(edge, places, inputs, outside)
        number = 1 + max([_number(results, numbers, p) for p in before], default=-1)
        numbers[position] = number
        made, needed = found.setdefault(number, ([], set()))
        made.append(position)
        needed.update(before)
    return [Stage(tuple(sorted(found[n][0])), tuple(sorted(found[n][1]))) for n in sorted(found)]


def _is_view_with_history(entry: Entry) -> bool:
    """Return whether ops may have taken this very view, and not one made since, as an input."""
    y, view = entry.tensor, entry.tensor._view
    if entry.kind != "view" or view is None or y._edge is None:
        return False
    return view.version == y._version and not isinstance(y._edge[0], AccumulateGrad)


def _number(results: Results, numbers: dict[int, int], position: int) -> int:
    """Return the stage that a result is there after, -1 when before all."""
    while results.entries[position].kind == "view":
        position = results.entries[position].source
    return numbers.get(position, -1)


def _sources(
    output: Edge, places: dict[Edge, int], inputs: Collection[Edge], outside: Collection[int]
) -> set[int]:
    """Find the nearest results that an output was made from."""
    several = {node for node, _ in places if node.infos is not None}
    found: set[int] = set()
    seen = {output[0]}
    stack = [output[0]]
    while stack:
        for edge in stack.pop().edges:
            node = edge[0]
            if node is None or edge in inputs:
                continue
            if isinstance(node, AccumulateGrad) and id(node.meta) in outside:
                raise NotReplayable("it set requires_grad or .data of what it then differentiates")
            if edge in places:
                found.add(places[edge])
            elif node in several:
                raise NotReplayable(
                    f"{node.name()} has several outputs; it returned one of them, and what was "
                    "made from another"
                )
            elif node not in seen:
                seen.add(node)
                stack.append(node)
    return found
