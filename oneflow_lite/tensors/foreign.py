"""`__torch_function__`: a class of somebody else's does the work of a function itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def ask(function: Any, given: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask the classes of what is given, subclasses first; NotImplemented when none answers."""
    kinds = [k for k in dict.fromkeys(map(type, given)) if hasattr(k, "__torch_function__")]
    for kind in sorted(kinds, key=lambda kind: sum(issubclass(k, kind) for k in kinds)):
        result = kind.__torch_function__(function, tuple(kinds), args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def instead(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a class among the arguments makes of the call, or raise the error at hand."""
    given = [x for arg in args for x in (arg if isinstance(arg, (tuple, list)) else [arg])]
    defaults: Any = function.__defaults__ or ()  # the others were meant
    for i in range(len(defaults)):
        if args and args[-1] is defaults[-1 - i]:
            args = args[:-1]
        else:
            break
    known = function.__kwdefaults__ or {}
    meant = {k: v for k, v in kwargs.items() if k not in known or v is not known[k]}
    result = ask(function, given, args, meant)
    if result is NotImplemented:
        raise
    return result
