"""Threads that share the work of a large op: the size from which it pays, and their pool."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from oneflow_lite.arrays.locks import make_lock

# Nanoseconds of one core's work from which other threads pay: waking one takes 30 to 40 µs.
SHARED = 150_000

Task = TypeVar("Task")

_lock = make_lock()
_pool: ThreadPoolExecutor | None = None


def threads() -> int:
    """Return how many threads work on a large array: as many as BLAS has, by OMP_NUM_THREADS."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) else os.cpu_count() or 1


def parts_of(nanoseconds: float, steps: int) -> int:
    """Return the number of threads among which this much work is divided."""
    return max(1, min(threads(), steps)) if nanoseconds >= SHARED else 1


def in_threads(work: Sequence[Callable[[], None]]) -> None:
    """Run the first of several functions in this thread, and the rest in the pool's threads.

    NumPy's settings of this thread, as by `numpy.errstate`, hold in the others.
    """
    if len(work) == 1:
        work[0]()
        return
    others: list[Future[None]] = []
    try:
        # The pool refuses work while the process ends, and where no thread can be started, as in a
        # browser; this thread then does it.
        try:
            others.extend(_threads().submit(copy_context().run, each) for each in work[1:])
        except RuntimeError:
            _forget_pool()  # it may hold the work that it could not start
        for each in (work[0], *work[1 + len(others) :]):
            each()
    finally:
        wait(others)  # an interrupt must not leave threads writing to the arrays
    for other in others:
        other.result()


def take_turns(tasks: Iterable[Task], run: Callable[[Task], None], count: int) -> None:
    """Run all tasks in `count` threads, each of which takes the next one when it is free.

    So a thread that wakes late takes fewer.
    """
    waiting = deque(tasks)

    def take() -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            run(task)

    in_threads([take] * count)


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
    os.register_at_fork(after_in_child=_forget_pool)  # its threads stay in the parent
