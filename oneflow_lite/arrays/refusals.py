"""The errors of calls whose arguments no check has refused, and NumPy or Python has.

A functor that raises one of `RAW` asks here for an error of ours that says which argument does not
fit its declaration; other functions are `guarded`. Nothing is looked at in a call that succeeds.
"""

from __future__ import annotations

import functools
import inspect
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    IndexRangeError,
    is_too_large,
    shown,
    too_large_error,
    type_error,
)

Function = TypeVar("Function", bound=Callable[..., Any])

# What NumPy and Python raise for arguments; errors of ours are of these classes, too. A
# FloatingPointError is what `numpy.errstate` asks for.
RAW = (
    *(TypeError, ValueError, AttributeError, LookupError, OverflowError, ZeroDivisionError),
    *(MemoryError, NameError, AssertionError, BufferError),
)

# Code under these paths is nobody's own: an error in it is about the arguments.
_SITE, _PACKAGE = Path(np.__file__).parents[1], Path(__file__).parents[1]
_LIBRARIES = (
    *(str(_PACKAGE), str(_PACKAGE.resolve()), sysconfig.get_path("stdlib"), "<frozen "),
    *(str(_SITE / "numpy"), str(_SITE / "scipy"), "numpy/", "scipy/"),
)


def refuse(name: str, parameters: Iterable[Any], error: Exception, given: Any) -> None:
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


class _Parameter(NamedTuple):
    name: str
    kind: str
    hint: str


def guarded(function: Function) -> Function:
    """Let a function raise errors of ours where NumPy or Python refuse its arguments."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RAW as error:
            if error.__traceback__ and error.__traceback__.tb_next:  # it was called at all
                signature = inspect.signature(function)
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                parameters = [_parameter(p) for p in signature.parameters.values()]
                names = function.__qualname__.split(".")
                name = names[-2] if names[-1] in ("__init__", "__new__") else names[-1]
                refuse(name, parameters, error, bound.arguments)
            raise

    return cast(Function, call)


def _parameter(parameter: inspect.Parameter) -> _Parameter:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    hint = parameter.annotation
    hint = "" if hint is parameter.empty else hint if isinstance(hint, str) else _spelled(hint)
    return _Parameter(parameter.name, "variadic" if variadic else "", hint)


def _spelled(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def explained(call: str, error: Exception) -> FlowError:
    """Return an error of ours for one of NumPy's or Python's."""
    if is_too_large(error):
        name, _, given = call.partition("(")
        return too_large_error(name, given.removesuffix(")"), error)
    kind: type[FlowError] = ArgumentError
    if isinstance(error, (TypeError, AttributeError)):
        kind = ArgumentTypeError
    elif isinstance(error, IndexError):
        kind = IndexRangeError
    text = str(error) or type(error).__name__
    return kind(f"{call}: the arguments do not fit the op, or one another: {text}")


def _of_libraries(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_LIBRARIES):
            return False
        traceback = traceback.tb_next
    return True


def _brief(value: Any) -> str:
    if _is_array(value):
        return f"{value.dtype}{list(value.shape)}"
    if not isinstance(value, (str, bytes, int, float, complex, tuple, list, type, type(None))):
        return type(value).__name__
    text = shown(value)
    return text if len(text) < 40 else f"{text[:36]}..."


# --- Whether a value is of the type of its annotation ---------------------------------------------


def fits(value: Any, hint: str) -> bool:
    """Return whether a value is of a type, as stubs show it; True for types that are unknown."""
    checks = [_CHECKS.get(part) for part in hint.split(" | ")]
    return any(check is None or check(value) for check in checks)


def _is_number(value: Any, kinds: str) -> bool:
    if _is_array(value):
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
    return hasattr(value, "_data")  # Tensor stands above this file


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value)


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
    "Tensors": lambda value: _is_tensor(value) or isinstance(value, (tuple, list)),
}
