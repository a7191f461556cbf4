"""QueuedRun: one run of a GraphTask through ready queues, on the threads of several devices."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator
from typing import Any, Protocol

from oneflow_lite.arrays.device import (
    CPU,
    Device,
    current_stream,
    device_of,
    on_stream,
    wait_for_stream,
)
from oneflow_lite.autograd.engine.ready_queue import NodeTask, ReadyQueue
from oneflow_lite.autograd.engine.workers import ready_queue_of
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import FunctionNode


class Runnable(Protocol):
    """The part of a GraphTask that a run uses; the GraphTask explains it."""

    state: Any
    depth: int
    dependencies: dict[FunctionNode, int]

    def evaluate(self, node: FunctionNode) -> list[tuple[FunctionNode, int, Any]]: ...
    def receive(self, node: FunctionNode, index: int, in_grad: Any, source: Any) -> None: ...
    def explain(self, error: Exception, node: FunctionNode) -> None: ...


class QueuedRun:
    """Runs each node when its dependencies are at 0, on the thread of its device.

    To the caller's streams the run is like any op: it waits for the work that a stream was given
    before, and later work of the stream sees its results.

    Attributes
    ----------
    task : GraphTask
        The task that is run.
    outstanding_tasks : int
        The number of NodeTasks that wait or run.
    dead : bool
        Whether an exception ended the run: queued nodes are skipped.
    error : BaseException or None
        The exception, until the caller raises it.
    """

    def __init__(self, task: Runnable, streams: Collection[tuple[Device, Any]]) -> None:
        self.task = task
        self.outstanding_tasks = 0
        self.dead = False
        self.error: BaseException | None = None
        self._streams = streams
        self._lock = threading.RLock()  # guards sums and counts, of the task and of the run
        self._owner = threading.get_ident()
        self._ready_queue = local.ready_queue or ReadyQueue()
        # By receiving node: gradients that other streams made for it.
        self._lent: dict[FunctionNode, list[tuple[Device, Any, Any]]] = {}
        # Keeps saved tensors until the end, where several streams may read them; else None.
        self._kept: list[Any] | None = None

    def run(self, root: FunctionNode) -> None:
        """Run the task's nodes; raise the first error when no thread works at them any more."""
        for device, stream in self._streams:
            wait_for_stream(device, stream, device)
            if stream != current_stream(device):
                self._kept = []
        self._trace(None)
        try:
            self._push(root)
            while self._is_unfinished():
                self._ready_queue.pop().run()
        except BaseException:  # such as KeyboardInterrupt, while it waits
            self.dead = True
            raise
        finally:
            for device, stream in self._streams:
                wait_for_stream(device, current_stream(device), device, stream)
            if self._kept is not None:
                for device, stream in self._streams:
                    wait_for_stream(device, stream, device)
                self._kept = None
        if self.error is not None:
            error, self.error = self.error, None
            try:
                raise error
            finally:
                del error  # or the traceback would hold this frame, and this frame the traceback

    def _trace(self, node: FunctionNode | None) -> None:
        trace = self.task.state.trace
        if trace is not None:
            with self._lock:
                trace.step(self.task, node)

    def _is_unfinished(self) -> bool:
        with self._lock:
            return self.outstanding_tasks > 0

    def _push(self, node: FunctionNode) -> None:
        """Queue a node that has all of its gradient."""
        with self._lock:
            self.outstanding_tasks += 1
        device = node.device
        ready_queue = ready_queue_of(device) if device.type == "cuda" else self._ready_queue
        ready_queue.push(NodeTask(self, node, self.task.depth))

    def execute(self, node: FunctionNode) -> None:
        """Run a node on this thread, unless the run is dead, and push the nodes that are ready."""
        outer_task, outer_state = local.task, local.state
        local.task, local.state = self.task, self.task.state
        try:
            if not self.dead:
                self._execute(node)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and threading.get_ident() == self._owner:
                raise  # it may come at any point, even while sums and counts are being changed
            if isinstance(error, Exception):
                self.task.explain(error, node)
            with self._lock:
                if not self.dead:
                    self.dead, self.error = True, error
        finally:
            local.task, local.state = outer_task, outer_state
        with self._lock:
            self.outstanding_tasks -= 1
            done = not self.outstanding_tasks
        if done and threading.get_ident() != self._owner:  # wake the caller, which waits for it
            self._ready_queue.push(NodeTask(self, None, self.task.depth))

    def _execute(self, node: FunctionNode) -> None:
        task, trace = self.task, self.task.state.trace
        device, stream = node.device, node.stream
        if trace is not None:
            with self._lock:
                trace.turn(task, node)
        if self._kept is not None:
            self._kept.append(node.saved)
        with on_stream(device, stream):
            sent = task.evaluate(node)
            ready = []
            for next_node, index, in_grad in sent:
                with self._lock:
                    if in_grad is not None:
                        with self._on_stream_of(next_node, in_grad):
                            task.receive(next_node, index, in_grad, node)
                    task.dependencies[next_node] -= 1
                    if trace is not None:
                        trace.changed(task, next_node)
                    if not task.dependencies[next_node]:
                        ready.append(next_node)
        # Freed memory goes back to the stream that made it. That stream must not use it again
        # before this stream has read it.
        for lender, other, _ in self._lent.get(node, ()):
            wait_for_stream(lender, other, device, stream)
        self._lent.pop(node, None)
        for next_node in ready:
            self._push(next_node)
        self._trace(node)

    @contextlib.contextmanager
    def _on_stream_of(self, node: FunctionNode, grad: Any) -> Iterator[None]:
        """Make a node's stream current, once it waits for the stream that made the gradient."""
        device, stream = node.device, node.stream
        if stream is None:
            yield
            return
        source = device_of(getattr(grad, "_data", grad))
        if source is not CPU:
            produced = current_stream(source)
            if (source, produced) != (device, stream):
                wait_for_stream(device, stream, source, produced)
                self._lent.setdefault(node, []).append((source, produced, grad))
        with on_stream(device, stream):
            yield
