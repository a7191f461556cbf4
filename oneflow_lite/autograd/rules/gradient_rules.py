"""Gradient functions, which save for a node at capture, and later take its gradients.

`register_grad_func` accepts two forms: plain functions `(F, ctx, *out_grads)` with `saves=`, which
become a `DeclaredGradFunction`, and subclasses of `OpExprGradFunction` for irregular ops.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.rules.save_plan import Saved, SavePlan, Saver, output_edge
from oneflow_lite.autograd.rules.saved_tensor import (
    SavedTensor,
    detached,
    save_tensor,
    stale_error,
    unpack,
)
from oneflow_lite.autograd.rules.zero import ZERO
from oneflow_lite.errors import (
    GradientError,
    InplaceError,
    NotDifferentiableError,
    RegistrationError,
)
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import GRAD_FUNCS, KERNELS, Schema, runs_again
from oneflow_lite.tensors.hooks import NodeHooks
from oneflow_lite.tensors.mode import local, of_user
from oneflow_lite.tensors.node import FunctionNode, expose_saved
from oneflow_lite.tensors.tensor import Tensor, make_tensor

Rule = Callable[..., Any]


class AutoGradCaptureState:
    """`ctx` of a gradient rule: saved tensors and plain values as attributes.

    While an irregular op is captured, its `OpExprGradFunction` calls `save_for_backward` and sets
    attributes; tensors among these are watched in the same way. When the gradient is taken,
    `saved_tensors` gives the tensors back.
    """

    needs_input_grad: tuple[bool, ...] = ()
    saved_tensors: tuple[Any, ...] = ()
    _to_save: tuple[Any, ...] = ()
    _to_open: tuple[Any, ...] = ()  # for the inner open(), after the prehooks
    _opened: tuple[SavedTensor, ...] = ()  # what a user's rule must not write

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks whether this can be copied, called, ...
            raise AttributeError(name)
        has = ", ".join([n for n in vars(self) if not n.startswith("_")]) or "nothing"
        raise AttributeError(
            f"ctx has no {name!r}, because the rule does not save it; name it where the rule is "
            f"registered, as in grad(saves={name!r}); ctx has {has}"
        )

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep inputs or outputs of the op for `apply`."""
        self._to_save = tensors


def is_ours(function: Any) -> bool:
    """Return whether a rule, or a class of rules, is the package's own, which the tests certify."""
    return str(getattr(function, "__module__", "")).startswith("oneflow_lite.")


