"""Whether an op that is captured builds a network (startup Program) or is part of every run."""

from __future__ import annotations

import enum
import sys
from types import FrameType

from oneflow_lite.nn import init
from oneflow_lite.nn.module import Module

_CALL = Module.__call__.__code__
_INIT_FILE = init.calculate_gain.__code__.co_filename


class Stage(enum.Enum):
    """Where in the user's program an op was called."""

    BUILD = "while a module is built or its parameters are initialised"
    RUN = "inside the forward of a module"
    SCRIPT = "elsewhere"


def stage(outermost: FrameType | None) -> Stage:
    """Return the stage of the present call, judged by the frames above `outermost`.

    A module is built in its `__init__` and its `reset_...` methods; the functions of `nn.init`
    initialise.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not outermost:
        code = frame.f_code
        if code is _CALL:
            return Stage.RUN
        if code.co_filename == _INIT_FILE:
            return Stage.BUILD
        name = code.co_name
        builds = name == "__init__" or name.startswith("reset_")
        if builds and isinstance(frame.f_locals.get("self"), Module):
            return Stage.BUILD
        frame = frame.f_back
    return Stage.SCRIPT
