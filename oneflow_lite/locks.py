"""Locks for what threads share; a forked child finds them free, whoever held them."""

from __future__ import annotations

import os
import sys
import threading

FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()


def make_lock() -> threading.RLock:
    """Make a lock for a few lines that many threads run.

    It may be taken twice by one thread: the garbage collector runs finalizers anywhere, and those
    may run ops.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock
