"""The errors of calls whose arguments no check has refused, and NumPy or Python has.

A functor that raises one of `RAW` asks here for an error of ours that says which argument does not
fit its declaration. Nothing of this runs in a call that succeeds.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from oneflow_lite.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    IndexRangeError,
    ShapeError,
    type_error,
)
from oneflow_lite.tensors.tensor import Tensor

# What NumPy and Python raise for arguments; errors of ours are of these classes, too.
RAW = (
    *(TypeError, ValueError, AttributeError, LookupError, ArithmeticError),
    *(MemoryError, NameError, AssertionError, BufferError),
)

_PACKAGE = str(Path(__file__).parents[2])
# Code under these paths is nobody's own: an error in it is about the arguments.
_LIBRARIES = (
    *(_PACKAGE, str(Path(np.__file__).parents[1] / "numpy"), "numpy/", "scipy/", "<frozen "),
    *(str(Path(np.__file__).parents[1] / "scipy"), sysconfig.get_path("stdlib")),
)
_TOO_LARGE = (
    *("array is too big", "Maximum allowed", "iterator is too large", "cannot fit"),
    *("Python int too large", "signed integer is", "maximum supported dimension"),
)


def refuse(name: str, parameters: Iterable[Any], error: BaseException, given: Any) -> None:
    """Raise an error of ours for one of `RAW`, unless it is one, or of a user's own code.

    given: the values of the parameters by name, and whatever else is beside them.
    """
    if isinstance(error, FlowError) or not _of_libraries(error.__traceback__):
        return
    given = {p: given[p.name] for p in parameters if p.name in given}
    for p, value in given.items():
        if p.kind != "variadic" and not fits(value, p.hint):
            hint = "see help() for what it takes"
            raise type_error(name, p.name, p.hint, value, hint) from error
    told = ", ".join(f"{p.name}={_brief(value)}" for p, value in given.items())
    raise explained(f"{name}({told})", error) from error


def explained(call: str, error: BaseException) -> FlowError:
    """Return an error of ours for one of NumPy's or Python's."""
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        return AllocationError(f"{call}: there is not as much memory: {text}; use smaller sizes")
    if text.startswith(_TOO_LARGE):
        return ShapeError(f"{call}: a number is larger than any size of an array; {text}")
    kind: type[FlowError] = ArgumentError
    if isinstance(error, (TypeError, AttributeError)):
        kind = ArgumentTypeError
    elif isinstance(error, IndexError):
        kind = IndexRangeError
    return kind(f"{call}: the arguments do not fit the op, or one another: {text}")


def _of_libraries(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_LIBRARIES):
            return False
        traceback = traceback.tb_next
    return True


def _brief(value: Any) -> str:
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype}{list(value.shape)}"
    text = repr(value)
    return text if len(text) < 40 else f"{text[:36]}..."


# --- Whether a value is of the type of its annotation ---------------------------------------------


def fits(value: Any, hint: str) -> bool:
    """Return whether a value is of a type, as stubs show it; True for types that are unknown."""
    checks = [_CHECKS.get(part) for part in hint.split(" | ")]
    return any(check is None or check(value) for check in checks)


def _is_number(value: Any, kinds: str) -> bool:
    if isinstance(value, (Tensor, np.ndarray)):
        return not value.ndim and value.dtype.kind in kinds
    return (
        isinstance(value, (int, float, complex, np.generic)) and np.dtype(type(value)).kind in kinds
    )


def _sequence_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (tuple, list)) and all(map(check, value))


def _is_whole(value: Any) -> bool:
    return _is_number(value, "iu")


def _is_real(value: Any) -> bool:
    return _is_number(value, "biuf")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "None": lambda value: value is None,
    "Tensor": _is_tensor,
    "int": _is_whole,
    "float": _is_real,
    "bool": lambda value: _is_number(value, "biu"),
    "str": lambda value: isinstance(value, str),
    "Sequence[int]": _sequence_of(_is_whole),
    "Sequence[float]": _sequence_of(_is_real),
    "Sequence[Tensor]": _sequence_of(_is_tensor),
    "Callable[..., Any]": callable,
}
