"""A picture of a graph, as text for Graphviz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.rules.saved_tensor import Packed
from oneflow_lite.errors import ArgumentTypeError, GradientError, arg_error
from oneflow_lite.tensors.node import AccumulateGrad, FunctionNode
from oneflow_lite.tensors.tensor import Tensor

_HEAD = """digraph {
  rankdir=BT
  node [shape=box, fontname="monospace", fontsize=10]
  edge [fontname="monospace", fontsize=9]"""


@guarded
def to_dot(
    roots: Tensor | FunctionNode | Sequence[Tensor | FunctionNode],
    params: Mapping[str, Tensor] | None = None,
) -> str:
    """Return the graph behind some tensors as text for Graphviz.

    Each node shows its name, the shape and dtype of its outputs, its saved tensors (names and
    bytes), its sequence number and its topological number (longest distance to a leaf). Edges point
    the way the gradients go; an edge to a node with several outputs carries the output's number.
    Leaves are ellipses.

    Parameters
    ----------
    roots : Tensor, FunctionNode or a sequence of them
        The walk starts here.
    params : mapping of str to Tensor, optional
        Names to show for leaves, as `dict(model.named_parameters())`.

    Returns
    -------
    str
        Text in the DOT language, for `dot -Tsvg`; the same for the same graph.

    Raises
    ------
    GradientError
        When a tensor does not require a gradient.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.ones(2, 3, requires_grad=True)
    >>> print(flow.autograd.graph.to_dot(x.exp(), params={"x": x}))  # doctest: +ELLIPSIS
    digraph {
    ...
      n0 [label="exp_backward\\n(2, 3) float32\\nsaved y 24 B\\nseq ... topo 1"]
      n1 [label="x\\n(2, 3) float32", shape=ellipse]
      n0 -> n1
    }
    """
    starts = [_node_of(root) for root in (roots if isinstance(roots, Sequence) else [roots])]
    names = {p.grad_fn_node: name for name, p in (params or {}).items() if p.requires_grad}
    nodes = sorted(_reachable(starts), key=lambda node: node.sequence_nr, reverse=True)
    numbers = {node: f"n{i}" for i, node in enumerate(nodes)}
    lines = [_HEAD]
    for node in nodes:
        shape = ", shape=ellipse" if isinstance(node, AccumulateGrad) else ""
        text = "\\n".join(map(_escape, _describe(node, names.get(node))))
        lines.append(f'  {numbers[node]} [label="{text}"{shape}]')
    for node in nodes:
        for next_node, index in node.edges:
            if next_node is not None:
                several = len(next_node.output_tensor_infos) > 1
                label = f' [label="{index}"]' if several else ""
                lines.append(f"  {numbers[node]} -> {numbers[next_node]}{label}")
    return "\n".join([*lines, "}"])


def _node_of(root: Any) -> FunctionNode:
    if isinstance(root, FunctionNode):
        return root
    if not isinstance(root, Tensor):
        raise arg_error(
            "to_dot",
            "roots",
            expected="a Tensor, a FunctionNode or a sequence of them",
            got=type(root).__name__,
            hint="pass the result of a computation",
            kind=ArgumentTypeError,
        )
    if root.grad_fn_node is None:
        raise arg_error(
            "to_dot",
            "roots",
            expected="tensors that require a gradient",
            got=f"one of shape {root.shape} that does not",
            hint="compute it from a tensor that requires one, with grad mode on",
            kind=GradientError,
        )
    return root.grad_fn_node


def _reachable(starts: Sequence[FunctionNode]) -> set[FunctionNode]:
    nodes = set(starts)
    stack = list(starts)  # no recursion: graphs are deeper than Python's stack
    while stack:
        for node, _ in stack.pop().edges:
            if node is not None and node not in nodes:
                nodes.add(node)
                stack.append(node)
    return nodes


def _describe(node: FunctionNode, name: str | None) -> list[str]:
    """Return the lines of a node's label."""
    infos = node.output_tensor_infos
    lines = [name or node.name()]
    for i, info in enumerate(infos):
        number = f"{i}: " if len(infos) > 1 else ""
        lines.append(f"{number}{info.shape} {info.dtype}" if info else f"{number}no gradient")
    if isinstance(node, AccumulateGrad):
        return lines
    if node.saved is None:
        lines.append("saved tensors released")
    for saved in node.saved or ():
        data = saved[1]
        size = "packed" if isinstance(data, Packed) else f"{data.nbytes} B"
        lines.append(f"saved {saved[0]} {size}")
    lines.append(f"seq {node.sequence_nr} topo {node.topological_nr}")
    return lines


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
