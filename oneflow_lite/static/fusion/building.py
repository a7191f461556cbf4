"""Building in the background: neither a fork nor the end of the process comes into its middle.

Other threads go on meanwhile: see `switching_fast`.

LLVM must not be stopped in its middle. The thread that builds holds a lock for one group at a time.
A fork waits for that group, so a child finds LLVM as it should be. The end of the process waits for
that group, too, and no later group is begun.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from oneflow_lite.arrays.locks import PATIENCE, make_lock

_lock = make_lock()
_stopped = ""

_OFTEN = 5e-4  # seconds that another thread waits for Python at most
_FEW = 3  # threads
_switching = make_lock()
_fast = 0  # how many ask for it
_interval = sys.getswitchinterval()  # as it was before


@contextlib.contextmanager
def switching_fast() -> Iterator[None]:
    """Have Python change threads often in a `with` block, for who builds keeps Python busy.

    An op waits for Python each time that it comes back from NumPy, which is 5 ms by default: a
    second in a program of 200 ops. Where many threads run, they wait for each other anyway, and the
    changes would keep them from their work.
    """
    global _fast, _interval
    with _switching:
        _fast += 1
        if _fast == 1:
            _interval = sys.getswitchinterval()
            if threading.active_count() <= _FEW:
                sys.setswitchinterval(min(_interval, _OFTEN))
    try:
        yield
    finally:
        with _switching:
            _fast -= 1
            if not _fast:
                sys.setswitchinterval(_interval)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Build within a `with` block, one thread at a time.

    Raises
    ------
    RuntimeError
        When the process ends, or was forked while a thread was building.
    """
    with _lock, switching_fast():
        if _stopped:
            raise RuntimeError(_stopped)
        yield


def wait_first() -> None:
    """Have the end of the process wait before LLVM, imported meanwhile, puts its things away."""
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)  # the last one is called first


def stop() -> None:
    """Have no building begin any more, for the process ends."""
    global _stopped
    _stopped = "the process ends"


@atexit.register
def _at_exit() -> None:
    with _lock:
        stop()


_waited: list[bool] = []  # empty after a fork that began before this module was imported


def _before_fork() -> None:
    _waited.append(_lock.acquire(timeout=PATIENCE))


def _in_parent() -> None:
    if _waited and _waited.pop():
        _lock.release()


def _in_child() -> None:
    global _stopped, _fast
    if _fast:  # the threads that asked for it are the parent's
        _fast = 0
        sys.setswitchinterval(_interval)
    if _waited and not _waited.pop():
        _stopped = "the process was forked from one in the middle of building"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
