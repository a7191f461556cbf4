"""Arithmetic: sums, products, powers, rounding, extremes; operands broadcast and are promoted."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_tensor, floating, require_floating
from oneflow_lite.functors.elementwise_checks import real
from oneflow_lite.functors.operands import (
    NUMBERS,
    REAL_NUMBERS,
    check_operands,
    is_bool,
    is_integer,
    real_operand,
)
from oneflow_lite.interpreter import dispatch, dispatch1, dispatch2, promote
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor, make_tensor

_ADD = op_expr("add")
_SUB = op_expr("sub")
_MUL = op_expr("mul")
_DIV = op_expr("div")
_FLOOR_DIVIDE = op_expr("floor_divide")
_DIV_TRUNC = op_expr("div_trunc")
_POW = op_expr("pow")
_POW_INTEGER = op_expr("pow_integer")
_NEG = op_expr("neg")
_ABS = op_expr("abs")
_SIGN = op_expr("sign")
_SQUARE = op_expr("square")
_SQRT = op_expr("sqrt")
_RSQRT = op_expr("rsqrt")
_RECIPROCAL = op_expr("reciprocal")
_FLOOR = op_expr("floor")
_CEIL = op_expr("ceil")
_TRUNC = op_expr("trunc")
_FRAC = op_expr("frac")
_ROUND = op_expr("round")
_FMOD = op_expr("fmod")
_REMAINDER = op_expr("remainder")
_MAXIMUM = op_expr("maximum")
_MINIMUM = op_expr("minimum")
_CLAMP_MIN = op_expr("clamp_min")
_CLAMP_MAX = op_expr("clamp_max")
_WHERE = op_expr("where")
_LERP = op_expr("lerp")
_NAN_TO_NUM = op_expr("nan_to_num")
_CONJ = op_expr("conj")
_ANGLE = op_expr("angle")
_COMPLEX = op_expr("complex")
_CLONE = op_expr("clone")


def _scaled(op: str, argument: str, value: Tensor, factor: Any) -> Tensor:
    """Return value * factor in the dtype of the value, into which the factor has to fit."""
    kind = value._data.dtype.kind
    fits = {"c": NUMBERS, "f": REAL_NUMBERS}.get(kind, (int, np.integer, np.bool_))
    if not isinstance(factor, fits):
        raise bad_argument(
            ArgumentError if isinstance(factor, NUMBERS) else ArgumentTypeError,
            op,
            argument,
            expected=f"a number that fits dtype {value.dtype}",
            got=repr(factor),
            mend="convert the tensors first, as with .float()",
        )
    return mul(value, bool(factor) if kind == "b" else factor)


@register_functor("add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return input + alpha * other.

    >>> import oneflow_lite as flow
    >>> flow.add(flow.tensor([1, 2]), 10, alpha=2)
    tensor([21, 22])
    """
    if alpha != 1:
        input, other = promote("add", input, other)
        other = _scaled("add", "alpha", other, alpha)
    return dispatch2(_ADD, input, other)


@register_functor("sub")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return input - alpha * other."""
    if is_bool(other) or is_bool(input):
        raise bad_argument(
            DTypeError,
            "sub",
            "other" if is_bool(other) else "input",
            expected="numbers",
            got="bool",
            mend="use logical_not(), ^ or logical_xor()",
        )
    if alpha != 1:
        input, other = promote("sub", input, other)
        other = _scaled("sub", "alpha", other, alpha)
    return dispatch2(_SUB, input, other)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return other - alpha * input."""
    return sub(other, input, alpha=alpha)


@register_functor("mul")
def mul(input: Any, other: Any) -> Tensor:
    """Return input * other."""
    return dispatch2(_MUL, input, other)


def _whole_quotient(name: str, op: OpExpr, input: Any, other: Any) -> Tensor:
    """Dispatch a division that rounds, or its remainder: for real numbers, not for two bools."""
    x, y = real_operand(name, input, "input"), real_operand(name, other, "other")
    if is_bool(x) and is_bool(y):
        raise bad_argument(
            DTypeError,
            name,
            "other",
            expected="numbers",
            got="two bools",
            mend="convert one of them with .long()",
        )
    return dispatch2(op, x, y)


