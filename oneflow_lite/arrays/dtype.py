"""Type promotion: dtypes are NumPy's here, as where arrays meet, and PyTorch's rules decide.

A functor asks here which dtype its operands meet in, before anything is dispatched. Functions that
users call answer with the objects of `dtype_object.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype_object import (
    CHAR,
    DTYPES,
    bfloat16,
    dtype,
    is_bfloat16,
    limits_of,
)
from oneflow_lite.errors import ArgumentTypeError, DTypeError, arg_error

float16: np.dtype[Any] = np.dtype(np.float16)
float32: np.dtype[Any] = np.dtype(np.float32)
float64: np.dtype[Any] = np.dtype(np.float64)
int8: np.dtype[Any] = np.dtype(np.int8)
int16: np.dtype[Any] = np.dtype(np.int16)
int32: np.dtype[Any] = np.dtype(np.int32)
int64: np.dtype[Any] = np.dtype(np.int64)
uint8: np.dtype[Any] = np.dtype(np.uint8)
uint16: np.dtype[Any] = np.dtype(np.uint16)
uint32: np.dtype[Any] = np.dtype(np.uint32)
uint64: np.dtype[Any] = np.dtype(np.uint64)
bool_: np.dtype[Any] = np.dtype(np.bool_)
complex64: np.dtype[Any] = np.dtype(np.complex64)
complex128: np.dtype[Any] = np.dtype(np.complex128)

SUPPORTED = (
    bool_, uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128,
    uint16, uint32, uint64,
)  # fmt: skip
DType = np.dtype[Any]
Number = float | complex  # of Python, or of NumPy
DTypeLike = dtype | DType | type[Any] | str  # as which users name a dtype
_READY = {id(known): own for own in SUPPORTED for known in (own, DTYPES[own])}  # these stay alive
SCALAR_TYPES = (bool, int, float, complex, np.generic)  # numbers beside tensors
_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_COMPLEX_OF = {"e": complex64, CHAR: complex64, "f": complex64, "d": complex128}  # by char
_default_float = float32


def default_float() -> DType:
    """Return the dtype that Python floats and promoted integers take (float32 at first)."""
    return _default_float


def get_default_dtype() -> dtype:
    """Return the default floating point dtype."""
    return DTYPES[_default_float]


def set_default_dtype(d: DTypeLike) -> None:
    """Set the default floating point dtype, as `torch.set_default_dtype`."""
    global _default_float
    chosen = as_dtype("set_default_dtype", d)
    if chosen.kind != "f":
        raise arg_error(
            "set_default_dtype",
            "d",
            expected="a floating point dtype",
            got=chosen,
            hint="pass flow.float32 or flow.float64",
            kind=DTypeError,
        )
    _default_float = chosen


def as_dtype(op: str, value: Any) -> DType:
    """Return `value` (a dtype, a NumPy scalar type, a name or a Python type) as a supported dtype.

    >>> from oneflow_lite.arrays.dtype import as_dtype
    >>> as_dtype("zeros", "float64")
    dtype('float64')
    """
    ready = _READY.get(id(value))
    if ready is not None:
        return ready
    if is_bfloat16(value):
        return bfloat16()  # type: ignore[no-any-return]
    try:
        found = np.dtype(value)
    except (TypeError, ValueError):
        found = None
    # NumPy reads None as float64, and an array as its dtype; here both are mistakes.
    has_one = hasattr(value, "dtype") and not isinstance(value, (type, np.dtype, dtype))
    if value is None or has_one:
        found = None
    if found is not None:
        native = found.newbyteorder("=")
        for known in SUPPORTED:
            if native == known:
                return known
    raise arg_error(
        op,
        "dtype",
        expected="one of " + ", ".join(map(str, SUPPORTED)),
        got=repr(value),
        hint="pass flow.float32 or another supported dtype",
        kind=ArgumentTypeError if found is None else DTypeError,
    )


def is_dtype(name: str) -> bool:
    """Return whether a text names a supported dtype."""
    try:
        return np.dtype(name) in SUPPORTED
    except TypeError:
        return False


def to_complex(d: DType) -> DType:
    """Return the complex dtype of the same precision."""
    return _COMPLEX_OF.get(d.char, d)


def promote_types(type1: DTypeLike, type2: DTypeLike) -> dtype:
    """Return the smallest dtype that both convert to, by PyTorch's table.

    It differs from NumPy's where integers meet floats: int64 and float32 give float32.

    >>> import oneflow_lite as flow
    >>> flow.promote_types(flow.int64, flow.float32)
    dtype('float32')
    """
    return DTYPES[common_dtype(type1, type2)]


def common_dtype(a: Any, b: Any) -> DType:
    """Return what `promote_types` returns, as NumPy's dtype."""
    low, high = as_dtype("promote_types", a), as_dtype("promote_types", b)
    if _CATEGORY[low.kind] > _CATEGORY[high.kind]:
        low, high = high, low
    if low is high or _CATEGORY[low.kind] < 2 <= _CATEGORY[high.kind]:
        return high
    if CHAR in (low.char, high.char):  # bfloat16 and another float, or a complex dtype
        other = high if low.char == CHAR else low
        return float32 if other is float16 else other
    common = np.promote_types(low, high)
    if common.kind == "f" and high.kind != "f":  # NumPy's answer for uint64 and a signed integer
        raise arg_error(
            "promote_types",
            "b",
            expected=f"a dtype that meets {a} in an integer one",
            got=b,
            hint="convert one of them with .long()",
            kind=DTypeError,
        )
    return common


