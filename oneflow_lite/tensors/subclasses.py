"""Subclasses of Tensor as packages write them: methods and operators keep the class.

`Tensor.__init_subclass__` puts `Kept` between Tensor and a subclass of somebody else's. Its methods
go through the class's `__torch_function__`. Functions such as `flow.exp` do not: they return plain
tensors.
"""

from __future__ import annotations

import functools
import operator
import threading
import types
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from oneflow_lite.tensors.foreign import ask
from oneflow_lite.tensors.tensor import Tensor

_OPERATORS = set(operator.__all__)
_inside = threading.local()  # whether methods run as they are


class DisableTorchFunctionSubclass(ContextDecorator):
    """A `with` block in which no `__torch_function__` is called, and the class is not kept."""

    def __enter__(self) -> None:
        self._before = getattr(_inside, "plain", False)
        _inside.plain = True

    def __exit__(self, *error: Any) -> None:
        _inside.plain = self._before


class Kept(Tensor):
    """Base of the subclasses: `Kept.__new__` takes data, and results are of the class."""

    def __new__(cls, *data: Any, device: Any = None, **fields: Any) -> Any:
        """Make an instance: of a tensor, in its memory and its place in the graph."""
        if not data:
            return object.__new__(cls)
        if len(data) == 1 and isinstance(data[0], Tensor):
            return data[0].as_subclass(cls)
        return Tensor(*data, device=device).as_subclass(cls)

    def __init__(self, *data: Any, device: Any = None, **fields: Any) -> None:
        if not hasattr(self, "_data"):
            super().__init__(*data, device=device)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call the function on plain terms, and return its results as instances of the class."""
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        given = {id(x) for x in (*args, *(kwargs or {}).values())}
        for y in result if isinstance(result, (tuple, list)) else (result,):
            if type(y) is Tensor and id(y) not in given:
                y.__class__ = cls
        return result


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "plain", False):
            return function(self, *args, **kwargs)
        result = ask(function, (self, *args, *kwargs.values()), (self, *args), kwargs)
        if result is NotImplemented:
            raise TypeError(
                f"{function.__name__}(): no __torch_function__ of the operands takes it"
            )
        return result

    return call


def _keeps(name: str, member: Any) -> bool:
    """Return whether a member of Tensor is a method that can return tensors."""
    if name.startswith("__"):
        own = name.strip("_")
        return any(f"{each}{end}" in _OPERATORS for each in (own, own[1:]) for end in ("", "_"))
    return type(member) is types.FunctionType and name[0] != "_" and name != "as_subclass"


for _name in dir(Tensor):
    if _keeps(_name, _member := getattr(Tensor, _name)):
        setattr(Kept, _name, _keeping(_member))
    elif _name in ("data", "H", "T", "imag", "mH", "mT", "real"):
        _get = _keeping(_member.fget)
        setattr(Kept, _name, property(_get, _member.fset, doc=_member.__doc__))
