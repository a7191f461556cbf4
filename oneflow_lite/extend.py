"""`register_op`: a decorator that makes a user's kernel an op."""

from __future__ import annotations

import functools
import inspect
import linecache
from collections.abc import Callable
from keyword import iskeyword
from typing import Any

from oneflow_lite.arrays.dtype import SCALAR_TYPES
from oneflow_lite.autograd.rules.forward_rules import FORWARD_RULES, register_push
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.errors import RegistrationError, type_error
from oneflow_lite.functors.declaring.declare import Declaration, declare, withdraw
from oneflow_lite.functors.declaring.domains import Domain
from oneflow_lite.interpreter.dispatch import dispatch, dispatch2, promote
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import (
    GRAD_FUNCS,
    KERNELS,
    WAYS_OVER_BATCHES,
    BatchRule,
    InferRule,
    SbpRule,
    Schema,
    register_kernel,
    runs_again,
)
from oneflow_lite.tensors.tensor import Tensor, make_tensor, to_array


def as_input(op: str, value: Any) -> Any:
    """Make a tensor of a list or an array; None, tensors and numbers are handed on."""
    if value is None or isinstance(value, (Tensor, *SCALAR_TYPES)):
        return value
    return make_tensor(to_array(op, value))


def as_tensor(op: str, value: Any) -> Tensor:
    """Make a tensor of a list, an array or a number."""
    value = as_input(op, value)
    return value if isinstance(value, Tensor) else promote(op, value)[0]


def as_attribute(op: str, argument: str, value: Any) -> Any:
    """Return the value of an attribute; raise for a tensor, whose gradient would get lost."""
    for part in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(part, Tensor):
            raise type_error(
                op,
                argument,
                "a plain value, because keyword-only parameters of a kernel are attributes",
                part,
                f"pass {argument}.item(), or make it an input: a parameter of the kernel before "
                "the *, whose gradient is taken",
            )
    return value


_INPUT = Domain(
    "Tensor, array, list or number.",
    "{x} = as_tensor(NAME, {x})",
    "type({x}) is Tensor",
    uses=(as_tensor,),
    tensor="one",
    sample="x(2, 3)",
)
_PROMOTED = Domain(
    "Tensor, array, list or number; two meet in one dtype.",
    "{x} = as_input(NAME, {x})",
    "type({x}) is Tensor",
    uses=(as_input,),
    tensor="operand",
    sample="x(2, 3)",
)
_OPERAND = Domain(
    "Tensor, array, list or number; floats meet in one dtype, integers and bools keep theirs.",
    sample="x(2, 3)",
)
_ATTRIBUTE = Domain(
    "A plain value.",
    "{x} = as_attribute(NAME, '{x}', {x})",
    "type({x}) is float or type({x}) is int or {x} is None",
    {"ArgumentTypeError": "When {x} is a tensor."},
    uses=(as_attribute,),
)


def _dispatch_any(
    op: OpExpr, promotes: bool, inputs: tuple[Any, ...], attrs: dict[str, Any]
) -> Any:
    """Dispatch with any number of inputs, some of which may be None.

    Floats meet in one dtype, which numbers take. Integers and bools keep their own, for they may
    be indices or masks.
    """
    name, dtypes = op.op_type_name, set()
    for value in inputs:
        if type(value) is Tensor:
            dtypes.add(value._data.dtype)
        elif value is not None:
            break
    else:
        if len(dtypes) < 2:
            return dispatch(op, inputs, attrs)
    values = [as_input(name, value) for value in inputs]
    writes = bool(op.schema.mutates)  # a cast would be a copy, and the write lost
    meet = [
        i
        for i, value in enumerate(values)
        if value is not None
        and (
            not isinstance(value, Tensor) or ((promotes or value.dtype.kind in "fc") and not writes)
        )
    ]
    if len(meet) > 1 or (meet and not isinstance(values[meet[0]], Tensor)):
        promoted = promote(name, *[values[i] for i in meet])
        for i, value in zip(meet, promoted, strict=True):
            values[i] = value
    return dispatch(op, tuple(values), attrs)


