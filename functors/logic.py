"""Logic on truth values and bits: what users call. The results carry no gradient."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import DTypeError
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.declare import binary, functor, unary
from oneflow_lite.functors.domains import AnyTensor, pair, tensor
from oneflow_lite.functors.operands import OPERAND
from oneflow_lite.tensor import Tensor


def _tensors(op: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return check_tensor(op, "input", input), check_tensor(op, "other", other)


def _bits(op: str, value: Any, argument: str, kinds: str = "iub") -> Any:
    """Return `value` when it is an integer or bool, or a tensor of them."""
    dtype = value._data.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
    if dtype.kind in kinds:
        return value
    raise DTypeError(
        f"{op}(): argument '{argument}': expected "
        f"{'an integer or bool dtype' if 'b' in kinds else 'an integer dtype'}, got {dtype}; "
        f"{'convert it with .long() or .bool()' if 'b' in kinds else 'convert it with .long()'}"
    )


def _bit_pair(op: str, input: Any, other: Any) -> tuple[Any, Any]:
    return _bits(op, input, "input"), _bits(op, other, "other")


def _integer_pair(op: str, input: Any, other: Any) -> tuple[Any, Any]:
    return _bits(op, input, "input", "iu"), _bits(op, other, "other", "iu")


def _bit_tensor(op: str, value: Tensor, argument: str) -> Tensor:
    return _bits(op, check_tensor(op, argument, value), argument)


_SHAPES = "of shapes that broadcast together."
_WHEN = "When {x} is neither an integer nor a bool."
AnyPair = Annotated[Tensor, pair(_tensors, f"Of any dtype, and {_SHAPES}", kinds="fciub")]
_integers = functools.partial(pair, type=OPERAND, sample="i(2, 3, n=9)")
BitPair = Annotated[Any, _integers(_bit_pair, f"Integers or bools, {_SHAPES}", _WHEN, "iub")]
IntegerPair = Annotated[
    Any, _integers(_integer_pair, f"Integers, {_SHAPES}", "When {x} is no integer.", "iu")
]
Bits = Annotated[
    Tensor,
    tensor(_bit_tensor, "iub", "Of integers or bools.", "i(2, 3, n=9)", DTypeError=_WHEN),
]

_truth = functools.partial(binary, domain=AnyPair, twin=True, samples="i(2, 3, n=2), i(2, 3, n=2)")
_bitwise = functools.partial(binary, domain=BitPair, twin=True)
_shift = functools.partial(binary, domain=IntegerPair)

logical_and = _truth(
    "logical_and",
    "Return where both are not 0, as bools.",
    "[0, 0, 1, 1] & [0, 1, 0, 1] -> tensor([False, False, False,  True])",
)
logical_or = _truth("logical_or", "Return where one or both are not 0, as bools.")
logical_xor = _truth("logical_xor", "Return where exactly one is not 0, as bools.")
logical_not = unary(
    "logical_not",
    "Return where an element is 0, as bools.",
    domain=AnyTensor,
    twin=True,
    samples="i(2, 3, n=2)",
)
bitwise_and = _bitwise(
    "bitwise_and",
    "Return the bits that are set in both of two integers; for bools logical and.",
    "[12] & [10] -> tensor([8])",
)
bitwise_or = _bitwise(
    "bitwise_or",
    "Return the bits that are set in one or both of two integers; for bools logical or.",
)
bitwise_xor = _bitwise(
    "bitwise_xor",
    "Return the bits that are set in exactly one of two integers; for bools logical xor.",
)
bitwise_not = unary(
    "bitwise_not",
    "Return every bit of an integer inverted; for bools logical not.",
    "[0, 1] -> tensor([-1, -2])",
    domain=Bits,
    twin=True,
)
bitwise_left_shift = _shift(
    "bitwise_left_shift",
    "Return input * 2**other without what leaves the integer; 0 if `other` is no place in it.",
    "[1, -3] & [4, 1] -> tensor([16, -6])",
    on="flow Tensor",
    twin=True,
)
bitwise_right_shift = _shift(
    "bitwise_right_shift",
    "Return input // 2**other; 0 or -1, by the sign, if `other` is no place in the integer.",
    "[16, -3] & [4, 1] -> tensor([ 1, -2])",
    on="flow Tensor",
    twin=True,
)


@functor("Tensor.__rlshift__", samples="i(2, 3), 3")
def rlshift(input: Any, other: Any) -> Tensor:
    """Return other << input."""
    return bitwise_left_shift(other, input)


@functor("Tensor.__rrshift__", samples="i(2, 3), 96")
def rrshift(input: Any, other: Any) -> Tensor:
    """Return other >> input."""
    return bitwise_right_shift(other, input)
