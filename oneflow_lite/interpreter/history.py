"""The history of a call: `record` makes its node and joins the outputs to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.autograd.rules.annotations import annotate
from oneflow_lite.autograd.rules.gradient_rules import MissingGradFunction, OpExprGradFunction
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import NO_EDGE, Edge, make_node, tensor_info
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.views import memory_order

ndarray = np.ndarray
_COPY_SLICES = op_expr("copy_slices")


def edges_of(inputs: tuple[Any, ...]) -> tuple[tuple[Edge, ...], bool]:
    """Return the edges of an op's inputs, and whether any of them requires a gradient."""
    edges = []
    needs_grad = False
    for x in inputs:
        edge = None
        if x is not None:
            if x._view is not None:
                x.refresh_view()
            edge = x._edge
        if edge is None:
            edges.append(NO_EDGE)
        else:
            edges.append(edge)
            needs_grad = True
    return tuple(edges), needs_grad


def grad_function_of(op: OpExpr) -> OpExprGradFunction:
    """Return the gradient function of an op; one that raises when run where no rule is."""
    return op.find_grad_function() or MissingGradFunction(op)


def record(
    op: OpExpr,
    inputs: tuple[Any, ...],
    outputs: tuple[Tensor, ...],
    attrs: dict[str, Any],
    edges: tuple[Edge, ...],
) -> None:
    """Make the node of a call and join its outputs to it."""
    kinds = [y._data.dtype.kind for y in outputs]
    if "f" not in kinds and "c" not in kinds:
        return
    function = op.grad_function or grad_function_of(op)
    needs = []
    number = 0
    for sender, _ in edges:
        needs.append(sender is not None)
        if sender is not None and sender.topological_nr >= number:
            number = sender.topological_nr + 1
    saved, attrs = function.save(inputs, outputs, attrs, tuple(needs))
    if "c" in kinds:
        function = function.conjugated()
    first = outputs[0]._data
    node = make_node(function, edges, number, saved, attrs, first.shape, first.dtype)
    if len(outputs) > 1 or type(first) is not ndarray:
        node.infos = [
            tensor_info(y) if kind in "fc" else None for y, kind in zip(outputs, kinds, strict=True)
        ]
    if local.state.general:
        annotate(node, local.state, outputs)
    attach = rebase_history if op.schema.mutates else Tensor.set_history
    for i, y in enumerate(outputs):
        if kinds[i] in "fc":
            attach(y, (node, i))


def rebase_history(x: Tensor, edge: Edge) -> None:
    """Give a tensor that was written the history of its new content.

    A write through a view is a write to its base. The op `copy_slices` records it at the base,
    without work for its kernel, and the view's own history follows from the base's.
    """
    view = x._view
    if view is None:
        x.set_history(edge)
        return
    base = view.base
    attrs = {"chain": view.chain(), "order": memory_order(base._data)}
    record(_COPY_SLICES, (base, x), (base,), attrs, (base._edge or NO_EDGE, edge))
    x.replay_view()
