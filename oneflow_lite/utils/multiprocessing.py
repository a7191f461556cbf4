"""`torch.multiprocessing`: Python's own, with `spawn`; tensors are pickled, not shared."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing.connection import wait
from typing import Any

from oneflow_lite.errors import WorkerError


class ProcessContext:
    """The processes of `start_processes`."""

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes

    def pids(self) -> list[int]:
        """Return the numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait, and return whether all have ended; where one fails, end the others and raise."""
        wait([process.sentinel for process in self.processes], timeout)
        failed = [n for n, process in enumerate(self.processes) if process.exitcode]
        if failed:
            for process in self.processes:
                process.terminate()
                process.join(grace_period)
            code = self.processes[failed[0]].exitcode
            raise WorkerError(f"spawn(): process {failed[0]} ended with the exit code {code}")
        return all(process.exitcode == 0 for process in self.processes)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    **options: Any,
) -> ProcessContext | None:
    """Run `fn(number, *args)` in processes; with `join`, wait for them."""
    start = multiprocessing.get_context(start_method)
    made: list[Any] = []
    for number in range(nprocs):
        made.append(start.Process(target=fn, args=(number, *args), daemon=daemon))  # type: ignore[attr-defined]
        made[-1].start()
    found = ProcessContext(made)
    while join and not found.join():
        pass
    return None if join else found


spawn = start_processes


def get_all_sharing_strategies() -> set[str]:
    """Return the one strategy: memory is not shared."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """Return the strategy."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Do nothing: memory is not shared."""
