"""Arrays of bfloat16, whose dtype comes from the package ml_dtypes.

NumPy does not take the dtype of ml_dtypes for a float (its kind is "V"), and many of NumPy's
functions refuse it. So arrays of the class `BFloat16Array` show as their dtype `flow.bfloat16`, an
object with the kind "f". Ops compute in float32: dispatch sees the class, casts, and rounds the
result. Tensors of usual arrays pay nothing for it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from oneflow_lite.arrays.dtype_object import bfloat16

Array = TypeVar("Array")


class BFloat16Array(np.ndarray[Any, Any]):
    """An array whose `dtype` is `flow.bfloat16`."""

    @property
    def dtype(self) -> Any:
        """`flow.bfloat16`, or the true dtype where a function of NumPy changed it."""
        own = np.ndarray.dtype.__get__(self)
        return bfloat16() if own.kind == "V" else own

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return a copy in a dtype, of the class for bfloat16 alone."""
        return adopted(self.view(np.ndarray).astype(dtype, *args, **options))

    def item(self, *index: Any) -> Any:
        """Return an element as a Python float."""
        return float(super().item(*index))

    def tolist(self) -> Any:
        """Return nested lists of Python floats."""
        return self.astype(np.float32).tolist()


def adopted(array: Array) -> Array:
    """Return the array, as a `BFloat16Array` where it holds bfloat16."""
    return array.view(BFloat16Array) if array.dtype.kind == "V" else array  # type: ignore[attr-defined]


def seen_as(array: Array, dtype: Any) -> Array:
    """Return the memory of an array as elements of another dtype."""
    plain: Any = array.view(np.ndarray) if isinstance(array, BFloat16Array) else array
    return adopted(plain.view(dtype))  # type: ignore[no-any-return]


def as_plain(array: Any) -> Any:
    """Return the array for another library, with the dtype of ml_dtypes.

    An array that only stands for others says itself what it is, or raises.
    """
    if type(array) is np.ndarray:
        return array
    if type(array) is BFloat16Array:
        return array.view(np.ndarray)
    return array.get() if getattr(array, "levels", None) else array
