"""Sameness of two values for a compiled function, and names of values in reasons."""

from __future__ import annotations

import collections
import enum
import types
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device
from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES
from oneflow_lite.arrays.size import Size

# Types of values that neither change nor lead to objects; a subclass may hold more.
ATOMS = {
    bool, int, float, complex, str, bytes, NoneType, types.EllipsisType, types.NotImplementedType,
    types.CodeType, BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, object, Device,
}  # fmt: skip
SEQUENCES = (list, tuple, collections.deque)
MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)
SETS = (set, frozenset)
CONTAINERS = {*SEQUENCES, *MAPPINGS, *SETS}
KINDS: Any = (*SEQUENCES, *MAPPINGS[1:], dict, *SETS)  # a class before what it is derived from
_TABLES: list[Any] = [{}, collections.OrderedDict()]
_MAKERS = ("enum", "collections")  # they give classes special methods that say nothing new
VIEWS = {type(view) for d in _TABLES for view in (d.keys(), d.values(), d.items())}
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()


def is_stream(kind: type) -> bool:
    """Return whether objects of a type in C give elements once, and hold only their arguments."""
    return kind.__module__ in ("builtins", "itertools") and "__next__" in vars(kind)


def is_a(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether an object is of a class; `isinstance` may run code of the object's."""
    return issubclass(type(value), kinds)


def is_atom(value: Any, depth: int = 10) -> bool:
    """Return whether a value is immutable through and through, and what its type and content say.

    A tuple with more tuples within each other than `depth` is none.

    >>> from oneflow_lite.compiler.same import is_atom
    >>> is_atom((1, "a")), is_atom([1]), is_atom(("a", [1]))
    (True, False, False)
    """
    kind = type(value)
    if kind in ATOMS:
        owner = value.__self__ if kind is BuiltinFunctionType else None
        return owner is None or type(owner) in (types.ModuleType, type)
    if kind in (tuple, Size, frozenset):
        return depth > 0 and all([is_atom(each, depth - 1) for each in value])
    if kind in (slice, range):
        return is_atom((value.start, value.stop, value.step))
    if issubclass(kind, np.generic):
        return kind.__module__ == "numpy" and value.dtype.kind in "biufcSU"
    return issubclass(kind, DTYPE_CLASSES) or (issubclass(kind, enum.Enum) and not has_ways(kind))


def has_ways(kind: type) -> bool:
    """Return whether objects of a class have special methods that are a user's code."""
    return any(
        name.startswith("__") and type(member) is FunctionType and member.__module__ not in _MAKERS
        for cls in kind.__mro__
        for name, member in vars(cls).items()
        if name not in ("__new__", "__init__")
    )


def told(value: Any) -> str:
    """Return a scalar's text, or the type of anything else; no code of a user's runs."""
    kind = type(value)
    if kind in (str, bytes):
        return repr(value if len(value) < 40 else value[:37]) + ("" if len(value) < 40 else "...")
    if kind is int and value.bit_length() > 999:  # Python writes no more than 4300 digits
        return f"an int of {value.bit_length()} bits"
    if kind in (bool, int, float, complex, NoneType) or is_a(
        value, (np.generic, Device, *DTYPE_CLASSES)
    ):
        return str(value)
    if (
        kind in (tuple, Size)
        and len(value) < 20
        and (is_atom(value) or tuple not in map(type, value))
    ):
        return f"({', '.join(map(told, value))}{',' * (len(value) == 1)})"
    if kind is FunctionType:
        return f"the function {value.__qualname__}"
    if is_a(value, type):
        return f"the class {type.__dict__['__qualname__'].__get__(value)}"
    return f"a {type.__dict__['__qualname__'].__get__(kind)}"


def changed(label: str, was: str, now: str) -> str:
    """Say in words that something was one thing and is another."""
    return f"{label} was {was}, is {'another' if now == was else now}"