class OpExprGradFunction:
    """Base of gradient functions; subclass it for an op whose capture is irregular."""

    whole = True  # one call gives the gradients of all inputs
    many = True  # the op has several inputs, and the rule may ask which inputs need a gradient
    materialize = True  # missing out_grads arrive as zeros
    shows_gradients = False  # user code gets gradients to see, and may keep them
    node_name: str
    rules: tuple[Rule, ...] = ()  # one per input, where whole is False
    # For ops of one or two inputs, the function that saves when the first input (1), the second (2)
    # or both (3) need a gradient; None where nothing is saved.
    savers: list[Saver | None]
    _conjugated: OpExprGradFunction | None = None

    def init(self, op: OpExpr) -> None:
        """Prepare for an op; called once."""

    def capture(
        self,
        state: AutoGradCaptureState,
        inputs: tuple[Any, ...],
        outputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
    ) -> None:
        """Save on `state` the tensors and values that `apply` needs."""

    def apply(self, F: Any, state: AutoGradCaptureState, out_grads: tuple[Any, ...]) -> Any:
        """Return one gradient or None per input."""
        raise NotDifferentiableError(f"{self.node_name}: apply() is not defined")

    def rule(self, F: Any, state: AutoGradCaptureState, *out_grads: Any) -> Any:
        """Call `apply` in the form of a whole-op rule."""
        return self.apply(F, state, out_grads)

    def takes_gradient(self, index: int) -> bool:
        """Return whether the gradient of this input is defined."""
        return True

    def resolve(self, op: OpExpr) -> OpExprGradFunction:
        """Return the gradient function of `op`, ready for use."""
        self.node_name = f"{op.op_type_name}_backward"
        self.init(op)
        self.savers = self._savers(len(op.schema.inputs))
        return self if is_ours(type(self)) else OnTensors(self)

    def _savers(self, inputs: int) -> list[Saver | None]:
        masks = [(mask & 1 == 1, mask & 2 == 2)[: max(inputs, 1)] for mask in range(4)]
        return [self._saver(needs) for needs in masks]

    def _saver(self, needs: tuple[bool, ...]) -> Saver | None:
        return functools.partial(self._save_for, needs)

    def _save_for(self, needs: tuple[bool, ...], inputs: Any, outputs: Any, attrs: Any) -> Any:
        return self.save(inputs, outputs, attrs, needs)

    def save(
        self,
        inputs: tuple[Any, ...],
        outputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        needs: tuple[bool, ...],
    ) -> Saved:
        """Capture, and return the saved tensors and plain values that the node keeps."""
        state = AutoGradCaptureState()
        state.needs_input_grad = needs
        self.capture(state, inputs, outputs, attrs)
        saved = []
        values = vars(state)
        names = {f"saved_tensors[{i}]": tensor for i, tensor in enumerate(state._to_save)}
        names |= {name: value for name, value in values.items() if isinstance(value, Tensor)}
        for name, tensor in names.items():
            number = next((n for n, y in enumerate(outputs) if y is tensor), -1)
            edge = tensor._edge if number < 0 else output_edge(tensor, number)
            saved.append(save_tensor(name, tensor, edge))
        for name in (*names, "_to_save", "needs_input_grad"):
            values.pop(name, None)
        return tuple(saved), values

    def open(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...], recorded: bool
    ) -> AutoGradCaptureState:
        """Check the versions of a node's saved tensors and return the `ctx` for its rule."""
        state = AutoGradCaptureState()
        state.__dict__.update(node.attrs)
        listed = []
        for s in saved:
            if s[2].version != s[3]:
                raise stale_error(s, node)
            value = unpack(s, node) if recorded else s[1]
            if s[0].startswith("saved_tensors["):
                listed.append(value)
            else:  # it was set as an attribute
                setattr(state, s[0], value)
        state.saved_tensors = tuple(listed)
        state.needs_input_grad = tuple(edge[0] is not None for edge in node.edges)
        return state

    def conjugated(self) -> OpExprGradFunction:
        """Return this gradient function for an op with complex output.

        Rules are written as plain derivatives. The gradient convention (PyTorch's, the conjugate
        Wirtinger derivative) is dx = conj(rule(conj(dy))) for every holomorphic or linear op.
        """
        if self._conjugated is None:
            self._conjugated = Conjugated(self)
        return self._conjugated

    def hooked(self) -> HookedGradFunction:
        """Return this gradient function for a node with hooks."""
        return HookedGradFunction(self)

    def detached(self, saved: tuple[SavedTensor, ...]) -> tuple[Tensor, ...]:
        """Return the tensors that `node.saved_tensors` shows."""
        return tuple(map(detached, saved))

    def closure(self, node: FunctionNode) -> OpExprGradClosure:
        """Return the object that `node.backward_fn` shows."""
        return OpExprGradClosure(self, node)


class OpExprGradClosure:
    """A node's gradient function with the node's saved tensors; `node.backward_fn`."""

    def __init__(self, grad_function: OpExprGradFunction, node: FunctionNode) -> None:
        self.grad_function = grad_function
        self.saved_tensors = node.saved_tensors
        self.attrs = node.attrs

    def __repr__(self) -> str:
        return f"<closure of {self.grad_function.node_name}>"


