"""Arithmetic: sums, products, powers, rounding, extremes; operands broadcast and are promoted."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from oneflow_lite.arrays.dtype import complex128, finfo, float64
from oneflow_lite.arrays.dtype_object import CHAR, HALVES
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, arg_error
from oneflow_lite.functors import operands
from oneflow_lite.functors.declaring import checks, domains as D
from oneflow_lite.functors.declaring.declare import binary, functor, unary
from oneflow_lite.functors.declaring.domains import (
    AnyNumber,
    AnyTensor,
    Domain,
    RealPair,
    RealToFloating,
    TensorOrNumber,
)
from oneflow_lite.functors.declaring.fill_value import fill_value
from oneflow_lite.functors.operands import check_operands, is_bool, is_integer, mixed_pair
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1, dispatch2, promote, rounded_once
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.spellings import as_number, byte_mask
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_POW = op_expr("pow")
_WHERE = op_expr("where")
_CLAMP_TO = {"min": op_expr("clamp_min"), "max": op_expr("clamp_max")}
Value = float | None

_PAIRS = "x(2, 3), x(2, 3); x(2, 3), x(3)"
_SUMS = f"{_PAIRS}, alpha=2.5; x(2, 3), 1.5"
_QUOTIENTS = """x(2, 3), pos(2, 3); x(2, 3), pos(3), rounding_mode='floor'
    x(2, 3), 0.7, rounding_mode='trunc'; 1.5, pos(3)"""
_POWERS = "pos(2, 3), x(2, 3); pos(2, 3), x(3); x(2, 3), 2; x(3), 3; pos(3), -0.5; 2.5, x(3)"
_DIGITS = "x(2, 3); x(2, 3), decimals=1"
_BOUND = "x(2, 3), 0.3; x(2, 3), x(3)"
_BOUNDS = "x(2, 3), -1.0, 1.0; x(2, 3), max=0.5; x(2, 3), x(3) - 1, x(3) + 1"
_REPLACED = "x(2, 3); np.array([nan, inf, -inf, 1.5]), 0.5, 2.0, -3.0"
_WEIGHTS = "x(2, 3), x(2, 3), 0.3; x(2, 3), x(3), share(2, 1); x(2, 3), x(2, 3), 1.7"
_TERMS = "x(2, 3), x(2, 3), pos(2, 3); x(2, 3), x(3), pos(2, 1), value=-0.5"
_WHOLE = "x(2, 3), pos(2, 3); x(2, 3), x(3); x(2, 3), -0.7"


def scaled(op: str, argument: str, value: Tensor, factor: Any) -> Tensor:
    """Return value * factor in the dtype of the value, into which the factor has to fit."""
    dtype, numbers, factor = value._data.dtype, operands.NUMBERS, as_number(factor)
    fits = {"c": numbers, "f": operands.REAL_NUMBERS}
    if isinstance(factor, fits.get(dtype.kind, (int, np.integer, np.bool_))):
        attrs = {"factor": fill_value(op, argument, factor, dtype)}
        return dispatch1(op_expr("mul_scalar"), value, attrs)
    kind = ArgumentError if isinstance(factor, numbers) else ArgumentTypeError
    hint = "convert the tensors first, as with .float()"
    if isinstance(factor, Tensor):
        hint = "pass its .item(), or multiply by it"
    expected = f"a number that fits dtype {value.dtype}"
    raise arg_error(op, argument, expected, repr(factor), hint, kind)


def _no_bools(op: str, input: Any, other: Any) -> tuple[Any, Any]:
    for argument, value in (("other", other), ("input", input)):
        if is_bool(value):
            hint = "use logical_not(), ^ or logical_xor()"
            raise arg_error(op, argument, "numbers", "bool", hint, DTypeError)
    return input, other


def _with_alpha(op: str, input: Any, other: Any, alpha: Any) -> Tensor:
    if op == "sub":
        _no_bools(op, input, other)
    x, y = promote(op, input, other)
    if y._data.dtype.char in HALVES:  # alpha * other is not rounded before the sum
        near = float(np.asarray(fill_value(op, "alpha", alpha, y._data.dtype), y._data.dtype))
        return rounded_once(FUNCTORS.get(op), x, y, alpha=near)
    return dispatch2(op_expr(op), x, scaled(op, "alpha", y, alpha))


def _detour(way: Callable[..., Tensor], quick: str, says: str, type: str, **raises: str) -> Domain:
    """Return the domain of an option that goes another way; without it the call is dispatch2."""
    line = f"return {way.__name__}(NAME, input, other, {{x}})"
    return Domain(says, line, quick, raises, (way,), early=True, type=type)


_SAYS = "Scales `other`; has to fit the dtype of the result."
Alpha = Annotated[Any, _detour(_with_alpha, "{x} == 1", _SAYS, "number")]
NoBools = Annotated[Any, mixed_pair(_no_bools, "Numbers", "When {x} holds truth values.", "fciu")]


@functor("flow Tensor", out=True, twin=True, old=True, samples=_SUMS)
def add(input: D.Operand, other: D.Operand, *, alpha: Alpha = 1) -> Tensor:
    """Return input + alpha * other.

    >>> flow.add(flow.tensor([1, 2]), 10, alpha=2)
    tensor([21, 22])
    """


@functor("flow Tensor", out=True, twin=True, alias="subtract", old=True, samples=_SUMS)
def sub(input: NoBools, other: NoBools, *, alpha: Alpha = 1) -> Tensor:
    """Return input - alpha * other."""


@functor("flow", samples=_SUMS)
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return other - alpha * input."""
    return sub(other, input, alpha=alpha)


