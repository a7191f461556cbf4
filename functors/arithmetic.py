"""Arithmetic: sums, products, powers, rounding, extremes; operands broadcast and are promoted."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.dtype import float16
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_tensor, floating, require_floating
from oneflow_lite.functors.elementwise_checks import real
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.operands import (
    NUMBERS,
    REAL_NUMBERS,
    check_operands,
    is_bool,
    is_integer,
    real_operand,
)
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch, dispatch1, dispatch2, promote, rounded_once
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
_MUL_SCALAR = op_expr("mul_scalar")
_FLOOR = op_expr("floor")
_CEIL = op_expr("ceil")
_TRUNC = op_expr("trunc")
_FRAC = op_expr("frac")
_ROUND = op_expr("round")
_FMOD = op_expr("fmod")
_REMAINDER = op_expr("remainder")
_MAXIMUM = op_expr("maximum")
_MINIMUM = op_expr("minimum")
_CLAMP = op_expr("clamp")
_CLAMP_MIN = op_expr("clamp_min")
_CLAMP_MAX = op_expr("clamp_max")
_WHERE = op_expr("where")
_LERP = op_expr("lerp")
_NAN_TO_NUM = op_expr("nan_to_num")
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
    number = fill_value(op, argument, factor, value._data.dtype)
    return dispatch1(_MUL_SCALAR, value, {"factor": number})


@register_functor("add")
def add(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return input + alpha * other.

    >>> import oneflow_lite as flow
    >>> flow.add(flow.tensor([1, 2]), 10, alpha=2)
    tensor([21, 22])
    """
    if out is not None:
        return write_out("add", out, add, input, other, alpha=alpha)
    if alpha != 1:
        input, other = promote("add", input, other)
        if other._data.dtype is float16:
            fill_value("add", "alpha", alpha, float16)
            return rounded_once(add, input, other, alpha=alpha)
        other = _scaled("add", "alpha", other, alpha)
    return dispatch2(_ADD, input, other)


@register_functor("sub")
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Return input - alpha * other."""
    if out is not None:
        return write_out("sub", out, sub, input, other, alpha=alpha)
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
        if other._data.dtype is float16:
            fill_value("sub", "alpha", alpha, float16)
            return rounded_once(sub, input, other, alpha=alpha)
        other = _scaled("sub", "alpha", other, alpha)
    return dispatch2(_SUB, input, other)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return other - alpha * input."""
    return sub(other, input, alpha=alpha)


