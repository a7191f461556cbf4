"""Stand-ins for compiled functions and objects: the same as the original but for calls.

A function is replaced by a `FunctionStandIn`, which has its name, its attributes and its way of
becoming a method. Any other object, a Module for example, is replaced by an `ObjectStandIn`, which
passes on whatever is asked of it: nothing is copied, so nothing can differ, and no class of a user
is subclassed or instantiated.
"""

from __future__ import annotations

import copy
import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import MethodType
from typing import Any

# Looked up in the class of a stand-in, and not those of the object that it stands for.
_OWN = frozenset(("__call__", "__copy__", "__deepcopy__", "__reduce_ex__"))
_NOT_PASSED_ON = _OWN | frozenset(
    """__new__ __init__ __del__ __init_subclass__ __subclasshook__ __class_getitem__
    __getattribute__ __getattr__ __setattr__ __delattr__ __reduce__ __class__ __dict__ __weakref__
    __slots__ __module__ __qualname__ __doc__""".split()
)


def acts_like_a_function(model: Any) -> bool:
    """Return whether a callable is a class, or becomes a method when it stands in one."""
    kind = type(model)
    if issubclass(kind, functools.partial) and sys.version_info < (3, 14):
        return False  # Python 3.13 has its __get__, which only warns of what 3.14 does
    return issubclass(kind, type) or any("__get__" in vars(cls) for cls in kind.__mro__)


class FunctionStandIn(ABC):
    """Stands for a function, or for the calls of another object.

    Attributes
    ----------
    __wrapped__ : callable
        What was compiled.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool, mode: str | None) -> None:
        self.__name__ = type(function).__name__
        self.__wrapped__: Any = function
        self._fullgraph = fullgraph
        self._mode = mode
        self._binds = False
        if acts_like_a_function(function):
            functools.update_wrapper(self, function, updated=())
            self._binds = not isinstance(function, (type, MethodType))

    @abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or replay a call of it."""

    def __repr__(self) -> str:
        return f"CompiledFunction({self.__name__}, {self.explain()})"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return MethodType(self, instance) if self._binds and instance is not None else self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
        """Return one for a copy of the function, without recordings; most are no copies."""
        copying = copy.copy if memo is None else functools.partial(copy.deepcopy, memo=memo)
        function = copying(self.__wrapped__)
        if function is self.__wrapped__:
            return self
        made = type(self)(function, self._fullgraph, self._mode)
        made.__setstate__(copying(self._attributes()))
        return made

    __copy__ = __deepcopy__

    def __reduce__(self) -> str | tuple[Any, ...]:
        name = vars(self).get("__qualname__", "")
        at_name: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            at_name = getattr(at_name, part, None)
        if at_name is self:  # a decorated function is found by its name, as any other
            return str(name)
        return type(self), (self.__wrapped__, self._fullgraph, self._mode), self._attributes()

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        vars(self).update(attributes)

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes that users have set."""
        fresh = vars(type(self)(self.__wrapped__, self._fullgraph, self._mode))
        return {name: value for name, value in vars(self).items() if name not in fresh}


class ObjectStandIn:
    """Stands for an object, and is that object but for its calls.

    Attributes are read, set and deleted there, its class is the answer to `__class__` and
    `isinstance`, and special methods of its class are found in that of the stand-in. Its methods
    are its own, so `self` is the object; one that returns it returns the stand-in. It has two
    attributes that the object lacks: `explain()`, and the object itself as `_orig_mod`.
    """

    __slots__ = ("__weakref__", "_compiled")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return compiled_of(self)(*args, **kwargs)

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        model = compiled_of(self).__wrapped__
        if name in ("explain", "_orig_mod") and name not in dir(model):  # which asks no code
            return compiled_of(self).explain if name == "explain" else model
        value = getattr(model, name)
        if type(value) is MethodType and value.__self__ is model:
            return MethodType(_Method(value.__func__), self)
        return self if value is model else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_model_of(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_model_of(self), name)

    def __copy__(self) -> Any:
        return stand_in(copy.copy(compiled_of(self)))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return stand_in, (compiled_of(self),)


compiled_of: Callable[[Any], Any] = vars(ObjectStandIn)["_compiled"].__get__


def _model_of(value: Any) -> Any:
    """Return the object that a stand-in stands for; any other is itself."""
    return compiled_of(value).__wrapped__ if issubclass(type(value), ObjectStandIn) else value


class _Method:
    """A method of an object, to be bound to what stands for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())

    def __call__(self, stand_in: Any, /, *args: Any, **kwargs: Any) -> Any:
        model = _model_of(stand_in)
        result = self.__wrapped__(model, *args, **kwargs)
        return stand_in if result is model else result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Method) and bool(self.__wrapped__ == other.__wrapped__)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)


def stand_in(compiled: FunctionStandIn) -> Any:
    """Return the stand-in for an object whose calls are compiled."""
    kind = type(compiled.__wrapped__)
    members: dict[str, Any] = {}
    for cls in reversed(kind.__mro__):
        for name, value in vars(cls).items():
            if name[:2] == name[-2:] == "__" and name not in _NOT_PASSED_ON:
                is_method = callable(value) or hasattr(type(value), "__get__")
                # Any other member is as `__hash__ = None`, or a record of a dataclass.
                members[name] = _special(name) if is_method else value
    members |= {"__slots__": (), "__module__": __name__}
    made: Any = object.__new__(type(kind.__name__, (ObjectStandIn,), members))
    vars(ObjectStandIn)["_compiled"].__set__(made, compiled)
    return made


def _special(name: str) -> Callable[..., Any]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        model = _model_of(self)
        kind = type(model)
        member = next(vars(cls)[name] for cls in kind.__mro__ if name in vars(cls))
        if hasattr(type(member), "__get__"):  # bound as Python binds special methods
            member = type(member).__get__(member, model, kind)
        result = member(*map(_model_of, args), **kwargs)
        return self if result is model else result

    return method
