"""Nested containers of tensors: taken apart, put together around other tensors, and compared."""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable
from operator import is_
from types import BuiltinFunctionType
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.device import Device
from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES
from oneflow_lite.arrays.size import Size
from oneflow_lite.tensors.tensor import Tensor

# Of these types themselves: an object of a subclass may hold more than its value.
PLAIN = {bool, int, float, complex, str, bytes, type(None), type(...), Device, Size}


def is_plain(value: Any) -> bool:
    """Return whether a value is what its type and content say, whoever made it."""
    if type(value) in (slice, range):
        return all(type(v) in (int, type(None)) for v in (value.start, value.stop, value.step))
    if isinstance(value, np.generic):
        return value.dtype.kind in "biufc"
    return type(value) in PLAIN or isinstance(value, (*DTYPE_CLASSES, enum.Enum))


@attrs.frozen
class Leaf:
    """Stands for a tensor: the one at this position."""

    position: int


@attrs.frozen(eq=False)
class NonTensor:
    """A value that is neither tensor nor container."""

    value: Any


@attrs.frozen(eq=False)
class Container:
    """A list, tuple, named tuple or dict; `keys` of a dict, in order."""

    kind: type
    children: tuple[Any, ...]
    keys: tuple[Any, ...] = ()


def is_namedtuple(kind: type) -> bool:
    """Return whether a type was made by namedtuple()."""
    return issubclass(kind, tuple) and any("_fields" in vars(cls) for cls in kind.__mro__)


def flatten(value: Any, leaves: list[Tensor]) -> Leaf | NonTensor | Container:
    """Take a value apart, appending its tensors to `leaves`."""
    kind = type(value)
    if isinstance(value, Tensor):
        leaves.append(value)
        return Leaf(len(leaves) - 1)
    if kind in (list, tuple) or (is_namedtuple(kind) and not getattr(value, "__dict__", None)):
        return Container(kind, tuple([flatten(item, leaves) for item in value]))
    if kind is dict and all(map(is_plain, value)):
        return Container(dict, tuple([flatten(v, leaves) for v in value.values()]), tuple(value))
    return NonTensor(value)


def unflatten(spec: Any, leaf: Callable[[int], Any]) -> Any:
    """Put a value together; `leaf` gives what stands at a position."""
    if isinstance(spec, Leaf):
        return leaf(spec.position)
    if isinstance(spec, NonTensor):
        return spec.value
    children = [unflatten(child, leaf) for child in spec.children]
    if spec.kind is dict:
        return dict(zip(spec.keys, children, strict=True))
    if spec.kind is list:
        return children
    return tuple(children) if spec.kind is tuple else spec.kind(*children)


def same(a: Any, b: Any) -> bool:
    """Return whether two values are one object, or atoms of the same type and value.

    >>> from oneflow_lite.static.ir.tree import same
    >>> same(1, True), same(0.0, -0.0), same(float("nan"), float("nan")), same((1, "a"), (1, "a"))
    (False, False, True, True)
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float:
        return a == b if a and b and not math.isnan(a) else _bits(a) == _bits(b)
    if kind is complex:
        return same(a.real, b.real) and same(a.imag, b.imag)
    if kind in (bool, int, str, bytes, Device):
        return bool(a == b)
    if kind in (tuple, Size):
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(same, a, b)))
    if kind is frozenset:
        return same(tuple(a), tuple(b))
    if kind in (slice, range):  # ranges of the same numbers may end elsewhere
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, DTYPE_CLASSES):
        return bool(a == b and a.metadata is None and b.metadata is None)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.dtype.kind in "biufcSU" and a.tobytes() == b.tobytes()
    return kind is BuiltinFunctionType and a == b


def _bits(value: float) -> bytes:
    return struct.pack("d", value)
