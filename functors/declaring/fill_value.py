"""Scalars that are written into a tensor: checked against its dtype before anything is written."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype import finfo
from oneflow_lite.errors import ArgumentTypeError, DTypeError
from oneflow_lite.tensors.scalars import INT_RANGE
from oneflow_lite.tensors.spellings import as_number


def fill_value(op: str, argument: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a scalar as the Python number that an element of `dtype` takes.

    Floats lose their fraction in an integer tensor, as in PyTorch. Numbers that do not fit raise.

    Raises
    ------
    ArgumentTypeError
        When `value` is not a number.
    DTypeError
        When it overflows the dtype, or is complex and the dtype real.
    """
    if not isinstance(value := as_number(value), (int, float, complex)):
        raise ArgumentTypeError(
            f"{op}(): argument '{argument}': expected a number, got {type(value).__name__}; "
            "pass a Python number or a tensor"
        )
    kind = dtype.kind
    if kind == "c":
        value = complex(value)
        if any(_largest(dtype) < abs(x) < math.inf for x in (value.real, value.imag)):
            raise _does_not_fit_error(op, argument, value, dtype)
        return value
    if isinstance(value, complex):
        if value.imag:
            raise _does_not_fit_error(op, argument, value, dtype)
        value = value.real
    if kind == "b":
        return bool(value)
    if kind == "f":
        if _largest(dtype) < abs(value) < math.inf:
            raise _does_not_fit_error(op, argument, value, dtype)
        return float(value)
    least, most = INT_RANGE[dtype]
    if not abs(value) < math.inf or not least <= int(value) <= most:
        raise _does_not_fit_error(op, argument, value, dtype)
    return int(value)


@functools.lru_cache(64)
def _largest(dtype: np.dtype[Any]) -> float:
    return float(finfo(dtype).max)


def _does_not_fit_error(op: str, argument: str, value: Any, dtype: np.dtype[Any]) -> Exception:
    return DTypeError(
        f"{op}(): argument '{argument}': expected a value that {dtype} can hold, got {value}; "
        "pass a smaller value or convert the tensor"
    )
