"""Arithmetic: sums, products, powers, rounding, extremes; operands broadcast and are promoted."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.dtype import to_complex
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_tensor, floating, require_floating
from oneflow_lite.interpreter import dispatch, dispatch1, dispatch2, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

_ADD = op_expr("add")
_SUB = op_expr("sub")
_MUL = op_expr("mul")
_DIV = op_expr("div")
_FLOOR_DIVIDE = op_expr("floor_divide")
_DIV_TRUNC = op_expr("div_trunc")
_POW = op_expr("pow")
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


def _scaled(op: str, other: Any, alpha: Any) -> Any:
    """Return alpha * other, refusing a fraction where integers meet."""
    if isinstance(alpha, float) and isinstance(other, Tensor) and other.dtype.kind in "iub":
        raise bad_argument(
            ArgumentError,
            op,
            "alpha",
            expected=f"an int for tensors of dtype {other.dtype}",
            got=alpha,
            mend="convert the tensors with .float()",
        )
    return mul(other, alpha)


@register_functor("add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return input + alpha * other.

    >>> import oneflow_lite as flow
    >>> flow.add(flow.tensor([1, 2]), 10, alpha=2)
    tensor([21, 22])
    """
    if alpha != 1:
        other = _scaled("add", other, alpha)
    return dispatch2(_ADD, input, other)


def _is_bool(value: Any) -> bool:
    return value._data.dtype.kind == "b" if isinstance(value, Tensor) else isinstance(value, bool)


@register_functor("sub")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return input - alpha * other."""
    if alpha != 1:
        other = _scaled("sub", other, alpha)
    if _is_bool(other) or _is_bool(input):
        raise bad_argument(
            DTypeError,
            "sub",
            "other" if _is_bool(other) else "input",
            expected="numbers",
            got="bool",
            mend="use logical_not(), ^ or logical_xor()",
        )
    return dispatch2(_SUB, input, other)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return other - alpha * input."""
    return sub(other, input, alpha=alpha)


@register_functor("mul")
def mul(input: Any, other: Any) -> Tensor:
    """Return input * other."""
    return dispatch2(_MUL, input, other)