def _author(
    name: str, kernel: Callable[..., Any], schema: Schema, promotes: bool
) -> Callable[..., Any]:
    """Return a function with the signature that a functor's author would write for a kernel."""
    parameters = list(inspect.signature(kernel).parameters.values())[1:]
    inputs = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    attrs = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in schema.attrs]
    usual = not schema.mutates and schema.variadic is None
    usual = usual and all(p.default is p.empty for p in inputs)
    plain = usual and len(inputs) <= (2 if promotes else 1)
    listed = [p.name + ("=0" if p.default is not p.empty else "") for p in inputs]
    if schema.variadic is not None:
        listed[-1] = f"*{listed[-1]}"
    named = [p.name + ("=0" if p.default is not p.empty else "") for p in attrs]
    star = ["*"] if named and schema.variadic is None else []
    body = ["'plain'"]
    if not plain:
        given = ", ".join(text.partition("=")[0] for text in listed)
        values = f"{{{', '.join(f'{p.name!r}: {p.name}' for p in attrs)}}}"
        body = [f"return CALL(({given}{',' if given else ''}), {values})"]
        if usual and len(inputs) == 2:
            x, y = (p.name for p in inputs)
            alike = f"type({x}) is type({y}) is Tensor and {x}._data.dtype is {y}._data.dtype"
            body.insert(0, f"if {alike}: return dispatch2(OP, {x}, {y}, {values})")
    op = op_expr(name)
    # The name makes a warning skip this frame: the line that called the op is meant.
    scope = {"CALL": functools.partial(_dispatch_any, op, promotes), "__name__": __name__}
    writer = FunctionWriter({"OP": op, "Tensor": Tensor, "dispatch2": dispatch2} | scope, body)
    file = f"<op {name}>"  # `static/ir/location.py` passes it over
    author = writer.function(f"{name}({', '.join(listed + star + named)})", file)
    text = writer.source
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    author.__doc__ = kernel.__doc__
    author.__module__ = getattr(kernel, "__module__", None) or __name__
    author.__defaults__ = tuple(p.default for p in inputs if p.default is not p.empty) or None
    author.__kwdefaults__ = {p.name: p.default for p in attrs if p.default is not p.empty}
    domain = _OPERAND if not plain else _INPUT if len(inputs) == 1 else _PROMOTED
    author.__annotations__ = {p.name: _Annotated(domain) for p in inputs}
    author.__annotations__ |= {p.name: _Annotated(_ATTRIBUTE) for p in attrs} | {"return": Any}
    return author  # type: ignore[no-any-return]


class _Annotated:
    """An annotation that carries a domain, made at run time."""

    def __init__(self, domain: Domain) -> None:
        self.__metadata__, self.__origin__ = (domain,), Any


def _grad(op_type_name: str, rule: Any = None, /, **options: Any) -> Any:
    """Register a gradient of an op; as a decorator with or without parentheses."""
    decorator = register_grad_func(op_type_name, **options)
    return decorator if rule is None else decorator(rule)


def _decorator(
    register: Callable[[str, Callable[..., Any]], Any], op_type_name: str, rule: Any = None, /
) -> Any:
    """Register a rule of an op; as a decorator with or without parentheses."""

    def decorator(rule: Callable[..., Any]) -> Callable[..., Any]:
        register(op_type_name, rule)
        return rule

    return decorator if rule is None else decorator(rule)


def _batch(op_type_name: str, rule: Callable[..., Any]) -> None:
    """Register how an op goes over a batch."""
    schema: Any = KERNELS.get(op_type_name).schema
    if schema.batch is not None and not runs_again(schema.batch, rule):
        raise RegistrationError(
            f"{op_type_name!r} has a way over a batch already; leave out register_op(batch=...), "
            "or this rule"
        )
    schema.batch = rule
    KERNELS.changed(op_type_name)


def _jvp(op_type_name: str, rule: Callable[..., Any]) -> None:
    """Register how tangents go through an op."""
    register_push(op_type_name)(rule)


def forget_op(name: str) -> None:
    """Take an op, its functor and its rules out of the registries, and off Tensor."""
    withdraw(name)
    for registry in (KERNELS, GRAD_FUNCS):
        registry.remove(name)
    FORWARD_RULES.pop(name, None)


