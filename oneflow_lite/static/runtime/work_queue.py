"""The work-queue mode: runs instructions that are ready, on several threads and CUDA streams.

Every op allocates what it makes, and a variable is dropped when the last instruction that needs it
has run: the places and in-place takeovers of the memory plan hold only for the order of the
Program, and are not used here. Dependencies and references are counted anew in each run.

The calling thread gives work to the devices, and helps with the host's while there is none.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.arrays.array_spec import bounds
from oneflow_lite.errors import FlowError
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.dependencies import DIRECT
from oneflow_lite.static.runtime.instruction import RUNS_KERNEL, Instruction
from oneflow_lite.static.runtime.last_live import viewed_slots
from oneflow_lite.static.runtime.runner import Analysis, Runner, Stop, frames, within
from oneflow_lite.static.runtime.straight_line import op_and_line
from oneflow_lite.static.runtime.streams import RunStreams

# Picks the position of the next instruction among those that are ready.
Order = Callable[[Sequence[Instruction]], int]

THREADS = min(4, os.cpu_count() or 1)
# A signal may come anywhere, and its handler run a Program: this queue bears both, as executors of
# the standard library do not.
_jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
_threads: list[threading.Thread] = []


def earliest(ready: Sequence[Instruction]) -> int:
    """Keep the order of the Program."""
    return min(range(len(ready)), key=lambda k: ready[k].index)


class _Here(threading.local):
    running = False  # a call in the middle of a run may not wait for the pool of threads


_here = _Here()


class WorkQueue(Runner):
    """Runs the instructions of a core as their dependencies allow.

    A run that a signal or a finalizer begins in the middle of another one keeps to its thread.

    Parameters
    ----------
    core : InterpreterCore
    threads : int
        How many threads run instructions on the host, the caller included.
    order : callable, optional
        Chooses the next instruction among those that are ready; by default first the one that
        continues the thread's last instruction, then the one that has waited longest.
    """

    in_order = False

    def __init__(self, core: Analysis, threads: int = THREADS, order: Order | None = None) -> None:
        self.core = core
        self.threads = threads
        self.order = order

    def fill(self, fetched: list[Any], feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        """Run once; see `Runner.fill`."""
        order, threads = self.order, self.threads
        if self.core.written and _overlap(self.core, feeds, externals):
            # One piece of memory has two names, so dependencies by name are not enough.
            order, threads = earliest, 1
        outer = _here.running
        try:
            _here.running = True
            run = _Run(self.core, feeds, externals, order)
            fetched += [*run.result(1 if outer else threads), False]
        finally:
            _here.running = outer

    def stop_of(self, error: BaseException, fetched: list[Any]) -> Stop | None:
        """Say which op the exception is of, or which was the first that had not been done."""
        for at in frames(error):
            here = at.tb_frame.f_locals
            if at.tb_frame.f_code is WorkQueue.fill.__code__ and here["fetched"] is fetched:
                if (run := here.get("run")) is None:
                    return None
                return Stop(run.failed or run.first_undone(), within(error, RUNS_KERNEL))
        return None


class _Run:
    """The state of one run."""

    def __init__(
        self,
        core: Analysis,
        feeds: Sequence[Any],
        externals: Sequence[Any],
        order: Order | None,
    ) -> None:
        self.core = core
        self.order = order
        self.feeds = iter(feeds)
        self.results: dict[int, Any] = {}
        self.slots: list[Any] = list(core.constants)
        for name, array in zip(core.external_names, externals, strict=True):
            if name in core.slots:  # of some inputs only the shape is used
                self.slots[core.slots[name]] = array
        self.waiting_for = list(core.dependency_count)
        self.undone = set(range(len(core.instructions)))
        self.failed: OpDesc | None = None
        self.running = 0
        self.helpers, self.is_closed = 0, False
        self.errors: list[BaseException] = []
        self.ready: dict[str, deque[Instruction]] = {"device": deque(), "host": deque()}
        self.lock = threading.RLock()  # taken by itself: an interrupt cannot come in between
        self.changed = threading.Condition(self.lock)
        self.streams = RunStreams(core.streams, core.edge_kinds)
        self._count_references()

    def _count_references(self) -> None:
        """Count the references to each slot: the last uses, and the view ops that take it."""
        instructions = self.core.instructions
        by_name = {instruction.name: instruction.index for instruction in instructions}
        self.references = [0] * len(self.slots)
        self.releases: list[list[int]] = [[] for _ in instructions]
        for name, users in self.core.last_live_ops.items():
            if not users:
                raise _changed_error(f"nothing says when {name!r} may be dropped")
            for user in users:
                self.releases[by_name[user]].append(self.core.slots[name])
        for instruction in instructions:
            self.releases[instruction.index] += viewed_slots(instruction)
        for slot in itertools.chain.from_iterable(self.releases):
            self.references[slot] += 1

    def result(self, threads: int) -> list[Any]:
        """Run everything and return what was fetched."""
        for instruction, count in zip(self.core.instructions, self.waiting_for, strict=True):
            if not count:
                self.ready[instruction.queue].append(instruction)
        self.streams.begin()
        try:
            for _ in range(threads - 1):
                _let_help(self)
            self.work(("device", "host"))
        except BaseException as error:  # an interrupt; exceptions of kernels are in the list
            self.fail(error)
        finally:
            self.close()
            self.streams.end()
        if self.errors:
            try:
                raise self.errors[0]
            finally:
                self.errors.clear()  # or the traceback would hold this run
        kept = sum(array is not None for array in self.slots)
        if self.undone or kept:
            left = len(self.undone)
            raise _changed_error(
                f"{left} instructions never became ready, {kept} variables were not dropped"
            )
        return [self.results[index] for index in sorted(self.results)]

    def help(self) -> None:
        """Take part in another thread, unless that comes too late."""
        with self.lock:
            if self.is_closed:
                return
            self.helpers += 1
        try:
            self.work(("host",))
        finally:
            with self.lock:
                self.helpers -= 1
                self.changed.notify_all()

    def close(self) -> None:
        """Wait until no helper is at work, whatever interrupts."""
        while True:
            try:
                with self.lock:
                    self.is_closed = True
                    while self.helpers:
                        self.changed.wait()
                return
            except BaseException as error:
                self.errors.append(error)  # which is all that makes the helpers stop

    def work(self, queues: Sequence[str]) -> None:
        """Run instructions of some queues until there are none left."""
        following: Instruction | None = None
        while True:
            instruction = following or self.take(queues)
            if instruction is None:
                return
            try:
                self.execute(instruction)
                following = self.finish(instruction)
            except BaseException as error:
                if instruction.op is not None:
                    error.add_note(op_and_line(instruction.op))
                self.fail(error, instruction.op)
                return

    def take(self, queues: Sequence[str]) -> Instruction | None:
        """Wait for an instruction and return it; None once there is nothing to wait for."""
        with self.lock:
            while self.undone and not self.errors:
                for name in queues:
                    ready = self.ready[name]
                    if ready:
                        self.running += 1
                        position = 0 if self.order is None else self.order(ready)
                        instruction = ready[position]
                        del ready[position]
                        return instruction
                if not self.running and not any(self.ready.values()):
                    break
                self.changed.wait()
            self.changed.notify_all()
            return None

    def execute(self, instruction: Instruction) -> None:
        """Run an instruction."""
        if instruction.kind == "feed":
            self.slots[instruction.outputs[0]] = next(self.feeds)
            return
        with self.streams.before(instruction, self.slots):
            if instruction.kind == "fetch":
                slot = instruction.inputs[0]
                assert slot is not None
                array = self.slots[slot]
                self.results[instruction.index] = array.copy() if instruction.copies else array
            else:
                instruction.execute(self.slots)
        self.streams.after(instruction)

    def finish(self, instruction: Instruction) -> Instruction | None:
        """Count down; return the instruction that this thread goes on with, by a direct edge."""
        following = None
        pushed: list[Instruction] = []
        with self.lock:
            for slot in self.releases[instruction.index]:
                self.references[slot] -= 1
                if not self.references[slot]:
                    self.streams.before_drop(slot)
                    self.slots[slot] = None
            for j in self.core.downstream[instruction.index]:
                self.waiting_for[j] -= 1
                if self.waiting_for[j]:
                    continue
                then = self.core.instructions[j]
                kind = self.core.edge_kinds.get((instruction.index, j))
                if kind == DIRECT and self.order is None and not self.errors:
                    following = then
                else:
                    self.ready[then.queue].append(then)
                    pushed.append(then)
            self.undone.discard(instruction.index)
            self.running -= following is None
            if not self.undone or any(then.stream for then in pushed):
                self.changed.notify_all()  # only the caller gives work to the devices
            else:
                self.changed.notify(max(0, len(pushed) - (following is None)))  # one is ours
        return following

    def fail(self, error: BaseException, op: OpDesc | None = None) -> None:
        """Stop the run; threads finish their current instruction."""
        with self.lock:
            if not self.errors:
                self.failed = op
            self.errors.append(error)
            self.changed.notify_all()

    def first_undone(self) -> OpDesc | None:
        """Return the first op, in the order of the Program, that was not done."""
        ops = [self.core.instructions[i].op for i in sorted(self.undone)]
        return next((op for op in ops if op is not None), None)


def _changed_error(what: str) -> FlowError:
    return FlowError(f"InterpreterCore.run(): {what}; the tables of the analysis were changed")


def _let_help(run: _Run) -> None:
    """Let a thread take part in a run, with the context variables of this one."""
    while len(_threads) < THREADS:
        thread = threading.Thread(target=_serve, name="oneflow_lite.executor", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # none can be started, as in a browser: the thread that runs does all
            return
        _threads.append(thread)
    # A run that is over is not kept until a thread is free to come too late.
    _jobs.put(functools.partial(contextvars.copy_context().run, _help, weakref.ref(run)))


def _help(reference: weakref.ref[_Run]) -> None:
    run = reference()
    if run is not None:
        run.help()


def _serve() -> None:
    while True:
        _jobs.get()()


def _overlap(core: Analysis, feeds: Sequence[Any], externals: Sequence[Any]) -> bool:
    """Return whether memory that a run writes was given under two names."""
    given = dict(zip((*core.plan.feeds, *core.external_names), (*feeds, *externals), strict=True))
    places = sorted(
        (*bounds(array), name in core.written)
        for name, array in given.items()
        if array is not None and array.size
    )
    end, end_of_written = -1, -1
    for low, high, written in places:
        if low < (end if written else end_of_written):
            return True
        end = max(end, high)
        end_of_written = max(end_of_written, high if written else -1)
    return False


def _forget() -> None:
    """Drop the threads in a forked child: they did not come along."""
    global _jobs
    _jobs = queue.SimpleQueue()
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
