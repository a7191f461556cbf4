"""Arithmetic that kernels of several families share: masks without branches, erf, float16.

Kernels call these on bare arrays; nothing here is an op.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.kernels.special_functions import special

# Below this many elements one call of a general function is quicker than several simple ones.
_LARGE = 1024
_INTEGER_OF_SIZE = {2: np.dtype("i2"), 4: np.dtype("i4"), 8: np.dtype("i8")}


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


def in_single_precision(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let a kernel of several steps compute float16 in float32 and round once, as PyTorch does."""

    @functools.wraps(kernel)
    def rounded_once(xp: Any, *arrays: Any, **attrs: Any) -> Any:
        if arrays[0].dtype.char != "e":
            return kernel(xp, *arrays, **attrs)
        widened = [array.astype(np.float32) for array in arrays]
        return kernel(xp, *widened, **attrs).astype(np.float16)

    return rounded_once


# erf(x) = tanh(x P(x²)): P has no poles, and tanh flattens its error where erf is near 1. These
# coefficients minimise the largest relative error over |x| ≤ 4 (7e-8); beyond, float32's erf is ±1.
_ERF_LIMIT_SQUARED = 16.0
_ERF_COEFFICIENTS = (
    5.68925388e-09,
    2.21621835e-08,
    -4.75467470e-06,
    8.44619935e-05,
    -6.14625381e-04,
    -1.95433254e-04,
    1.02769897e-01,
    1.12837925,
)


def erf(xp: Any, x: Any) -> Any:
    """Return the error function of a real array, in fresh memory.

    SciPy's goes element by element; on many float32 numbers NumPy's vectorised tanh with a fitted
    polynomial is ten times quicker and within 4 units in the last place.
    """
    if x.size < _LARGE or xp is not np or x.dtype.char != "f":
        return special(xp).erf(x)
    square = x * x
    np.minimum(square, _ERF_LIMIT_SQUARED, out=square)
    y = square * _ERF_COEFFICIENTS[0]
    for coefficient in _ERF_COEFFICIENTS[1:-1]:
        y += coefficient
        y *= square
    y += _ERF_COEFFICIENTS[-1]
    y *= x
    return np.tanh(y, out=y)
