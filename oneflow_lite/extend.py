"""`register_op`: a decorator that makes a user's kernel an op."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from oneflow_lite.arrays.dtype import SCALAR_TYPES
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.functors.declaring.declare import Declaration, declare
from oneflow_lite.functors.declaring.domains import Domain
from oneflow_lite.interpreter.dispatch import dispatch, promote
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import KERNELS, InferRule, SbpRule, Schema, register_kernel
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


_ALONE = Domain(
    "Tensor, array, list or number.",
    "{x} = as_tensor(NAME, {x})",
    "type({x}) is Tensor",
    uses=(as_tensor,),
    tensor="one",
    sample="x(2, 3)",
)
_OPERAND = Domain(
    "Tensor, array, list or number; two meet in one dtype.",
    "{x} = as_input(NAME, {x})",
    "type({x}) is Tensor",
    uses=(as_input,),
    tensor="operand",
    sample="x(2, 3)",
)


def _dispatch_any(op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Dispatch with any number of inputs, some of which may be None.

    Floating operands meet in one dtype; integers and bools keep their own, for they may be indices
    or masks.
    """
    name = op.op_type_name
    values = [as_input(name, value) for value in inputs]
    writes = bool(op.schema.mutates)  # a cast would be a copy, and the write lost
    meet = [
        i
        for i, value in enumerate(values)
        if value is not None
        and (not isinstance(value, Tensor) or (value.dtype.kind in "fc" and not writes))
    ]
    if len(meet) > 1 or (meet and not isinstance(values[meet[0]], Tensor)):
        promoted = promote(name, *[values[i] for i in meet])
        for i, value in zip(meet, promoted, strict=True):
            values[i] = value
    return dispatch(op, tuple(values), attrs)


def _author(name: str, kernel: Callable[..., Any], schema: Schema) -> Callable[..., Any]:
    """Return a function with the signature that a functor's author would write for a kernel."""
    parameters = list(inspect.signature(kernel).parameters.values())[1:]
    inputs = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    attrs = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in schema.attrs]
    plain = len(inputs) <= 2 and not schema.mutates and schema.variadic is None
    plain = plain and all(p.default is p.empty for p in inputs)
    listed = [p.name + ("=0" if p.default is not p.empty else "") for p in inputs]
    if schema.variadic is not None:
        listed[-1] = f"*{listed[-1]}"
    named = [p.name + ("=0" if p.default is not p.empty else "") for p in attrs]
    star = ["*"] if named and schema.variadic is None else []
    body = "'plain'"
    if not plain:
        given = "".join(f"{text.partition('=')[0]}, " for text in listed)
        body = f"return CALL(({given}), {{{', '.join(f'{p.name!r}: {p.name}' for p in attrs)}}})"
    writer = FunctionWriter({"CALL": functools.partial(_dispatch_any, op_expr(name))}, [body])
    author = writer.function(f"author({', '.join(listed + star + named)})", "<string>")
    author.__name__ = author.__qualname__ = name
    author.__doc__, author.__module__ = kernel.__doc__, kernel.__module__
    author.__defaults__ = tuple(p.default for p in inputs if p.default is not p.empty) or None
    author.__kwdefaults__ = {p.name: p.default for p in attrs if p.default is not p.empty}
    author.__annotations__ = {p.name: Any for p in attrs} | {"return": Any}
    if plain:
        domain = _ALONE if len(inputs) == 1 else _OPERAND
        author.__annotations__ |= {p.name: _Annotated(domain) for p in inputs}
    else:
        author.__annotations__ |= {p.name: Any for p in inputs}
    return author  # type: ignore[no-any-return]


class _Annotated:
    """An annotation that carries a domain, made at run time."""

    def __init__(self, domain: Domain) -> None:
        self.__metadata__, self.__origin__ = (domain,), Any


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
    **declared: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Register a kernel and get its functor: eager, both devices, any-order autograd.

    Lists, arrays and numbers become tensors, and operands meet in one dtype. The named options are
    as in `register_kernel`; `sbp` and `linear` say how parts of global tensors go through the op
    (`ops/sbp_rules.py`). Further options are as in a declaration (`functors/declaring/declare.py`):
    `out=True`, `twin=True`, `samples=...`.

    Returns
    -------
    decorator
        It returns the functor, a function with the kernel's parameters. `functor.grad` registers
        its gradient, with the arguments of `register_grad_func`; `functor.op_expr` is the op.

    Raises
    ------
    RegistrationError
        When the name is taken.

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

    def decorator(kernel: Callable[..., Any]) -> Any:
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
        )(kernel)
        op = op_expr(name)
        try:
            functor: Any = declare(Declaration(_author(name, kernel, op.schema), **declared))
        except Exception:
            if new:  # when a functor has the name already, no kernel stays behind
                KERNELS.remove(name)
            raise
        functor.op_expr = op
        functor.grad = functools.partial(register_grad_func, name)
        return functor

    return decorator
