"""What kernels of several families share: masks without branches, clipping, erf, a check.

Kernels call these on bare arrays; nothing here is an op.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.special_functions import special

# From so many elements on, several simple passes over an array are quicker than one clever call.
_LARGE = 1024
# From so many on, NumPy's vectorised clip outweighs what it costs to call.
_LARGE_FOR_CLIP = 8192
_INTEGER_OF_SIZE = {2: np.dtype("i2"), 4: np.dtype("i4"), 8: np.dtype("i8")}

# For kernels whose steps may overflow on the way to a right result, as 1 / (1 + exp(-x)) does.
quiet_overflow = np.errstate(over="ignore")


def select(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    """Return x where `condition` holds, else y; all of one shape, x and y of one float dtype.

    NumPy's `where` branches on every element. Where the outcome has no pattern, as in most
    activations, mispredicted branches make it ten times slower than selecting bits.
    """
    if x.size < _LARGE or xp is not np:
        return xp.where(condition, x, y)
    integer = _INTEGER_OF_SIZE[x.dtype.itemsize]
    y_bits = y.view(integer)
    bits = x.view(integer) ^ y_bits
    bits &= -condition.view(np.int8)  # True becomes -1: all bits set
    bits ^= y_bits
    return bits.view(x.dtype)


def keep_where(xp: Any, condition: Any, x: Any) -> Any:
    """Return x where `condition` holds, else 0: also for an inf or nan, unlike `x * condition`."""
    if x.size < _LARGE or xp is not np:
        return xp.where(condition, x, 0)
    integer = _INTEGER_OF_SIZE[x.dtype.itemsize]
    return (x.view(integer) & -condition.view(np.int8)).view(x.dtype)


def clip(xp: Any, x: Any, low: Any, high: Any) -> Any:
    """Return x kept between two numbers; nan stays nan."""
    if x.size < _LARGE_FOR_CLIP:
        return xp.minimum(xp.maximum(x, low), high)
    return xp.clip(x, low, high)


def at_least(xp: Any, x: Any, low: Any) -> Any:
    """Return the larger of x and a number; nan stays nan.

    NumPy vectorises clip with numbers, but maximum only between two arrays.
    """
    if x.size < _LARGE_FOR_CLIP or x.dtype.kind != "f":
        return xp.maximum(x, low)
    return xp.clip(x, low, math.inf)


def at_most(xp: Any, x: Any, high: Any) -> Any:
    """Return the smaller of x and a number; nan stays nan."""
    if x.size < _LARGE_FOR_CLIP or x.dtype.kind != "f":
        return xp.minimum(x, high)
    return xp.clip(x, -math.inf, high)


def check_probabilities(xp: Any, op: str, argument: str, values: Any, mend: str) -> None:
    """Raise `ArgumentError` unless all values lie in 0 … 1; on CUDA a look would be a copy."""
    if not on_host(xp) or not values.size:
        return
    low, high = values.min(), values.max()
    if low >= 0 and high <= 1:
        return
    raise bad_argument(
        ArgumentError,
        op,
        argument,
        expected="values from 0 to 1",
        got=f"{low} to {high}",
        mend=mend,
    )


# erf(x) = tanh(x P(x²)): P has no poles, and tanh flattens its error where erf is near 1. These
# coefficients minimise the largest relative error over |x| ≤ 4 (1e-7); beyond, float32's erf is ±1.
_ERF_LIMIT_SQUARED = 16.0
_ERF_COEFFICIENTS = (
    1.41893660e-07,
    -5.66902795e-06,
    8.76398750e-05,
    -6.19789613e-04,
    -1.91826846e-04,
    1.02769055e-01,
    1.12837927,
)


def erf(xp: Any, x: Any) -> Any:
    """Return the error function of a real array, in fresh memory.

    SciPy's goes element by element; on many float32 numbers NumPy's vectorised tanh with a fitted
    polynomial is ten times quicker and within 4 units in the last place.
    """
    if x.size < _LARGE or xp is not np or x.dtype.char != "f":
        return special(xp).erf(x)
    with np.errstate(over="ignore"):
        square = at_most(xp, x * x, _ERF_LIMIT_SQUARED)
    y = square * _ERF_COEFFICIENTS[0]
    for coefficient in _ERF_COEFFICIENTS[1:-1]:
        y += coefficient
        y *= square
    y += _ERF_COEFFICIENTS[-1]
    y *= x
    return np.tanh(y, out=y)
