"""The gradients of control flow: the same op over backward blocks."""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.rules.gradient_rules import OpExprGradFunction, register_grad_func
from oneflow_lite.static.control_flow.block_gradient import (
    backward_of,
    is_differentiable,
    kept_names,
    replayed,
)


class _ControlFlow(OpExprGradFunction):
    """Base of the rules below, which are in terms of gradients, also for complex numbers."""

    def conjugated(self) -> OpExprGradFunction:
        """Return itself."""
        return self


@register_grad_func("cond")
@register_grad_func("switch_case")
class BranchesGrad(_ControlFlow):
    """The gradient of a choice is the same choice between the gradients of the branches."""

    def init(self, op: Any) -> None:
        self.op = op.op_type_name

    def capture(self, state: Any, inputs: Any, outputs: Any, attrs: Any) -> None:
        state.call = dict(attrs)
        state.save_for_backward(*inputs, *outputs[attrs["visible"] :])

    def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
        call = state.call
        visible = call["visible"]
        needs = state.needs_input_grad
        backward = backward_of(
            self.op,
            call["blocks"],
            call["names"],
            kept_names(call["outputs"], visible),
            needs[1:],
        )
        if not backward.wanted:
            return (None,) * len(needs)
        dys = [dy for dy in out_grads[:visible] if dy is not None]
        keys = {"keys": call["keys"]} if "keys" in call else {}
        grads = getattr(F, self.op)(
            *state.saved_tensors,
            *dys,
            blocks=backward.blocks,
            names=backward.names,
            outputs=backward.outputs,
            visible=len(backward.wanted),
            **keys,
        )
        return _by_input(grads, [1 + i for i in backward.wanted], len(needs))


@register_grad_func("while_loop")
class WhileLoopGrad(_ControlFlow):
    """The gradient of a loop is a loop backwards over its tape."""

    def capture(self, state: Any, inputs: Any, outputs: Any, attrs: Any) -> None:
        state.call = dict(attrs)
        state.save_for_backward(outputs[-1], *inputs)

    def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
        call, needs = state.call, state.needs_input_grad
        names, kept, returned = call["names"], call["kept"], call["outputs"]
        loop = len(returned)
        dys = [dy for dy in out_grads[:loop] if dy is not None]
        every = (True,) * loop + needs[loop:]
        backward = backward_of("while_loop", [call["body"]], names, kept, every, loop)
        wanted = tuple([1 + i for i in backward.wanted])
        grads = F.while_loop_grad(
            *state.saved_tensors,
            *dys,
            body=replayed("while_loop", call["body"], kept),
            returned=returned,
            backward=backward.blocks[0],
            names=backward.names,
            outputs=backward.outputs[0][: len(wanted)],
            sizes=(loop, len(names) - loop, len(dys)),
            wanted=(wanted,),
        )
        return _by_input(grads, backward.wanted, len(needs))


@register_grad_func("while_loop_grad")
class WhileLoopGradGrad(_ControlFlow):
    """The gradient of a derivative of a loop is the derivative of the next order."""

    def capture(self, state: Any, inputs: Any, outputs: Any, attrs: Any) -> None:
        state.call = dict(attrs)
        state.differentiable = tuple(
            [i for i, x in enumerate(inputs) if i and is_differentiable(x)]
        )
        state.save_for_backward(*inputs)

    def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
        call = {**state.call, "wanted": (*state.call["wanted"], state.differentiable)}
        grads = F.while_loop_grad(*state.saved_tensors, *out_grads, **call)
        return _by_input(grads, state.differentiable, len(state.needs_input_grad))


def _by_input(outputs: Any, positions: Any, count: int) -> list[Any]:
    """Return the gradients, the first of the outputs, by input; None where there is none."""
    grads: list[Any] = [None] * count
    for i, dx in zip(positions, outputs if type(outputs) is tuple else (outputs,), strict=False):
        grads[i] = dx
    return grads
