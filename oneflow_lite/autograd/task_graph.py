"""TaskGraph: which nodes a backward call runs, what each waits for, and in which order."""

from __future__ import annotations

import operator
from collections.abc import Container, Sequence
from typing import Any

from oneflow_lite.autograd.node import Edge, FunctionNode
from oneflow_lite.errors import FreedGraphError

_by_sequence = operator.attrgetter("sequence_nr")


class ExecInfo:
    """What a task that has inputs does at one node. Nodes that lead to no input have none.

    Attributes
    ----------
    needed : bool
        Whether the node's gradient function runs, because it leads to an input.
    captures : tuple of (output index, position in `captured_grads`)
        Which of the gradients that arrive are wanted.
    """

    __slots__ = ("captures", "needed")

    def __init__(self, needed: bool, captures: tuple[tuple[int, int], ...]) -> None:
        self.needed = needed
        self.captures = captures


_NEEDED = ExecInfo(True, ())


def freed_error(node: FunctionNode) -> FreedGraphError:
    """Build the error for a node whose saved tensors are gone."""
    return FreedGraphError(
        f"backward(): the saved tensors of {node.name()} were released by an earlier "
        "backward; pass retain_graph=True to that one to go through the graph twice"
    )


class TaskGraph:
    """The part of a GraphTask that looks at the graph; its attributes are described there."""

    dependencies: dict[FunctionNode, int]
    exec_info: dict[FunctionNode, ExecInfo] | None = None
    captured_grads: list[Any] = []  # noqa: RUF012  (empty until a task sets its own)
    nodes: Sequence[FunctionNode] = ()
    _targets: Container[FunctionNode] = ()  # the nodes of the inputs
    stops_at_inputs = False  # else one input may be reached through another

    def compute_dependencies(self, root: FunctionNode, lowest: int = 0) -> None:
        """Walk the graph depth first, and count for each node how many send it a gradient.

        Nodes with a smaller topological number than `lowest` cannot lead to an input; the walk
        leaves them out.
        """
        dependencies = self.dependencies
        dependencies.setdefault(root, 0)
        stops = self._targets if self.stops_at_inputs else ()
        stack = [root]
        while stack:
            for node, _ in stack.pop().edges:
                if node is None or node.topological_nr < lowest:
                    continue
                if node in dependencies:
                    dependencies[node] += 1
                else:
                    dependencies[node] = 1
                    if node.edges and node not in stops:
                        stack.append(node)

    def compute_dependencies_and_prune_node(
        self, root: FunctionNode, inputs: Sequence[Edge]
    ) -> None:
        """Count dependencies, and keep in `exec_info` the nodes that lead to an input."""
        captures: dict[FunctionNode, ExecInfo] = {}
        for position, (node, index) in enumerate(inputs):
            if node in captures:
                captures[node].captures += ((index, position),)
            else:
                captures[node] = ExecInfo(False, ((index, position),))
        self._targets = captures
        self.captured_grads = [None] * len(inputs)
        self.compute_dependencies(root, min([node.topological_nr for node in captures]))
        exec_info = {node: info for node, info in captures.items() if node in self.dependencies}
        ordered = sorted(self.dependencies, key=_by_sequence)
        for node in ordered:  # inputs before outputs
            if self.stops_at_inputs and node in captures:
                continue
            for next_node, _ in node.edges:
                if next_node in exec_info:
                    if node in exec_info:
                        exec_info[node].needed = True
                    else:
                        exec_info[node] = _NEEDED
                    break
        self.exec_info = exec_info
        self.nodes = [node for node in reversed(ordered) if node in exec_info]

    def compute_dependencies_of_chain(self, root: FunctionNode) -> list[FunctionNode]:
        """Take the straight-line prefix of a graph, then count the rest.

        While a node sends its gradient to one node that is no leaf, that node waits for nobody
        else: the walk needs neither counts nor sorting. Returns the nodes of the prefix; the rest,
        and all leaves, go into `dependencies`.
        """
        chain: list[FunctionNode] = []
        dependencies = self.dependencies
        node: FunctionNode | None = root
        while node is not None:
            following = None
            for next_node, _ in node.edges:
                if next_node is not None and next_node.edges and next_node is not following:
                    if following is not None:  # a branch: the prefix ends before it
                        self.compute_dependencies(node)
                        return chain
                    following = next_node
            for next_node, _ in node.edges:
                if next_node is not None and not next_node.edges:
                    dependencies[next_node] = dependencies.get(next_node, 0) + 1
            if node.edges:
                chain.append(node)
            else:
                dependencies[node] = 0
            node = following
        return chain

    def order(self, prefix: list[FunctionNode]) -> Sequence[FunctionNode]:
        """Return the nodes to run, the latest created first; raise when one was freed."""
        nodes = self.nodes
        if self.exec_info is None:
            rest = list(self.dependencies)
            if len(rest) > 1:
                rest.sort(key=_by_sequence, reverse=True)
            nodes = self.nodes = prefix + rest if prefix else rest
        for node in nodes:
            if node.saved is None and self._is_needed(node):
                raise freed_error(node)
        return nodes

    def _is_needed(self, node: FunctionNode) -> bool:
        """Return whether the node's gradient function runs, and not only its gradient arrives."""
        return self.exec_info is None or self.exec_info[node].needed
