"""Derivatives from differences of values, to compare with the derivatives of gradient rules.

A complex number counts as two reals here: the derivative by z = x + iy of a real s is the pair
ds/dx, ds/dy, which is the gradient ds/dx + i ds/dy of PyTorch's convention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def reals(arrays: Iterable[Array]) -> Array:
    """Return the elements of all arrays in one row of float64, in new memory."""
    rows = [np.zeros(0)]
    for array in arrays:
        flat = np.ravel(array)  # a complex number becomes two neighbours, as `unit_steps` steps
        rows.append(flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat)
    return np.concatenate(rows, dtype=np.float64)


def unit_steps(array: Any) -> Iterator[tuple[Any, complex]]:
    """Yield the index of each element with 1, and, where it is complex, with 1j."""
    for index in np.ndindex(array.shape):
        yield index, 1.0
        if array.dtype.kind == "c":
            yield index, 1j


def difference(
    function: Callable[[], Array], array: Any, index: Any, direction: Any, eps: float
) -> Array:
    """Return the central difference of `function()` while `array[index]` moves in a direction.

    The array is written in place, and restored before this returns or raises.
    """
    before = array[index].copy()
    try:
        array[index] = before + eps * direction
        after = function()
        array[index] = before - eps * direction
        return (after - function()) / (2 * eps)
    finally:
        array[index] = before


def numerical_jacobian(function: Callable[[], Array], arrays: Sequence[Any], eps: float) -> Array:
    """Return a row of differences of `function()` for each real number in the arrays."""
    rows = [
        difference(function, array, index, step, eps)
        for array in arrays
        for index, step in unit_steps(array)
    ]
    return np.stack(rows) if rows else np.zeros((0, function().size))
