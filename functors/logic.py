"""Logic on truth values and bits: what users call. The results carry no gradient."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import DTypeError
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.declare import binary, unary
from oneflow_lite.functors.domains import AnyTensor, tensor
from oneflow_lite.functors.operands import meeting
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


AnyPair = Annotated[
    Tensor, meeting(_tensors, "Of any dtype, and of shapes that broadcast together.", type="Tensor")
]
BitPair = Annotated[
    Any,
    meeting(
        _bit_pair,
        "Integers or bools, and of shapes that broadcast together.",
        "When {x} is neither an integer nor a bool.",
        sample="i(2, 3, n=9)",
    ),
]
IntegerPair = Annotated[
    Any,
    meeting(
        _integer_pair,
        "Integers, and of shapes that broadcast together.",
        "When {x} is no integer.",
        sample="i(2, 3, n=9)",
    ),
]
Bits = Annotated[
    Tensor,
    tensor(
        _bit_tensor,
        "iub",
        "Of an integer or bool dtype.",
        "i(2, 3, n=9)",
        DTypeError="When {x} is neither an integer nor a bool tensor.",
    ),
]

_truth = functools.partial(binary, domain=AnyPair, twin=True, samples="i(2, 3, n=2), i(2, 3, n=2)")
_bitwise = functools.partial(binary, domain=BitPair, twin=True)
_shift = functools.partial(binary, domain=IntegerPair)

logical_and = _truth(
    "logical_and",
    "Return where both are not 0, as bools.",
    "[0, 0, 1, 1] & [0, 1, 0, 1] -> tensor([False, False, False,  True])",
)
logical_or = _truth(
    "logical_or",
    "Return where one or both are not 0, as bools.",
    "[0, 0, 1, 1] & [0, 1, 0, 1] -> tensor([False,  True,  True,  True])",
)
logical_xor = _truth(
    "logical_xor",
    "Return where exactly one is not 0, as bools.",
    "[0, 0, 1, 1] & [0, 1, 0, 1] -> tensor([False,  True,  True, False])",
)
logical_not = unary(
    "logical_not",
    "Return where an element is 0, as bools.",
    "[0, 2] -> tensor([ True, False])",
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
    "[12] & [10] -> tensor([14])",
)
bitwise_xor = _bitwise(
    "bitwise_xor",
    "Return the bits that are set in exactly one of two integers; for bools logical xor.",
    "[12] & [10] -> tensor([6])",
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
    on="flow Tensor Tensor.__lshift__",
    twin="Tensor Tensor.__ilshift__",
)
bitwise_right_shift = _shift(
    "bitwise_right_shift",
    "Return input // 2**other; 0 or -1, by the sign, if `other` is no place in the integer.",
    "[16, -3] & [4, 1] -> tensor([ 1, -2])",
    on="flow Tensor Tensor.__rshift__",
    twin="Tensor Tensor.__irshift__",
)
