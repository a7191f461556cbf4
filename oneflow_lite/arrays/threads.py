"""Threads that share the work of a large op: the size from which it pays, and their pool.

A signal handler or a finalizer may run an op while this thread hands out the work of another. The
pools of Python's library wait for ever then, so this is one without locks of that kind.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

# Nanoseconds of one core's work from which other threads pay: waking one takes 30 to 40 µs.
SHARED = 150_000

Task = TypeVar("Task")

_waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
_running: list[None] = []  # an entry for each thread of the pool


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
    jobs = [_Job(work[0]), *[_Job(partial(copy_context().run, each)) for each in work[1:]]]
    _have_threads(min(len(jobs) - 1, threads()))
    for job in jobs[1:] if _running else ():
        _waiting.put(job.do)
    try:
        for job in jobs:
            job.do()  # if no other thread has begun
    finally:
        for job in jobs:
            job.settle()  # an interrupt must not leave threads writing to the arrays
    for job in jobs:
        if job.error is not None:
            raise job.error


class _Job:
    """A function that is run by the first thread to come."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.error: BaseException | None = None
        self._run, self._turn, self._running = run, allocate_lock(), allocate_lock()
        self._running.acquire()

    def do(self) -> None:
        """Run it, unless it was begun before."""
        if self._turn.acquire(False):
            try:
                self._run()
            except BaseException as error:
                self.error = error
            finally:
                self._running.release()

    def settle(self) -> None:
        """Wait for its end, or see to it that it does not begin."""
        if not self._turn.acquire(False):
            self._running.acquire()


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


def _have_threads(count: int) -> None:
    """Start threads up to this number; without any, who asks does all the work."""
    while len(_running) < count and not sys.is_finalizing():
        _running.append(None)
        try:
            start_new_thread(_work, ())
        except RuntimeError:  # there are too many, or there is none, as in a browser
            _running.pop()
            return


def _work() -> None:
    while True:
        _waiting.get()()


def _forget_pool() -> None:  # its threads stayed in the parent
    global _waiting
    _waiting = SimpleQueue()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)  # its threads stay in the parent
