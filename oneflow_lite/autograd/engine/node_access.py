"""Access to one node: `node(grad)` takes its op's gradient, `node._saved_self` is a saved tensor.

Saved tensors have PyTorch's names: `self` and `other` for the first two inputs of the op, `result`
for its output, the names of the kernel's parameters for further inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oneflow_lite.autograd.engine.gradient_edge import GradientEdge
from oneflow_lite.autograd.engine.gradient_modes import RECORDED
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.engine.run import backward
from oneflow_lite.autograd.rules.gradient_rules import (
    DeclaredGradFunction,
    HookedGradFunction,
    WrappedGradFunction,
)
from oneflow_lite.autograd.rules.saved_tensor import freed_error, stale_error, unpack, unpack_packed
from oneflow_lite.errors import ArgumentTypeError, GradientError, ShapeError, arg_error
from oneflow_lite.tensors.mode import is_grad_enabled, local
from oneflow_lite.tensors.node import AccumulateGrad, FunctionNode
from oneflow_lite.tensors.tensor import Tensor


def call(self: FunctionNode, *grads: Tensor | None) -> Any:
    """Take gradients of the outputs of a node to gradients of its inputs; nothing is released.

    Hooks do not run. The result is a gradient, or a tuple for several inputs; it is None for an
    input that needs no gradient. The node of a leaf adds the gradient to `.grad`.
    """
    if isinstance(self, AccumulateGrad):
        backward(GradientEdge(self, 0).stand_in(), grads)
        return ()
    infos = self.output_tensor_infos
    if len(grads) != len(infos) and len(grads) == sum([info is not None for info in infos]):
        given = iter(grads)  # outputs such as indices have no gradient, and may be left out
        grads = tuple([None if info is None else next(given) for info in infos])
    if len(grads) != len(infos):
        raise arg_error(
            self.name(),
            "grads",
            expected=f"{len(infos)} gradient(s), one per output",
            got=len(grads),
            hint="pass a gradient, or None, for each output",
            kind=GradientError,
        )
    for i, (grad, info) in enumerate(zip(grads, infos, strict=True)):
        if grad is None or info is None:
            continue
        if not isinstance(grad, Tensor):
            raise arg_error(
                self.name(),
                f"grads[{i}]",
                expected="a Tensor or None",
                got=type(grad).__name__,
                hint="wrap the value with flow.tensor(...)",
                kind=ArgumentTypeError,
            )
        if grad.shape != info.shape or grad.dtype != info.dtype or grad.device != info.device:
            raise arg_error(
                self.name(),
                f"grads[{i}]",
                expected=f"shape {info.shape}, {info.dtype} on {info.device}",
                got=f"shape {grad.shape}, {grad.dtype} on {grad.device}",
                hint="convert the gradient first",
                kind=ShapeError,
            )
    if self.saved is None:
        raise freed_error(self)
    task = GraphTask(retain_graph=True, create_graph=is_grad_enabled(), accumulate=False)
    task.gradients = RECORDED
    function = self.grad_function
    if isinstance(function, HookedGradFunction):  # hooks do not run here
        function = function.inner
    outer, local.task = local.task, task
    try:
        state = function.open(self, self.saved, True)
        full = RECORDED.materialize(self, function, grads)
        sent = task.apply_all(self, function, RECORDED.F, state, full)
    finally:
        local.task = outer
    in_grads = tuple(
        [
            None if grad is None or node is None else RECORDED.conform(grad, node, index, self)
            for grad, (node, index) in zip(sent, self.edges, strict=True)
        ]
    )
    return in_grads[0] if len(in_grads) == 1 else in_grads


def _names(node: FunctionNode) -> Iterator[tuple[str, Any, Any]]:
    """Yield for each saved value PyTorch's name, our name, and the saved tensor or None."""
    function = node.grad_function
    while isinstance(function, WrappedGradFunction):
        function = function.inner
    inputs = function.schema.inputs if isinstance(function, DeclaredGradFunction) else ()
    theirs = dict(zip(inputs, ("self", "other"), strict=False))
    for saved in node.saved or ():
        edge = saved[4]
        name = saved[0]
        if edge is not None and edge[0] is None:
            yield "result" if edge[1] == 0 else f"result{edge[1]}", name, saved
        else:
            yield theirs.get(name, name), name, saved
    for name in node.attrs:
        base, _, what = name.rpartition("_")
        known = what == "shape" and base in theirs
        yield f"{theirs[base]}_sym_sizes" if known else name, name, None


def saved_attribute(self: FunctionNode, name: str) -> Any:
    """Return `node._saved_<name>`: a tensor with its history, or a plain value."""
    wanted = name.removeprefix("_saved_")
    if isinstance(self, AccumulateGrad):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    if self.saved is None:
        raise freed_error(self)
    entries = list(_names(self))
    for theirs, ours, saved in entries:
        if wanted in (theirs, ours):
            if saved is None:
                return self.attrs[ours]
            if saved[2].version != saved[3]:
                raise stale_error(saved, self)
            return unpack(unpack_packed(saved), self)
    known = ", ".join([f"_saved_{theirs}" for theirs, _, _ in entries]) or "nothing"
    raise AttributeError(f"{self.name()} saved no {wanted!r}; it has {known}")


def attribute_names(self: FunctionNode) -> list[str]:
    """Return the attributes of a node, with an attribute for each saved tensor."""
    saved = [] if self.saved is None or isinstance(self, AccumulateGrad) else _names(self)
    own = [name for name in object.__dir__(self) if not name.startswith("_saved_")]
    return [*own, *[f"_saved_{theirs}" for theirs, _, _ in saved]]
