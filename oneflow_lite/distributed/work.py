"""Work: one collective under way, from the call that began it to the result.

Every collective begins without blocking and is then waited for, at once unless `async_op` is set.
So each wait has a timeout, and a call with `async_op` on one rank fits a call without it on the
next. The works of a group stand in a queue. Before a transfer begins, the ranks compare their
calls.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.errors import DistributedError
from oneflow_lite.futures import Future

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SPIN = 0.0005  # seconds of looking without a pause
_PATIENCE = 0.05  # seconds, then a wait looks whether a rank has ended
_NAP = 0.0005
_SHORT_NAP = 0.00002  # where ranks share cores: waiting ranks that yield would yield to each other
_let_others_run: Callable[[], None] = getattr(os, "sched_yield", functools.partial(time.sleep, 0))
_lock = make_lock()
_queues: set[Queue] = set()  # queues with works under way
_has_core = True  # whether each rank of this machine has a core to itself


def share_cores(ranks: int) -> None:
    """Set the number of ranks on this machine: ranks that share cores do not wait in a loop."""
    global _has_core
    affinity = getattr(os, "sched_getaffinity", None)
    _has_core = ranks <= (len(affinity(0)) if affinity is not None else os.cpu_count() or 1)


def user_line() -> str:
    """Return the file and line outside of the package that is calling."""
    frame: Any = sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Work:
    """A collective under way.

    Parameters
    ----------
    what : str
        The call, as errors name it.
    begin : callable
        Starts the transfer and returns something whose `Test()` says whether it is done.
    finish : callable, optional
        Called once with what `begin` returned, when that is done.
    check : object, optional
        Compares the call with the other ranks' first: `Test()` and, when that is true, `agree()`.
    queue : Queue, optional
    call : int
        The number of the call among the collectives of its transport; 0 for other works.
    """

    def __init__(
        self,
        what: str,
        begin: Callable[[], Any] | None = None,
        finish: Callable[[Any], None] | None = None,
        check: Any = None,
        queue: Queue | None = None,
        call: int = 0,
    ) -> None:
        self.what, self.call = what, call
        self._begin, self._finish, self._check, self._queue = begin, finish, check, queue
        self._request: Any = None
        self.tensors: list[Any] = []  # that the call writes
        self._error: BaseException | None = None
        self._done = begin is None
        if queue is not None:
            with _lock:
                queue.works.append(self)
                _queues.add(queue)
            progress()

    def _advance(self) -> bool:
        """Do what can be done now; return whether the next work of the queue may begin."""
        if self._done:  # possible before works ahead of it in the queue
            return True
        try:
            if self._check is not None:
                if not self._check.Test():
                    return False
                check, self._check = self._check, None
                check.agree()
            if self._request is None:
                assert self._begin is not None
                self._request = self._begin()
            if self._request.Test():
                if self._finish is not None:
                    self._finish(self._request)
                self._end()
        except Exception as error:
            self._error = _explained(error, self.what)
            self._end()
        return True

    def _end(self) -> None:
        self._done = True
        self._begin = self._finish = self._request = self._check = None  # these hold the arrays

    def is_completed(self) -> bool:
        """Return whether it is done, without waiting."""
        if not self._done:
            progress()
        return self._done

    def is_success(self) -> bool:
        """Return whether it is done and did not fail."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """Return why it failed, or None."""
        return self._error

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until it is done; return True.

        timeout: seconds or a timedelta; by default that of the group.

        Raises
        ------
        DistributedError
            When it failed, when a rank of the group has ended, or after the timeout.
        """
        if not self._done:
            self._wait(timeout)
        if self._error is not None:
            raise self._error
        return True

    def _wait(self, timeout: timedelta | float | None) -> None:
        queue = self._queue
        assert queue is not None
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        if not seconds:
            seconds = queue.timeout
        start, gone = time.monotonic(), ""
        spin = _SPIN if _has_core else 0.0
        while True:
            progress()
            if self._done:
                return
            join = getattr(self._request, "join", None)
            if join is not None:  # on a device: the stream waits, and not the host
                join()
                continue
            waited = time.monotonic() - start
            if waited > _PATIENCE:
                # What a rank sent before its last word has come by the second time.
                gone, before = queue.look_around(self), gone
                if gone and before:
                    raise DistributedError(gone)
                if waited > seconds:
                    raise DistributedError(
                        f"{queue.name}: {self.what} was not done after {seconds:g} s, called at "
                        f"{user_line()}; another rank does not make this call, or works longer "
                        "than that: set init_process_group(timeout=...)"
                    )
                time.sleep(_NAP)
            elif waited > spin:
                if _has_core:
                    _let_others_run()
                else:
                    time.sleep(_SHORT_NAP)

    def get_future(self) -> Future:
        """Return the future of the tensors that the call writes, in a list."""
        return Future(lambda: self.wait() and self.tensors)

    def result(self) -> Any:
        """Return None: results are in the tensors that were given."""
        self.wait()

    def synchronize(self) -> None:
        """Wait."""
        self.wait()


def _explained(error: Exception, what: str) -> Exception:
    if isinstance(error, DistributedError):
        return error
    explained = DistributedError(f"{what} failed: {error}")
    explained.__cause__ = error
    return explained


class Queue:
    """The works of a group on one transport, in order of their calls."""

    def __init__(self, name: str, timeout: float, look_around: Callable[[Work], str]) -> None:
        self.name, self.timeout, self.look_around = name, timeout, look_around
        self.works: deque[Work] = deque()

    def advance(self) -> None:
        """Let the works go on; each begins after all works before it have begun."""
        for work in self.works:
            if not work._advance():
                break
        while self.works and self.works[0]._done:
            self.works.popleft()
        if not self.works:
            _queues.discard(self)


def progress() -> None:
    """Let the works of all groups go on: a wait in one group must not hold up another."""
    with _lock:
        for queue in tuple(_queues):
            queue.advance()


DONE = Work("nothing")
