"""Users' code that only a backward pass enters: recorded where it can do nothing but compute.

It runs once while `flow.compile` records, and then in no replay. So it is entered only when all
that it can reach is its arguments, numbers and this package; anything else ends the recording
before it has run.
"""

from __future__ import annotations

import sys
from types import FrameType, FunctionType, ModuleType
from typing import Any

from oneflow_lite.autograd.function import FunctionCtx
from oneflow_lite.autograd.gradient_rules import AutoGradCaptureState
from oneflow_lite.autograd.rule_namespace import FunctorNamespace
from oneflow_lite.static.capture.call_watch import _is_users as is_users
from oneflow_lite.static.capture.code_walk import Path, nested_codes, walk
from oneflow_lite.static.capture.results import NotReplayable
from oneflow_lite.static.capture.trusted import (
    BUILTINS,
    PURE_MODULES,
    call_reason,
    has_own_effect,
    origin_of_module,
)
from oneflow_lite.static.ir.tree import fixed_values, flatten
from oneflow_lite.tensor import Tensor

_KEPT_BY_AUTOGRAD = ("_", "saved_", "node")


class BackwardWatch:
    """A context manager that lets no users' code run on this thread but such that only computes.

    Attributes
    ----------
    entered : bool
        Whether any ran.

    Raises
    ------
    NotReplayable
        In the place of a call of other code.
    """

    def __enter__(self) -> BackwardWatch:
        self.entered = False
        self._previous = sys.getprofile()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.setprofile(self._previous)

    def _event(self, frame: FrameType, event: Any, arg: Any) -> None:
        if event == "call" and is_users(frame):
            self.entered = True
            reason = _reason(frame)
            if reason is not None:
                code = frame.f_code
                raise NotReplayable(
                    f"{code.co_name}() ({code.co_filename}:{code.co_firstlineno}) runs in its "
                    f"backward pass and {reason}"
                )
        if self._previous is not None:
            self._previous(frame, event, arg)


def _reason(frame: FrameType) -> str | None:
    for name, value in frame.f_locals.items():  # arguments and closure variables
        if not (_is_plain(value) or (name == ".0" and _is_comprehension(frame))):
            return f"reads {name}, a {type(value).__name__}"
    for code in nested_codes(frame.f_code):
        facts = walk(code)
        if facts.reasons:
            return facts.reasons[0]
        if facts.any_attribute:
            return "reads attributes whose names do not stand in the code"
        for path in facts.globals:
            if not _is_harmless(frame.f_globals, path):
                return f"reads the global {path[0]}"
    return None


def _is_comprehension(frame: FrameType) -> bool:
    """Return whether the code around it, which was looked at before, gave it what it iterates."""
    caller = frame.f_back
    return caller is not None and frame.f_code in caller.f_code.co_consts and is_users(caller)


def _is_plain(value: Any) -> bool:
    """Return whether a value is made of tensors and immutable values alone."""
    if isinstance(value, (AutoGradCaptureState, FunctionCtx)):
        value = [v for name, v in vars(value).items() if not name.startswith(_KEPT_BY_AUTOGRAD)]
    elif isinstance(value, FunctorNamespace):
        return True
    return all(fixed.is_plain for fixed in fixed_values(flatten(value, [])))


def _is_harmless(scope: dict[str, Any], path: Path) -> bool:
    name, *attributes = path
    if name not in scope:
        value = BUILTINS.get(name)
        return value is not None and (isinstance(value, type) or call_reason(value) is None)
    value = scope[name]
    while type(value) is ModuleType:
        own = origin_of_module(value.__name__) == "own"
        if not attributes or not (own or value.__name__ in PURE_MODULES):
            return False
        value = getattr(value, attributes.pop(0), None)
        if type(value) is FunctionType:
            return own and not has_own_effect(value.__code__)
        if not isinstance(value, ModuleType):
            return own and not isinstance(value, Tensor)
    return False
