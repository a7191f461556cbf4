"""Where in the user's source an op was called."""

from __future__ import annotations

import os
import sys
from types import CodeType

from oneflow_lite.static.program import Location

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The op folders are links into the package in a plain checkout: their code carries either path.
_OWN = tuple(
    {
        folder + os.sep
        for name in ("", "functors", "grad_funcs", "kernels")
        for folder in (os.path.join(_PACKAGE, name).rstrip(os.sep),)
        for folder in (folder, os.path.realpath(folder))
    }
)
_is_own: dict[CodeType, bool] = {}


def is_own_code(code: CodeType) -> bool:
    """Return whether code belongs to this package."""
    known = _is_own.get(code)
    if known is None:
        known = _is_own[code] = code.co_filename.startswith(_OWN)
    return known


def user_location() -> Location | None:
    """Return the innermost line outside the package that the present call came through."""
    frame = sys._getframe(1)
    while frame is not None:
        if not is_own_code(frame.f_code):
            return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None
