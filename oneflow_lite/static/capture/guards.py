"""Guards: the quick question whether all that a recorded call read from outside is as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Literal

import attrs
import numpy as np

from oneflow_lite.static.ir.tree import same

_GONE = (KeyError, IndexError, AttributeError, ValueError, TypeError)  # the value is not there
_CHUNK = 200  # conditions in one expression


@attrs.define(eq=False)
class Guard:
    """One condition.

    Attributes
    ----------
    kind : {"is", "all", "equal", "empty"}
        Whether the value must be the expected object (or a scalar like it), its elements must be
        the expected ones, or the value must equal the expected one, or be empty or False.
    read : str
        The expression that reads the value.
    expected : object
    path : str
        How a user calls the value.
    name : str
        Under which the expression finds `expected`.
    """

    kind: Literal["is", "all", "equal", "empty"]
    read: str
    expected: Any
    path: str
    name: str = ""

    @property
    def condition(self) -> str:
        """The expression that is true while the guard holds by the same objects."""
        if self.kind == "all":
            size = len(self.expected)
            return f"(len(x := {self.read}) == {size} and all(map(is_, x, {self.name})))"
        if self.kind == "is":
            return f"{self.read} is {self.name}"
        if self.kind == "empty":
            return f"not ({self.read})"
        expected = repr(self.expected) if type(self.expected) is int else self.name
        return f"({self.read}) == {expected}"

    def holds(self, value: Any) -> bool:
        """Return whether the value is the expected one, or scalars of the same type and value."""
        if self.kind == "is":
            return same(self.expected, value)
        if self.kind == "equal":
            return bool(self.expected == value)
        if self.kind == "empty":
            return not value
        value = tuple(value)
        return len(value) == len(self.expected) and all(map(same, self.expected, value))


class Guards:
    """What a recorded call read from outside, and how it was.

    Parameters
    ----------
    guards : sequence of Guard
    names : dict
        What the expressions of the guards refer to, beside the expected values.

    Examples
    --------
    >>> from oneflow_lite.static.capture.guards import Guard, Guards
    >>> scope = {"scale": 2.0}
    >>> guards = Guards([Guard("is", "h0['scale']", 2.0, "scale")], {"h0": scope})
    >>> scope["scale"] = 1.0 + 1.0
    >>> guards.check()
    True
    >>> scope["scale"] = 2
    >>> guards.check(), guards.why()
    (False, '`scale` was 2.0, is 2')
    """

    def __init__(self, guards: Sequence[Guard], names: dict[str, Any]) -> None:
        self._guards = list(guards)
        self._scope = {**names, "is_": is_, "len": len, "all": all, "map": map}
        for number, guard in enumerate(self._guards):
            guard.name = f"v{number}"
            self._scope[guard.name] = guard.expected
        self._readers: list[Callable[[], Any]] = []
        conditions = [guard.condition for guard in self._guards]
        parts = range(0, len(conditions), _CHUNK)
        lines = [
            f"    if not ({' and '.join(conditions[start : start + _CHUNK])}): return False"
            for start in parts
        ]
        source = "\n".join(["def unchanged():", *lines, "    return True"])
        exec(compile(source, "<guards of a compiled function>", "exec"), self._scope)
        self._unchanged: Callable[[], bool] = self._scope["unchanged"]

    def __len__(self) -> int:
        return len(self._guards)

    def check(self) -> bool:
        """Return whether everything is as it was."""
        try:
            if self._unchanged():
                return True
        except _GONE:
            return False
        return self.why() is None

    def why(self) -> str | None:
        """Say what is not as it was; None when all is."""
        if not self._readers:
            self._readers = [eval(f"lambda: {guard.read}", self._scope) for guard in self._guards]
        for guard, read in zip(self._guards, self._readers, strict=True):
            try:
                value = read()
                holds = guard.holds(value)
            except _GONE:
                return f"`{guard.path}` was {describe(guard.expected)}, is not there"
            if not holds:
                return _difference(guard, value)
            if guard.kind in ("is", "all"):  # the same scalars in new objects: known from now on
                guard.expected = value if guard.kind == "is" else tuple(value)
                self._scope[guard.name] = guard.expected
        return None


def describe(value: Any) -> str:
    """Return a scalar's text, or the type of anything else: tensors are not read."""
    if isinstance(value, (str, bytes)):
        return repr(value if len(value) < 40 else value[:37]) + ("" if len(value) < 40 else "...")
    if value is None or isinstance(value, (bool, int, float, complex, np.generic, np.dtype)):
        return repr(value)
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else f"a {type(value).__name__}"


def _difference(guard: Guard, value: Any) -> str:
    before, after = guard.expected, value
    path = guard.path
    if guard.kind == "all":
        after = tuple(value)
        if len(before) != len(after):
            return f"`{path}` had {len(before)} elements, has {len(after)}"
        place = next(i for i, pair in enumerate(zip(before, after, strict=True)) if not same(*pair))
        path, before, after = f"element {place} of {path}", before[place], after[place]
    elif guard.kind == "equal" and isinstance(before, list):
        gone = [name for name in before if name not in value]
        new = [name for name in value if name not in before]
        what = [f"lost {name!r}" for name in gone] + [f"got {name!r}" for name in new]
        return f"`{path}` {', '.join(what) or 'changed its order'}"
    if guard.kind == "empty":
        return f"`{path}` is {describe(after) if after is True else 'not empty any more'}"
    was, now = describe(before), describe(after)
    return f"`{path}` was {was}, is {'another one' if was == now else now}"
