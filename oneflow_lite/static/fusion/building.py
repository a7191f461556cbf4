"""Building in the background: neither a fork nor the end of the process comes into its middle.

LLVM must not be stopped in its middle. The thread that builds holds a lock for one group at a time.
A fork waits for that group, so a child finds LLVM as it should be. The end of the process waits for
that group, too, and no later group is begun.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator

from oneflow_lite.arrays.locks import PATIENCE, make_lock

_lock = make_lock()
_stopped = ""


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Build within a `with` block, one thread at a time.

    Raises
    ------
    RuntimeError
        When the process ends, or was forked while a thread was building.
    """
    with _lock:
        if _stopped:
            raise RuntimeError(_stopped)
        yield


def wait_first() -> None:
    """Have the end of the process wait before LLVM, imported meanwhile, puts its things away."""
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)  # the last one is called first


@atexit.register
def _at_exit() -> None:
    global _stopped
    with _lock:
        _stopped = "the process ends"


_waited: list[bool] = []  # empty after a fork that began before this module was imported


def _before_fork() -> None:
    _waited.append(_lock.acquire(timeout=PATIENCE))


def _in_parent() -> None:
    if _waited and _waited.pop():
        _lock.release()


def _in_child() -> None:
    global _stopped
    if _waited and not _waited.pop():
        _stopped = "the process was forked from one in the middle of building"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
