"""The visible state of a program's objects, in plain values that can be compared."""

from __future__ import annotations

import functools
import sys
from collections import deque
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow

_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, functools.partial, type)
_MEMBERS = ("_parameters", "_buffers", "_modules")  # what else a Module keeps for itself is hooks


class Snapshot:
    """The content of objects now; an object that is met again is a number, so identity shows."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}

    def of(self, thing: Any) -> Any:
        """Return bits and names where an object was: equal ones for equal worlds."""
        if thing is None or isinstance(thing, (bool, int, float, complex, str, bytes, Enum)):
            return (type(thing).__qualname__, repr(thing))
        kind = type(thing)
        if id(thing) in self._met:
            return f"object {self._met[id(thing)][0]} again"
        if not isinstance(thing, (tuple, np.generic)):  # whose identity means nothing
            self._met[id(thing)] = (len(self._met), thing)
        if isinstance(thing, _FUNCTIONS) or kind.__module__.startswith("oneflow_lite.static"):
            return "callable"
        return [kind.__qualname__, *self._content(thing)]

    def _content(self, thing: Any) -> list[Any]:
        if isinstance(thing, flow.Tensor):
            data = thing.detach().numpy()
            flags = (thing.requires_grad, thing.is_leaf, thing._version, thing._base is None)
            layout = (str(data.dtype), data.shape, data.strides)
            return [*layout, *flags, data.tobytes(), self.of(thing.grad)]
        if isinstance(thing, np.ndarray):
            return [str(thing.dtype), thing.shape, thing.strides, thing.tobytes()]
        if isinstance(thing, (flow.optim.Optimizer, flow.optim.lr_scheduler.LRScheduler)):
            return [self.of(thing.state_dict())]
        found = [self.of(part) for part in _parts(thing)]
        return [*found, self.of(_attributes(thing))] if type(thing) is not dict else found


def _parts(thing: Any) -> list[Any]:
    """Return what a container holds."""
    if isinstance(thing, dict):
        return [part for item in thing.items() for part in item]
    if isinstance(thing, (list, tuple, deque)):
        return list(thing)
    if isinstance(thing, (set, frozenset)):
        return sorted(thing, key=repr)
    if isinstance(thing, np.generic):
        return [thing.item()]
    return []


def _attributes(thing: Any) -> dict[str, Any]:
    """Return what is set on an object of a user's class, a Module or a namespace."""
    kind = type(thing)
    if kind.__module__ not in ("argparse", "types") and (
        kind.__module__.partition(".")[0] in sys.stdlib_module_names
    ):
        return {}
    found = dict(getattr(thing, "__dict__", {}))
    if attrs.has(kind):
        found.update({field.name: getattr(thing, field.name) for field in attrs.fields(kind)})
    if isinstance(thing, flow.nn.Module):
        users = {name: value for name, value in found.items() if not name.startswith("_")}
        return {**{name: found[name] for name in _MEMBERS}, **users}
    return found


def difference(have: Any, want: Any, path: str = "") -> str | None:
    """Return where two snapshots differ first, and how; None where they do not."""
    if isinstance(have, list) and isinstance(want, list) and len(have) == len(want):
        for i, pair in enumerate(zip(have, want, strict=True)):
            if (found := difference(*pair, f"{path}[{i}]")) is not None:
                return found
        return None
    return None if have == want else f"{path}: {str(have)[:200]} instead of {str(want)[:200]}"
