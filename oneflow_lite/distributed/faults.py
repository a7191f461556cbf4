"""What happens to the other ranks when one fails: they end, too, and say because of whom."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from typing import Any

import numpy as np

_world: Any = None
_hook: Any = None
_registered = False


def watch(world: Any) -> None:
    """From now on an exception that nobody catches ends all processes of the world."""
    global _world, _hook, _registered
    _world = world
    _hook, sys.excepthook = sys.excepthook, _ended_by
    if not _registered:  # after mpi4py's own, hence run before it
        atexit.register(_at_exit)
        _registered = True


def forget() -> None:
    """Stop watching: the world is left in order."""
    global _world
    if _world is not None:
        _world = None
        if sys.excepthook is _ended_by:
            sys.excepthook = _hook


def abort(reason: str) -> None:
    """End all processes of the world."""
    print(reason, file=sys.stderr, flush=True)
    sys.stdout.flush()
    if _world is None:
        os._exit(1)
    _world._comm.Abort(1)


def _ended_by(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print the exception with the rank, and end the others."""
    assert _world is not None
    here = f"rank {_world.rank()} of {_world.size()}"
    text = "".join(traceback.format_exception(kind, error, trace))
    said = "".join(f"[{here}] {line}\n" for line in text.splitlines())
    abort(f"{said}[{here}] raised {kind.__name__}: all ranks end")


def _at_exit() -> None:
    """Tell the others, who may be waiting for this rank, that it takes part in nothing any more."""
    if _world is None:
        return
    transport: Any = _world.transport(np)
    transport.say_ended("has ended, without destroy_process_group()")
