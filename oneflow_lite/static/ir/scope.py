"""Scopes, which hold the values of persistable variables between runs of an Executor."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import device_of, to_device
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import type_error
from oneflow_lite.tensors.tensor import Tensor


class Scope:
    """Arrays by name, and child scopes that see them.

    Parameters and the like are in the root. A child made with `new_scope()` holds temporaries:
    names that it lacks are looked up in its parent, and dropping the child leaves the parent as it
    was.

    Examples
    --------
    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> root = flow.static.Scope()
    >>> root.set("weight", np.ones(2))
    >>> child = root.new_scope()
    >>> child.set("temporary", np.zeros(2))
    >>> child.find_var("weight"), root.find_var("temporary")
    (array([1., 1.]), None)
    >>> child.local_var_names()
    ['temporary']
    """

    def __init__(self) -> None:
        self.parent: Scope | None = None
        self.kids: list[Scope] = []
        self._values: dict[str, Any] = {}
        self._version = [0]  # shared by the tree; counts arrays that came, went or changed

    @property
    def version(self) -> int:
        """A number that grows when a name in this tree of scopes gets another array, or none.

        Writes to an array do not count.
        """
        return self._version[0]

    def new_scope(self) -> Scope:
        """Return a new child."""
        child = Scope()
        child.parent = self
        child._version = self._version
        self.kids.append(child)
        return child

    def drop_kids(self) -> None:
        """Drop all children with their variables."""
        for kid in self.kids:
            kid.drop_kids()
            kid.parent = None
        self.kids.clear()
        self._version[0] += 1

    @guarded
    def var(self, name: str) -> Any:
        """Return the array of a name in this scope; a new name gets None, to be `set` later."""
        if name not in self._values:
            self._put(name, None)
        return self._values[name]

    @guarded
    def find_var(self, name: str) -> Any:
        """Return the array of a name in this scope or the nearest one above; None without one.

        It is the array that programs read and write, not a copy.
        """
        return self._holder(name)._values.get(name)

    @guarded
    def set(self, name: str, value: Any) -> None:
        """Give a name in this scope a copy of an array or tensor.

        Raises
        ------
        ArgumentTypeError
            When the value is neither an array nor a tensor nor a number.
        """
        data = value._data if isinstance(value, Tensor) else value
        if isinstance(data, (bool, int, float, complex, np.generic, list, tuple)):
            data = np.asarray(data)
        if not hasattr(data, "dtype") or data.dtype.kind not in "biufc":
            raise type_error(
                "Scope.set",
                "value",
                "an array, a Tensor or numbers",
                value,
                "convert it with numpy.asarray",
            )
        self._put(name, np.array(data) if isinstance(data, np.ndarray) else data.copy())

    @guarded
    def put(self, name: str, array: Any) -> None:
        """Give a name the result of a run, an array that nothing else holds.

        It goes to the scope that has the name, or to this one if none has. An array of the same
        kind that is there already is written instead.
        """
        scope = self._holder(name)
        old = scope._values.get(name)
        if old is None or (old.shape, old.dtype) != (array.shape, array.dtype):
            scope._put(name, array)
        elif device_of(old) == device_of(array):
            old[...] = array
        else:
            old[...] = to_device(array, device_of(old))

    @guarded
    def move(self, name: str, array: Any) -> None:
        """Replace the array that `find_var` finds, for example by its copy on another device."""
        self._holder(name)._put(name, array)

    def _holder(self, name: str) -> Scope:
        """Return the scope in which `find_var` finds a name; this one if there is none."""
        scope: Scope | None = self
        while scope is not None:
            if scope._values.get(name) is not None:
                return scope
            scope = scope.parent
        return self

    def _put(self, name: str, array: Any) -> None:
        self._values[name] = array
        self._version[0] += 1

    def erase(self, *names: str) -> None:
        """Forget names of this scope."""
        for name in names:
            self._values.pop(name, None)
        self._version[0] += 1

    def local_var_names(self) -> list[str]:
        """Return the names of this scope, without those of its parent."""
        return list(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find_var(name) is not None

    def __repr__(self) -> str:
        return f"Scope({', '.join(self._values)})"


_global = Scope()
_guarded = threading.local()


def global_scope() -> Scope:
    """Return the scope that Executors use when they are given none.

    There is one for the process, unless this thread is inside a `scope_guard`.
    """
    scope: Scope | None = getattr(_guarded, "scope", None)
    return _global if scope is None else scope


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Make another scope the global one of this thread for the length of a `with` block.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> scope = flow.static.Scope()
    >>> with flow.static.scope_guard(scope):
    ...     flow.static.global_scope() is scope
    True
    """
    if not isinstance(scope, Scope):
        raise type_error(
            "scope_guard", "scope", "a Scope", scope, "make one with flow.static.Scope()"
        )
    before = getattr(_guarded, "scope", None)
    _guarded.scope = scope
    try:
        yield
    finally:
        _guarded.scope = before