class DeclaredGradFunction(OpExprGradFunction):
    """Rules given as functions, with the tensors they save declared by name.

    `rules[i]` gives the gradient of input i; a whole-op rule gives all gradients in one call.
    """

    def __init__(self, op_type_name: str) -> None:
        self.node_name = f"{op_type_name}_backward"
        self.op_type_name = op_type_name
        self.by_name: dict[str, tuple[Rule, str]] = {}
        self.whole_rule: tuple[Rule, str] | None = None

    def add(self, wrt: str | None, rule: Rule, saves: str, materialize: bool) -> None:
        """Add the rule for an input, or for all inputs when `wrt` is None."""
        old = self.whole_rule if wrt is None else self.by_name.get(wrt)
        if old is not None and runs_again(old[0], rule):
            self.discard(wrt)
        if self.whole_rule is not None or wrt in self.by_name or (wrt is None and self.by_name):
            raise RegistrationError(
                f"gradient function {self.op_type_name!r} has a rule for {wrt or 'all inputs'} "
                "already; register one rule per input, or one for the whole op"
            )
        self.materialize = materialize
        if wrt is None:
            self.whole_rule = (rule, saves)
        else:
            self.by_name[wrt] = (rule, saves)

    def discard(self, wrt: str | None) -> None:
        """Forget the rule for an input, or for all inputs when `wrt` is None."""
        if wrt is None:
            self.whole_rule = None
        else:
            self.by_name.pop(wrt)

    def check(self, schema: Schema) -> None:
        """Raise for names that the kernel does not have."""
        self.schema = schema
        for name in self.by_name:
            if name not in schema.inputs:
                raise RegistrationError(
                    f"gradient function {self.op_type_name!r}: wrt={name!r} is no array "
                    f"parameter of its kernel; they are {schema.inputs}"
                )
        for _, saves in [self.whole_rule or (None, ""), *self.by_name.values()]:
            self._make_plan((saves,))

    def resolve(self, op: OpExpr) -> OpExprGradFunction:
        """Match the names of the rules with the kernel's parameters."""
        schema = op.schema
        self.check(schema)
        expose_saved((*schema.inputs, *schema.attrs, *(f"{name}_shape" for name in schema.inputs)))
        self.whole = self.whole_rule is not None
        if self.whole_rule is not None:
            self.rule = self.whole_rule[0]  # type: ignore[method-assign]
            self.many = len(schema.inputs) > 1 or schema.variadic is not None
            if not self.many:  # the rule for the only input: calling it needs no tuples
                self.whole, self.rules = False, (self.rule,)
        else:
            self.many = False
            missing = self._missing
            self.rules = tuple(
                self.by_name[n][0] if n in self.by_name else missing(n) for n in schema.inputs
            )
        texts = [self.whole_rule[1]] if self.whole_rule else [s for _, s in self.by_name.values()]
        self.edges = self._make_plan(tuple(texts)).edges
        self.many = self.many or bool(self.edges)  # `open` has a way of its own for most rules
        self.plans: dict[tuple[bool, ...], SavePlan] = {}
        self.savers = self._savers(len(schema.inputs))
        rules = [self.whole_rule or (), *self.by_name.values()]
        return self if all([is_ours(rule) for rule, _ in filter(None, rules)]) else OnTensors(self)

    def _missing(self, name: str) -> Rule:
        def rule(F: Any, ctx: Any, *out_grads: Any) -> Any:
            raise NotDifferentiableError(
                f"{self.op_type_name}: the derivative with respect to {name!r} is not defined; "
                f"register it with register_grad_func({self.op_type_name!r}, wrt={name!r}), or "
                "detach() the argument"
            )

        return rule

    def _make_plan(self, saves: tuple[str, ...]) -> SavePlan:
        plan = SavePlan(self.op_type_name)
        schema = self.schema
        names = dict.fromkeys(name.strip() for text in saves for name in text.split(","))
        for name in names:
            if not name:
                continue
            base, _, what = name.partition(".")  # "x.shape" becomes `ctx.x_shape`
            context_name = f"{base}_{what}" if what else base
            if base in schema.inputs and what in ("", "shape", "dtype", "edge"):
                position = schema.inputs.index(base)
                if what == "edge":
                    plan.edges.append((context_name, position))
                elif what:
                    plan.constants.append((context_name, position, what))
                elif base in schema.mutates:
                    raise RegistrationError(
                        f"gradient function {self.op_type_name!r}: saves={name!r}, but the kernel "
                        f"writes {name}, so its old value is gone; save the output ('y'), or let "
                        "the kernel return a new array"
                    )
                else:
                    plan.inputs.append((name, position))
            elif base == schema.variadic and what in ("", "shape", "dtype"):
                plan.variadic.append((context_name, len(schema.inputs), what))
            elif match := re.fullmatch(r"(?:y|out)(\d*)", name):
                plan.outputs.append((name, int(match[1] or 0)))
            else:
                raise self._unknown_save_error(name)
        return plan

    def _unknown_save_error(self, name: str) -> RegistrationError:
        return RegistrationError(
            f"gradient function {self.op_type_name!r}: saves={name!r} names neither an array "
            f"parameter of its kernel {self.schema.inputs} nor an output ('y', 'y0', 'y1')"
        )

    def _plan_for(self, needs: tuple[bool, ...]) -> SavePlan:
        """Return the plan for saving when these inputs need gradients."""
        plan = self.plans.get(needs)
        if plan is None:
            if self.whole_rule is not None:
                plan = self._make_plan((self.whole_rule[1],))
            else:
                wanted = zip(self.schema.inputs, needs, strict=False)
                plan = self._make_plan(
                    tuple(self.by_name[n][1] for n, need in wanted if need and n in self.by_name)
                )
            self.plans[needs] = plan
        return plan

    def _saver(self, needs: tuple[bool, ...]) -> Saver | None:
        return self._plan_for(needs).saver()

    def save(
        self,
        inputs: tuple[Any, ...],
        outputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        needs: tuple[bool, ...],
    ) -> Saved:
        """Return the tensors and values that the node keeps of this call."""
        return self._plan_for(needs).save(inputs, outputs, attrs)

    def open(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...], recorded: bool
    ) -> AutoGradCaptureState:
        """Check the versions of a node's saved tensors and return the `ctx` for its rule."""
        state = AutoGradCaptureState()
        values = state.__dict__
        for s in saved:
            name, data, storage, version, _ = s
            if storage.version != version:
                raise stale_error(s, node)
            values[name] = unpack(s, node) if recorded else data
        if node.attrs:
            values.update(node.attrs)
        if self.many:
            for name, i in self.edges:
                values[name] = node.edges[i]
            values["needs_input_grad"] = tuple([sender is not None for sender, _ in node.edges])
            variadic = self.schema.variadic
            if variadic is not None and f"{variadic}[0]" in values:
                count = sum(1 for name in values if name.startswith(f"{variadic}["))
                values[variadic] = tuple(values.pop(f"{variadic}[{k}]") for k in range(count))
        return state

    def takes_gradient(self, index: int) -> bool:
        """Return whether the gradient of this input is defined."""
        if self.whole or index >= len(self.schema.inputs):
            return True
        return self.schema.inputs[index] in self.by_name


