"""Subclasses of Tensor as packages write them: methods and operators keep the class.

`Tensor.__init_subclass__` puts `Kept` between Tensor and a subclass of somebody else's. Its methods
go through the class's `__torch_function__`. Functions that take apart, join or move do, too; those
that compute, as `flow.exp`, return plain tensors.
"""

from __future__ import annotations

import copy
import functools
import operator
import types
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ContextDecorator
from typing import Any

from oneflow_lite.tensors.foreign import ask, inside
from oneflow_lite.tensors.tensor import OWN_FIELDS, Tensor

_OPERATORS = set(operator.__all__)


class DisableTorchFunctionSubclass(ContextDecorator):
    """A `with` block in which no `__torch_function__` is called, and the class is not kept."""

    def __enter__(self) -> None:
        self._before = getattr(inside, "plain", False)
        inside.plain = True

    def __exit__(self, *error: Any) -> None:
        inside.plain = self._before


class _Fields(MutableMapping[str, Any]):
    """`x.__dict__` of an instance: what was set on it, without the tensor's own fields.

    Packages copy it from one tensor to another: the tensor's own would take the values along.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        if name in OWN_FIELDS:
            raise KeyError(name)
        return self._fields[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._fields[name] = value

    def __delitem__(self, name: str) -> None:
        del self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._fields if name not in OWN_FIELDS])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def copy(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)

    def __repr__(self) -> str:
        return repr(dict(self))


def _set_fields(self: Tensor, fields: Any) -> None:
    own = _REAL_DICT.__get__(self)
    for name in _Fields(own):
        del own[name]
    own.update(dict(fields))


_REAL_DICT: Any = vars(Tensor)["__dict__"]
_DICT = property(lambda self: _Fields(_REAL_DICT.__get__(self)), _set_fields)


def adopt(cls: type) -> None:
    """Let a subclass derive from `Kept`, and have no other `__dict__` than that of `Kept`."""
    bases = tuple([Kept if base is Tensor else base for base in cls.__bases__])
    if bases != cls.__bases__:
        cls.__bases__ = bases
    if next(vars(c)["__dict__"] for c in cls.__mro__ if "__dict__" in vars(c)) is not _DICT:
        # A class beside Tensor has one, too, and stands before it.
        cls.__bases__ = (type("_First", (), {"__dict__": _DICT}), *bases)


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

    __dict__ = _DICT
    _asked = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        adopt(cls)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call the function on plain terms, and return its results as instances of the class."""
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        given = {id(x) for x in (*args, *(kwargs or {}).values())}
        for y in result if isinstance(result, (tuple, list)) else (result,):
            if type(y) is Tensor and id(y) not in given:
                y.__class__ = cls
        return result


Tensor.__torch_function__ = vars(Kept)["__torch_function__"]  # type: ignore[attr-defined]


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "plain", False):
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
