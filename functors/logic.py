"""Comparisons, and logic on truth values and bits, for users. No result has a gradient."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import DTypeError, arg_error
from oneflow_lite.functors.declaring import domains as D
from oneflow_lite.functors.declaring.checks import check_number, check_tensor, real
from oneflow_lite.functors.declaring.declare import binary, functor, unary
from oneflow_lite.functors.declaring.domains import AnyTensor, Flag, Real
from oneflow_lite.functors.operands import mixed_pair
from oneflow_lite.interpreter.dispatch import dispatch2
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

# --- Comparisons ----------------------------------------------------------------------------------


def _ordered(op: str, input: Any, other: Any) -> tuple[Any, Any]:
    """Refuse complex numbers, which have no order."""
    for argument, value in (("input", input), ("other", other)):
        if isinstance(value, Tensor):
            real(op, value, argument)
        elif isinstance(value, complex):
            check_number(op, argument, value)
    return input, other


Tol = D.NonNegative  # a tolerance
Ordered = Annotated[Any, mixed_pair(_ordered, "Real", "When an argument is complex.", "fiub")]
_PAIRS = "x(2, 3), x(2, 3); x(2, 3), x(3); x(2, 3), 0.5"
_pair = functools.partial(binary, domain=Ordered, twin=True, samples=_PAIRS)
_one = functools.partial(unary, domain=AnyTensor, out=False)

eq = _pair(
    "eq",
    "Return where two tensors are equal, as bools. nan equals nothing.",
    "[1, 2, 3] & [2, 2, 2] -> tensor([False,  True, False])",
    domain=D.Operand,
)
_pair("ne", "Return where `eq` does not hold, as bools.", domain=D.Operand, alias="not_equal")
_pair("lt", "Return where `input` is less than `other`, as bools.", alias="less")
_pair("le", "Return where `input` is at most `other`, as bools.", alias="less_equal")
_pair("gt", "Return where `input` is greater than `other`, as bools.", alias="greater")
_pair("ge", "Return where `input` is at least `other`, as bools.", alias="greater_equal")
isnan = _one("isnan", "Return where an element is nan, as bools.")
_one("isinf", "Return where an element is inf or -inf, as bools.")
_one("isfinite", "Return where an element is neither inf, -inf nor nan, as bools.")
unary(
    "signbit",
    "Return where an element has a minus sign, also -0.0, as bools.",
    domain=Real,
    out="same",
)


@functor("flow Tensor", out="same")
def isposinf(input: Real) -> Tensor:
    """Return where an element is inf, as bools."""
    return eq(input, math.inf)


@functor("flow Tensor", out="same")
def isneginf(input: Real) -> Tensor:
    """Return where an element is -inf, as bools."""
    return eq(input, -math.inf)


@functor("flow Tensor")
def isreal(input: AnyTensor) -> Tensor:
    """Return where an element has no imaginary part, as bools."""
    # Of real numbers True everywhere, at nan too.
    return input.imag.logical_not() if input.is_complex() else eq(input, input) | isnan(input)


def _close(op: str, input: Tensor, other: Tensor, **attrs: Any) -> Tensor:
    if other.dtype == input.dtype:
        return dispatch2(op_expr(op), input, other, attrs)
    expected, hint = f"dtype {input.dtype}, that of 'input'", "convert one of them with .to(dtype)"
    raise arg_error(op, "other", expected, other.dtype, hint, DTypeError)


@functor("flow Tensor", samples="x(2, 3), x(2, 3); x(2, 3), x(3), 0.1, 0.5")
def isclose(
    input: AnyTensor, other: AnyTensor, rtol: Tol = 1e-5, atol: Tol = 1e-8, equal_nan: Flag = False
) -> Tensor:
    """Return where the distance of two tensors is at most atol + rtol times the size of `other`.

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


# --- Truth values and bits ------------------------------------------------------------------------


def _tensors(op: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return check_tensor(op, "input", input), check_tensor(op, "other", other)


def _bits(op: str, value: Any, argument: str, kinds: str = "iub") -> Any:
    """Return `value` when it is an integer or bool, or a tensor of them."""
    dtype = value._data.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
    if dtype.kind in kinds:
        return value
    expected, hint = "an integer dtype", "convert it with .long()"
    if "b" in kinds:
        expected, hint = "an integer or bool dtype", "convert it with .long() or .bool()"
    raise arg_error(op, argument, expected, dtype, hint, DTypeError)


def _bit_pair(op: str, input: Any, other: Any, kinds: str = "iub") -> tuple[Any, Any]:
    return _bits(op, input, "input", kinds), _bits(op, other, "other", kinds)


def _bit_tensor(op: str, value: Tensor, argument: str) -> Tensor:
    return _bits(op, check_tensor(op, argument, value), argument)


_WHEN, _SAMPLE = "When {x} is neither an integer nor a bool.", "i(2, 3, n=9)"
_integers = functools.partial(mixed_pair, sample=_SAMPLE)
_whole_pair = functools.partial(_bit_pair, kinds="iu")
_bits_domain = D.tensor(_bit_tensor, "iub", "Of integers or bools.", _SAMPLE, DTypeError=_WHEN)
AnyPair = Annotated[Tensor, D.pair(_tensors, "Of shapes that broadcast together.", kinds="fciub")]
BitPair = Annotated[Any, _integers(_bit_pair, "Integers or bools", _WHEN, "iub")]
IntegerPair = Annotated[Any, _integers(_whole_pair, "Integers", "When {x} is no integer.", "iu")]
Bits = Annotated[Tensor, _bits_domain]

_TRUTH = "i(2, 3, n=2)"
_truth = functools.partial(binary, domain=AnyPair, twin=True, samples=f"{_TRUTH}, {_TRUTH}")
_not = functools.partial(unary, twin=True)
_bitwise = functools.partial(binary, domain=BitPair, twin=True, spelled="self=input")
_shift = functools.partial(binary, domain=IntegerPair, twin=True, spelled="self=input")

_truth("logical_and", "Return where both are not 0, as bools.")
_truth("logical_or", "Return where one or both are not 0, as bools.")
logical_xor = _truth(
    "logical_xor",
    "Return where exactly one is not 0, as bools.",
    "[0, 0, 1, 1] & [0, 1, 0, 1] -> tensor([False,  True,  True, False])",
)
_not("logical_not", "Return where x is 0, as bools.", domain=AnyTensor, samples=_TRUTH)
_bitwise("bitwise_and", "Return the bits set in both; for bools logical and.")
_bitwise("bitwise_or", "Return the bits set in one or both; for bools logical or.")
_XOR = "Return the bits set in exactly one; for bools logical xor."
bitwise_xor = _bitwise("bitwise_xor", _XOR, "[12] & [10] -> tensor([6])")
_not("bitwise_not", "Return every bit inverted; for bools logical not.", domain=Bits, out="same")
bitwise_left_shift = _shift(
    "bitwise_left_shift",
    "Return input * 2**other without what leaves the integer; 0 if `other` is no place in it.",
    "[1, -3] & [4, 1] -> tensor([16, -6])",
)
bitwise_right_shift = _shift(
    "bitwise_right_shift", "Return input // 2**other; 0 or -1 if `other` is no place in it."
)


@functor("Tensor.__rlshift__", samples="i(2, 3), 3")
def rlshift(input: Any, other: Any) -> Tensor:
    """Return other << input."""
    return bitwise_left_shift(other, input)


@functor("Tensor.__rrshift__", samples="i(2, 3), 96")
def rrshift(input: Any, other: Any) -> Tensor:
    """Return other >> input."""
    return bitwise_right_shift(other, input)
