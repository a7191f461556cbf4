"""Errors for arguments of wrong types, from the annotations of the functions that were called.

A function of tensors declares its arguments (`functors/declaring`). Other functions are annotated,
and nothing is checked while they run: when one fails as Python or NumPy fail, the arguments are
compared with the annotations, and one that differs is named.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, FlowError, arg_error, shown

RAW = (AttributeError, TypeError, ValueError, LookupError, OverflowError, AssertionError)
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OF_PYTHON = (os.path.dirname(os.path.abspath(os.__file__)), os.path.dirname(np.__file__), "<")
_ALSO = {float: (int, np.number), int: (np.integer,), complex: (int, float, np.number)}

# Classes of arguments whose annotation is Any, as numbers do, too, where they can.
_BY_NAME = {
    **dict.fromkeys(
        """cov_diag cov_factor covariance_matrix concentration concentration0
        concentration1 df grad high input loc logits low mean precision_matrix probs
        rate scale scale_tril target temperature tensor value x y""".split(),
        "Tensor",
    ),
    **dict.fromkeys(["sample_shape", "batch_shape", "shape", "event_shape"], "Sequence"),
    **dict.fromkeys(["_instance", "base_distribution", "base_dist", "p", "q"], "Distribution"),
    **dict.fromkeys(["base_transform", "transform"], "Transform"),
    **dict.fromkeys(["module", "model", "conv", "bn", "linear"], "Module"),
    "sequence": "PackedSequence",
    "optimizer": "Optimizer",
}


def explain_constructors(namespace: dict[str, Any]) -> None:
    """Have the constructors of a module's classes name wrong arguments."""
    for value in list(namespace.values()):
        if isinstance(value, type) and value.__module__ == namespace["__name__"]:
            explain_types_of(value, methods=False)


def explain_types(namespace: dict[str, Any]) -> None:
    """Have the public functions, constructors and methods of a module name wrong arguments."""
    for name, value in list(namespace.items()):
        if getattr(value, "__module__", "") != namespace["__name__"]:
            continue
        if isinstance(value, types.FunctionType) and not name.startswith("_"):
            namespace[name] = explaining(value, name)
        elif isinstance(value, type) and not issubclass(value, BaseException | tuple):
            explain_types_of(value)


def explain_types_of(cls: type, methods: bool = True) -> None:
    """Have the constructor, and the public methods, of a class name wrong arguments."""
    for name, value in list(vars(cls).items()):
        if not isinstance(value, types.FunctionType) or inspect.iscoroutinefunction(value):
            continue
        if name == "__init__" or (name == "__call__" and methods):
            setattr(cls, name, explaining(value, "" if name == "__init__" else ".__call__"))
        elif methods and not name.startswith("_") and not inspect.isgeneratorfunction(value):
            setattr(cls, name, explaining(value, f".{name}"))


def explaining(function: Callable[..., Any], op: str) -> Callable[..., Any]:
    """Return the function with an error that names an argument of a wrong type.

    A method's `op` lacks the name of the class, that of its first argument.
    """
    method = not op or op.startswith(".")

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RAW as error:
            named = type(args[0]).__name__ + op if method else op
            told = explained(error, named, function, args, kwargs)
            if told is error:
                raise
            raise told from error

    return called


def explained(
    error: Exception, op: str, function: Callable[..., Any], args: Any, kwargs: Any
) -> Exception:
    """Return an error for the argument that caused another one; that one, when there is none."""
    if isinstance(error, FlowError) or _is_of_user(error):
        return error
    arguments = list(_arguments(function, args, kwargs))
    arguments += [(n, v, _BY_NAME[n]) for n, v, hint in arguments if hint is Any and n in _BY_NAME]
    for name, value, hint in arguments:
        if not _fits(value, hint):
            given = f"{type(value).__name__} {shown(value)}"
            hint_text = f"change it ({type(error).__name__}: {error})"
            return arg_error(op, name, _named(hint), given, hint_text, ArgumentTypeError)
    return error


def explained_forward(module: Any, error: Exception, args: Any, kwargs: Any) -> Exception:
    """Return an error for the argument of a layer of ours; other errors as they are."""
    cls = type(module)
    if isinstance(error, FlowError) or not cls.__module__.startswith("oneflow_lite."):
        return error
    return explained(error, f"nn.{cls.__name__}", cls.forward, (module, *args), kwargs)


def _is_of_user(error: Exception) -> bool:
    """Return whether code outside of the package and of its libraries raised it, as a callback."""
    trace = error.__traceback__
    trace = None if trace is None else trace.tb_next
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((_HERE, *_OF_PYTHON)):
            return True
        trace = trace.tb_next
    return False


def _arguments(
    function: Callable[..., Any], args: Any, kwargs: Any
) -> Iterator[tuple[str, Any, Any]]:
    with contextlib.suppress(TypeError, NameError, AttributeError):
        signature = inspect.signature(function)
        given = signature.bind(*args, **kwargs).arguments
        hints = typing.get_type_hints(function)
        for name, value in given.items():
            kind = signature.parameters[name].kind
            several = kind in (kind.VAR_POSITIONAL, kind.VAR_KEYWORD)
            listed: Any = [("", value)]
            if several:
                listed = value.items() if kind is kind.VAR_KEYWORD else enumerate(value)
            for key, each in listed:
                hint = hints.get(name, Any)
                if not several and each is None and signature.parameters[name].default is None:
                    hint = None
                yield f"{name}[{key}]" if several else name, each, hint


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value may be of an annotated type; unknown annotations fit."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in parts)
    if origin is typing.Annotated:
        return _fits(value, parts[0])
    if origin is typing.Literal:
        return value in parts
    if origin is type:
        return isinstance(value, type)
    if hint is None or hint is type(None):
        return value is None
    if isinstance(hint, str):
        names = {each.__name__ for each in type(value).__mro__}
        return hint in names or (hint == "Sequence" and not names.isdisjoint(("list", "tuple")))
    if hint is Any:
        return True
    kind = hint if origin is None else origin
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False) or kind is object:
        return True
    if kind in (int, float, complex) and isinstance(value, bool | np.bool_):
        return kind is not int
    if not isinstance(value, (kind, *_ALSO.get(kind, ()))):
        return False
    if isinstance(value, str | bytes) and kind is not type(value):
        return False  # a sequence, but not of what was meant
    if isinstance(value, list | tuple) and parts and not issubclass(kind, Mapping):
        elements = parts[:1] if len(parts) == 1 or parts[1] is ... else ()
        return all(_fits(each, element) for element in elements for each in value[:100])
    return True


def _named(hint: Any) -> str:
    text = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
    return text if "[" in text or "|" in text else f"a {text}"
