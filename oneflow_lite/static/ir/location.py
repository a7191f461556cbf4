"""Finds the line of the user's source in which an op was called."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import CodeType, FrameType
from typing import Any

from oneflow_lite import errors
from oneflow_lite.static.ir.program import Location
from oneflow_lite.tensors.tensor import Tensor

_PACKAGE = os.path.dirname(os.path.abspath(errors.__file__))
_PATHS = sysconfig.get_paths()


def _folders(*paths: str) -> tuple[str, ...]:
    """Return the prefixes of the names of files in these folders, links followed and not."""
    spellings = {spelling for path in paths for spelling in (path, os.path.realpath(path))}
    return tuple(spelling.rstrip(os.sep) + os.sep for spelling in spellings)


GENERATED = "<oneflow_lite program>"  # in place of a file, for code generated from a Program
# In a plain checkout the op folders are reached through links: code may carry either path.
_OWN = (
    *_folders(
        *(os.path.join(_PACKAGE, name) for name in ("", "functors", "grad_funcs", "kernels"))
    ),
    GENERATED,
)
_STANDARD = _folders(_PATHS["stdlib"], _PATHS["platstdlib"], os.path.dirname(os.__file__))
_INSTALLED = tuple(folder + "site-packages" + os.sep for folder in _STANDARD)


# By file name: code objects that look alike are equal, wherever they come from.
@functools.lru_cache(1024)
def _is_own(file: str) -> bool:
    return file.startswith(_OWN)


@functools.lru_cache(1024)
def _is_passed_over(file: str) -> bool:
    standard = file.startswith(_STANDARD) and not file.startswith(_INSTALLED)
    return _is_own(file) or standard or file.startswith(("<frozen ", "<op "))


def is_own_code(code: CodeType) -> bool:
    """Return whether code belongs to this package."""
    return _is_own(code.co_filename)


def is_own_class(kind: Any) -> bool:
    """Return whether a class is of this package, though `mock_torch` may have put it elsewhere."""
    home = str(kind.__module__).partition(".")[0]
    return home == "oneflow_lite" or (home == "torch" and Tensor in getattr(kind, "__mro__", ()))


def user_location() -> Location | None:
    """Return the innermost line of the current call stack that a user wrote.

    Lines of this package and of the standard library, such as `copy.deepcopy`, are skipped.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not _is_passed_over(code.co_filename):
            return Location(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


def at_user_line() -> str:
    """Return the user's line in brackets, for the end of a message; "" without such a line."""
    location = user_location()
    return "" if location is None else f" (at {location})"


def is_passed_over(code: CodeType) -> bool:
    """Return whether code belongs to this package or to the standard library."""
    return _is_passed_over(code.co_filename)
