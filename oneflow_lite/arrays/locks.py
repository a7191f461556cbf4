"""Locks for data that threads share; a forked child finds every lock free, held or not."""

from __future__ import annotations

import os
import sys
import threading
import weakref

FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()
_locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()


def make_lock() -> threading.RLock:
    """Make a lock for a few lines that many threads run.

    A thread may take it twice: the garbage collector runs finalizers anywhere, and a finalizer may
    run ops.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # its holder stayed in the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)  # once: an entry cannot be taken back