@register_functor("mul")
def mul(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return input * other."""
    if out is not None:
        return write_out("mul", out, mul, input, other)
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
def div(
    input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None
) -> Tensor:
    """Return input / other; integers divide to floats.

    Parameters
    ----------
    input, other : Tensor or number
    rounding_mode : {None, "trunc", "floor"}
        Round the quotient towards zero, or down; integers then stay integers.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tensor([7, -7]) / 2, flow.div(flow.tensor([7, -7]), 2, rounding_mode="trunc")
    (tensor([ 3.5000, -3.5000]), tensor([ 3, -3]))
    """
    if out is not None:
        return write_out("div", out, div, input, other, rounding_mode=rounding_mode)
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
def floor_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the quotient rounded down; an integer divided by 0 raises."""
    if out is not None:
        return write_out("floor_divide", out, floor_divide, input, other)
    return _whole_quotient("floor_divide", _FLOOR_DIVIDE, input, other)


def rfloor_divide(input: Any, other: Any) -> Tensor:
    """Return other // input."""
    return floor_divide(other, input)


@register_functor("pow")
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """Return input raised to `exponent`.

    The derivative at input 0 is 0 for exponent 0; with respect to the exponent it is 0 at input 0
    for exponents of at least 0, as in PyTorch.

    >>> import oneflow_lite as flow
    >>> flow.tensor([1.0, 2.0, 3.0]) ** 2
    tensor([1., 4., 9.])
    """
    if out is not None:
        return write_out("pow", out, pow, input, exponent)
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
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return -input."""
    if out is not None:
        return write_out("neg", out, neg, input)
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
def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the absolute value; its derivative at 0 is 0."""
    if out is not None:
        return write_out("abs", out, abs, input)
    return dispatch1(_ABS, input)


@register_functor("sign")
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return -1, 0 or 1 by the sign; NaN stays NaN. Of complex numbers only `sgn` is defined."""
    if out is not None:
        return write_out("sign", out, sign, input)
    return dispatch1(_CLONE if is_bool(real("sign", input)) else _SIGN, input)


@register_functor("square")
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return input * input."""
    if out is not None:
        return write_out("square", out, square, input)
    if is_bool(input):
        return dispatch2(_POW_INTEGER, input, 2)
    return dispatch1(_SQUARE, input)


@register_functor("sqrt")
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the square root; its derivative at 0 is infinite, as in PyTorch."""
    if out is not None:
        return write_out("sqrt", out, sqrt, input)
    return dispatch1(_SQRT, floating("sqrt", input))


@register_functor("rsqrt")
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return 1 / sqrt(input)."""
    if out is not None:
        return write_out("rsqrt", out, rsqrt, input)
    return dispatch1(_RSQRT, floating("rsqrt", input))


@register_functor("reciprocal")
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return 1 / input."""
    if out is not None:
        return write_out("reciprocal", out, reciprocal, input)
    return dispatch1(_RECIPROCAL, floating("reciprocal", input))


@register_functor("floor")
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the largest whole number not above each element; the derivative is 0."""
    if out is not None:
        return write_out("floor", out, floor, input)
    return dispatch1(_FLOOR, real("floor", input))


@register_functor("ceil")
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the smallest whole number not below each element; the derivative is 0."""
    if out is not None:
        return write_out("ceil", out, ceil, input)
    return dispatch1(_CEIL, real("ceil", input))


@register_functor("trunc")
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements without their fractions; the derivative is 0."""
    if out is not None:
        return write_out("trunc", out, trunc, input)
    return dispatch1(_TRUNC, real("trunc", input))


@register_functor("frac")
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the fractions, with the sign of the elements; the derivative is 1."""
    if out is not None:
        return write_out("frac", out, frac, input)
    return dispatch1(_FRAC, require_floating("frac", real("frac", input)))


@register_functor("round")
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Return the elements rounded, halves to even; the derivative is 0."""
    if out is not None:
        return write_out("round", out, round, input, decimals=decimals)
    attrs = {"decimals": check_int("round", "decimals", decimals)}
    return dispatch1(_ROUND, real("round", input), attrs)


@register_functor("fmod")
def fmod(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the remainder with the sign of `input`."""
    if out is not None:
        return write_out("fmod", out, fmod, input, other)
    return _whole_quotient("fmod", _FMOD, input, other)


@register_functor("remainder")
def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the remainder with the sign of `other`."""
    if out is not None:
        return write_out("remainder", out, remainder, input, other)
    return _whole_quotient("remainder", _REMAINDER, input, other)


def rremainder(input: Any, other: Any) -> Tensor:
    """Return other % input."""
    return remainder(other, input)


@register_functor("maximum")
def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the larger of two elements; equal ones share the gradient."""
    if out is not None:
        return write_out("maximum", out, maximum, input, other)
    return dispatch2(_MAXIMUM, real("maximum", input), real("maximum", other, "other"))


@register_functor("minimum")
def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the smaller of two elements; equal ones share the gradient."""
    if out is not None:
        return write_out("minimum", out, minimum, input, other)
    return dispatch2(_MINIMUM, real("minimum", input), real("minimum", other, "other"))


def _clamped(op: str, argument: str, input: Tensor, bound: Any) -> Tensor:
    clamp = _CLAMP_MIN if argument == "min" else _CLAMP_MAX
    return dispatch2(clamp, real(op, input), real_operand(op, bound, argument))


@register_functor("clamp_min")
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the elements, raised to `min` where they are below; at `min` the derivative is 1."""
    if out is not None:
        return write_out("clamp_min", out, clamp_min, input, min)
    return _clamped("clamp_min", "min", input, min)


@register_functor("clamp_max")
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the elements, lowered to `max` where they are above; at `max` the derivative is 1."""
    if out is not None:
        return write_out("clamp_max", out, clamp_max, input, max)
    return _clamped("clamp_max", "max", input, max)


@register_functor("clamp")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Return the elements brought into [min, max]; at the bounds the derivative is 1.

    >>> import oneflow_lite as flow
    >>> flow.clamp(flow.tensor([-2.0, 0.5, 2.0]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if out is not None:
        return write_out("clamp", out, clamp, input, min, max)
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
    if isinstance(min, Tensor) and isinstance(max, Tensor):
        operands = (real("clamp", input), real("clamp", min, "min"), real("clamp", max, "max"))
        check_operands("clamp", input=input, min=min, max=max)
        return dispatch(_CLAMP, tuple(promote("clamp", *operands)))
    result = input if min is None else _clamped("clamp", "min", input, min)
    return result if max is None else _clamped("clamp", "max", result, max)


@register_functor("where")
def where(
    condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None
) -> Any:
    """Return elements of `input` where the condition holds, of `other` elsewhere.

    With the condition alone, return the indices of its true elements, one tensor per dimension.
    """
    if out is not None:
        return write_out("where", out, where, condition, input, other)
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
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """Return input + weight * (end - input)."""
    if out is not None:
        return write_out("lerp", out, lerp, input, end, weight)
    check_operands("lerp", input=input, end=end, weight=weight)
    operands = promote("lerp", floating("lerp", input), end, weight)
    if operands[0]._data.dtype is float16:
        return rounded_once(lerp, input, end, weight)
    return dispatch(_LERP, tuple(operands))


@register_functor("addcmul")
def addcmul(
    input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Tensor | None = None
) -> Tensor:
    """Return input + value * tensor1 * tensor2."""
    if out is not None:
        return write_out("addcmul", out, addcmul, input, tensor1, tensor2, value=value)
    check_operands("addcmul", input=input, tensor1=tensor1, tensor2=tensor2)
    x, first, second = promote("addcmul", input, tensor1, tensor2)
    if x._data.dtype is float16:
        return rounded_once(addcmul, input, tensor1, tensor2, value=value)
    product = mul(first, second)
    return add(x, product if value == 1 else _scaled("addcmul", "value", product, value))


@register_functor("addcdiv")
def addcdiv(
    input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Tensor | None = None
) -> Tensor:
    """Return input + value * tensor1 / tensor2; two integer tensors raise, as in PyTorch."""
    if out is not None:
        return write_out("addcdiv", out, addcdiv, input, tensor1, tensor2, value=value)
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
    if x._data.dtype is float16:
        return rounded_once(addcdiv, input, tensor1, tensor2, value=value)
    quotient = div(first, second)
    return add(x, quotient if value == 1 else _scaled("addcdiv", "value", quotient, value))


@register_functor("nan_to_num")
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the elements with NaN and the infinities replaced; the derivative there is 0."""
    if out is not None:
        return write_out("nan_to_num", out, nan_to_num, input, nan, posinf, neginf)
    if check_tensor("nan_to_num", "input", input)._data.dtype.kind not in "fc":
        return dispatch1(_CLONE, input)
    limits = np.finfo(input.dtype)
    attrs = {
        "nan": 0.0 if nan is None else nan,
        "posinf": float(limits.max) if posinf is None else posinf,
        "neginf": float(limits.min) if neginf is None else neginf,
    }
    return dispatch1(_NAN_TO_NUM, input, attrs)