@functor("flow Tensor", out=True, twin=True, alias="multiply", samples=f"{_PAIRS}; x(2, 3), 1.5")
def mul(input: D.Operand, other: D.Operand) -> Tensor:
    """Return input * other."""


def _whole(op: str, input: Any, other: Any) -> tuple[Any, Any]:
    """Check operands of a division that rounds, or its remainder: real, and not two bools."""
    x, y = operands.real_operand(op, input, "input"), operands.real_operand(op, other, "other")
    if is_bool(x) and is_bool(y):
        hint = "convert one of them with .long()"
        raise arg_error(op, "other", "numbers", "two bools", hint, DTypeError)
    return x, y


def _quotient(op: str, *given: Any) -> Any:
    """Make floats of two integers."""
    if not (is_integer(given[0]) and is_integer(given[1])):
        return given
    tensors = [make_tensor(x) if isinstance(x, np.ndarray) else x for x in given]
    return [checks.floating(op, x) if isinstance(x, Tensor) else float(x) for x in tensors]


def _rounded_quotient(op: str, input: Any, other: Any, rounding_mode: Any) -> Tensor:
    if rounding_mode in ("floor", "trunc"):
        x, y = _whole(op, input, other)
        both = all([isinstance(t, Tensor) and t._data.dtype.char == CHAR for t in (x, y)])
        if rounding_mode == "trunc" and both and y._data.ndim:  # PyTorch rounds it first
            return div(x, y).trunc()
        return dispatch2(op_expr("floor_divide" if rounding_mode == "floor" else "div_trunc"), x, y)
    expected, hint = "None, 'trunc' or 'floor'", "pass one of these"
    raise arg_error(op, "rounding_mode", expected, repr(rounding_mode), hint, ArgumentError)


_SAYS = "Round the quotient towards zero, or down; integers then stay integers."
_RAISES = {"ArgumentError": "When {x} is another word."}
_rounding = _detour(_rounded_quotient, "{x} is None", _SAYS, '{None, "trunc", "floor"}', **_RAISES)
RoundingMode = Annotated[str | None, _rounding]
_WHEN = "When one is complex and the quotient rounded."
Quotient = Annotated[Any, mixed_pair(_quotient, "Of any dtype", _WHEN, "fc")]
_WHEN = "When an argument is complex, or both are bool."
Whole = Annotated[Any, mixed_pair(_whole, "Real, and not both bool", _WHEN, "fiu")]


@functor("flow Tensor", out=True, twin=True, alias="divide true_divide", samples=_QUOTIENTS)
def div(input: Quotient, other: Quotient, *, rounding_mode: RoundingMode = None) -> Tensor:
    """Return input / other; integers divide to floats.

    >>> flow.tensor([7, -7]) / 2, flow.div(flow.tensor([7, -7]), 2, rounding_mode="trunc")
    (tensor([ 3.5000, -3.5000]), tensor([ 3, -3]))
    """


_whole_row = functools.partial(binary, domain=Whole, twin=True, samples=_WHOLE)
_whole_row("floor_divide", "Return the quotient rounded down; an integer divided by 0 raises.")
fmod = _whole_row("fmod", "Return the remainder, signed as `input`.", "[-7] & [3] -> tensor([-1])")
_whole_row("remainder", "Return the remainder, signed as `other`.", spelled="self=input")


