"""Comparisons: what users call. The results carry no gradient."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

from oneflow_lite.errors import DTypeError
from oneflow_lite.functors.checks import check_number, real, wrong
from oneflow_lite.functors.declare import binary, functor, unary
from oneflow_lite.functors.domains import AnyTensor, Flag, NonNegative, Operand, Real
from oneflow_lite.functors.operands import mixed_pair
from oneflow_lite.interpreter import dispatch2
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor


def _ordered(op: str, input: Any, other: Any) -> tuple[Any, Any]:
    """Refuse complex numbers, which have no order."""
    for argument, value in (("input", input), ("other", other)):
        if isinstance(value, Tensor):
            real(op, value, argument)
        elif isinstance(value, complex):
            check_number(op, argument, value)
    return input, other


Tol = NonNegative  # a tolerance
Ordered = Annotated[Any, mixed_pair(_ordered, "Real", "When an argument is complex.", "fiub")]
_PAIRS = "x(2, 3), x(2, 3); x(2, 3), x(3); x(2, 3), 0.5"
_pair = functools.partial(binary, domain=Ordered, twin=True, samples=_PAIRS)
_one = functools.partial(unary, domain=AnyTensor, out=False)

eq = _pair(
    "eq",
    "Return where two tensors are equal, as bools. nan equals nothing.",
    "[1, 2, 3] & [2, 2, 2] -> tensor([False,  True, False])",
    domain=Operand,
)
ne = _pair("ne", "Return where `eq` does not hold, as bools.", domain=Operand, alias="not_equal")
lt = _pair("lt", "Return where `input` is less than `other`, as bools.", alias="less")
le = _pair("le", "Return where `input` is at most `other`, as bools.", alias="less_equal")
gt = _pair("gt", "Return where `input` is greater than `other`, as bools.", alias="greater")
ge = _pair("ge", "Return where `input` is at least `other`, as bools.", alias="greater_equal")
isnan = _one("isnan", "Return where an element is nan, as bools.")
isinf = _one("isinf", "Return where an element is inf or -inf, as bools.")
isfinite = _one("isfinite", "Return where an element is neither inf, -inf nor nan, as bools.")
signbit = unary(
    "signbit", "Return where an element has a minus sign, also -0.0, as bools.", domain=Real
)


@functor("flow Tensor", out=True)
def isposinf(input: Real) -> Tensor:
    """Return where an element is inf, as bools."""
    return eq(input, math.inf)


@functor("flow Tensor", out=True)
def isneginf(input: Real) -> Tensor:
    """Return where an element is -inf, as bools."""
    return eq(input, -math.inf)


@functor("flow Tensor")
def isreal(input: AnyTensor) -> Tensor:
    """Return where an element has no imaginary part, as bools."""
    return input.imag.logical_not() if input.is_complex() else eq(input, input) | isnan(input)


def _close(op: str, input: Tensor, other: Tensor, **attrs: Any) -> Tensor:
    if other.dtype == input.dtype:
        return dispatch2(op_expr(op), input, other, attrs)
    expected, mend = f"dtype {input.dtype}, that of 'input'", "convert one of them with .to(dtype)"
    raise wrong(op, "other", expected, other.dtype, mend, DTypeError)


@functor("flow Tensor", samples="x(2, 3), x(2, 3); x(2, 3), x(3), 0.1, 0.5")
def isclose(
    input: AnyTensor, other: AnyTensor, rtol: Tol = 1e-5, atol: Tol = 1e-8, equal_nan: Flag = False
) -> Tensor:
    """Return where the distance of two tensors is at most atol + rtol times the size of `other`.

    input, other: of one dtype, and of shapes that broadcast together.
    equal_nan: whether nan is close to nan.
    DTypeError: when the dtypes differ.
    ShapeError: when the shapes do not broadcast.

    >>> flow.isclose(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    return _close("isclose", input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@functor("flow Tensor")
def allclose(
    input: AnyTensor, other: AnyTensor, rtol: Tol = 1e-5, atol: Tol = 1e-8, equal_nan: Flag = False
) -> bool:
    """Return whether `isclose` holds for every element, as a Python bool.

    DTypeError: when the dtypes differ.
    ShapeError: when the shapes do not broadcast.
    """
    return bool(_close("allclose", input, other, rtol=rtol, atol=atol, equal_nan=equal_nan))


@functor("flow Tensor")
def equal(input: AnyTensor, other: AnyTensor) -> bool:
    """Return whether two tensors have one shape and equal elements; with nan they do not."""
    return input.shape == other.shape and bool(dispatch2(op_expr("equal"), input, other))
