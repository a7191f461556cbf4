"""Threads of the engine: one for each CUDA device, and new threads for deeply nested calls.

CPU nodes run on the thread that called. A device's thread starts when its first node is ready and
then waits for the next node; importing the package starts no thread.
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from oneflow_lite.arrays.device import Device, cuda_place
from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.autograd.engine.ready_queue import ReadyQueue
from oneflow_lite.errors import NestedBackwardError
from oneflow_lite.tensors.mode import local

MAX_DEPTH = 60  # nested backward calls on one thread
MAX_NESTED = 20_000  # nested backward calls on all threads that work for the outermost call
_queues: dict[Device, ReadyQueue] = {}
_start_lock = make_lock()


def ready_queue_of(device: Device) -> ReadyQueue:
    """Return the ready queue of a CUDA device; its worker starts with the first call."""
    with _start_lock:
        if device not in _queues:
            _queues[device] = ReadyQueue()
            name = f"oneflow_lite.autograd {device}"
            args = (_queues[device],)
            threading.Thread(target=_work, name=name, args=args, daemon=True).start()
        return _queues[device]


def _work(ready_queue: ReadyQueue) -> None:
    local.ready_queue = ready_queue
    while True:
        ready_queue.pop().run()


def is_deep(depth: int) -> bool:
    """Return whether a backward call at this depth should get a thread with a stack of its own.

    A call should after a fixed number of nested calls on the thread, and earlier where the caller's
    frames have used up half of Python's recursion limit.

    Raises
    ------
    NestedBackwardError
        When the calls seem to nest without end.
    """
    if depth > MAX_NESTED:
        raise NestedBackwardError(
            f"backward(): {MAX_NESTED} backward calls are inside one another; does a hook call the "
            "backward that it is part of?"
        )
    if depth - local.depth > MAX_DEPTH:
        return True
    room = sys.getrecursionlimit() // 2
    frame = sys._getframe()
    while frame.f_back is not None and room:
        frame = frame.f_back
        room -= 1
    return not room


def call_in_new_thread(function: Callable[[Any], None], argument: Any) -> None:
    """Call a function in a new thread that takes this thread's place, and wait for it.

    The new thread gets this thread's task, context variables (such as `numpy.errstate`), CUDA
    device and streams. An exception that interrupts the wait, such as KeyboardInterrupt, is passed
    on to it.
    """
    task, ready_queue = local.task, local.ready_queue
    context, take_place = contextvars.copy_context(), cuda_place()
    begun, ended = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def target() -> None:
        try:
            begun.set()
            local.task, local.ready_queue, local.depth = task, ready_queue, task.depth + 1
            take_place()
            context.run(function, argument)
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=target, name="oneflow_lite.autograd nested", daemon=True)
    try:
        thread.start()
    except Exception:  # the system gives no further thread
        raise
    except BaseException as interrupt:  # it came before start() had returned
        while not begun.wait(0.1):
            if thread not in threading.enumerate():
                raise  # the thread never began
        _pass_on(interrupt, thread)
    _wait(thread, ended)
    if errors:
        raise errors.pop()


def _wait(thread: threading.Thread, ended: threading.Event) -> None:
    while True:
        try:
            while not ended.wait(0.1):  # wakes up to receive an exception from another thread
                pass
            thread.join()
            return
        except BaseException as interrupt:
            _pass_on(interrupt, thread)


def _pass_on(interrupt: BaseException, thread: threading.Thread) -> None:
    ident = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(type(interrupt)))


def _forget() -> None:
    """Drop the workers in a forked child: their threads did not come along."""
    _queues.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