def _integers(op: str, input: Any, other: Any) -> list[Tensor]:
    given = checks.check_tensor(op, "input", input), checks.check_tensor(op, "other", other)
    operands = promote(op, *given)
    if operands[0]._data.dtype.kind not in "iu":  # then one of the two is the cause
        checks.require_integer(op, input, "input"), checks.require_integer(op, other, "other")
    return operands


_SAYS, _WHEN = "Of integers, and of shapes that broadcast together.", "When {x} holds no integers."
Integers = Annotated[Tensor, D.pair(_integers, _SAYS, _WHEN, "iu", sample="i(2, 3, n=20)")]
_integer_row = functools.partial(binary, domain=Integers, twin="flow Tensor")
_integer_row("gcd", "Return the greatest common divisor; gcd(0, 0) is 0.")
_integer_row("lcm", "Return the least common multiple; 0 where one of two is 0.")


@functor("flow Tensor", out=True, twin=True, spelled="self=input", samples=_POWERS)
def pow(input: TensorOrNumber, exponent: TensorOrNumber) -> Tensor:
    """Return input raised to `exponent`.

    The derivative at input 0 is 0 for exponent 0; with respect to the exponent it is 0 at input 0
    for exponents of at least 0, as in PyTorch.

    ArgumentError: when an integer is raised to a negative number.
    """
    if type(exponent) is int and exponent == 2 and isinstance(input, Tensor):
        return square(input)
    if not (is_integer(exponent) and is_integer(input)):
        return dispatch2(_POW, input, exponent)
    if isinstance(exponent, (int, np.integer)) and exponent < 0:
        expected, hint = "at least 0 for integers", "convert the tensor with .float()"
        raise arg_error("pow", "exponent", expected, exponent, hint, ArgumentError)
    return dispatch2(op_expr("pow_integer"), input, exponent)


@functor(
    "flow Tensor",
    out="same",
    twin=True,
    spelled="self=input",
    samples="pos(2, 3), x(2, 3); x(2, 3), 3; 2, x(3)",
)
def float_power(input: TensorOrNumber, exponent: TensorOrNumber) -> Tensor:
    """Return input raised to `exponent`, numbers or tensors, in float64 or complex128."""
    given = [x if isinstance(x, Tensor) else np.asarray(x) for x in (input, exponent)]
    wide = complex128 if any(x.dtype.kind == "c" for x in given) else float64
    x, y = [checks.cast(x, wide) if isinstance(x, Tensor) else wide.type(x) for x in given]
    return pow(x, y)


@functor("flow Tensor", out=True, twin="flow Tensor", samples="x(2, 3), x(2, 3); x(2, 3), i(3)")
def ldexp(input: AnyTensor, other: AnyTensor) -> Tensor:
    """Return input * 2**other."""
    if is_integer(other) and input._data.dtype.kind in "fc":  # its powers may leave float32
        other = checks.cast(other, input.real.dtype)
    return mul(input, pow(2.0, other))


class Frexp(NamedTuple):
    """The result of `frexp`: input = mantissa * 2**exponent."""

    mantissa: Tensor
    exponent: Tensor


@functor("flow Tensor", out="same")
def frexp(input: D.RealFloating) -> Frexp:
    """Return mantissas of size 0.5 to 1, with the sign of the elements, and int32 exponents of 2.

    >>> flow.frexp(flow.tensor([1.0, -6.0, 0.0]))
    Frexp(mantissa=tensor([ 0.5000, -0.7500,  0.0000]), exponent=tensor([1, 3, 0], dtype=int32))
    """


def _counted(op: str, value: Tensor, argument: str) -> Tensor:
    """Return truth values as integers."""
    return checks.to_dtype(op, value, "int64" if is_bool(value) else None)


Counted = Annotated[Tensor, D.tensor(_counted, "fciu", "Of any shape; bools are taken as int64.")]
_unary = functools.partial(unary, twin="flow Tensor")
_floating = functools.partial(_unary, domain=D.Floating, samples="pos(2, 3)")
_real = functools.partial(_unary, domain=D.Real)

_unary("neg", "Return -input.", domain=D.Numeric, alias="negative", out="same")
_unary("abs", "Return |input|; the derivative at 0 is 0.", domain=AnyTensor, alias="absolute")
_real("sign", "Return -1, 0 or 1 by the sign, 0 for nan; see also `sgn`.", twin=True, out="same")
square = _unary("square", "Return input * input.", domain=Counted)
_floating("sqrt", "Return the square root; its derivative at 0 is infinite, as in PyTorch.")
_floating("rsqrt", "Return 1 / sqrt(input).")
_floating("reciprocal", "Return 1 / input.")
_real("floor", "Return the elements rounded down; the derivative is 0.", out="same")
_real("ceil", "Return the elements rounded up; the derivative is 0.", out="same")
_real(
    "trunc", "Return the elements rounded towards 0; the derivative is 0.", alias="fix", out="same"
)
_unary("frac", "Return x - trunc(x); the derivative is 1.", domain=D.RealFloating, out="same")


