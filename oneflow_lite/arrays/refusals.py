"""Errors of ours where NumPy or Python refuse the arguments of a call that no check has refused.

A functor that raises one of `RAW` asks here for an error of ours that says which argument does not
fit its declaration. Other functions are `guarded`, alone or with all that their module has, and
their arguments are compared with their annotations. Nothing is looked at in a call that succeeds.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    IndexRangeError,
    MissingOptionError,
    arg_error,
    brief,
    is_tensor,
    is_too_large,
    too_large_error,
)

Function = TypeVar("Function", bound=Callable[..., Any])

# What NumPy and Python raise for arguments; errors of ours are of these classes, too. A
# FloatingPointError is what `numpy.errstate` asks for.
RAW = (
    *(TypeError, ValueError, AttributeError, LookupError, OverflowError, ZeroDivisionError),
    *(MemoryError, NameError, AssertionError, BufferError),
)

# Modules that are nobody's own: an error in them is about the arguments.
_LIBRARIES = {"oneflow_lite", "numpy", "scipy", "attr", "attrs", *sys.stdlib_module_names}


# --- Guarded functions ----------------------------------------------------------------------------


def guarded(function: Function) -> Function:
    """Let a function raise errors of ours where NumPy or Python refuse its arguments."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RAW as error:
            refuse_call(function, error, args, kwargs)
            raise

    return cast(Function, call)


def guard_all(namespace: dict[str, Any]) -> None:
    """Guard the public functions of a module, and the methods of its classes."""
    for name, value in list(namespace.items()):
        if getattr(value, "__module__", "") != namespace["__name__"]:
            continue
        if isinstance(value, types.FunctionType) and not name.startswith("_"):
            namespace[name] = guarded(value)
        elif isinstance(value, type) and not issubclass(value, BaseException | tuple):
            guard_class(value)


def guard_class(cls: type, but: str = "") -> None:
    """Guard the constructor and the public methods of a class, but for one.

    A `forward` is guarded by the `__call__` of its class.
    """
    apart = {but, *(("forward", "__call__") if "forward" in vars(cls) else ())}
    for name, value in list(vars(cls).items()):
        function = value.__func__ if isinstance(value, classmethod) else value
        if name in apart or (name.startswith("_") and name not in _OF_CLASS):
            continue
        if isinstance(function, types.FunctionType) and not function.__code__.co_flags & _SUSPENDED:
            whole = guarded(function)
            setattr(cls, name, classmethod(whole) if function is not value else whole)


_OF_CLASS = ("__init__", "__new__", "__call__", "forward")  # a call of a class, or of an object
# Their bodies run after the call.
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def refuse_call(function: Callable[..., Any], error: Exception, args: Any, kwargs: Any) -> None:
    """Raise an error of ours for one of `RAW` that a function has raised for its arguments."""
    trace = error.__traceback__
    if trace is None or not trace.tb_next or not _is_ours(error):  # or it was not called at all
        return
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    told = list(_arguments(function, signature, bound.arguments))
    name = function.__qualname__.rpartition("<locals>.")[2]
    owner, _, method = name.rpartition(".")
    if owner:
        first = told.pop(0).value
        owner = (first if isinstance(first, type) else type(first)).__name__
        name = owner if method in _OF_CLASS else f"{owner}.{method}"
    _refuse(name, told, error)


class _Argument(NamedTuple):
    name: str
    value: Any
    hint: Any  # a type, or its text
    scope: Mapping[str, Any]  # of the names in the text


def _arguments(
    function: Any, signature: inspect.Signature, given: Mapping[str, Any]
) -> Iterator[_Argument]:
    scope = getattr(function, "__globals__", {})
    for name, value in given.items():
        parameter = signature.parameters[name]
        hint = parameter.annotation
        if hint is parameter.empty or value is parameter.default:
            hint = Any
        if parameter.kind is parameter.VAR_POSITIONAL:
            for i, each in enumerate(value):
                yield _Argument(f"{name}[{i}]", each, hint, scope)
        elif parameter.kind is parameter.VAR_KEYWORD:
            for key, each in value.items():
                yield _Argument(key, each, hint, scope)
        else:
            yield _Argument(name, value, hint, scope)


