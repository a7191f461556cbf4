"""The loop of a worker process."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite.functors.random import manual_seed
from oneflow_lite.tensors import mode
from oneflow_lite.utils.data._utils.errors import ExceptionWrapper
from oneflow_lite.utils.data._utils.fetch import make_fetch

if TYPE_CHECKING:  # where no process can start, the DataLoader imports this file all the same
    from multiprocessing.connection import Connection

    from oneflow_lite.utils.data._utils.channel import Receiver, Sender

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two looks at whether the other side is alive
RESUME = ()  # the task to begin another pass; every other task is a tuple of an index


class End:
    """The reply that the stream of a worker has no more samples."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The number and seed of this worker process, as `get_worker_info` returns it.

    Attributes
    ----------
    id : int
        0 to num_workers - 1.
    num_workers : int
        How many there are.
    seed : int
        The seed of `random` and of the library's default generator: the base seed of the iterator
        plus the id.
    dataset : Dataset
        The copy of the data set in this process.
    rng : None
        Only workers that are threads would have one.
    worker_method : str
        "multiprocessing".
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the number and seed of this worker of a DataLoader; None in the main process.

    A data set's `__iter__`, or a `worker_init_fn`, divides the samples by it.

    >>> import oneflow_lite as flow
    >>> class Count(flow.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         info = flow.utils.data.get_worker_info()
    ...         return iter(range(6) if info is None else range(info.id, 6, info.num_workers))
    >>> list(flow.utils.data.DataLoader(Count(), batch_size=3))
    [tensor([0, 1, 2]), tensor([3, 4, 5])]
    """
    return _worker_info


@dataclass
class Job:
    """The orders for every worker of a loader."""

    dataset: Any
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    init_fn: Callable[[int], object] | None
    base_seed: int
    num_workers: int
    streams: bool = False


def run(job: Job, worker_id: int, connection: Connection, inherited: list[Receiver]) -> None:
    """Answer tasks until the main process hangs up.

    `inherited` are the main process's own ends, which a forked worker closes: a copy here would
    keep a connection open after the main process has hung up.
    """
    from oneflow_lite.utils.data._utils.channel import Sender

    for end in inherited:
        end.close()
    tasks = _Tasks(connection)
    threading.Thread(target=tasks.read, name="oneflow_lite.data tasks", daemon=True).start()
    sender = Sender(connection)
    # The main process has ended, or gets the interrupt itself: a traceback here would only repeat
    # it.
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        _Worker(job, worker_id, sender).answer(tasks)
    sender.close()


class _Tasks:
    """The tasks received, read by a thread, so that the main process never waits to send a task."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.ended = False

    def read(self) -> None:
        """Read until the main process hangs up or has ended."""
        parent = os.getppid()
        try:
            while True:
                while not self.connection.poll(MP_STATUS_CHECK_INTERVAL):
                    if os.getppid() != parent:  # the parent ended and this process was adopted
                        return
                self.queue.put(self.connection.recv())
        except (EOFError, OSError):
            pass
        finally:
            self.ended = True
            self.queue.put(None)


class _Worker:
    def __init__(self, job: Job, worker_id: int, sender: Sender) -> None:
        self.job, self.id, self.sender = job, worker_id, sender
        self.where = f"in DataLoader worker process {worker_id}"
        self.failure: ExceptionWrapper | None = None
        self._begin(self._set_up)

    def _set_up(self) -> None:
        """Seed all generators, and begin with a new thread state: a fork inherits its parent's."""
        global _worker_info
        mode.local.state = mode.GRAD
        job, seed = self.job, self.job.base_seed + self.id
        random.seed(seed)
        manual_seed(seed)
        # NumPy takes seeds of 32 bits, so the base seed is two words.
        words = [self.id, job.base_seed & 0xFFFFFFFF, job.base_seed >> 32, 0]
        np.random.seed(np.random.SeedSequence(words).generate_state(4))
        _worker_info = WorkerInfo(self.id, job.num_workers, seed, job.dataset)
        if job.init_fn is not None:
            job.init_fn(self.id)
        self._make_fetch()

    def _make_fetch(self) -> None:
        job = self.job
        given = job.dataset, job.streams, job.auto_collation, job.collate_fn, job.drop_last
        self.fetch = make_fetch(*given)

    def _begin(self, step: Callable[[], None]) -> None:
        """Take a step before the first task; an exception from it is the answer to all tasks."""
        try:
            step()
        except Exception as error:
            self.failure = ExceptionWrapper(error, self.where)

    def answer(self, tasks: _Tasks) -> None:
        """Reply to each task in turn."""
        while (task := tasks.queue.get()) is not None and not tasks.ended:
            index, free = task
            self.sender.free += free
            if index == RESUME:
                self._begin(self._make_fetch)
                continue
            try:
                self.sender.send(self.failure or self._result(*index))
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:  # a batch that cannot be pickled
                self.sender.send(ExceptionWrapper(error, self.where))

    def _result(self, index: Any) -> Any:
        try:
            return self.fetch(index)
        except Exception as error:
            if isinstance(error, StopIteration) and self.job.streams:
                return End()
            return ExceptionWrapper(error, self.where)
