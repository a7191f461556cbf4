"""Tells whether a captured op builds a network (startup Program) or is part of every run."""

from __future__ import annotations

import enum
import sys
from types import FrameType

from oneflow_lite.nn import init
from oneflow_lite.nn.module import Module
from oneflow_lite.tensors.tensor import Tensor

_CALL = Module.__call__.__code__
_INIT_FILE = init.calculate_gain.__code__.co_filename
_BUILDERS = ("__init__", "reset_parameters", "reset_running_stats")


class Stage(enum.Enum):
    """The part of the user's program in which an op was called."""

    BUILD = "while a module is built or its parameters are initialised"
    RUN = "inside the forward of a module"
    SCRIPT = "elsewhere"


def stage(outermost: FrameType | None) -> Stage:
    """Return the stage of the current call, judged by the frames above `outermost`.

    A module is built in its `__init__`, `reset_parameters` and `reset_running_stats`; the functions
    of `nn.init` initialise.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not outermost:
        code = frame.f_code
        if code is _CALL:
            return Stage.RUN
        if code.co_filename == _INIT_FILE:
            return Stage.BUILD
        if code.co_name in _BUILDERS and code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])  # self, whatever it is called
            if isinstance(first, Module):
                return Stage.BUILD
        frame = frame.f_back
    return Stage.SCRIPT


def is_buffer(tensor: Tensor) -> bool:
    """Return whether a tensor is a buffer of a module that is being called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            module = frame.f_locals["self"]
            if any(buffer is tensor for buffer in module.buffers()):
                return True
        frame = frame.f_back
    return False
