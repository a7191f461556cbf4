"""Backward hooks of a module: its inputs and outputs pass through nodes that call them."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from oneflow_lite.autograd.engine.gradient_modes import RECORDED
from oneflow_lite.autograd.function import Function
from oneflow_lite.errors import HookError
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.hooks import Hook
from oneflow_lite.tensors.mode import is_grad_enabled, local
from oneflow_lite.tensors.node import TensorInfo, tensor_info
from oneflow_lite.tensors.storage import Origin
from oneflow_lite.tensors.tensor import Tensor

Gradients = tuple[Tensor | None, ...]
_HOOKED = Origin("for the backward hooks of a module", "use the out-of-place op, or clone() it")


class BackwardHookFunction(Function):
    """Returns its arguments; hooks are called at its node."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the tensors."""
        ctx.mark_non_differentiable(*[x for x in tensors if not x.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients."""
        return grads


class BackwardHook:
    """The backward hooks of one call of a module.

    The node at the outputs runs first: it calls the prehooks and keeps the gradients that they
    leave, until the node at the inputs calls the hooks.
    """

    def __init__(self, module: Any, pre_hooks: Iterable[Hook], hooks: Iterable[Hook]) -> None:
        self.module = module
        self.pre_hooks = tuple(pre_hooks)
        self.hooks = tuple(hooks)
        self.n_inputs = self.n_outputs = 0
        self.input_places: list[int] | None = None  # None where no input requires a gradient
        self.output_places: list[int] = []
        self.constants: list[tuple[int, TensorInfo]] = []  # inputs that require no gradient
        # By backward call, as several may run over one graph at a time.
        self.grad_outputs: WeakKeyDictionary[Any, Gradients] = WeakKeyDictionary()

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with tensors replaced by outputs of a node that calls the hooks."""
        self.n_inputs = len(args)
        if not self.hooks or not _require_grad(args):
            return args
        self.input_places = _places(args)
        self.constants = [
            (i, tensor_info(args[i])) for i in self.input_places if not args[i].requires_grad
        ]
        return _join(args, self.input_places, self._at_inputs)

    def wrap_output(self, output: Any) -> Any:
        """Return the output, with tensors replaced by outputs of a node that calls the prehooks."""
        if not isinstance(output, (Tensor, tuple)):
            warn_caller(
                f"backward hooks of {type(self.module).__name__} are not called: its output is a "
                f"{type(output).__name__}; return a Tensor or a tuple of Tensors"
            )
            return output
        outputs = output if isinstance(output, tuple) else (output,)
        if not _require_grad(outputs):
            return output
        self.n_outputs = len(outputs)
        self.output_places = _places(outputs)
        joined = _join(outputs, self.output_places, self._at_outputs)
        if not isinstance(output, tuple):
            return joined[0]
        make: Any = getattr(type(output), "_make", tuple)  # a named tuple stays one
        return make(joined)

    def _at_outputs(self, in_grads: Gradients, out_grads: Gradients) -> Gradients | None:
        """Call the prehooks on the gradients of the outputs, which the node hands on."""
        places = self.output_places
        received = grads = _spread(out_grads, places, self.n_outputs)
        for hook in self.pre_hooks:
            result = hook(self.module, grads)
            grads = self._replaced("full_backward_pre_hook", result, grads)
        if self.input_places is not None:
            self.grad_outputs[local.task] = grads
        elif self.hooks:
            self._call_without_inputs(grads)
        return None if grads is received else tuple([grads[i] for i in places])

    def _at_inputs(self, in_grads: Gradients, out_grads: Gradients) -> Gradients | None:
        """Call the hooks, unless the gradient did not come through the outputs."""
        grad_outputs = self.grad_outputs.pop(local.task, None)
        if grad_outputs is None or self.input_places is None:
            return None
        spread = list(_spread(in_grads, self.input_places, self.n_inputs))
        for i, info in self.constants:  # zeros, as in PyTorch; None stands for another argument
            spread[i] = RECORDED.zeros(info)
        received = grads = tuple(spread)
        for hook in self.hooks:
            result = hook(self.module, grads, grad_outputs)
            grads = self._replaced("full_backward_hook", result, grads)
        return None if grads is received else tuple([grads[i] for i in self.input_places])

    def _call_without_inputs(self, grad_outputs: Gradients) -> None:
        name = type(self.module).__name__
        warn_caller(
            f"a full_backward_hook of {name} is called as soon as the gradients of its outputs are "
            "there, since none of its inputs requires a gradient"
        )
        for hook in self.hooks:
            result = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            given = result if isinstance(result, (tuple, list)) else (result,)
            if any([grad is not None for grad in given]):
                raise HookError(
                    f"a full_backward_hook of {name} returned a gradient, and none of the module's "
                    "inputs requires one; return None"
                )

    def _replaced(self, kind: str, result: Any, before: Gradients) -> Gradients:
        """Return the gradients that a hook returned, or `before` when it returned None."""
        if result is None:
            return before
        is_sequence = isinstance(result, (tuple, list))
        if is_sequence and len(result) == len(before):
            return tuple(result)
        got = f"{len(result)} gradient(s)" if is_sequence else type(result).__name__
        raise HookError(
            f"a {kind} of {type(self.module).__name__} returned {got}, expected None or a tuple of "
            f"{len(before)}"
        )


def add_plain_hooks(module: Any, hooks: Iterable[Hook], args: Any, output: Any) -> None:
    """Register hooks on the node that made the output; they get the gradients of that node."""
    first = output
    while not isinstance(first, Tensor):
        first = next(iter(first.values())) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    expected = {x.grad_fn_node for x in args if isinstance(x, Tensor) and x.grad_fn is not None}
    before = {following for following, _ in node.next_functions}
    if output is not first or not expected <= before:
        warn_caller(
            f"the regular backward hooks of {type(module).__name__} get the gradients of "
            f"{node.name()} alone, which are not those of the module's inputs and outputs; use "
            "register_full_backward_hook",
            FutureWarning,
        )
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))


def _require_grad(values: tuple[Any, ...]) -> bool:
    return is_grad_enabled() and any([isinstance(x, Tensor) and x.requires_grad for x in values])


def _places(values: tuple[Any, ...]) -> list[int]:
    return [i for i, x in enumerate(values) if isinstance(x, Tensor)]


def _join(values: tuple[Any, ...], places: list[int], hook: Hook) -> tuple[Any, ...]:
    """Return the values, with tensors replaced by outputs of one node, which calls the hook."""
    tensors = BackwardHookFunction.apply(*[values[i] for i in places])
    node = next(x.grad_fn for x in tensors if x.requires_grad)
    node.register_hook(hook)
    for x in tensors:
        x._view.origin = _HOOKED
    joined = dict(zip(places, tensors, strict=True))
    return tuple([joined.get(i, x) for i, x in enumerate(values)])


def _spread(grads: Gradients, places: list[int], count: int) -> Gradients:
    """Return the gradients of the tensors, with None in the places of other values."""
    found = dict(zip(places, grads, strict=True))
    return tuple([found.get(i) for i in range(count)])
