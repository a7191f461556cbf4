"""Locks for data that threads share; a forked child finds every lock free, held or not."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from importlib import _bootstrap
from typing import Any, TypeVar

Result = TypeVar("Result")

FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()
# Seconds that a fork waits: the thread that is waited for may itself wait for the one that forks.
PATIENCE = 10.0
_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_never_ready: weakref.WeakSet[Any] = weakref.WeakSet()  # locks of modules waited for in vain


def make_lock() -> threading.RLock:
    """Make a lock for a few lines that many threads run.

    A thread may take it twice: the garbage collector runs finalizers anywhere, and a finalizer may
    run ops.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


class cached_property(functools.cached_property[Result]):  # as it is called there
    """That of `functools`, which until Python 3.12 holds one lock for all objects of a class."""

    def __init__(self, function: Callable[[Any], Result]) -> None:
        super().__init__(function)
        if hasattr(self, "lock"):
            _locks.add(self.lock)


def make_future() -> Future[Any]:
    """Make a future which a forked child may ask whether it is done."""
    future: Future[Any] = Future()
    _locks.add(future._condition._lock)  # type: ignore[attr-defined]
    return future


def free_all(locks: Any = _locks) -> None:
    """Free locks in a forked child: their holders stayed in the parent."""
    for lock in list(locks):
        lock._at_fork_reinit()


def _wait_for_imports() -> None:
    """Let a fork wait for modules that other threads are importing: a child would have them half.

    Python leaves the locks of such modules held in the child, which waits for ever to import them.
    """
    end = time.monotonic() + PATIENCE
    while importing := _importing():
        if time.monotonic() > end:  # such as a program that is run by importing it
            _never_ready.update(importing)
        time.sleep(0.001)


def _importing() -> list[Any]:
    """Return the locks of modules that other threads import."""
    free = None, threading.get_ident()
    locks = _bootstrap._module_locks.copy()  # type: ignore[attr-defined]
    found = [lock() for lock in locks.values()]
    return [k for k in found if getattr(k, "owner", None) not in free and k not in _never_ready]


if hasattr(os, "register_at_fork"):  # once: an entry cannot be taken back
    os.register_at_fork(before=_wait_for_imports, after_in_child=free_all)