def _conj(F: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_conj(F, v) for v in value)
    if hasattr(value, "whole"):  # zeros but for a part, see `rule_namespace.py`
        value = value.whole()
    if value is None or value is ZERO or value.dtype.kind != "c":
        return value
    conjugate = F.conj(value)
    # NumPy makes a scalar of a 0-d array, and a rule may want to write into its copy.
    return np.asarray(conjugate) if isinstance(conjugate, np.generic) else conjugate


def _conjugate_around(rule: Rule) -> Rule:
    def around(F: Any, ctx: Any, *out_grads: Any) -> Any:
        return _conj(F, rule(F, ctx, *_conj(F, out_grads)))

    return around


class WrappedGradFunction(OpExprGradFunction):
    """Base of gradient functions that add a step before or after another gradient function."""

    def __init__(self, inner: OpExprGradFunction) -> None:
        self.inner = inner
        self.node_name = inner.node_name
        self.whole = inner.whole
        self.many = inner.many
        self.materialize = inner.materialize
        self.shows_gradients = inner.shows_gradients
        self.rules = inner.rules

    # Methods, not attributes: an object that holds a method of its own is a reference cycle, and
    # many wrappers belong to one node each.

    def open(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...], recorded: bool
    ) -> AutoGradCaptureState:
        """Check a node's saved tensors and return the `ctx` for its rule."""
        return self.inner.open(node, saved, recorded)

    def rule(self, F: Any, state: AutoGradCaptureState, *out_grads: Any) -> Any:
        """Return the gradients of all inputs."""
        return self.inner.rule(F, state, *out_grads)

    def detached(self, saved: tuple[SavedTensor, ...]) -> tuple[Tensor, ...]:
        """Return the tensors that `node.saved_tensors` shows."""
        return self.inner.detached(saved)

    def takes_gradient(self, index: int) -> bool:
        """Return whether the gradient of this input is defined."""
        return self.inner.takes_gradient(index)


