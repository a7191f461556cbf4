"""Lists and dicts that tell when they change, so that an unchanged Program is known at a glance.

Ops and variables are plain data that anybody may rewrite, and an Executor must notice at every run.
One counter serves all of them: while it stands still, no Program has changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_count = 0


def changes() -> int:
    """Return a number that grows with every change to any op, variable or block."""
    return _count


def note_change() -> None:
    """Count one change."""
    global _count
    _count += 1


def on_setattr(instance: Any, attribute: Any, value: Any) -> Any:
    """Count the assignment of an attribute; for `attrs.define(on_setattr=...)`."""
    note_change()
    return value


class TrackedList(list[Any]):
    """A list whose changes are counted."""


class TrackedDict(dict[Any, Any]):
    """A dict whose changes are counted."""


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:  # afterwards: who looks in between looks again later
            note_change()

    return change


for _kind, _names in (
    (TrackedList, "append clear extend insert pop remove reverse sort"),
    (TrackedDict, "clear pop popitem setdefault update"),
):
    _operators = "__imul__ __iadd__" if _kind is TrackedList else "__ior__"
    for _name in f"{_names} {_operators} __setitem__ __delitem__".split():
        setattr(_kind, _name, _counted(getattr(_kind, _name)))
