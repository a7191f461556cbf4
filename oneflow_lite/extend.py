"""`register_op`: an op of one's own from its kernel, in one decorator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from oneflow_lite.autograd.grad_function import register_grad_func
from oneflow_lite.dtype import SCALAR_TYPES
from oneflow_lite.errors import ArgumentTypeError, bad_argument
from oneflow_lite.interpreter import dispatch, dispatch2, promote
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import KERNELS, InferRule, register_functor, register_kernel
from oneflow_lite.tensor import Tensor, make_tensor, to_array


class Op:
    """A functor made from a kernel: call it with tensors; `.grad` registers its gradient."""

    def __init__(self, op: OpExpr, kernel: Callable[..., Any]) -> None:
        self.op_expr = op
        self.__doc__ = kernel.__doc__
        self.__name__ = op.op_type_name
        parameters = list(inspect.signature(kernel).parameters.values())[1:]
        self._optional = {p.name for p in parameters if p.default is None}
        self._defaults = {
            n: v for n, v in op.schema.attrs.items() if v is not inspect.Parameter.empty
        }

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Run the op: lists, arrays and numbers become tensors, and operands meet in one dtype.

        Two operands are promoted as those of `add`. Among more of them, those of integers and bools
        stay what they are, for they may be indices or masks.
        """
        schema = self.op_expr.schema
        names = schema.inputs
        if len(inputs) > len(names) and schema.variadic is None:
            raise bad_argument(
                ArgumentTypeError,
                self.__name__,
                "inputs",
                expected=f"at most {len(names)} tensors ({', '.join(names)})",
                got=len(inputs),
                mend="pass attributes by keyword",
            )
        given = list(inputs)
        for name in names[len(inputs) :]:
            if name in attrs:
                given.append(attrs.pop(name))
            elif name in self._optional:
                given.append(None)
            else:
                raise bad_argument(
                    ArgumentTypeError,
                    self.__name__,
                    name,
                    expected="a Tensor",
                    got="nothing",
                    mend=f"pass all of {', '.join(names)}",
                )
        values = [self._tensor(value) for value in given]
        attrs = {**self._defaults, **attrs}
        if len(values) == 2 and not schema.mutates and all(v is not None for v in values):
            return dispatch2(self.op_expr, values[0], values[1], attrs)
        return dispatch(self.op_expr, self._promoted(values), attrs)

    def _tensor(self, value: Any) -> Any:
        """Make a tensor of a list or an array; None, tensors and numbers are handed on."""
        if value is None or isinstance(value, (Tensor, *SCALAR_TYPES)):
            return value
        return make_tensor(to_array(self.__name__, value))

    def _promoted(self, values: list[Any]) -> tuple[Any, ...]:
        """Make tensors of numbers, and bring floating operands to one dtype."""
        writes = bool(self.op_expr.schema.mutates)  # a cast would be a copy, and the write lost
        meet = []
        for i, value in enumerate(values):
            if not isinstance(value, Tensor):
                meets = value is not None
            else:
                meets = value.dtype.kind in "fc" and not writes
            if meets:
                meet.append(i)
        if len(meet) > 1 or (meet and not isinstance(values[meet[0]], Tensor)):
            promoted = promote(self.__name__, *[values[i] for i in meet])
            for i, value in zip(meet, promoted, strict=True):
                values[i] = value
        return tuple(values)

    def grad(
        self, *, saves: str = "", wrt: str | None = None, materialize: bool = True
    ) -> Callable[[Any], Any]:
        """Register the gradient of this op; see `register_grad_func`."""
        return register_grad_func(
            self.op_expr.op_type_name, wrt=wrt, saves=saves, materialize=materialize
        )

    def __repr__(self) -> str:
        return f"<op {self.__name__}>"


def register_op(
    name: str,
    *,
    device: str | None = None,
    mutates: str | tuple[str, ...] = (),
    view_of: str | None = None,
    infer: InferRule | None = None,
    random: bool = False,
) -> Callable[[Callable[..., Any]], Op]:
    """Register a kernel and get its functor: eager, both devices, any-order autograd.

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

    def decorator(kernel: Callable[..., Any]) -> Op:
        new = name not in KERNELS
        register_kernel(
            name, device=device, mutates=mutates, view_of=view_of, infer=infer, random=random
        )(kernel)
        op = Op(op_expr(name), kernel)
        try:
            register_functor(name)(op)
        except Exception:
            if new:  # a name that is a functor's already leaves no kernel behind
                KERNELS.remove(name)
            raise
        return op

    return decorator
