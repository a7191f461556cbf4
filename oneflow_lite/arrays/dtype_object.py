"""The dtypes as users see them: one object each, with PyTorch's attributes and NumPy's.

Arrays, kernels and attributes of ops have NumPy's dtypes. Users get an object of the class `dtype`,
as `x.dtype` or `flow.float32`. It equals NumPy's and hashes as it, and NumPy takes it wherever it
takes a dtype.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import DTypeError

CHAR: str = "E"  # of bfloat16
HALVES = "e" + CHAR
_INSTALL = "pip install 'oneflow_lite[bfloat16]'"
_DType: TypeAlias = "dtype"  # within the class the name is that of an attribute


class dtype:
    """The type of a tensor's elements: `flow.float32` and its kind.

    Attributes
    ----------
    is_floating_point, is_complex, is_signed : bool
    itemsize : int
        Bytes of an element.
    name : str
    dtype : numpy.dtype
        NumPy's dtype. Its other attributes (`kind`, `char`, `type`, ...) are found here, too.

    Examples
    --------
    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> x = flow.ones(2)
    >>> x.dtype is flow.float32, x.dtype == np.float32, x.dtype.is_floating_point
    (True, True, True)
    >>> np.zeros(2, x.dtype)
    array([0., 0.], dtype=float32)
    """

    __slots__ = (
        "__numpy_dtype__", "char", "dtype", "is_complex", "is_floating_point", "is_signed",
        "itemsize", "kind", "name", "num", "type",
    )  # fmt: skip

    # In front of the name in texts: "torch." while `import torch` means this library.
    prefix: ClassVar[str] = ""

    char: str
    dtype: np.dtype[Any]  # NumPy takes any object that has it for that dtype
    is_complex: bool
    is_floating_point: bool
    is_signed: bool
    itemsize: int
    kind: str
    name: str
    num: int
    type: Any

    @guarded
    def __new__(cls, value: Any) -> Self:
        found: Any = bfloat16() if is_bfloat16(value) else DTYPES[np.dtype(value)]
        return found  # type: ignore[no-any-return]

    def _describe(self, own: np.dtype[Any], kind: str, char: str) -> None:
        self.__numpy_dtype__ = self.dtype = own
        self.kind, self.char, self.name, self.num = kind, char, own.name, own.num
        self.type, self.itemsize = own.type, own.itemsize
        self.is_floating_point, self.is_complex = kind == "f", kind == "c"
        self.is_signed = kind in "ifc"

    @property
    def abbr(self) -> str:
        """The name in a few letters, as "f32"."""
        return f"{'b' if self.char == CHAR else ''}{self.kind}{8 * self.itemsize}"

    def to_complex(self) -> _DType:
        """Return the complex dtype of the same precision; for both half dtypes it is complex64.

        >>> import oneflow_lite as flow
        >>> flow.float64.to_complex(), flow.complex64.to_real()
        (dtype('complex128'), dtype('float32'))
        """
        if self.kind not in "fc":
            raise DTypeError(f"to_complex(): {self} has no complex dtype; convert to a float first")
        return self if self.is_complex else complex128 if self is float64 else complex64

    def to_real(self) -> _DType:
        """Return the dtype of the real part."""
        return self if not self.is_complex else float64 if self is complex128 else float32

    @guarded
    def newbyteorder(self, order: Any = "S") -> Any:
        """Return NumPy's dtype of another byte order; bfloat16, which has one alone, itself."""
        return self if self.char == CHAR else self.dtype.newbyteorder(order)

    def __getattr__(self, name: str) -> Any:
        # It stands for no protocol, and is no array, which has a dtype and a shape.
        if name.startswith("__") or name in ("shape", "ndim"):
            raise AttributeError(name, name=name, obj=self)
        return getattr(self.dtype, name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return other is self
        # NumPy takes None, and anything with a dtype, for a dtype.
        return isinstance(other, (np.dtype, type, str)) and bool(self.dtype == other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return self.prefix + self.name

    def __repr__(self) -> str:
        return str(self) if self.prefix else repr(self.dtype)

    def __reduce__(self) -> Any:
        return dtype, (self.name,)


DTYPE_CLASSES = (np.dtype, dtype)


class _DTypes(dict[Any, dtype]):
    """The object for each of NumPy's dtypes."""

    def __missing__(self, own: np.dtype[Any]) -> dtype:
        made = self[own] = object.__new__(dtype)
        made._describe(own, own.kind, own.char)
        return made


DTYPES = _DTypes()

bool_: dtype = DTYPES[np.dtype(np.bool_)]
uint8: dtype = DTYPES[np.dtype(np.uint8)]
uint16: dtype = DTYPES[np.dtype(np.uint16)]
uint32: dtype = DTYPES[np.dtype(np.uint32)]
uint64: dtype = DTYPES[np.dtype(np.uint64)]
int8: dtype = DTYPES[np.dtype(np.int8)]
int16: dtype = DTYPES[np.dtype(np.int16)]
int32: dtype = DTYPES[np.dtype(np.int32)]
int64: dtype = DTYPES[np.dtype(np.int64)]
float16: dtype = DTYPES[np.dtype(np.float16)]
float32: dtype = DTYPES[np.dtype(np.float32)]
float64: dtype = DTYPES[np.dtype(np.float64)]
complex64: dtype = DTYPES[np.dtype(np.complex64)]
complex128: dtype = DTYPES[np.dtype(np.complex128)]


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
    own = np.dtype(ml_dtypes.bfloat16)
    made = object.__new__(dtype)
    made._describe(own, "f", CHAR)
    DTYPES[own] = made
    return made


def limits_of(d: Any) -> Any:
    """Return NumPy's description of a floating point or complex dtype, or that of ml_dtypes."""
    if d.char != CHAR:
        return np.finfo(d)
    import ml_dtypes

    made: Any = ml_dtypes.finfo
    return made(d.dtype)


def is_bfloat16(value: Any) -> bool:
    """Return whether a value is, or names, the dtype bfloat16."""
    if isinstance(value, dtype):
        return value.char == CHAR
    if isinstance(value, str):
        return value == "bfloat16"
    try:
        own = np.dtype(value)
    except (TypeError, ValueError):  # of what has a dtype that NumPy does not take
        return False
    return bool(own.kind == "V" and own.name == "bfloat16")
