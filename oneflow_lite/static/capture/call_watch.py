"""What runs while `flow.compile` records: the users' code that is entered, and what it calls."""

from __future__ import annotations

import dis
import sys
from itertools import pairwise
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from oneflow_lite.interpreter import EagerInterpreter
from oneflow_lite.static.capture.code_walk import nested_codes, walk
from oneflow_lite.static.capture.trusted import (
    call_reason,
    has_own_effect,
    is_reflective,
    may_enter,
    origin,
    origin_of_module,
    reads_fields,
)

if TYPE_CHECKING:
    from oneflow_lite.static.capture.outside import Outside


def _is_users(frame: FrameType) -> bool:
    """Return whether a frame runs a user's code.

    An array module that stands for CuPy is none, nor what Python generates for a class of ours.
    """
    code = frame.f_code
    if origin(code) != "user":
        return False
    module = str(frame.f_globals.get("__name__"))
    if code.co_filename == "<string>":  # namedtuple() and dataclass() write methods
        return not module.startswith("namedtuple_") and origin_of_module(module) == "user"
    package = _array_package()
    return module != package and not module.startswith(f"{package}.")


def _array_package() -> str:
    """Return the name of CuPy's package, or of what stands for it."""
    cupy = sys.modules.get("cupy")
    name = "cupy" if cupy is None else str(cupy.ndarray.__module__)
    return name.rpartition(".")[0] or name


def _handles(code: CodeType) -> bool:
    """Return whether code has an `except` or `finally`; a `with` leaves it to its manager."""
    if not code.co_exceptiontable:
        return False
    ops = [instruction.opname for instruction in dis.get_instructions(code)]
    return any(a == "PUSH_EXC_INFO" and b != "WITH_EXCEPT_START" for a, b in pairwise(ops))


_RUN_KERNEL = EagerInterpreter.apply.__code__


class CallWatch:
    """A context manager that notes, on this thread, which code runs and what users' code calls.

    Attributes
    ----------
    entered : dict of code to list of dict
        The users' code objects that ran, with their global names.
    own : set of code
        The package's code objects that ran.
    library : set of code
        Those of libraries that users' code may enter.
    foreign : set of code
        The others of libraries.

    Examples
    --------
    >>> from oneflow_lite.static.capture.call_watch import CallWatch
    >>> def shout():
    ...     print("hey")
    >>> watch = CallWatch()
    >>> with watch:
    ...     shout()
    hey
    >>> [code.co_name for code in watch.entered], len(watch.calls)
    (['shout'], 1)
    """

    def __init__(self) -> None:
        self.entered: dict[CodeType, list[dict[str, Any]]] = {}
        self.own: set[CodeType] = set()
        self.library: set[CodeType] = set()
        self.foreign: set[CodeType] = set()
        self.calls: dict[str, None] = {}
        self.any_attribute = False
        self._previous: Any = None  # the profiler that was set before; it is told everything too
        self._whose: dict[int, str] = {}  # by the id of the code: hashing code takes long
        self._met: list[CodeType] = []  # so that no id is used again
        self._muted: FrameType | None = None  # the frame of a kernel: what it calls is the op's own

    def __enter__(self) -> CallWatch:
        self._previous = sys.getprofile()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.setprofile(self._previous)
        self._muted = None

    def reasons(self, outside: Outside) -> list[str]:
        """Return why the call cannot be replayed, as far as code and calls say."""
        found = list(self.calls)
        known = {inner for code in outside.codes for inner in nested_codes(code)}
        for code in self.entered:
            found += walk(code).reasons
            if code not in known:
                found.append(
                    f"{code.co_name}() ({code.co_filename}:{code.co_firstlineno}) "
                    "was reached in a way that is not understood"
                )
        return list(dict.fromkeys([*found, *outside.unknown(self)]))

    def has_handlers(self) -> bool:
        """Return whether users' code, or a context manager that is not ours, may see exceptions."""
        managers = [
            c for c in (*self.entered, *self.library, *self.foreign) if c.co_name == "__exit__"
        ]
        return bool(managers) or any(map(_handles, self.entered))

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        if self._previous is not None:
            self._previous(frame, event, arg)
        if self._muted is not None:
            if event == "return" and frame is self._muted:
                self._muted = None
        elif event == "call":
            code = frame.f_code
            whose = self._whose.get(id(code)) or self._first(frame)
            if code is _RUN_KERNEL:
                self._muted = frame
            elif whose == "user":
                scopes = self.entered.setdefault(code, [])
                if not any(scope is frame.f_globals for scope in scopes):
                    scopes.append(frame.f_globals)
            elif whose == "library" and not may_enter(code):
                caller = frame.f_back
                if caller is not None and _is_users(caller):
                    self._note(caller, f"{code.co_qualname}()")
        elif event == "c_call":
            by_user = self._whose.get(id(frame.f_code)) == "user"
            if is_reflective(arg):
                if by_user or reads_fields(frame.f_code):
                    self.any_attribute = True
            elif by_user and (reason := call_reason(arg)) is not None:
                self._note(frame, reason)

    def _first(self, frame: FrameType) -> str:
        """Take note of code that runs for the first time, and say whose it is."""
        code = frame.f_code
        whose: str = origin(code)
        if whose == "own":
            self.own.add(code)
            if has_own_effect(code):
                self._note(frame.f_back or frame, f"{code.co_name}()")
        elif whose == "library":
            (self.library if may_enter(code) else self.foreign).add(code)
        elif whose == "user" and not _is_users(frame):
            whose = "generated"
        self._whose[id(code)] = whose
        self._met.append(code)
        return whose

    def _note(self, caller: FrameType, called: str) -> None:
        where = f"line {caller.f_lineno} of {caller.f_code.co_filename}"
        self.calls[f"{caller.f_code.co_name}() calls {called} in {where}"] = None
