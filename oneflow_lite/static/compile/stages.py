"""Finds the results of a call that were made from other results: they get nodes of their own.

These nodes stand one above the other, so that hooks, retained gradients and `grad` meet them as in
the graph of single ops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from oneflow_lite.autograd.node import AccumulateGrad, Edge
from oneflow_lite.static.compile.results import Entry, NotReplayable, Results
from oneflow_lite.tensor import Tensor


def stages_of(
    results: Results, alive: Sequence[Tensor], inputs: Collection[Edge], outside: Collection[int]
) -> list[tuple[list[int], list[int]]]:
    """Divide the outputs with a graph into stages, the first one first.

    A stage has the outputs of one node, none made from another, and the results that they were made
    from.

    Raises
    ------
    NotReplayable
        When an op has several outputs, and a result was made from one that was not returned; or
        when one of the metas whose ids are `outside` is met elsewhere than at the inputs.
    """
    edges = {i: entry.tensor._edge for i, entry in enumerate(results.entries)}
    ids = {id(y) for y in alive}
    outputs = {i: e for i, e in edges.items() if e and id(results.entries[i].tensor) in ids}
    places = {
        edge: i
        for i, edge in edges.items()
        if edge and (i in outputs or _is_view_with_history(results.entries[i]))
    }
    numbers: dict[int, int] = {}  # of the stages of outputs
    stages: defaultdict[int, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for i, edge in sorted(outputs.items(), key=lambda item: item[1][0].sequence_nr):
        before = _sources(edge, places, inputs, outside)
        owners = [_owner(results, source) for source in before]
        numbers[i] = 1 + max([numbers.get(owner, -1) for owner in owners], default=-1)
        made, needed = stages[numbers[i]]
        made.add(i)
        needed.update(before)
    return [(sorted(stages[n][0]), sorted(stages[n][1])) for n in sorted(stages)]


def _is_view_with_history(entry: Entry) -> bool:
    """Return whether ops may have taken this very view, and not one made since, as an input."""
    y, view = entry.tensor, entry.tensor._view
    if entry.kind != "view" or view is None or y._edge is None:
        return False
    return view.version == y._version and not isinstance(y._edge[0], AccumulateGrad)


def _owner(results: Results, position: int) -> int:
    """Return the result that a view, and a view of it, is made of."""
    while results.entries[position].kind == "view":
        position = results.entries[position].source
    return position


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
