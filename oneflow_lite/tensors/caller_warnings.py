"""Warnings at the line of users' code that led to them; replays of a compiled call repeat them."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any, NamedTuple

from oneflow_lite.tensors.mode import local


class CallerWarning(NamedTuple):
    """A warning and the place where it is given: a line, and the globals of its module."""

    message: str
    category: type[Warning]
    filename: str
    lineno: int
    scope: dict[str, Any]
    depth: int  # of the line's frame, counted from the first frame of the thread

    @property
    def module(self) -> str:
        """The name that filters know the place by."""
        return self.scope.get("__name__") or "<string>"

    def give(self) -> None:
        """Warn as `warnings.warn` does at that line."""
        registry = self.scope.setdefault("__warningregistry__", {})
        warnings.warn_explicit(*self[:4], self.module, registry)

    def raises(self) -> bool:
        """Return whether the first filter that matches it makes an exception of it."""
        for action, message, category, module, lineno in warnings.filters:
            fits = _fits(message, self.message) and _fits(module, self.module)
            if fits and issubclass(self.category, category) and lineno in (0, self.lineno):
                return action == "error"
        return False


def warn_caller(
    message: str,
    category: type[Warning] | None = None,
    stacklevel: int = 1,
    once: bool = False,
) -> None:
    """Warn at the line outside the library that called it; a higher level goes on to its callers.

    Levels count frames as `warnings.warn` does, except frames of the library. The interpreter is
    told of the warning, so that replays repeat it, unless it is given once.
    """
    frame: FrameType = sys._getframe(1)
    while frame.f_back is not None and ((inside := _is_ours(frame)) or stacklevel > 1):
        frame, stacklevel = frame.f_back, stacklevel - (not inside)
    place = frame.f_code.co_filename, frame.f_lineno, frame.f_globals, depth_of(frame)
    warning = CallerWarning(message, UserWarning if category is None else category, *place)
    if local.state.interpreter is not None and not once:
        local.state.interpreter.warned(warning)
    warning.give()


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "oneflow_lite"


def depth_of(frame: FrameType | None) -> int:
    """Return the number of frames from the thread's first frame down to the given frame."""
    count = 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def _fits(pattern: Any, text: str) -> bool:
    if pattern is None or isinstance(pattern, str):
        return pattern in (None, text)
    return pattern.match(text) is not None