def scalar_dtype(value: Any) -> DType:
    """Return the dtype that a scalar stands for: bool, int64 or the default float or complex."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return _default_float
    return to_complex(_default_float)


def _combine(high: DType | None, low: DType | None) -> DType | None:
    """Join the results of two ranks of operands: the lower rank can raise only the category."""
    if high is None or low is None:
        return high if low is None else low
    if high.kind == "c":
        return high
    if high.kind == "f":
        return to_complex(high) if low.kind == "c" else high
    if high.kind == "b" or low.kind in "fc":
        return common_dtype(high, low)
    return high


def result_dtype(
    arrays: list[tuple[DType, int]], scalars: list[Any] | tuple[Any, ...] = ()
) -> DType:
    """Return the dtype in which operands meet.

    Parameters
    ----------
    arrays : list of (dtype, ndim)
        Tensors of one or more dimensions outrank 0-d tensors, which outrank scalars.
    scalars : list
        Python or NumPy scalars.
    """
    ranks: list[DType | None] = [None, None, None]
    for d, ndim in arrays:
        rank = 0 if ndim else 1
        seen = ranks[rank]
        ranks[rank] = d if seen is None else common_dtype(seen, d)
    for value in scalars:
        seen = ranks[2]
        ranks[2] = scalar_dtype(value) if seen is None else common_dtype(seen, scalar_dtype(value))
    result = _combine(_combine(ranks[0], ranks[1]), ranks[2])
    return _default_float if result is None else result


def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Return whether a cast keeps the category: floats do not become integers.

    >>> import oneflow_lite as flow
    >>> flow.can_cast(flow.float64, flow.float32), flow.can_cast(flow.float32, flow.int64)
    (True, False)
    """
    source, target = as_dtype("can_cast", from_), as_dtype("can_cast", to)
    return _CATEGORY[source.kind] <= _CATEGORY[target.kind]


class finfo:
    """The limits of a floating point or complex dtype, by default of the default dtype.

    Attributes
    ----------
    bits : int
    eps, max, min, resolution, smallest_normal, tiny : float
    dtype : dtype

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.finfo(flow.float32).eps == 2**-23
    True
    """

    def __init__(self, type: DTypeLike | None = None) -> None:
        if (known := getattr(type, "limits", None)) is not None:  # of a dtype that is not here
            vars(self).update(known, dtype=type)
            return
        chosen = _default_float if type is None else _dtype_of("finfo", type)
        if chosen.kind not in "fc":
            raise arg_error(
                "finfo",
                "type",
                expected="a floating point or complex dtype",
                got=chosen,
                hint="use iinfo() for integers",
                kind=ArgumentTypeError,
            )
        limits = limits_of(chosen)
        self.bits = int(limits.bits)
        for name in ("eps", "max", "min", "smallest_normal", "tiny"):
            setattr(self, name, float(getattr(limits, name)))
        self.resolution = float(f"1e-{limits.precision}")
        self.dtype = DTYPES[chosen if chosen.kind == "f" else limits.dtype]

    eps: float
    max: float
    min: float
    smallest_normal: float
    tiny: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        values = ", ".join([f"{name}={getattr(self, name):g}" for name in names])
        return f"finfo({values}, dtype={self.dtype.name})"


class iinfo:
    """The limits of an integer dtype.

    Attributes
    ----------
    bits, max, min : int
    dtype : dtype

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.iinfo(flow.int8).max
    127
    """

    def __init__(self, type: DTypeLike) -> None:
        chosen = _dtype_of("iinfo", type)
        if chosen.kind not in "iu":
            raise arg_error(
                "iinfo",
                "type",
                expected="an integer dtype",
                got=chosen,
                hint="use finfo() for floats",
                kind=ArgumentTypeError,
            )
        limits = np.iinfo(chosen)
        self.bits = int(limits.bits)
        self.max = int(limits.max)
        self.min = int(limits.min)
        self.dtype = DTYPES[chosen]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


def _dtype_of(op: str, value: Any) -> DType:
    """Return a dtype, or that of an array."""
    is_array = hasattr(value, "dtype") and not isinstance(value, (type, np.dtype, dtype))
    return as_dtype(op, value.dtype if is_array else value)