@functor("flow Tensor special", out="same", twin="flow Tensor", samples=_DIGITS)
def round(input: D.Real, *, decimals: D.Int = 0) -> Tensor:
    """Return the elements rounded, halves to even; the derivative is 0.

    decimals: the number of digits behind the point; may be negative.

    >>> flow.round(flow.tensor([0.5, 1.5, 2.25])), flow.round(flow.tensor([2.25]), decimals=1)
    (tensor([0., 2., 2.]), tensor([2.2000]))
    """


@functor("flow Tensor")
def positive(input: D.Numeric) -> Tensor:
    """Return the tensor itself."""
    return input


@functor("flow Tensor", out=True, twin="flow Tensor")
def deg2rad(input: RealToFloating) -> Tensor:
    """Return angles, given in degrees, in radians."""
    return mul(input, math.pi / 180)


@functor("flow Tensor", out=True, twin="flow Tensor")
def rad2deg(input: RealToFloating) -> Tensor:
    """Return angles, given in radians, in degrees."""
    return mul(input, 180 / math.pi)


@functor("flow Tensor", out="same", twin="flow Tensor", samples=_REPLACED)
def nan_to_num(
    input: AnyTensor, nan: Value = None, posinf: Value = None, neginf: Value = None
) -> Tensor:
    """Return the elements with nan and the infinities replaced; the derivative there is 0.

    nan, posinf, neginf: the replacements; by default 0 and the limits of the dtype.
    """
    if input._data.dtype.kind not in "fc":
        return input.clone()
    limits = finfo(input.dtype)
    highest = float(limits.max) if posinf is None else posinf
    lowest = float(limits.min) if neginf is None else neginf
    attrs = {"nan": 0.0 if nan is None else nan, "posinf": highest, "neginf": lowest}
    return dispatch1(op_expr("nan_to_num"), input, attrs)


_extreme = functools.partial(binary, domain=RealPair, samples=_PAIRS)
_extreme("maximum", "Return the larger of two elements; equal elements share the gradient.")
_extreme("minimum", "Return the smaller of two elements; equal elements share the gradient.")
fmax = _extreme(
    "fmax",
    "Return the larger of two elements, or the one that is not nan; the first wins a tie.",
    "[1.0, float('nan')] & [2.0, 4.0] -> tensor([2., 4.])",
)
_extreme("fmin", "Return the smaller of two elements, else as `fmax`.")
binary(
    "copysign",
    "Return the size of `input` with the sign of `other`, to which the derivative is 0.",
    domain=operands.RealToFloatingOperands,
    twin=True,
    samples="x(2, 3), x(2, 3); x(2, 3), -1.5",
)
binary(
    "nextafter",
    "Return the floating point number next to `input`, towards `other`.",
    domain=D.RealFloatingPair,
    twin=True,
)


@functor("flow Tensor", out="same", twin=True, samples="fixed(x(3)), fixed(x(3)); i(2, 3), i(3)")
def heaviside(input: RealPair, values: RealPair) -> Tensor:
    """Return 0 below 0, 1 above, and `values` at 0; it has no derivative."""


def _clamped(op: str, argument: str, input: Tensor, bound: Any) -> Tensor:
    x, limit = checks.real(op, input), operands.real_operand(op, bound, argument)
    return dispatch2(_CLAMP_TO[argument], x, limit)


@functor("flow Tensor", out=True, twin="flow Tensor", samples=_BOUND)
def clamp_min(input: TensorOrNumber, min: TensorOrNumber) -> Tensor:
    """Return the elements, raised to `min` where they are below; at `min` the derivative is 1."""
    return _clamped("clamp_min", "min", input, min)


@functor("flow Tensor", out=True, twin="flow Tensor", samples=_BOUND)
def clamp_max(input: TensorOrNumber, max: TensorOrNumber) -> Tensor:
    """Return the elements, lowered to `max` where they are above; at `max` the derivative is 1."""
    return _clamped("clamp_max", "max", input, max)


