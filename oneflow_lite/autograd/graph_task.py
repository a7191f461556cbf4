"""GraphTask: one backward call. `task_graph.py` finds and orders the nodes; here they run.

Gradients are raw arrays while nothing is recorded, and tensors while the backward pass is itself
recorded; `gradients.py` holds the few operations that differ, `gradient_sums.py` sums them up.

Every edge points to a smaller sequence number, so on one thread the ready queue is known
beforehand: it is the list of nodes, the latest created first. `_run_in_order` walks that list,
`_run_nodes` does so with every call spelled out, for the CPU. `_run_queued` counts dependencies
down and pushes to the `ReadyQueue`s: it serves tasks with nodes on CUDA devices, each run by the
device's own thread, and tasks that are traced. docs/engine.md tells how they work together.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from sys import modules
from typing import Any

import numpy as np

from oneflow_lite.autograd.anomaly import told
from oneflow_lite.autograd.gradient_modes import (
    FUNCTORS_F,
    RAW,
    RECORDED,
    is_fresh,
)
from oneflow_lite.autograd.gradient_rules import (
    AutoGradCaptureState,
    OpExprGradFunction,
)
from oneflow_lite.autograd.gradient_sums import GradientSums
from oneflow_lite.autograd.mode import GRAD, NO_GRAD, local, with_grad_mode
from oneflow_lite.autograd.node import (
    Edge,
    FunctionNode,
    make_graph_root,
)
from oneflow_lite.autograd.ready_queue import NodeTask, ReadyQueue
from oneflow_lite.autograd.task_graph import freed_error
from oneflow_lite.autograd.workers import call_in_new_thread, is_deep, ready_queue_of
from oneflow_lite.device import (
    CPU,
    Device,
    current_stream,
    device_of,
    on_stream,
    wait_for_stream,
)
from oneflow_lite.errors import AnomalyError
from oneflow_lite.interpreter import AutogradInterpreter
from oneflow_lite.tensor import Tensor

ndarray = np.ndarray
_NOTHING_SAVED = AutoGradCaptureState()


class RootGradFunction(OpExprGradFunction):
    """The gradient function of a GraphRoot: it sends the gradients that the caller gave."""

    many = False
    shows_gradients = True  # they are the caller's
    node_name = "graph_root"

    def __init__(self, grads: Sequence[Any]) -> None:
        self.grads = grads

    def apply(self, F: Any, state: AutoGradCaptureState, out_grads: tuple[Any, ...]) -> Any:
        """Return the gradients of the roots."""
        return tuple(self.grads)


class GraphTask(GradientSums):
    """One backward call.

    Attributes
    ----------
    state : ThreadState
        The caller's grad mode (that of the pass), interpreter stack, anomaly mode and hooks on
        saved tensors. Every thread that works for the task runs under it.
    dependencies : dict of node to int
        How many nodes of the task send a gradient to each node.
    not_ready : dict of node to gradient
        Partial sums; a list with one place per output for nodes with several outputs.
    exec_info : dict of node to ExecInfo, or None
        The nodes that lead to an input, when inputs were given.
    captured_grads : list
        The gradients of the inputs, for `autograd.grad`.
    nodes : list of FunctionNode
        What runs, the latest created first.
    callbacks : list of callable
        Called once, after the last node.
    outstanding_tasks : int
        How many NodeTasks wait or run.
    depth : int
        How many backward calls the task is inside of.
    evaluating : dict of thread to FunctionNode
        The node that each thread runs, while anomaly mode is on.
    """

    _kept: list[Any] | None = None  # what nodes saved, perhaps on other streams than they read it
    callbacks: Sequence[Callable[[], None]] = ()
    depth = 0
    outstanding_tasks = 0
    evaluating: dict[int, FunctionNode] = {}  # noqa: RUF012  (empty unless a task sets its own)
    dead = False  # an exception ended it: what is queued is skipped
    error: BaseException | None = None  # that exception, until the caller raises it
    always_queued = False  # tests run everything through the ready queues

    def __init__(self, retain_graph: bool, create_graph: bool, accumulate: bool) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.accumulate = accumulate  # backward() writes `.grad`, grad() does not
        self.dependencies: dict[FunctionNode, int] = {}
        self.not_ready: dict[FunctionNode, Any] = {}
        self.owned: set[FunctionNode] = set()  # nodes whose partial sum is the task's own memory
        state = local.state
        if state.general:
            state = with_grad_mode(create_graph)
        else:
            state = GRAD if create_graph else NO_GRAD
        self.state = state
        # A pushed interpreter sees the backward ops too, so they go through the functors then.
        self.recorded = create_graph or state.interpreter is not None
        # While a Program is captured nobody else sees them, so what is new belongs to the task.
        self.captured = type(state.interpreter) is AutogradInterpreter and not create_graph
        self.gradients: Any = RECORDED if self.recorded else RAW

    def set_roots(self, roots: Sequence[Edge], root_grads: Sequence[Tensor]) -> FunctionNode:
        """Take in the gradients of the roots; return the one node to start from.

        Several roots get a GraphRoot above them, one root none.
        """
        recorded = self.recorded
        if len(roots) != 1:
            grads = root_grads if recorded else [grad._data for grad in root_grads]
            root = make_graph_root(RootGradFunction(grads), tuple(roots))
            self.not_ready[root] = []
            return root
        node, index = roots[0]
        grad = root_grads[0] if recorded else root_grads[0]._data  # checked by the caller
        if node.infos is None:
            self.not_ready[node] = grad
        else:
            buffers = self.not_ready[node] = [None] * len(node.infos)
            buffers[index] = grad
        return node  # type: ignore[no-any-return]

    # Running

    def run(self, root: FunctionNode) -> None:
        """Run the task from its root."""
        outer_task, outer_state = local.task, local.state
        if outer_task is not None:
            if is_deep(outer_task.depth + 1):
                call_in_new_thread(self.run, root)
                return
            self.depth = outer_task.depth + 1
        local.task, local.state = self, self.state
        try:
            if self.state.general or self.always_queued or "cupy" in modules:
                self._run_generally(root)
            elif self.exec_info is not None:
                self._run_nodes(self.order([]))
            else:
                self._run_nodes(self.order(self.compute_dependencies_of_chain(root)))
            for callback in self.callbacks:
                callback()
        finally:
            local.task, local.state = outer_task, outer_state

    def _run_generally(self, root: FunctionNode) -> None:
        """Run the task in the way that its nodes and its state ask for."""
        if self.exec_info is None:
            self.compute_dependencies(root)
        nodes = self.order([])
        if not nodes:  # the root leads to no input
            return
        if self.state.interpreter is not None:
            self.state.interpreter.backward(list(filter(self._is_needed, nodes)))
        if self.state.anomaly is not None:
            self.evaluating = {}
        streams = {
            (node.device, node.stream) for node in nodes if node.infos and node.stream is not None
        }
        if streams or self.always_queued or self.state.trace is not None:
            self._run_queued(root, streams)
        elif self.state.anomaly is not None:
            self._run_in_order(nodes)
        else:
            self._run_nodes(nodes)

    def _run_nodes(self, nodes: Sequence[FunctionNode]) -> None:
        """Run nodes that are all on the CPU. What `_evaluate` does, without its calls."""
        not_ready, owned = self.not_ready, self.owned
        exec_info, targets = self.exec_info, self._targets
        recorded, retain_graph = self.recorded, self.retain_graph
        owns = not recorded or self.captured
        F: Any = self.gradients.F
        node = None
        try:
            for node in nodes:
                out_grad = not_ready.pop(node, None)
                if out_grad is None:  # nothing arrived: the gradient is zero
                    if not retain_graph:
                        node.release()
                    continue
                if node.metas is not None or node in targets:
                    out_grad = self._finish(node, out_grad)
                    if not node.edges or (exec_info is not None and not exec_info[node].needed):
                        continue
                function = node.grad_function
                saved = node.saved
                if saved:
                    state = function.open(node, saved, recorded)
                elif saved is None:
                    raise freed_error(node)  # by a hook or by another thread, while the task runs
                elif node.attrs or function.many:
                    state = function.open(node, saved, recorded)
                else:
                    state = _NOTHING_SAVED
                in_grads = None
                if node.infos is not None:  # several outputs
                    out_grad = self._materialize(node, function, out_grad)
                    in_grads = self._apply_all(node, function, F, state, out_grad)
                elif function.whole:
                    in_grads = self._apply_all(node, function, F, state, (out_grad,))
                else:
                    rules = function.rules
                for i, (next_node, index) in enumerate(node.edges):
                    if next_node is None or (exec_info is not None and next_node not in exec_info):
                        continue
                    in_grad = rules[i](F, state, out_grad) if in_grads is None else in_grads[i]
                    if in_grad is None:
                        continue
                    # The short way for what is most common: an array of the right shape and dtype
                    # on the CPU. Everything else, and every error, goes through _receive.
                    data = getattr(in_grad, "_data", None) if recorded else in_grad
                    if (
                        type(data) is ndarray
                        and data.shape == next_node.shape
                        and data.dtype is next_node.dtype
                        and next_node.infos is None
                    ):
                        if next_node not in not_ready:
                            not_ready[next_node] = in_grad
                            if (
                                owns
                                and not next_node.edges
                                and is_fresh(in_grad, out_grad, node, in_grads)
                            ):
                                owned.add(next_node)
                        elif recorded:
                            not_ready[next_node] = FUNCTORS_F.add(not_ready[next_node], in_grad)
                            if owns:
                                owned.add(next_node)
                        elif next_node in owned:
                            not_ready[next_node] += in_grad
                        else:
                            not_ready[next_node] = np.asarray(not_ready[next_node] + in_grad)
                            owned.add(next_node)
                    else:
                        self._receive(next_node, index, in_grad, node)
                state = saved = in_grads = None  # saved arrays go as soon as their node ran
                if not retain_graph and node.saved:
                    node.saved = None
        except Exception as error:
            if node is not None:
                self._explain(error, node)
            raise

    def _run_in_order(self, nodes: Sequence[FunctionNode]) -> None:
        """Run nodes, watched by anomaly mode."""
        for node in nodes:
            try:
                for next_node, index, in_grad in self._evaluate(node):
                    if in_grad is not None:
                        self._receive(next_node, index, in_grad, node)
            except Exception as error:
                self._explain(error, node)
                raise

    def _evaluate(self, node: FunctionNode) -> list[tuple[FunctionNode, int, Any]]:
        """Run one node; return what it sends: node, output index and gradient, or None for zero."""
        in_grads = self._in_grads(node, self.not_ready.pop(node, None))
        wanted = self.exec_info
        return [
            (next_node, index, None if in_grads is None else in_grads[i])
            for i, (next_node, index) in enumerate(node.edges)
            if next_node is not None and (wanted is None or next_node in wanted)
        ]

    def _in_grads(self, node: FunctionNode, out_grad: Any) -> Sequence[Any] | None:
        """Return the gradients of a node's inputs; None when there are none to send."""
        if out_grad is not None and (node.metas is not None or node in self._targets):
            out_grad = self._finish(node, out_grad)
        if not node.edges or not self._is_needed(node):
            return None
        if out_grad is None:  # nothing arrived: the gradient is zero
            if not self.retain_graph:
                node.release()
            return None
        anomaly = self.state.anomaly
        if anomaly is not None:
            self.evaluating[threading.get_ident()] = node
        F = self.gradients.F if node.infos is None else self._namespace(node.device)
        saved = node.saved
        if saved is None:
            raise freed_error(node)
        function = node.grad_function  # read once: a hook that comes now comes too late
        state = function.open(node, saved, self.recorded)
        out_grads = (
            (out_grad,) if node.infos is None else self._materialize(node, function, out_grad)
        )
        in_grads = self._apply_all(node, function, F, state, out_grads)
        if anomaly is not None:
            anomaly.check(node, in_grads)
        if self._kept is not None:
            self._kept.append(saved)
        if not self.retain_graph:
            node.release()
        return in_grads

    def _explain(self, error: Exception, node: FunctionNode) -> None:
        """Attach to an exception the op whose gradient was being taken."""
        notes = [f"in the backward pass, at {node.name()}"]
        if self.state.anomaly is not None and not isinstance(error, AnomalyError):
            notes.append(told(node))
        for note in notes:
            if note not in getattr(error, "__notes__", ()):  # as nested backward calls repeat it
                error.add_note(note)

    def _apply_all(
        self, node: FunctionNode, function: Any, F: Any, state: Any, out_grads: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Take the gradients of all inputs of a node that the task needs."""
        if not function.whole:
            wanted = self.exec_info
            return [
                None
                if next_node is None or (wanted is not None and next_node not in wanted)
                else rule(F, state, *out_grads)
                for rule, (next_node, _) in zip(function.rules, node.edges, strict=True)
            ]
        in_grads = function.rule(F, state, *out_grads)
        if type(in_grads) is not tuple:
            in_grads = tuple(in_grads) if type(in_grads) is list else (in_grads,)
        if len(in_grads) != len(node.edges):
            raise self._wrong_count_error(node, in_grads)
        return in_grads

    # Running through ready queues

    def _run_queued(self, root: FunctionNode, streams: set[tuple[Device, Any]]) -> None:
        """Run nodes when their dependencies are at 0, each on the thread of its device.

        To the caller's streams the task is like any op: it sees what they were given before, and
        what they are given afterwards sees its results.
        """
        self._lock = threading.RLock()
        self._seen = {}
        self._lent: dict[FunctionNode, list[tuple[Device, Any, Any]]] = {}
        self._owner = threading.get_ident()
        self.ready_queue = local.ready_queue or ReadyQueue()
        for device, stream in streams:
            wait_for_stream(device, stream, device)
            if stream != current_stream(device):
                self._kept = []
        if self.state.trace is not None:
            self.state.trace.step(self, None)
        try:
            self._push(root)
            while self._is_unfinished():
                self.ready_queue.pop().run()
        except BaseException:  # such as KeyboardInterrupt, while it waits
            self.dead = True
            raise
        finally:
            for device, stream in streams:
                wait_for_stream(device, current_stream(device), device, stream)
            if self._kept is not None:
                for device, stream in streams:
                    wait_for_stream(device, stream, device)
                self._kept = None
        if self.error is not None:
            error, self.error = self.error, None
            try:
                raise error
            finally:
                del error  # or the traceback would hold this frame, and this frame the traceback

    def _is_unfinished(self) -> bool:
        with self._lock:
            return self.outstanding_tasks > 0

    def _push(self, node: FunctionNode) -> None:
        """Queue a node that has all of its gradient."""
        with self._lock:
            self.outstanding_tasks += 1
        device = node.device
        ready_queue = self.ready_queue if device is CPU else ready_queue_of(device)
        ready_queue.push(NodeTask(self, node, self.depth))

    def execute(self, node: FunctionNode) -> None:
        """Run one node on this thread, unless the task is dead, and push what became ready."""
        outer_task, outer_state = local.task, local.state
        local.task, local.state = self, self.state
        try:
            if not self.dead:
                self._execute(node)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and threading.get_ident() == self._owner:
                raise  # it came at any point, even while the task's books were being written
            if isinstance(error, Exception):
                self._explain(error, node)
            with self._lock:
                if not self.dead:
                    self.dead, self.error = True, error
        finally:
            local.task, local.state = outer_task, outer_state
        with self._lock:
            self.outstanding_tasks -= 1
            done = not self.outstanding_tasks
        if done and threading.get_ident() != self._owner:
            self.ready_queue.push(NodeTask(self, None, self.depth))

    def _execute(self, node: FunctionNode) -> None:
        device, stream = node.device, node.stream
        with on_stream(device, stream):
            sent = self._evaluate(node)
            ready = []
            for next_node, index, in_grad in sent:
                with self._lock:
                    if in_grad is not None:
                        with self._on_stream_of(next_node, in_grad):
                            self._receive(next_node, index, in_grad, node)
                    self.dependencies[next_node] -= 1
                    if not self.dependencies[next_node]:
                        ready.append(next_node)
        # Freed memory goes back to the stream it came from: that one waits until it was read here.
        for lender, other, _ in self._lent.get(node, ()):
            wait_for_stream(lender, other, device, stream)
        self._lent.pop(node, None)
        for next_node in ready:
            self._push(next_node)
        if self.state.trace is not None:
            self.state.trace.step(self, node)

    @contextlib.contextmanager
    def _on_stream_of(self, node: FunctionNode, grad: Any) -> Iterator[None]:
        """Make the stream of a node current, after it waits for the one that made its gradient."""
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
