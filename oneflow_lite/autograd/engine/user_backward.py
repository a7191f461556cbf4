"""The node of a custom Function, and the gradient function that calls the user's backward."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from oneflow_lite.arrays.size import fits
from oneflow_lite.autograd.engine.gradient_modes import RECORDED
from oneflow_lite.autograd.rules.gradient_rules import (
    AutoGradCaptureState,
    OpExprGradFunction,
    as_given,
    as_tensors,
)
from oneflow_lite.autograd.rules.saved_tensor import stale_error, unpack, unpack_packed
from oneflow_lite.errors import FreedGraphError, GradientError, NotDifferentiableError
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.node import Edge, FunctionNode
from oneflow_lite.tensors.tensor import Tensor

_CAST = op_expr("cast")


class CustomFunctionNode(FunctionNode):
    """The node of one call of a Function; it shows the attributes of the `ctx` as its own."""

    __slots__ = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that `ctx.save_for_backward` got, each with its place in the graph."""
        saved = self.saved
        if saved is None:
            raise FreedGraphError(
                f"{self.name()}: its saved tensors were released by an earlier backward; pass "
                "retain_graph=True to that one to read them again"
            )
        tensors = []
        for s in map(unpack_packed, saved):
            if s[2].version != s[3]:
                raise stale_error(s, self)
            tensors.append(unpack(s, self))
        rest = iter(tensors)
        return tuple([next(rest) if given else None for given in self.attrs["were_saved"]])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also asked for slots that are not set
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.attrs["ctx"], name)


class OpenNode(AutoGradCaptureState):
    """Hands the node, which has the ctx, to `CustomGradFunction.apply`."""

    node: CustomFunctionNode


class CustomGradFunction(OpExprGradFunction):
    """Calls the backward of one Function class."""

    materialize = False  # depends on the call: see `_materialized`
    shows_gradients = True

    def __init__(self, function: Any) -> None:
        self.function = function
        self.node_name = f"{function.__name__}Backward"

    def open(self, node: Any, saved: tuple[Any, ...], recorded: bool) -> OpenNode:
        """Hand the node on: saved tensors are unpacked when `ctx.saved_tensors` is read."""
        state = OpenNode()
        state.node = node
        return state

    def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
        """Return the result of the backward, with a gradient or None for each tensor argument."""
        node: CustomFunctionNode = state.node
        ctx = node.attrs["ctx"]
        backward = self.function._find_backward()
        result = backward(ctx, *_materialized(node, as_tensors(out_grads)))
        grads = result if isinstance(result, tuple) else (result,)
        are_tensors = node.attrs["are_tensors"]
        count = len(are_tensors)
        # PyTorch accepts surplus Nones, as a backward with optional arguments returns them.
        if len(grads) > count and all([grad is None for grad in grads[count:]]):
            grads = grads[:count]
        if len(grads) != count:
            raise GradientError(
                f"{self.node_name}: backward returned {len(grads)} gradient(s), expected {count}, "
                "one per argument of forward; return None for an argument without a gradient"
            )
        edges = iter(node.edges)
        in_grads = []
        for i, (grad, is_tensor) in enumerate(zip(grads, are_tensors, strict=True)):
            if is_tensor:
                in_grads.append(self._conform(i, grad, next(edges)))
            elif grad is not None:
                raise self._gradient_error(
                    i, "None, as the argument is no tensor", type(grad).__name__
                )
        return as_given(tuple(in_grads))

    def _conform(self, position: int, grad: Any, edge: Edge) -> Tensor | None:
        """Check the gradient of a tensor argument, and give it the argument's dtype."""
        if grad is None:
            return None
        if not isinstance(grad, Tensor):
            raise self._gradient_error(position, "a Tensor or None", type(grad).__name__)
        node, index = edge
        if node is None:  # an argument that requires no gradient
            return None
        data = grad._data
        if (
            type(data) is ndarray
            and node.infos is None
            and data.shape == node.shape
            and data.dtype is node.dtype
        ):
            return grad
        info = node.output_tensor_infos[index]
        if not fits(grad.shape, info.shape):
            raise self._gradient_error(
                position, f"shape {info.shape}, that of the argument", grad.shape
            )
        if grad.device != info.device:
            raise self._gradient_error(
                position, f"device {info.device}, the argument's", grad.device
            )
        if data.dtype is info.dtype:
            return grad
        if grad.dtype.kind != "f" and (grad.dtype.kind == "c") != (info.dtype.kind == "c"):
            raise self._gradient_error(
                position, f"dtype {info.dtype}, that of the argument", grad.dtype
            )
        return dispatch1(_CAST, grad, {"dtype": info.dtype})  # type: ignore[no-any-return]

    def _gradient_error(self, position: int, expected: str, got: object) -> GradientError:
        return GradientError(
            f"{self.node_name}: backward returned a wrong gradient for argument {position} of "
            f"forward: expected {expected}, got {got}"
        )


def _materialized(node: CustomFunctionNode, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put zeros where a gradient of a tensor output is missing, unless the ctx was told not to."""
    missing = any([grad is None for grad in grads])
    if not (missing and node.attrs["ctx"]._materialize):
        return grads
    infos = node.attrs["infos"] or node.output_tensor_infos
    return tuple(
        [
            RECORDED.zeros(info) if grad is None and info is not None else grad
            for grad, info in zip(grads, infos, strict=True)
        ]
    )


class OnceGradFunction(OpExprGradFunction):
    """The gradient function of gradients from a `once_differentiable` backward; it raises."""

    def __init__(self, node_name: str) -> None:
        self.node_name = f"{node_name}Backward"
        self.backward_name = node_name

    def apply(self, F: Any, state: AutoGradCaptureState, out_grads: tuple[Any, ...]) -> Any:
        """Raise, because the computation of these gradients was not recorded."""
        raise NotDifferentiableError(
            f"{self.backward_name}: its gradients cannot be differentiated again, because its "
            "backward is marked with @once_differentiable; take the mark off if it is written in "
            "differentiable operations"
        )