@functor("flow Tensor", out=True, twin="flow Tensor", alias="clip", samples=_BOUNDS)
def clamp(input: AnyTensor, min: TensorOrNumber = None, max: TensorOrNumber = None) -> Tensor:
    """Return the elements brought into [min, max]; at the bounds the derivative is 1.

    min, max: tensors or numbers; one may be left out.
    ArgumentError: when both are left out.
    DTypeError: when an argument is complex.
    ShapeError: when the shapes do not broadcast.
    """
    if min is None and max is None:
        expected, hint = "min, max or both", "give at least one bound"
        raise arg_error("clamp", "min", expected, "neither", hint, ArgumentError)
    if isinstance(min, Tensor) and isinstance(max, Tensor):
        given = {"input": input, "min": min, "max": max}
        bounded = [checks.real("clamp", x, name) for name, x in given.items()]
        check_operands("clamp", **given)
        return dispatch(op_expr("clamp"), tuple(promote("clamp", *bounded)))
    result = input if min is None else _clamped("clamp", "min", input, min)
    return result if max is None else _clamped("clamp", "max", result, max)


@functor(
    "flow",
    out="same",
    spelled="self=input",
    samples="b(2, 3), x(2, 3), x(3); b(3), x(2, 3), 1.5",
    results="input: Any -> Tensor; input: None = ... -> tuple[Tensor, ...]",
)
def where(condition: AnyTensor, input: TensorOrNumber = None, other: TensorOrNumber = None) -> Any:
    """Return elements of `input` where the condition holds, of `other` elsewhere.

    With the condition alone, return the indices of its true elements, one tensor per dimension.

    condition: bool.
    DTypeError: when `condition` is not bool.
    ShapeError: when the shapes do not broadcast.

    >>> flow.where(flow.tensor([True, False]), flow.tensor([1, 2]), 0)
    tensor([1, 0])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition._data.dtype == np.uint8:
        condition = byte_mask("where", condition)
    if condition._data.dtype.kind != "b":
        got, hint = condition.dtype, "compare, or convert it with .bool()"
        raise arg_error("where", "condition", "a bool tensor", got, hint, DTypeError)
    check_operands("where", condition=condition, input=input, other=other)
    x, y = promote("where", input, other)
    return dispatch(_WHERE, (condition, x, y))


@functor("Tensor.where", samples="x(2, 3), b(2, 3), x(3); x(2, 3), b(3), 0.5")
def tensor_where(input: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return elements of `input` where the condition holds, of `other` elsewhere; see `where`."""
    return where(condition, input, other)


@functor("flow Tensor", out=True, twin=True, samples=_WEIGHTS)
def lerp(input: Tensor, end: Tensor, weight: TensorOrNumber) -> Tensor:
    """Return input + weight * (end - input)."""
    check_operands("lerp", input=input, end=end, weight=weight)
    together = promote("lerp", checks.floating("lerp", input), end, weight)
    if together[0]._data.dtype.char in HALVES:
        return rounded_once(lerp, input, end, weight)
    return dispatch(op_expr("lerp"), tuple(together))


def _with_term(op: str, input: Tensor, tensor1: Any, tensor2: Any, *, value: Any) -> Tensor:
    check_operands(op, input=input, tensor1=tensor1, tensor2=tensor2)
    if op == "addcdiv" and is_integer(tensor1) and is_integer(tensor2):
        expected = "a floating point dtype where tensor1 holds integers"
        hint = "convert one of them with .float()"
        raise arg_error(op, "tensor2", expected, "integers", hint, DTypeError)
    x, first, second = promote(op, input, tensor1, tensor2)
    if x._data.dtype.char in HALVES:
        return rounded_once(_with_term, op, input, tensor1, tensor2, value=value)
    term = div(first, second) if op == "addcdiv" else mul(first, second)
    return add(x, term if value == 1 else scaled(op, "value", term, value))


@functor("flow Tensor", out=True, twin=True, old=True, samples=_TERMS)
def addcmul(
    input: Tensor, tensor1: TensorOrNumber, tensor2: TensorOrNumber, *, value: AnyNumber = 1
) -> Tensor:
    """Return input + value * tensor1 * tensor2."""
    return _with_term("addcmul", input, tensor1, tensor2, value=value)


@functor("flow Tensor", out=True, twin=True, old=True, samples=_TERMS)
def addcdiv(
    input: Tensor, tensor1: TensorOrNumber, tensor2: TensorOrNumber, *, value: AnyNumber = 1
) -> Tensor:
    """Return input + value * tensor1 / tensor2; two integer tensors raise, as in PyTorch."""
    return _with_term("addcdiv", input, tensor1, tensor2, value=value)