class OnTensors(WrappedGradFunction):
    """The gradient function of rules that a user wrote: they get tensors in both modes.

    So a rule may use all that works on tensors, whether the backward pass is recorded or not. Its
    writes are noticed.
    """

    def __init__(self, inner: OpExprGradFunction) -> None:
        super().__init__(inner)
        self.shows_gradients = True
        self.savers, self.save = inner.savers, inner.save  # type: ignore[method-assign]
        self.rules = tuple([functools.partial(_on_tensors, self, rule) for rule in inner.rules])

    def open(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...], recorded: bool
    ) -> AutoGradCaptureState:
        """Check a node's saved tensors and return the `ctx` for its rule."""
        if not recorded:  # tensors without a place in the graph
            saved = tuple([(*s[:4], None) for s in saved])
        state = self.inner.open(node, saved, True)
        state._opened = saved
        return state

    def rule(self, F: Any, state: AutoGradCaptureState, *out_grads: Any) -> Any:
        """Return the gradients of all inputs."""
        return _on_tensors(self, self.inner.rule, F, state, *out_grads)


def _on_tensors(
    function: OnTensors, rule: Rule, F: Any, state: AutoGradCaptureState, *out_grads: Any
) -> Any:
    """Call a user's rule with tensors, and return its gradients in the form of the task."""
    raw = F.on_tensors is not F
    grads = as_tensors(out_grads) if raw else out_grads
    before = [g if g is None else g._version for g in grads]
    result = of_user(rule)(F.on_tensors, state, *grads)
    for g, version in zip(grads, before, strict=True):
        if g is not None and g._version != version:
            raise _written_error(function.node_name, "the gradient that it gets", "dy * 2")
    for name, _, storage, version, _ in state._opened:
        if storage.version != version:
            raise _written_error(function.node_name, f"ctx.{name}", f"ctx.{name} * 2")
    if not raw:
        return result
    if isinstance(result, (tuple, list)):
        return tuple([_as_array(function, grad) for grad in result])
    return _as_array(function, result)


def _as_array(function: OnTensors, grad: Any) -> Any:
    if grad is None or isinstance(grad, Tensor):
        return grad if grad is None else grad._data
    raise GradientError(
        f"{function.node_name} returned a gradient of type {type(grad).__name__}, expected type "
        "Tensor, or None for an input without a gradient; mend its gradient rule"
    )


def _written_error(node_name: str, what: str, instead: str) -> InplaceError:
    return InplaceError(
        f"{node_name}: its rule wrote into {what}, which others may share; compute a new tensor, "
        f"as {instead}, or write into a clone()"
    )


class Conjugated(WrappedGradFunction):
    """The gradient function of an op whose output is complex."""

    def __init__(self, inner: OpExprGradFunction) -> None:
        super().__init__(inner)
        self.rules = tuple(map(_conjugate_around, inner.rules))

    def rule(self, F: Any, state: AutoGradCaptureState, *out_grads: Any) -> Any:
        """Return the gradients of all inputs."""
        return _conj(F, self.inner.rule(F, state, *_conj(F, out_grads)))

    def conjugated(self) -> OpExprGradFunction:
        """Return itself."""
        return self


class HookedGradFunction(WrappedGradFunction):
    """The gradient function of a node with hooks of its own."""

    def __init__(self, inner: OpExprGradFunction) -> None:
        super().__init__(inner)
        self.hooks = NodeHooks()
        self.whole = self.many = self.shows_gradients = True
        self.materialize = False  # prehooks see None for a gradient that did not arrive

    def hooked(self) -> HookedGradFunction:
        """Return itself."""
        return self

    def open(self, node: FunctionNode, saved: Any, recorded: bool) -> AutoGradCaptureState:
        """Keep the arguments: `rule` opens the inner function once the prehooks have run."""
        state = AutoGradCaptureState()
        state._to_open = (node, saved, recorded)
        return state

    def rule(self, F: Any, state: AutoGradCaptureState, *out_grads: Any) -> tuple[Any, ...]:
        """Take the gradients between the hooks that run before and after."""
        node = state._to_open[0]
        out_grads = as_given(self.hooks.run_pre(node, as_tensors(out_grads)))
        in_grads: Sequence[Any] = (None,) * len(node.edges)
        if any([grad is not None for grad in out_grads]):
            in_grads = self._in_grads(F, out_grads, *state._to_open)
        return as_given(self.hooks.run_post(node, as_tensors(in_grads), as_tensors(out_grads)))

    def _in_grads(
        self, F: Any, out_grads: tuple[Any, ...], node: FunctionNode, saved: Any, recorded: bool
    ) -> list[Any]:
        """Take the gradients that the task needs, in the shapes in which they are sent."""
        inner, task = self.inner, local.task
        state = inner.open(node, saved, recorded)
        wanted = task.exec_info
        needs = [n is not None and (wanted is None or n in wanted) for n, _ in node.edges]
        state.needs_input_grad = tuple(needs)
        out_grads = task.gradients.materialize(node, inner, out_grads)
        in_grads = task.apply_all(node, inner, F, state, out_grads)
        return [
            task.gradients.conform(grad, *edge, node) if needed and grad is not None else None
            for grad, edge, needed in zip(in_grads, node.edges, needs, strict=True)
        ]


