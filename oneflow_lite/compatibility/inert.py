"""Names that change nothing: `compiler.disable`, `cuda.nvtx.range`, `_dynamo.reset`.

`names.py` says which names these are.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any


def same(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function or module as it is; given only options, a decorator that returns it."""
    return function if callable(function) else first


def first(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the first argument."""
    return value


def decorator(*args: Any, **kwargs: Any) -> Any:
    """Return a decorator that returns what it decorates."""
    return first


def none(*args: Any, **kwargs: Any) -> None:
    """Change nothing, and return None."""


def no(*args: Any, **kwargs: Any) -> bool:
    """Return False."""
    return False


def zero(*args: Any, **kwargs: Any) -> int:
    """Return 0."""
    return 0


def empty(*args: Any, **kwargs: Any) -> list[Any]:
    """Return an empty list."""
    return []


class record:
    """A description that keeps its arguments, and that nothing here reads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs


class context(ContextDecorator):
    """A context manager, and a decorator, that changes nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take any arguments."""

    def __enter__(self) -> context:
        return self

    def __exit__(self, *error: Any) -> None:
        """Change nothing."""
