"""ArraySpec: an array without its content, as infer rules take and give it."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

Array = np.ndarray[Any, Any]
Strides = tuple[int, ...]


@attrs.frozen
class ArraySpec:
    """Shape, dtype and layout of an array.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    strides : tuple of int or None
        In bytes; None for C order.

    >>> import numpy as np
    >>> from oneflow_lite.arrays.array_spec import ArraySpec
    >>> ArraySpec.of(np.zeros((2, 3), np.float32).T)
    ArraySpec(shape=(3, 2), dtype=dtype('float32'), strides=(4, 12))
    """

    shape: tuple[int, ...]
    dtype: Any
    strides: Strides | None = None

    @classmethod
    def of(cls, array: Any) -> ArraySpec:
        """Describe an array, or another description; C order becomes None."""
        strides = array.strides
        if strides is not None and in_c_order(array.shape, array.dtype.itemsize, strides):
            strides = None
        return cls(tuple(array.shape), array.dtype, strides)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def reshaped(self, shape: tuple[int, ...]) -> ArraySpec:
        """Describe this array in another shape: a view, or a copy in C order."""
        if self.strides is None:
            return ArraySpec(shape, self.dtype)
        try:
            return ArraySpec.of(self.phantom().reshape(shape, copy=False))
        except ValueError:  # NumPy would have to copy
            return ArraySpec(shape, self.dtype)
        except TypeError:  # of NumPy 2.0, which cannot tell
            return ArraySpec.of(self.allocate().reshape(shape))

    def phantom(self) -> Array:
        """Return an array of this description without content: for views, never to be read."""
        strides = self.strides or c_strides(self.shape, self.dtype.itemsize)
        return np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, strides)

    def allocate(self) -> Array:
        """Return an array of this description in memory of its own, filled with zeros."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        strides = self.strides or c_strides(self.shape, self.dtype.itemsize)
        ends = [(n - 1) * stride for n, stride in zip(self.shape, strides, strict=True)]
        first = -sum(end for end in ends if end < 0)
        last = sum(end for end in ends if end > 0)
        # With negative strides the first element lies at the end, so the array starts inside.
        memory = np.zeros(first + last + self.dtype.itemsize, np.uint8)
        return np.ndarray(self.shape, self.dtype, memory.data, first, strides)


def c_strides(shape: tuple[int, ...], itemsize: int) -> Strides:
    """Return the strides of C order in bytes."""
    strides = [itemsize] * len(shape)
    for dim in range(len(shape) - 1, 0, -1):
        strides[dim - 1] = strides[dim] * shape[dim]
    return tuple(strides)


def in_c_order(shape: tuple[int, ...], itemsize: int, strides: Strides) -> bool:
    """Return whether elements follow each other in C order; in a dimension of 1 any stride does."""
    if 0 in shape:
        return True
    expected = c_strides(shape, itemsize)
    return all(n == 1 or s == e for n, s, e in zip(shape, strides, expected, strict=True))


def overlaps(array: Any) -> bool:
    """Return whether two elements may share memory. CuPy has no flag for it."""
    reach = array.itemsize  # how much memory the dimensions with smaller strides take
    for stride, size in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if size > 1:
            if stride < reach:
                return True
            reach += stride * (size - 1)
    return False


def address(array: Any) -> int:
    """Return where the first element of an array lies in memory, of the host or of a device."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return int(array.data.ptr)


def owner(array: Any) -> Any:
    """Return the array that owns the memory of an array, as far as the bases tell."""
    kind, base = type(array), array.base
    while base is not None:
        if isinstance(base, kind):
            array = base
        base = getattr(base, "base", None)  # as_strided puts an object of its own in between
    return array


def memory_holder(array: Any) -> Any:
    """Return the object in whose memory an array lies, of any class, as far as the bases tell."""
    base = array.base
    while base is not None:
        array = base
        base = getattr(array, "base", None)
    return array


def bounds(array: Any) -> tuple[int, int]:
    """Return the first address of an array and the one after its last."""
    low = high = address(array)
    for size, stride in zip(array.shape, array.strides, strict=True):
        reach = (size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize


def may_share_memory(a: Any, b: Any) -> bool:
    """Return whether two arrays may share memory."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.may_share_memory(a, b))
    if not (a.size and b.size):
        return False
    (low, high), (begin, end) = bounds(a), bounds(b)
    return low < end and begin < high