def _as_float(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = make_tensor(value)
    return floating("div", value) if isinstance(value, Tensor) else float(value)


@register_functor("div")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return input / other; integers divide to floats.

    Parameters
    ----------
    input, other : Tensor or number
    rounding_mode : {None, "trunc", "floor"}
        Round the quotient towards zero, or down; integers then stay integers.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tensor([7, -7]) / 2, flow.div(flow.tensor([7, -7]), 2, rounding_mode="trunc")
    (tensor([ 3.5000, -3.5000]), tensor([ 3, -3]))
    """
    if rounding_mode is None:
        if is_integer(input) and is_integer(other):
            input, other = _as_float(input), _as_float(other)
        return dispatch2(_DIV, input, other)
    if rounding_mode == "floor":
        return _whole_quotient("div", _FLOOR_DIVIDE, input, other)
    if rounding_mode == "trunc":
        return _whole_quotient("div", _DIV_TRUNC, input, other)
    raise bad_argument(
        ArgumentError,
        "div",
        "rounding_mode",
        expected="None, 'trunc' or 'floor'",
        got=repr(rounding_mode),
        mend="pass one of these",
    )


def rdiv(input: Any, other: Any) -> Tensor:
    """Return other / input."""
    return div(other, input)


@register_functor("floor_divide")
def floor_divide(input: Any, other: Any) -> Tensor:
    """Return the quotient rounded down; an integer divided by 0 raises."""
    return _whole_quotient("floor_divide", _FLOOR_DIVIDE, input, other)


def rfloor_divide(input: Any, other: Any) -> Tensor:
    """Return other // input."""
    return floor_divide(other, input)


@register_functor("pow")
def pow(input: Any, exponent: Any) -> Tensor:
    """Return input raised to `exponent`.

    The derivative at input 0 is 0 for exponent 0; with respect to the exponent it is 0 at input 0
    for exponents of at least 0, as in PyTorch.

    >>> import oneflow_lite as flow
    >>> flow.tensor([1.0, 2.0, 3.0]) ** 2
    tensor([1., 4., 9.])
    """
    if type(exponent) is int and exponent == 2 and isinstance(input, Tensor):
        return square(input)
    if not (is_integer(exponent) and is_integer(input)):
        return dispatch2(_POW, input, exponent)
    if isinstance(exponent, (int, np.integer)) and exponent < 0:
        raise bad_argument(
            ArgumentError,
            "pow",
            "exponent",
            expected="at least 0 for integers",
            got=exponent,
            mend="convert the tensor with .float()",
        )
    return dispatch2(_POW_INTEGER, input, exponent)


def rpow(input: Any, other: Any) -> Tensor:
    """Return `other` raised to input."""
    return pow(other, input)


@register_functor("neg")
def neg(input: Tensor) -> Tensor:
    """Return -input."""
    if check_tensor("neg", "input", input)._data.dtype.kind == "b":
        raise bad_argument(
            DTypeError, "neg", "input", expected="numbers", got="bool", mend="use logical_not()"
        )
    return dispatch1(_NEG, input)


@register_functor("positive")
def positive(input: Tensor) -> Tensor:
    """Return the tensor itself."""
    if is_bool(check_tensor("positive", "input", input)):
        raise bad_argument(
            DTypeError, "positive", "input", expected="numbers", got="bool", mend="use .long()"
        )
    return input


@register_functor("abs")
def abs(input: Tensor) -> Tensor:
    """Return the absolute value; its derivative at 0 is 0."""
    return dispatch1(_ABS, input)


@register_functor("sign")
def sign(input: Tensor) -> Tensor:
    """Return -1, 0 or 1 by the sign; for complex numbers z / abs(z), 0 for 0. NaN stays NaN."""
    if check_tensor("sign", "input", input)._data.dtype.kind == "b":
        return dispatch1(_CLONE, input)
    return dispatch1(_SIGN, input)


@register_functor("square")
def square(input: Tensor) -> Tensor:
    """Return input * input."""
    if is_bool(input):
        return dispatch2(_POW_INTEGER, input, 2)
    return dispatch1(_SQUARE, input)


@register_functor("sqrt")
def sqrt(input: Tensor) -> Tensor:
    """Return the square root; its derivative at 0 is infinite, as in PyTorch."""
    return dispatch1(_SQRT, floating("sqrt", input))


@register_functor("rsqrt")
def rsqrt(input: Tensor) -> Tensor:
    """Return 1 / sqrt(input)."""
    return dispatch1(_RSQRT, floating("rsqrt", input))


@register_functor("reciprocal")
def reciprocal(input: Tensor) -> Tensor:
    """Return 1 / input."""
    return dispatch1(_RECIPROCAL, floating("reciprocal", input))


@register_functor("floor")
def floor(input: Tensor) -> Tensor:
    """Return the largest whole number not above each element; the derivative is 0."""
    return dispatch1(_FLOOR, real("floor", input))


@register_functor("ceil")
def ceil(input: Tensor) -> Tensor:
    """Return the smallest whole number not below each element; the derivative is 0."""
    return dispatch1(_CEIL, real("ceil", input))


@register_functor("trunc")
def trunc(input: Tensor) -> Tensor:
    """Return the elements without their fractions; the derivative is 0."""
    return dispatch1(_TRUNC, real("trunc", input))


@register_functor("frac")
def frac(input: Tensor) -> Tensor:
    """Return the fractions, with the sign of the elements; the derivative is 1."""
    return dispatch1(_FRAC, require_floating("frac", real("frac", input)))


@register_functor("round")
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return the elements rounded, halves to even; the derivative is 0."""
    attrs = {"decimals": check_int("round", "decimals", decimals)}
    return dispatch1(_ROUND, real("round", input), attrs)


@register_functor("fmod")
def fmod(input: Any, other: Any) -> Tensor:
    """Return the remainder with the sign of `input`."""
    return _whole_quotient("fmod", _FMOD, input, other)


@register_functor("remainder")
def remainder(input: Any, other: Any) -> Tensor:
    """Return the remainder with the sign of `other`."""
    return _whole_quotient("remainder", _REMAINDER, input, other)


def rremainder(input: Any, other: Any) -> Tensor:
    """Return other % input."""
    return remainder(other, input)


@register_functor("maximum")
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of two elements; equal ones share the gradient."""
    return dispatch2(_MAXIMUM, real("maximum", input), real("maximum", other, "other"))


@register_functor("minimum")
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of two elements; equal ones share the gradient."""
    return dispatch2(_MINIMUM, real("minimum", input), real("minimum", other, "other"))


def _clamped(op: str, argument: str, input: Tensor, bound: Any) -> Tensor:
    clamp = _CLAMP_MIN if argument == "min" else _CLAMP_MAX
    return dispatch2(clamp, real(op, input), real_operand(op, bound, argument))


@register_functor("clamp_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Return the elements, raised to `min` where they are below; at `min` the derivative is 1."""
    return _clamped("clamp_min", "min", input, min)


@register_functor("clamp_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Return the elements, lowered to `max` where they are above; at `max` the derivative is 1."""
    return _clamped("clamp_max", "max", input, max)


@register_functor("clamp")
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return the elements brought into [min, max]; at the bounds the derivative is 1.

    >>> import oneflow_lite as flow
    >>> flow.clamp(flow.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    check_tensor("clamp", "input", input)
    if min is None and max is None:
        raise bad_argument(
            ArgumentError,
            "clamp",
            "min",
            expected="min, max or both",
            got="neither",
            mend="give at least one bound",
        )
    result = input if min is None else _clamped("clamp", "min", input, min)
    return result if max is None else _clamped("clamp", "max", result, max)


@register_functor("where")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Return elements of `input` where the condition holds, of `other` elsewhere.

    With the condition alone, return the indices of its true elements, one tensor per dimension.
    """
    check_tensor("where", "condition", condition)
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition._data.dtype.kind != "b":
        raise bad_argument(
            DTypeError,
            "where",
            "condition",
            expected="a bool tensor",
            got=condition.dtype,
            mend="compare, or convert it with .bool()",
        )
    check_operands("where", condition=condition, input=input, other=other)
    x, y = promote("where", input, other)
    return dispatch(_WHERE, (condition, x, y))


@register_functor("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Return input + weight * (end - input)."""
    check_operands("lerp", input=input, end=end, weight=weight)
    return dispatch(_LERP, tuple(promote("lerp", floating("lerp", input), end, weight)))


@register_functor("addcmul")
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2."""
    check_operands("addcmul", input=input, tensor1=tensor1, tensor2=tensor2)
    x, first, second = promote("addcmul", input, tensor1, tensor2)
    product = mul(first, second)
    return add(x, product if value == 1 else _scaled("addcmul", "value", product, value))


@register_functor("addcdiv")
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2; two integer tensors raise, as in PyTorch."""
    check_operands("addcdiv", input=input, tensor1=tensor1, tensor2=tensor2)
    if is_integer(tensor1) and is_integer(tensor2):
        raise bad_argument(
            DTypeError,
            "addcdiv",
            "tensor2",
            expected="a floating point dtype where tensor1 holds integers",
            got="integers",
            mend="convert one of them with .float()",
        )
    x, first, second = promote("addcdiv", input, tensor1, tensor2)
    quotient = div(first, second)
    return add(x, quotient if value == 1 else _scaled("addcdiv", "value", quotient, value))


@register_functor("nan_to_num")
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Return the elements with NaN and the infinities replaced; the derivative there is 0."""
    if check_tensor("nan_to_num", "input", input)._data.dtype.kind not in "fc":
        return dispatch1(_CLONE, input)
    limits = np.finfo(input.dtype)
    attrs = {
        "nan": 0.0 if nan is None else nan,
        "posinf": float(limits.max) if posinf is None else posinf,
        "neginf": float(limits.min) if neginf is None else neginf,
    }
    return dispatch1(_NAN_TO_NUM, input, attrs)


@register_functor("conj")
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate; a real tensor is returned as it is."""
    return dispatch1(_CONJ, input) if check_tensor("conj", "input", input).is_complex() else input


@register_functor("angle")
def angle(input: Tensor) -> Tensor:
    """Return the argument of complex numbers, in radians; 0 or pi for real ones."""
    return dispatch1(_ANGLE, floating("angle", input))


@register_functor("complex")
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex tensor with these parts."""
    for argument, part in (("real", real), ("imag", imag)):
        if check_tensor("complex", argument, part)._data.dtype.char not in "fd":
            raise bad_argument(
                DTypeError,
                "complex",
                argument,
                expected="float32 or float64",
                got=part.dtype,
                mend="convert it with .float()",
            )
    if real.dtype is not imag.dtype:
        raise bad_argument(
            DTypeError,
            "complex",
            "imag",
            expected=f"{real.dtype}, the dtype of real",
            got=imag.dtype,
            mend="convert one of them",
        )
    return dispatch2(_COMPLEX, real, imag)
