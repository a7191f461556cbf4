"""Finds arrays that lie in the same memory, by their addresses, whoever handed the memory out."""

from __future__ import annotations

from typing import Any

import numpy as np


def bounds(array: Any) -> tuple[int, int]:
    """Return the first address of an array and the one after its last."""
    pointer = getattr(array.data, "ptr", None)
    low = high = array.__array_interface__["data"][0] if pointer is None else pointer
    for size, stride in zip(array.shape, array.strides, strict=True):
        reach = (size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize


def overlap(a: Any, b: Any) -> bool:
    """Return whether two arrays may share memory."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.may_share_memory(a, b))
    if not (a.size and b.size):
        return False
    (low, high), (begin, end) = bounds(a), bounds(b)
    return low < end and begin < high
