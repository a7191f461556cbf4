"""The worker processes of an iterator, seen from the main process."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Collection
from multiprocessing import connection as connections
from multiprocessing.process import BaseProcess
from pickle import PicklingError
from typing import Any

from oneflow_lite.errors import WorkerError
from oneflow_lite.utils.data._utils import worker
from oneflow_lite.utils.data._utils.channel import Receiver

_NAME = "oneflow_lite.data worker"
_NOT_SENT = (
    "The data set, collate_fn and worker_init_fn are sent to the workers by pickle here: define "
    "them at the top of a module, or pass multiprocessing_context='fork' where the system has it."
)


class Workers:
    """Processes that each answer their tasks in the order given."""

    def __init__(self, job: worker.Job, context: Any) -> None:
        self.owner = os.getpid()
        self.closed = False
        self.processes: list[BaseProcess] = []
        self.channels: list[Receiver] = []
        context = context or multiprocessing.get_context()
        try:
            for number in range(job.num_workers):
                self._start(job, number, context)
        except BaseException:
            self.close()
            raise

    def _start(self, job: worker.Job, number: int, context: Any) -> None:
        ours, theirs = context.Pipe()
        self.channels.append(Receiver(ours))
        forks = context.get_start_method() == "fork"
        inherited = self.channels if forks else []
        process = context.Process(
            target=worker.run,
            args=(job, number, theirs, inherited),
            name=f"{_NAME} {number}",
            daemon=True,
        )
        try:
            process.start()
        except (TypeError, AttributeError, PicklingError) as error:
            error.add_note(_NOT_SENT)
            raise
        finally:
            theirs.close()
        self.processes.append(process)

    def give(self, number: int, task: Any) -> None:
        """Send a task to a worker; a dead worker is found only when its answer is awaited."""
        with contextlib.suppress(OSError):
            self.channels[number].send(task)

    def receive(self, among: Collection[int], timeout: float = 0) -> tuple[int, Any]:
        """Wait until one of these workers has answered; return its number and its answer.

        WorkerError: when a worker is gone, or no answer has come in `timeout` seconds.
        """
        waited: dict[Any, int] = {}
        for number in among:
            waited[self.channels[number].connection] = number
            waited[self.processes[number].sentinel] = number
        deadline = time.monotonic() + timeout if timeout else None
        while True:
            step = worker.MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                step = max(0, min(step, deadline - time.monotonic()))
            ready = connections.wait(list(waited), step)
            for number in among:  # a dead worker's last answer still counts
                if self.channels[number].connection in ready:
                    try:
                        return number, self.channels[number].receive()
                    except (EOFError, OSError):
                        raise self._gone_error(number) from None
            for number in among:
                if not self.processes[number].is_alive():
                    raise self._gone_error(number)
            if deadline is not None and time.monotonic() >= deadline:
                raise WorkerError(
                    f"DataLoader timed out after {timeout} seconds; give it more by timeout=, or "
                    "look at what the data set waits for with num_workers=0"
                )

    def _gone_error(self, number: int) -> WorkerError:
        """Return the error for a worker that is gone, after closing all workers."""
        process = self.processes[number]
        process.join(worker.MP_STATUS_CHECK_INTERVAL)
        pid, code = process.pid, process.exitcode
        self.close()
        how = f"exited unexpectedly with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code} ({signal.strsignal(-code)})"
        return WorkerError(
            f"DataLoader worker (pid {pid}, worker {number}) {how}; num_workers=0 runs the same "
            "code in this process, where its error shows"
        )

    def close(self) -> None:
        """Hang up, and end all workers that do not end by themselves; once, in their parent."""
        if self.closed or os.getpid() != self.owner:  # a forked worker has a copy of this object
            return
        self.closed = True
        for channel in self.channels:
            channel.hang_up()
        deadline = time.monotonic() + worker.MP_STATUS_CHECK_INTERVAL
        try:
            for process in self.processes:
                process.join(max(0, deadline - time.monotonic()))
        finally:
            # Terminated first, so that a worker can clean up; killed if it does not end.
            for end in (BaseProcess.terminate, BaseProcess.kill):
                left = [process for process in self.processes if process.is_alive()]
                for process in left:
                    end(process)
                for process in left:
                    process.join(1)