# --- Errors ---------------------------------------------------------------------------------------


def refuse(name: str, parameters: Iterable[Any], error: Exception, given: Any) -> None:
    """Raise an error of ours for one of `RAW` that a functor has raised for its arguments.

    parameters: those of its declaration.
    given: their values by name, and whatever else is beside them.
    """
    if _is_ours(error):
        told = [
            _Argument(p.name, given[p.name], Any if p.kind == "variadic" else p.hint, {})
            for p in parameters
            if p.name in given
        ]
        _refuse(name, told, error)


def _is_ours(error: Exception) -> bool:
    """Return whether an error is none of ours yet, and no code of a user has raised it."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in _LIBRARIES:
            return False
        trace = trace.tb_next
    return not isinstance(error, FlowError)


def _refuse(name: str, arguments: Sequence[_Argument], error: Exception) -> None:
    for argument, value, hint, scope in arguments:
        if not fits(value, _type_of(hint, scope)):
            text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
            kind, got = type(value).__name__, brief(value)
            raise arg_error(
                name,
                argument,
                f"a {text}" if text.isidentifier() else text,
                got if value is None or got.startswith(kind) else f"{kind} {got}",
                f"change it ({error})",
                ArgumentTypeError,
            ) from error
    told = ", ".join(f"{each.name}={brief(each.value)}" for each in arguments)
    raise explained(f"{name}({told})", error) from error


def explained(call: str, error: Exception) -> FlowError:
    """Return an error of ours for one of NumPy's or Python's."""
    if is_too_large(error):
        name, _, given = call.partition("(")
        return too_large_error(name, given.removesuffix(")"), error)
    kind: type[FlowError] = ArgumentError
    if isinstance(error, (TypeError, AttributeError)):
        kind = ArgumentTypeError
    elif isinstance(error, LookupError):
        kind = MissingOptionError if isinstance(error, KeyError) else IndexRangeError
    text = str(error) or type(error).__name__
    return kind(f"{call}: the arguments do not fit the op, or one another: {text}")


# --- Whether a value is of the type of its annotation ---------------------------------------------


class _Scope(dict[str, Any]):
    """The names of annotations; a class that stands above this file is known by its name alone."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, None) or vars(typing).get(name) or TypeVar(name)


def _type_of(hint: Any, scope: Mapping[str, Any]) -> Any:
    """Return the type that an annotation says; Any where it says none that is known."""
    try:
        return eval(hint, {}, _Scope(scope)) if isinstance(hint, str) else hint
    except (NameError, TypeError, AttributeError, SyntaxError):
        return Any


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value may be of an annotated type; types that are unknown fit."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in parts)
    if origin is typing.Annotated:
        return fits(value, parts[0])
    if origin is typing.Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if origin is type:
        return isinstance(value, type)
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if isinstance(hint, TypeVar):
        name = hint.__name__
        return name not in _BY_NAME or any(each.__name__ == name for each in type(value).__mro__)
    kind = hint if origin is None else origin
    if kind in _NUMBERS:
        return _is_number(value, _NUMBERS[kind])
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False) or kind is object:
        return True
    if not isinstance(value, kind) or (isinstance(value, str | bytes) and kind is not type(value)):
        return False  # a text is a sequence, but not of what was meant
    if isinstance(value, list | tuple) and parts and not issubclass(kind, Mapping):
        elements = parts[:1] if len(parts) == 1 or parts[1] is ... else ()
        return all(fits(each, element) for element in elements for each in value[:100])
    return True


# Classes that stand above this file, by the names that annotations have for them.
_BY_NAME = ("Tensor", "Parameter", "Module", "Optimizer", "Distribution", "Transform")
# The kinds of the dtypes of numbers that are taken for one of a class.
_NUMBERS = {bool: "biu", int: "iu", float: "biuf", complex: "biufc"}


def _is_number(value: Any, kinds: str) -> bool:
    if isinstance(value, np.ndarray) or is_tensor(value):
        return not value.ndim and value.dtype.kind in kinds
    if isinstance(value, np.generic):
        return value.dtype.kind in kinds
    of_python = {bool: "b", int: "i", float: "f", complex: "c"}
    return next((kind in kinds for c, kind in of_python.items() if isinstance(value, c)), False)