def as_tensors(grads: Sequence[Any]) -> tuple[Any, ...]:
    """Return gradients, raw arrays or tensors, as hooks get them."""
    return tuple([g if g is None or isinstance(g, Tensor) else make_tensor(g) for g in grads])


def as_given(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the results of hooks in the task's form: as arrays, or as tensors where recorded."""
    recorded = local.task.gradients.recorded
    return tuple([t if t is None or recorded else t._data for t in tensors])


class MissingGradFunction(OpExprGradFunction):
    """The gradient function of an op without one; taking a gradient raises.

    It stands in the graph, because a forward pass may run such an op.
    """

    def __init__(self, op: OpExpr) -> None:
        self.node_name = f"{op.op_type_name}_backward"
        self.op_type_name = op.op_type_name
        self.savers = [None] * 4

    def apply(self, F: Any, state: AutoGradCaptureState, out_grads: tuple[Any, ...]) -> Any:
        """Raise, where zeros would be a wrong gradient."""
        name, schema = self.op_type_name, op_expr(self.op_type_name).schema
        one = len(schema.inputs) == 1 and schema.variadic is None
        raise NotDifferentiableError(
            f"{name}: no gradient function is registered, so its gradient cannot be taken; "
            "detach() the input, or add the rule that returns "
            f"{'the gradient of its input' if one else 'a gradient or None for each input'}:\n"
            f"    @flow.register_grad_func({name!r}, saves={', '.join(schema.inputs)!r})\n"
            f"    def {name}_grad(F, ctx, dy): ..."
        )


def register_grad_func(
    op_type_name: str,
    *,
    wrt: str | None = None,
    saves: str | Sequence[str] = "",
    materialize: bool = True,
) -> Callable[[Any], Any]:
    """Register how the gradient of an op is taken.

    Decorates a function `(F, ctx, *out_grads)` or a subclass of `OpExprGradFunction`.

    Parameters
    ----------
    op_type_name : str
        Name of the op.
    wrt : str, optional
        The kernel's array parameter whose gradient the function returns. Without it the function
        returns the gradients of all inputs, as a tuple when there are several.
    saves : str or sequence of str
        Values for `ctx`: `"x"` (array parameters of the kernel), `"y"` or `"out"` (the output),
        `"y0, y1"` (outputs), `"x.shape"` and `"x.dtype"` (as `ctx.x_shape`, `ctx.x_dtype`),
        `"x.edge"` (as `ctx.x_edge`, the place of x in the graph). It has the attributes of the
        call in any case.
    materialize : bool
        Whether a missing gradient of an output arrives as zeros (else as None).

    Raises
    ------
    RegistrationError
        When the op has a rule already, or a name is unknown.
    """

    names = saves if isinstance(saves, str) else ", ".join(saves)

    def decorator(target: Any) -> Any:
        entry = GRAD_FUNCS.find(op_type_name, known_only=True)
        if isinstance(target, type):
            if not issubclass(target, OpExprGradFunction):
                raise RegistrationError(
                    f"gradient function {op_type_name!r}: a class must derive from "
                    "OpExprGradFunction"
                )
            if runs_again(type(entry), target):
                GRAD_FUNCS.remove(op_type_name)
            GRAD_FUNCS.add(op_type_name, target())
        elif entry is None or isinstance(entry, DeclaredGradFunction):
            rules = entry or DeclaredGradFunction(op_type_name)
            rules.add(wrt, target, names, materialize)
            kernel = KERNELS.peek(op_type_name)
            if kernel is not None and not is_ours(target):
                try:
                    rules.check(kernel.schema)
                except RegistrationError:
                    rules.discard(wrt)
                    raise
            if entry is None:
                GRAD_FUNCS.add(op_type_name, rules)
        else:
            raise RegistrationError(
                f"gradient function {op_type_name!r} is registered already; choose another name"
            )
        op_expr(op_type_name).grad_function = None  # looked up anew, in case the op was used before
        return target

    return decorator
