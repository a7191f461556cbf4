"""One call of a custom Function: its `ctx`, and how its results are joined to the graph."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from oneflow_lite.autograd.annotations import PackedGradFunction, annotate
from oneflow_lite.autograd.mode import local
from oneflow_lite.autograd.node import NO_EDGE, Edge, make_node, tensor_info
from oneflow_lite.autograd.saved_tensor import save_tensor
from oneflow_lite.autograd.user_backward import CustomFunctionNode, CustomGradFunction
from oneflow_lite.errors import (
    ArgumentTypeError,
    FlowError,
    FreedGraphError,
    GradientError,
    InplaceError,
    arg_error,
)
from oneflow_lite.interpreter import rebase_history
from oneflow_lite.op_expr import op_expr
from oneflow_lite.storage import FUNCTION
from oneflow_lite.tensor import Tensor
from oneflow_lite.views import check_history, link_view

_RESHAPE = op_expr("reshape")


class FunctionCtx:
    """What `forward` leaves for `backward`, in one call of a Function.

    Attributes may be set freely. Tensors that are arguments or results belong into
    `save_for_backward`: as attributes they would escape the check for in-place writes, and a result
    would hold itself alive.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of `forward`, whether it is a tensor that requires a gradient.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _name = ""
    _recorded = False
    _node: Callable[[], CustomFunctionNode | None] | None = None  # weak: the node holds the ctx
    _materialize = True
    # What forward said; forgotten when the node is made, as the ctx would hold its own results.
    _to_save: tuple[Tensor | None, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`: arguments, results, or intermediate ones.

        A later call replaces what an earlier one kept.

        Raises
        ------
        ArgumentTypeError
            When something is neither a tensor nor None; such values can be attributes of `ctx`.
        """
        self._check(
            "save_for_backward", ArgumentTypeError, tensors, "set it as an attribute of ctx"
        )
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, with its place in the graph; to be read in `backward`.

        Raises
        ------
        StaleTensorError
            When one was written in place since.
        FreedGraphError
            When they were released by an earlier backward.
        """
        if self._node is None:
            return ()
        node = self._node()
        if node is None:
            raise FreedGraphError(f"{self._name}: ctx.saved_tensors went with the graph")
        return node.saved_tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which arguments `forward` writes in place; each of them has to be returned.

        Call it before the write, so that nothing has been written when it raises.

        Raises
        ------
        GradientError
            When something is no tensor.
        InplaceError
            When autograd cannot follow the write, as to a leaf that requires a gradient.
        """
        self._check("mark_dirty", GradientError, tensors, "name tensors only")
        if self._recorded:
            for tensor in tensors:
                has_gradient = tensor.dtype.kind in "fc"
                check_history(f"{self._name}: mark_dirty", tensor, has_gradient)
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which results have no gradient; integer ones never have.

        Raises
        ------
        GradientError
            When something is no tensor.
        """
        self._check("mark_non_differentiable", GradientError, tensors, "name tensors only")
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` gets zeros (the default) or None for a missing gradient."""
        self._materialize = bool(value)

    def _check(self, op: str, error: type[FlowError], tensors: tuple[Any, ...], hint: str) -> None:
        for i, tensor in enumerate(tensors):
            if isinstance(tensor, Tensor) or (tensor is None and op == "save_for_backward"):
                continue
            raise arg_error(
                f"{self._name}: {op}",
                f"tensors[{i}]",
                expected="a Tensor",
                got=type(tensor).__name__,
                hint=hint,
                kind=error,
            )


class FunctionCall:
    """A call whose forward has run."""

    def __init__(
        self,
        grad_function: CustomGradFunction,
        ctx: FunctionCtx,
        args: tuple[Any, ...],
        edges: tuple[Edge, ...],
        outputs: tuple[Any, ...],
    ) -> None:
        self.grad_function = grad_function
        self.ctx = ctx
        self.are_tensors = tuple([isinstance(x, Tensor) for x in args])
        self.edges = edges
        self.outputs = outputs
        inputs = [id(x) for x in args if isinstance(x, Tensor)]
        self.inputs = dict(zip(inputs, edges, strict=True))
        self.dirty = {id(x): x for x in ctx._dirty if id(x) in self.inputs}
        fixed = {id(y) for y in ctx._non_differentiable}
        self.differentiable = [
            ctx._recorded
            and isinstance(y, Tensor)
            and y._data.dtype.kind in "fc"
            and id(y) not in fixed
            for y in outputs
        ]

    def join(self) -> list[Any]:
        """Return the outputs, joined to a new node where they have a gradient."""
        self._check_dirty()
        for x in self.dirty.values():
            x.memory.version += 1
        results = [
            self._result(y, has) for y, has in zip(self.outputs, self.differentiable, strict=True)
        ]
        if any(self.differentiable):
            node = self._make_node(results)
            for i, y in enumerate(results):
                if self.differentiable[i]:
                    attach = rebase_history if id(y) in self.dirty else Tensor.set_history
                    attach(y, (node, i))
        for y in results:
            if isinstance(y, Tensor) and y._view is not None and id(y) not in self.dirty:
                y._view.origin = FUNCTION
        return results

    def _check_dirty(self) -> None:
        name = self.ctx._name
        if len(self.dirty) < len(set(map(id, self.ctx._dirty))):
            warnings.warn(
                f"{name}: mark_dirty() got a tensor that is no argument of forward; only arguments "
                "are marked",
                stacklevel=4,
            )
        returned = set(map(id, self.outputs))
        for x in self.dirty.values():
            if id(x) not in returned:
                raise GradientError(
                    f"{name}: an argument (shape {x.shape}) is marked dirty and not returned; "
                    "return every argument that forward writes in place"
                )
            if x._view is not None and sum(self.differentiable) > 1:
                raise InplaceError(
                    f"{name}: forward writes to a view in place and returns several tensors, which "
                    "autograd does not follow; clone() the view, or make it two Functions"
                )

    def _result(self, y: Any, differentiable: bool) -> Any:
        """Return what stands for an output of forward."""
        if not isinstance(y, Tensor) or (differentiable and id(y) in self.dirty):
            return y
        if not differentiable and y._edge is not None:
            return y.detach()
        if y._edge is None and (id(y) not in self.inputs or id(y) in self.dirty):
            return y
        alias = Tensor.__new__(Tensor)  # an argument, or a tensor with another place in the graph
        alias._data = y._data
        link_view(_RESHAPE, y, alias, {"shape": y.shape}, FUNCTION)
        return alias

    def _make_node(self, results: list[Any]) -> CustomFunctionNode:
        ctx, has = self.ctx, self.differentiable
        number = 1 + max([node.topological_nr for node, _ in self.edges if node is not None])
        values: dict[str, Any] = {
            "ctx": ctx,
            "are_tensors": self.are_tensors,
            "were_saved": tuple([x is not None for x in ctx._to_save]),
            "infos": None,
        }
        first = results[has.index(True)]._data
        node: CustomFunctionNode = make_node(
            self.grad_function,
            self.edges,
            number,
            (),
            values,
            first.shape,
            first.dtype,
            CustomFunctionNode,
        )
        if len(results) > 1 or type(first) is not ndarray:
            values["infos"] = infos = [
                tensor_info(y) if isinstance(y, Tensor) else None for y in results
            ]
            node.infos = [info if has[i] else None for i, info in enumerate(infos)]
        saved = [x for x in ctx._to_save if x is not None]
        node.saved = tuple(
            [save_tensor(f"saved_tensors[{i}]", x, self._edge_of(x)) for i, x in enumerate(saved)]
        )
        ctx._to_save = ctx._dirty = ctx._non_differentiable = ()
        ctx._node = weakref.ref(node)
        if local.state.general:
            annotate(node, local.state)
            if isinstance(node.grad_function, PackedGradFunction):
                node.grad_function = node.grad_function.inner  # `ctx.saved_tensors` unpacks
        return node

    def _edge_of(self, x: Tensor) -> Edge | None:
        """Return the place in the graph of a tensor to save, before outputs have theirs."""
        if id(x) in self.inputs and id(x) not in self.dirty:
            edge = self.inputs[id(x)]
            return None if edge is NO_EDGE else edge
        for i, y in reversed(list(enumerate(self.outputs))):
            if y is x and self.differentiable[i]:
                return (None, i)
        return x._edge if x.requires_grad else None
