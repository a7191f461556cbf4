"""What objects hold, read without calling any method that a user wrote."""

from __future__ import annotations

import abc
import functools
from collections import OrderedDict, defaultdict, deque
from types import CellType, MemberDescriptorType
from typing import Any

from oneflow_lite.static.capture.guards import describe
from oneflow_lite.tensor import OWN_FIELDS, Tensor

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that a class statement made
_BASE_OF = (list, tuple, deque, dict, set, frozenset)
CALLED = ("__code__", "__defaults__", "__kwdefaults__")  # what a call of a function reads of it
DESCRIBED = ("__name__", "__qualname__", "__doc__", "__module__")  # what only text is made of
NAMED = ("__name__", "__qualname__")  # of a class, beside what stands in its dict
CONTAINERS = {*_BASE_OF, OrderedDict, defaultdict}


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes that an object itself holds, those in slots included.

    What a compiled function notes about its own calls is none.
    """
    content = dict(getattr(value, "__dict__", ()))
    for name in getattr(type(value), "notes_of_calls", ()):
        content.pop(name, None)
    if isinstance(value, BaseException):
        content["args"] = value.args
    if isinstance(value, functools.partial):  # what it is made of is no attribute
        return content
    for cls in type(value).__mro__:
        for name, member in vars(cls).items() if cls.__flags__ & _HEAP_TYPE else ():
            if type(member) is MemberDescriptorType:
                try:
                    content.setdefault(name, member.__get__(value))
                except AttributeError:
                    content.setdefault(name, MISSING)
    return content


def users_attributes(tensor: Tensor) -> dict[str, Any]:
    """Return the attributes that users have set on a tensor."""
    return {k: v for k, v in vars(tensor).items() if k not in OWN_FIELDS}


def container_base(value: Any) -> type | None:
    """Return which built-in container a value is, or is a subclass of."""
    return next((base for base in _BASE_OF if isinstance(value, base)), None)


def content_of(kind: str, owner: Any) -> dict[Any, Any]:
    """Return what a holder holds at present; a user's methods are not called for it."""
    if kind == "attributes":
        content = attributes_of(owner)
        if isinstance(owner, Tensor):  # the others belong to the tensor's own state
            content = users_attributes(owner)
        return content
    if kind in ("items", "dict"):
        return dict(dict.items(owner))
    if kind == "cell":
        return {"": contents(owner)}
    if kind == "function":
        return {name: getattr(owner, name) for name in (*CALLED, *DESCRIBED)}
    if kind == "class":
        return dict(vars(owner)) | {name: getattr(owner, name) for name in NAMED}
    if kind == "abstract":
        return {"register": abc.get_cache_token()}
    iterate = getattr(container_base(owner), "__iter__")  # noqa: B009  (a type without it)
    return dict(enumerate(iterate(owner)))


def contents(cell: CellType) -> Any:
    """Return what a closure variable holds; MISSING before it was set."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def place(kind: str, path: str, key: Any) -> str:
    """Say where in a holder something is, as users write it; tensors that are keys are not read."""
    if kind == "globals":
        return f"{path}.{key}" if path else f"the global {key}"
    if kind in ("attributes", "class", "function"):
        return f"{path}.{key}"
    if kind in ("cell", "set", "frozenset"):
        return path
    owner, _, members = path.rpartition(".")
    if members in ("_modules", "_parameters", "_buffers"):
        return f"{owner}.{key}"
    return f"{path}[{describe(key)}]"
