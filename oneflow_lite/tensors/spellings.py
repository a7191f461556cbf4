"""Other spellings of arguments: NumPy's names, numbers as 0-d tensors, masks of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

# NumPy's names of parameters, which PyTorch's functions take as well.
NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}
NOTHING: Any = type("nothing", (), {"__repr__": lambda self: "nothing"})()  # no argument was given


def one_of(op: str, argument: str, value: Any, default: Any, other: str, given: Any) -> Any:
    """Return the value given under an argument's other name; raise where both names were used."""
    if value is default or (not isinstance(value, Tensor) and value == default):
        return given
    expected = f"one of {argument} and {other}"
    raise arg_error(op, other, expected, "both", "leave one out", ArgumentTypeError)


def as_number(value: Any) -> Any:
    """Return a NumPy scalar, 0-d array or 0-d tensor as a number; any other value as it is.

    A tensor that requires a gradient stays a tensor: its gradient would be lost.
    """
    if isinstance(value, (np.generic, np.ndarray, Tensor)) and not value.ndim:
        return value if getattr(value, "requires_grad", False) else value.item()
    return value


def byte_mask(op: str, mask: Tensor) -> Tensor:
    """Return a mask of dtype uint8 as a mask of bools, and warn that PyTorch will drop uint8."""
    warn_caller(f"{op}(): a mask of dtype uint8 is deprecated; use one of bools, as of .bool()")
    result: Tensor = mask.bool()
    return result
