"""`__torch_function__`: a class of somebody else's does the work of a function itself."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any

from oneflow_lite.tensors.spellings import NOTHING
from oneflow_lite.tensors.tensor import Tensor

inside = threading.local()  # `plain`: whether functions run as they are, and ask nobody


def answers(kind: type) -> bool:
    """Return whether a class has a `__torch_function__` of its own, not Tensor's."""
    return any("__torch_function__" in vars(c) for c in kind.__mro__ if c is not Tensor)


def ask(function: Any, given: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask the classes of what is given, subclasses first; NotImplemented when none answers."""
    kinds: list[Any] = [kind for kind in dict.fromkeys(map(type, given)) if answers(kind)]
    for kind in sorted(kinds, key=lambda kind: sum(issubclass(k, kind) for k in kinds)):
        result = kind.__torch_function__(function, tuple(kinds), args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def instead(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a class among the arguments makes of the call, or raise the error at hand."""
    given = [(i, x) for i, arg in enumerate(args) for x in _listed(arg)]
    known: dict[str, Any] = dict(function.__kwdefaults__ or {})
    code, defaults = function.__code__, [x for x in function.__defaults__ or () if x is not NOTHING]
    if not code.co_flags & inspect.CO_VARARGS:  # what has a default goes by name
        last = max((i for i, x in given if answers(type(x))), default=0)
        required = max(code.co_argcount - len(defaults), last + 1)
        names = code.co_varnames[required : len(args)]
        known |= zip(code.co_varnames[code.co_argcount - len(defaults) :], defaults, strict=False)
        kwargs |= zip(names, args[required:], strict=True)
        args = args[:required]
    meant = {k: v for k, v in kwargs.items() if k not in known or v is not known[k]}
    name = function.__name__
    if getattr(Tensor, name, None) is function and any(isinstance(x, Tensor) for _, x in given):
        # Classes tell `torch.unbind(x)` from `x.unbind()`, which are one function here.
        free: Any = functools.partial(function)
        free.__name__ = name
        function = free
    result = ask(function, [x for _, x in given] + [*meant.values()], args, meant)
    if result is NotImplemented:
        raise
    return result
