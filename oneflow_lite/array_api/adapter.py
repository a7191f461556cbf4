"""Adapters: functions of NumPy's spelling find their functors, or NumPy computes.

An adapter is a function with NumPy's signature that asks `functor(...)` for what it needs. Names
are looked up when it is called, so the framework holds no op by heart.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from oneflow_lite.arrays.device import CPU, array_module, is_array
from oneflow_lite.arrays.dtype import SUPPORTED
from oneflow_lite.errors import DeviceError, NotDifferentiableError
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.tensor import Tensor, make_constant, make_tensor

F = TypeVar("F", bound=Callable[..., Any])

ADAPTERS: dict[str, Callable[..., Any]] = {}  # by the name in NumPy, such as "linalg.inv"


class NoFunctorError(Exception):
    """An adapter asked for a functor that does not exist; never leaves this package."""


def functor(path: str) -> Callable[..., Any]:
    """Return the functor called `path`, such as "sum" or "linalg.inv"."""
    place, _, name = path.rpartition(".")
    if place:
        found = getattr(getattr(sys.modules["oneflow_lite"], place, None), name, None)
    else:
        found = FUNCTORS.find(name) or getattr(sys.modules["oneflow_lite"], name, None)
    if found is None:
        raise NoFunctorError(path)
    return found


def adapter(path: str) -> Callable[[F], F]:
    """Register a function under its name in NumPy; arrays among its arguments become tensors.

    Where it needs a functor that does not exist, NumPy's function computes: see `through_numpy`.
    """

    def decorator(function: F) -> F:
        @functools.wraps(function)
        def adapted(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*as_tensors(args), **as_tensors(kwargs))
            except NoFunctorError:
                return through_numpy(path, args, kwargs)

        adapted.__module__ = "oneflow_lite.array_api" + ".".join(["", *path.split(".")[:-1]])
        ADAPTERS[path] = adapted
        return adapted  # type: ignore[return-value]

    return decorator


def as_tensors(value: Any) -> Any:
    """Return arguments with tensors in place of arrays, also inside lists, tuples and dicts."""
    return mapped(value, is_array, _wrapped)


def _wrapped(array: Any) -> Any:
    on_host = isinstance(array, np.ndarray)
    return functor("from_numpy")(array) if on_host else make_tensor(array)


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors among arguments."""
    tensors: list[Tensor] = []
    mapped(value, lambda part: isinstance(part, Tensor), tensors.append)
    return tensors


def mapped(value: Any, wanted: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """Return a value, lists, tuples and dicts looked into, with its wanted parts changed."""
    if wanted(value):
        return change(value)
    if type(value) is list or isinstance(value, tuple):
        parts = [mapped(part, wanted, change) for part in value]
        if hasattr(value, "_make"):
            return value._make(parts)
        return parts if type(value) is list else tuple(parts)
    if type(value) is dict:
        return {key: mapped(part, wanted, change) for key, part in value.items()}
    return value


def through_numpy(
    path: str, args: Any, kwargs: Any, function: Callable[..., Any] | None = None
) -> Any:
    """Let the array library compute, and wrap the arrays that it returns.

    The call is not recorded. So it raises when an argument requires a gradient and the result could
    have a gradient: a result of floating point or complex numbers could, a truth value, an index or
    a text could not.
    """
    name = path if function is None else f"np.{path}"
    tensors = tensors_in((args, kwargs))
    loses = any([x.requires_grad for x in tensors])
    if loses and kwargs.get("out") is not None:  # before the function writes to it
        raise no_gradient_error(name, kwargs)
    for x in tensors:  # a recording must know that values leave for NumPy
        x._leave(name)
    device = next((x.device for x in tensors if x.is_cuda), CPU)
    xp = array_module(device)
    if function is None or device is not CPU:
        function = _named(xp, path) if function in (None, _named(np, path)) else None
    if function is None:
        raise DeviceError(
            f"{name}(): this function computes on the CPU, and a tensor is on {device}; "
            "call .cpu() first"
        )
    plain = mapped((args, kwargs), lambda part: isinstance(part, Tensor), lambda x: x._data)
    result = function(*plain[0], **plain[1])
    if loses and _may_have_a_gradient(result):
        raise no_gradient_error(name, kwargs)
    return mapped(result, _is_wrapped, lambda part: make_constant(_asarray(xp, part)))


def _named(xp: Any, path: str) -> Any:
    for part in path.split("."):
        xp = getattr(xp, part, None)
    return xp


def _is_wrapped(value: Any) -> bool:
    return (is_array(value) or isinstance(value, np.generic)) and value.dtype in SUPPORTED


def _asarray(xp: Any, value: Any) -> Any:
    return value if is_array(value) else xp.asarray(value)


def _may_have_a_gradient(result: Any) -> bool:
    numbers: list[Any] = []
    lossy = (float, complex, np.inexact)
    mapped(
        result,
        lambda part: isinstance(part, lossy) or (is_array(part) and part.dtype.kind not in "biuUS"),
        numbers.append,
    )
    return bool(numbers)


def no_gradient_error(name: str, options: Any) -> NotDifferentiableError:
    """Build the error for a function that would lose a gradient."""
    given = f" with {', '.join([f'{option}=' for option in options])}" if options else ""
    return NotDifferentiableError(
        f"{name}(): no function of this library records a gradient for such a call{given}, and an "
        "argument requires one; detach() the tensor if no gradient is wanted, or write the "
        "expression with the functions of oneflow_lite"
    )
