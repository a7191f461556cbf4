"""Logic on truth values and bits: what users call. The results carry no gradient."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import DTypeError
from oneflow_lite.functors.checks import check_tensor, wrong
from oneflow_lite.functors.declare import binary, functor, unary
from oneflow_lite.functors.domains import AnyTensor, pair, tensor
from oneflow_lite.functors.operands import mixed_pair
from oneflow_lite.tensor import Tensor


def _tensors(op: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return check_tensor(op, "input", input), check_tensor(op, "other", other)


def _bits(op: str, value: Any, argument: str, kinds: str = "iub") -> Any:
    """Return `value` when it is an integer or bool, or a tensor of them."""
    dtype = value._data.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
    if dtype.kind in kinds:
        return value
    expected, mend = "an integer dtype", "convert it with .long()"
    if "b" in kinds:
        expected, mend = "an integer or bool dtype", "convert it with .long() or .bool()"
    raise wrong(op, argument, expected, dtype, mend, DTypeError)


def _bit_pair(op: str, input: Any, other: Any, kinds: str = "iub") -> tuple[Any, Any]:
    return _bits(op, input, "input", kinds), _bits(op, other, "other", kinds)


def _bit_tensor(op: str, value: Tensor, argument: str) -> Tensor:
    return _bits(op, check_tensor(op, argument, value), argument)


_WHEN = "When {x} is neither an integer nor a bool."
_SAMPLE = "i(2, 3, n=9)"
_integers = functools.partial(mixed_pair, sample=_SAMPLE)
_whole_pair = functools.partial(_bit_pair, kinds="iu")
AnyPair = Annotated[Tensor, pair(_tensors, "Of shapes that broadcast together.", kinds="fciub")]
BitPair = Annotated[Any, _integers(_bit_pair, "Integers or bools", _WHEN, "iub")]
IntegerPair = Annotated[Any, _integers(_whole_pair, "Integers", "When {x} is no integer.", "iu")]
Bits = Annotated[
    Tensor, tensor(_bit_tensor, "iub", "Of integers or bools.", _SAMPLE, DTypeError=_WHEN)
]

_TRUTH = "i(2, 3, n=2)"
_truth = functools.partial(binary, domain=AnyPair, twin=True, samples=f"{_TRUTH}, {_TRUTH}")
_bitwise = functools.partial(binary, domain=BitPair, twin=True)
_shift = functools.partial(binary, domain=IntegerPair, twin=True)

logical_and = _truth("logical_and", "Return where both are not 0, as bools.")
logical_or = _truth("logical_or", "Return where one or both are not 0, as bools.")
logical_xor = _truth(
    "logical_xor",
    "Return where exactly one is not 0, as bools.",
    "[0, 0, 1, 1] & [0, 1, 0, 1] -> tensor([False,  True,  True, False])",
)
logical_not = unary(
    "logical_not", "Return where x is 0, as bools.", domain=AnyTensor, twin=True, samples=_TRUTH
)
bitwise_and = _bitwise("bitwise_and", "Return the bits set in both; for bools logical and.")
bitwise_or = _bitwise("bitwise_or", "Return the bits set in one or both; for bools logical or.")
bitwise_xor = _bitwise(
    "bitwise_xor",
    "Return the bits set in exactly one; for bools logical xor.",
    "[12] & [10] -> tensor([6])",
)
bitwise_not = unary(
    "bitwise_not", "Return every bit inverted; for bools logical not.", domain=Bits, twin=True
)
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
