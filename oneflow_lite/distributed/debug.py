"""The level at which ranks compare their calls: a cheap check, or in debug mode everything."""

from __future__ import annotations

import enum
import os

from oneflow_lite.errors import ArgumentError, arg_error


class DebugLevel(enum.Enum):
    """A level of comparison of the ranks' calls.

    OFF and INFO compare a number made of each call; DETAIL compares calls word by word. With
    DETAIL errors name the line of each rank's call, messages from rank to rank announce their shape
    and dtype, and calls are counted.
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_VARIABLES = ("ONEFLOW_LITE_DISTRIBUTED_DEBUG", "TORCH_DISTRIBUTED_DEBUG")
_level = DebugLevel.OFF


def set_debug_level(level: DebugLevel) -> None:
    """Set how much is compared, on all ranks alike."""
    global _level
    if not isinstance(level, DebugLevel):
        expected, hint = "a DebugLevel", "pass flow.distributed.DebugLevel.DETAIL"
        raise arg_error("set_debug_level", "level", expected, level, hint, ArgumentError)
    _level = level


def set_debug_level_from_env() -> None:
    """Set how much is compared from ONEFLOW_LITE_DISTRIBUTED_DEBUG or TORCH_DISTRIBUTED_DEBUG."""
    for variable in _VARIABLES:
        word = os.environ.get(variable)
        if word is not None:
            if word.upper() not in DebugLevel.__members__:
                expected, hint = "OFF, INFO or DETAIL", "unset it for OFF"
                raise arg_error("init_process_group", variable, expected, word, hint, ArgumentError)
            set_debug_level(DebugLevel[word.upper()])
            return


def get_debug_level() -> DebugLevel:
    """Return how much is compared.

    >>> import oneflow_lite as flow
    >>> flow.distributed.get_debug_level()
    <DebugLevel.OFF: 0>
    """
    return _level


def detail() -> bool:
    """Return whether debug mode is on."""
    return _level is DebugLevel.DETAIL
