"""`register_op`: an op of one's own from its kernel, in one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.autograd.grad_function import register_grad_func
from oneflow_lite.errors import ArgumentTypeError, bad_argument
from oneflow_lite.interpreter import dispatch, dispatch2, promote
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import KERNELS, InferRule, register_functor, register_kernel
from oneflow_lite.tensor import Tensor


class Op:
    """A functor made from a kernel: call it with tensors; `.grad` registers its gradient."""

    def __init__(self, op: OpExpr, kernel: Callable[..., Any]) -> None:
        self.op_expr = op
        self.__doc__ = kernel.__doc__
        self.__name__ = op.op_type_name

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Run the op: arrays and scalars become tensors, and dtypes are promoted."""
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
        by_name = tuple(attrs.pop(name) for name in names[len(inputs) :] if name in attrs)
        inputs = (*inputs, *by_name)
        present = [x for x in inputs if x is not None]
        if not all(isinstance(x, Tensor) for x in present):
            promoted = iter(promote(self.__name__, *present))
            inputs = tuple(None if x is None else next(promoted) for x in inputs)
        if len(inputs) == 2 and None not in inputs and not schema.mutates:
            return dispatch2(self.op_expr, inputs[0], inputs[1], attrs)
        return dispatch(self.op_expr, inputs, attrs)

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