def _float_operands(op: Any, input: Any, other: Any) -> Tensor:
    """Dispatch an op that computes in floats: integers become the default dtype."""
    fits = isinstance(input, Tensor) and input._data.dtype.kind in "fc"
    if fits or (isinstance(other, Tensor) and other._data.dtype.kind in "fc"):
        return dispatch2(op, input, other)
    x, y = promote(op.op_type_name, input, other)
    return dispatch2(op, floating(op.op_type_name, x), floating(op.op_type_name, y))


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
        return _float_operands(_DIV, input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return dispatch2(_DIV_TRUNC, input, other)
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
    """Return the quotient rounded down."""
    return dispatch2(_FLOOR_DIVIDE, input, other)


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
    if (
        isinstance(input, Tensor)
        and input._data.dtype.kind in "iub"
        and isinstance(exponent, int)
        and exponent < 0
    ):
        raise bad_argument(
            ArgumentError,
            "pow",
            "exponent",
            expected="at least 0 for integers",
            got=exponent,
            mend="convert the tensor with .float()",
        )
    return dispatch2(_POW, input, exponent)


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
    return check_tensor("positive", "input", input)


@register_functor("abs")
def abs(input: Tensor) -> Tensor:
    """Return the absolute value; its derivative at 0 is 0."""
    return dispatch1(_ABS, input)


@register_functor("sign")
def sign(input: Tensor) -> Tensor:
    """Return -1, 0 or 1 by the sign; for complex numbers z / abs(z)."""
    if check_tensor("sign", "input", input)._data.dtype.kind == "b":
        return dispatch1(_CLONE, input)
    return dispatch1(_SIGN, input)


@register_functor("square")
def square(input: Tensor) -> Tensor:
    """Return input * input."""
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
    return dispatch1(_FLOOR, input)


@register_functor("ceil")
def ceil(input: Tensor) -> Tensor:
    """Return the smallest whole number not below each element; the derivative is 0."""
    return dispatch1(_CEIL, input)


@register_functor("trunc")
def trunc(input: Tensor) -> Tensor:
    """Return the elements without their fractions; the derivative is 0."""
    return dispatch1(_TRUNC, input)


@register_functor("frac")
def frac(input: Tensor) -> Tensor:
    """Return the fractions, with the sign of the elements; the derivative is 1."""
    return dispatch1(_FRAC, require_floating("frac", input))


@register_functor("round")
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return the elements rounded, halves to even; the derivative is 0."""
    return dispatch1(_ROUND, input, {"decimals": check_int("round", "decimals", decimals)})


@register_functor("fmod")
def fmod(input: Any, other: Any) -> Tensor:
    """Return the remainder with the sign of `input`."""
    return dispatch2(_FMOD, input, other)


@register_functor("remainder")
def remainder(input: Any, other: Any) -> Tensor:
    """Return the remainder with the sign of `other`."""
    return dispatch2(_REMAINDER, input, other)


def rremainder(input: Any, other: Any) -> Tensor:
    """Return other % input."""
    return remainder(other, input)


@register_functor("maximum")
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of two elements; equal ones share the gradient."""
    check_tensor("maximum", "input", input), check_tensor("maximum", "other", other)
    return dispatch2(_MAXIMUM, input, other)


@register_functor("minimum")
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of two elements; equal ones share the gradient."""
    check_tensor("minimum", "input", input), check_tensor("minimum", "other", other)
    return dispatch2(_MINIMUM, input, other)


@register_functor("clamp_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Return the elements, raised to `min` where they are below; at `min` the derivative is 1."""
    return dispatch2(_CLAMP_MIN, check_tensor("clamp_min", "input", input), min)


@register_functor("clamp_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Return the elements, lowered to `max` where they are above; at `max` the derivative is 1."""
    return dispatch2(_CLAMP_MAX, check_tensor("clamp_max", "input", input), max)


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
    result = input if min is None else clamp_min(input, min)
    return result if max is None else clamp_max(result, max)


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
    x, y = promote("where", input, other)
    return dispatch(_WHERE, (condition, x, y))


@register_functor("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Return input + weight * (end - input)."""
    return dispatch(_LERP, tuple(promote("lerp", floating("lerp", input), end, weight)))


def _check_operands(op: str, input: Any, tensor1: Any, tensor2: Any) -> None:
    """Check three tensors that broadcast together, so that errors name the op that was called."""
    given = {"input": input, "tensor1": tensor1, "tensor2": tensor2}
    shape: tuple[int, ...] = ()
    for argument, value in given.items():
        if isinstance(value, (int, float)) and argument != "input":
            continue
        have = check_tensor(op, argument, value).shape
        try:
            shape = np.broadcast_shapes(shape, have)
        except ValueError:
            raise bad_argument(
                ShapeError,
                op,
                argument,
                expected=f"a shape that broadcasts with {shape}",
                got=have,
                mend="make the sizes equal or 1, counted from the last dimension",
            ) from None


@register_functor("addcmul")
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2."""
    _check_operands("addcmul", input, tensor1, tensor2)
    return add(input, mul(tensor1, tensor2), alpha=value)


@register_functor("addcdiv")
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2."""
    _check_operands("addcdiv", input, tensor1, tensor2)
    return add(input, div(tensor1, tensor2), alpha=value)


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
        if check_tensor("complex", argument, part)._data.dtype.kind != "f":
            raise bad_argument(
                DTypeError,
                "complex",
                argument,
                expected="float32 or float64",
                got=part.dtype,
                mend="convert it with .float()",
            )
    if to_complex(real.dtype) is not to_complex(imag.dtype):
        raise bad_argument(
            DTypeError,
            "complex",
            "imag",
            expected=f"{real.dtype}, the dtype of real",
            got=imag.dtype,
            mend="convert one of them",
        )
    return dispatch2(_COMPLEX, real, imag)
