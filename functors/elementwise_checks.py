"""Argument checks that elementwise functors share."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, DTypeError, bad_argument
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.interpreter import promote
from oneflow_lite.tensor import Tensor


def real(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it is no complex tensor; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind != "c":
        return value
    raise bad_argument(
        DTypeError,
        op,
        argument,
        expected="a real dtype",
        got=value.dtype,
        mend="take its .real and .imag, or .abs()",
    )


def real_floating(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when its dtype is a real floating one; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind == "f":
        return value
    raise bad_argument(
        DTypeError,
        op,
        argument,
        expected="a real floating point dtype",
        got=value.dtype,
        mend="convert it with .float()",
    )


def real_floating_pair(op: str, input: Tensor, other: Tensor) -> list[Tensor]:
    """Return two operands in one dtype; raise `DTypeError` when it is no real floating one."""
    operands = promote(op, check_tensor(op, "input", input), check_tensor(op, "other", other))
    if operands[0]._data.dtype.kind != "f":  # then one of the two is the cause
        real_floating(op, input)
        real_floating(op, other, "other")
    return operands


def check_number(op: str, argument: str, value: Any) -> float:
    """Return `value` as a Python float; raise `ArgumentTypeError` when it is no real number."""
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    raise bad_argument(
        ArgumentTypeError, op, argument, expected="a number", got=repr(value), mend="pass a float"
    )