def register_op(
    name: str,
    *,
    device: str | None = None,
    mutates: str | tuple[str, ...] = (),
    view_of: str | None = None,
    infer: InferRule | None = None,
    random: bool = False,
    sbp: SbpRule = None,
    linear: str | None = None,
    batch: BatchRule = None,
    promotes: bool = False,
    **declared: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Register a kernel and get its functor: eager, both devices, any-order autograd.

    Lists, arrays and numbers become tensors. Floating inputs meet in one dtype, integers and bools
    keep their own. The named options are as in `register_kernel`; `sbp` and `linear` say how parts
    of global tensors go through the op (`ops/sbp_rules.py`). Further options are as in a
    declaration (`functors/declaring/declare.py`): `out=True`, `twin=True`, `on="Tensor"`,
    `samples=...`.

    A kernel is watched: a write to an input that `mutates` does not name raises, an output that
    shares memory with an input that `view_of` does not name is copied with a warning.

    Parameters
    ----------
    batch : str, optional
        How `vmap` runs the kernel once for a whole batch. "pointwise": it computes each element by
        itself; this follows from `sbp="elementwise"`, too. "front": all its dimensions are named by
        attributes such as `dim`, so a batch may stand in front. "dots": it takes any number of
        leading dimensions, as `matmul` does. "fold": a dimension that `sbp` may split takes the
        batch in. "loop": it is called for each entry; without a declaration this gives a warning.
        "refuse": it raises. For any other way `functor.batch` registers a rule.
    promotes : bool
        Integers and bools meet the floats in one dtype, too, as the operands of `+` do.

    Returns
    -------
    decorator
        It returns the functor, a function with the kernel's parameters. `functor.grad` registers
        its gradient, with the arguments of `register_grad_func`; `functor.op_expr` is the op.
        `functor.batch` registers `rule(call, *values, **attrs)` for `vmap`: the values have the
        batch in front where `call.batched` says so, and `call.F` has the ops to compute with.
        `functor.jvp` registers `rule(F, ctx, *tangents)` for forward mode: tangents are None where
        they are zero, and `ctx` has the inputs, the output `y` and the attributes. Without it
        tangents follow from the gradient.

    Raises
    ------
    RegistrationError
        When the name is taken, or the kernel's parameters do not fit. Only a cell of a notebook
        that runs again, or a line typed again, replaces an op of its own.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> @flow.register_op("doc_cube")
    ... def cube(xp, x):
    ...     return x * x * x
    >>> @cube.grad(saves="x")
    ... def cube_grad(F, ctx, dy):
    ...     return dy * 3 * ctx.x ** 2
    >>> x = flow.tensor(2.0, requires_grad=True)
    >>> flow.autograd.grad(cube(x), x)
    (tensor(12.),)
    """
    chosen: Any = name
    if not (isinstance(chosen, str) and chosen.isidentifier()) or iskeyword(chosen):
        own = getattr(name, "__name__", None)
        got = f"the function {own}" if own else repr(name)
        raise RegistrationError(
            f"register_op() takes the op's name, an identifier, got {got}; write "
            f"@flow.register_op({own or 'my_op'!r})"
        )

    if isinstance(batch, str) and batch not in WAYS_OVER_BATCHES:
        raise RegistrationError(
            f"register_op({name!r}): batch is one of {', '.join(map(repr, WAYS_OVER_BATCHES))}, or "
            f"a rule; got {batch!r}"
        )

    def decorator(kernel: Callable[..., Any]) -> Any:
        entry = KERNELS.peek(name)
        if entry is not None and runs_again(next(iter(entry.by_device.values())), kernel):
            forget_op(name)
        new = KERNELS.find(name, known_only=True) is None
        register_kernel(
            name,
            device=device,
            mutates=mutates,
            view_of=view_of,
            infer=infer,
            random=random,
            sbp=sbp,
            linear=linear,
            batch=batch,
        )(kernel)
        op = op_expr(name)
        try:
            functor: Any = declare(
                Declaration(_author(name, kernel, op.schema, promotes), **declared)
            )
        except Exception:
            if new:  # when a functor has the name already, no kernel stays behind
                KERNELS.remove(name)
            raise
        functor.op_expr = op
        functor.grad = functools.partial(_grad, name)
        functor.batch = functools.partial(_decorator, _batch, name)
        functor.jvp = functools.partial(_decorator, _jvp, name)
        return functor

    return decorator
