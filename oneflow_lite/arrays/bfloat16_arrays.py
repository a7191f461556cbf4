"""bfloat16, through the package ml_dtypes: the dtype, and arrays of it.

NumPy does not take the dtype of ml_dtypes for a float (its kind is "V"), and many of NumPy's
functions refuse it. So `flow.bfloat16` is an object of its own with the kind "f", which arrays of
the class `BFloat16Array` show as their dtype. Ops compute in float32: dispatch sees the class,
casts, and rounds the result. Tensors of usual arrays pay nothing for it.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import numpy as np

from oneflow_lite.errors import DTypeError

CHAR: str = "E"  # of the dtype
Array = TypeVar("Array")
_INSTALL = "pip install 'oneflow_lite[bfloat16]'"


class BFloat16DType:
    """The dtype `flow.bfloat16`; NumPy takes it wherever it takes a dtype."""

    kind, char, name, itemsize = "f", CHAR, "bfloat16", 2
    isnative, byteorder, names, fields, shape = True, "=", None, None, ()

    def __init__(self, dtype: np.dtype[Any], finfo: Any) -> None:
        self.dtype = dtype  # NumPy takes any object with a `dtype` for that dtype
        self.type = dtype.type
        self.finfo = finfo

    def adopt(self, array: Any) -> Any:
        """Return an array of ml_dtypes' dtype as one that shows this dtype."""
        return array.view(BFloat16Array)

    def newbyteorder(self, order: str = "S") -> BFloat16DType:
        """Return itself: bytes are in native order."""
        return self

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        try:
            return bool(np.dtype(other) == self.dtype)  # type: ignore[call-overload]
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return "dtype(bfloat16)"

    def __reduce__(self) -> Any:
        return bfloat16, ()


@functools.cache
def bfloat16() -> Any:
    """Return the dtype; import ml_dtypes for it.

    Raises
    ------
    DTypeError
        When ml_dtypes is not installed.
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise DTypeError(
            f"bfloat16 needs the package ml_dtypes, which cannot be imported; {_INSTALL}"
        ) from error
    dtype = np.dtype(ml_dtypes.bfloat16)
    finfo: Any = ml_dtypes.finfo
    return BFloat16DType(dtype, finfo(dtype))


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


def as_plain(array: Any) -> Any:
    """Return the array for another library, with the dtype of ml_dtypes.

    An array that only stands for others says itself what it is, or raises.
    """
    if type(array) is np.ndarray:
        return array
    if type(array) is BFloat16Array:
        return array.view(np.ndarray)
    return array.get() if getattr(array, "levels", None) else array


def is_bfloat16(value: Any) -> bool:
    """Return whether a value is, or names, the dtype bfloat16."""
    if isinstance(value, BFloat16DType):
        return True
    if isinstance(value, str):
        return value == "bfloat16"
    try:
        dtype = np.dtype(value)
    except TypeError:
        return False
    return bool(dtype.kind == "V" and dtype.name == "bfloat16")
