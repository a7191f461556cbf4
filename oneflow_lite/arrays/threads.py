"""Threads that share the work of one large op: which work is large, and the pool that does it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from oneflow_lite.arrays.locks import make_lock

# Nanoseconds of one core's work from which other threads pay: waking one takes 30 to 40 µs.
SHARED = 150_000

_lock = make_lock()
_pool: ThreadPoolExecutor | None = None


def threads() -> int:
    """Return how many threads work on a large array: as many as BLAS has, by OMP_NUM_THREADS."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) else os.cpu_count() or 1


def parts_of(nanoseconds: float, steps: int) -> int:
    """Return among how many threads so much work is divided."""
    return max(1, min(threads(), steps)) if nanoseconds >= SHARED else 1


def in_threads(work: Sequence[Callable[[], None]]) -> None:
    """Do the first of several things here, and the others in other threads."""
    if len(work) == 1:
        work[0]()
        return
    others: list[Future[None]] = []
    try:
        with contextlib.suppress(RuntimeError):  # the process ends
            others.extend(_threads().submit(each) for each in work[1:])
        for each in (work[0], *work[1 + len(others) :]):
            each()
    finally:
        wait(others)  # an interrupt must not leave them writing
    for other in others:
        other.result()


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(threads(), "oneflow_lite work")
        return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
