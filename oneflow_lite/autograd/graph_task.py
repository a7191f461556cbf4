"""GraphTask: one backward call. It finds the nodes, orders them, and runs them.

Gradients are raw arrays while nothing is recorded, and tensors while the backward pass is itself
recorded; `gradients.py` holds the few operations that differ.

Every edge points to a smaller sequence number, so on one thread the ready queue is known
beforehand: it is the list of nodes, the latest created first. `_run_in_order` walks that list,
`_run_nodes` does so with every call spelled out, for the CPU. `_run_queued` counts dependencies
down and pushes to the `ReadyQueue`s: it serves tasks with nodes on CUDA devices, each run by the
device's own thread, and tasks that are traced. docs/engine.md tells how they work together.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from sys import modules
from typing import Any

import numpy as np

from oneflow_lite.autograd.anomaly import told
from oneflow_lite.autograd.autograd_meta import AutogradMeta
from oneflow_lite.autograd.function_node import (
    AccumulateGrad,
    Edge,
    FunctionNode,
    make_graph_root,
)
from oneflow_lite.autograd.grad_function import (
    AutoGradCaptureState,
    OpExprGradFunction,
    as_given,
    as_tensors,
)
from oneflow_lite.autograd.gradients import (
    FUNCTORS_F,
    RAW,
    RECORDED,
    fits,
    is_fresh,
)
from oneflow_lite.autograd.hooks import check_replacement
from oneflow_lite.autograd.mode import GRAD, NO_GRAD, local, with_grad_mode
from oneflow_lite.autograd.ready_queue import NodeTask, ReadyQueue
from oneflow_lite.autograd.rule_namespace import KernelNamespace
from oneflow_lite.autograd.workers import call_in_new_thread, is_deep, ready_queue_of
from oneflow_lite.device import (
    CPU,
    Device,
    array_module,
    current_stream,
    device_of,
    on_stream,
    wait_for_stream,
)
from oneflow_lite.errors import AnomalyError, FreedGraphError, GradientError
from oneflow_lite.locks import make_lock
from oneflow_lite.tensor import Tensor, make_tensor

ndarray = np.ndarray
_by_sequence = operator.attrgetter("sequence_nr")
_accumulate_lock = make_lock()
_NOTHING_SAVED = AutoGradCaptureState()


class ExecInfo:
    """What a task that has inputs does at one node. Nodes that lead to no input have none.

    Attributes
    ----------
    needed : bool
        Whether the node's gradient function runs, because it leads to an input.
    captures : tuple of (output index, position in `captured_grads`)
        Which of the gradients that arrive are wanted.
    """

    __slots__ = ("captures", "needed")

    def __init__(self, needed: bool, captures: tuple[tuple[int, int], ...]) -> None:
        self.needed = needed
        self.captures = captures


_NEEDED = ExecInfo(True, ())


def _freed(node: FunctionNode) -> FreedGraphError:
    """Build the error for a node whose saved tensors are gone."""
    return FreedGraphError(
        f"backward(): the saved tensors of {node.name()} were released by an earlier "
        "backward; pass retain_graph=True to that one to go through the graph twice"
    )


class RootGradFunction(OpExprGradFunction):
    """The gradient function of a GraphRoot: it sends the gradients that the caller gave."""

    many = False
    node_name = "graph_root"

    def __init__(self, grads: Sequence[Any]) -> None:
        self.grads = grads

    def apply(self, F: Any, state: AutoGradCaptureState, out_grads: tuple[Any, ...]) -> Any:
        """Return the gradients of the roots."""
        return tuple(self.grads)


class GraphTask:
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
    node : FunctionNode or None
        The node that runs, while anomaly mode is on.
    """

    exec_info: dict[FunctionNode, ExecInfo] | None = None
    captured_grads: list[Any] = []  # noqa: RUF012  (empty until a task sets its own)
    _seen: dict[FunctionNode, list[Any]] | None = None  # complete gradients, for hooks to look at
    _kept: list[Any] | None = None  # what nodes saved, perhaps on other streams than they read it
    _targets: frozenset[FunctionNode] = frozenset()  # the nodes of the inputs
    nodes: Sequence[FunctionNode] = ()
    callbacks: Sequence[Callable[[], None]] = ()
    depth = 0
    outstanding_tasks = 0
    node: FunctionNode | None = None
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
        self.gradients: Any = RECORDED if self.recorded else RAW

    # What runs

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
        node: FunctionNode = roots[0][0]
        grad = root_grads[0] if recorded else root_grads[0]._data
        if node.infos is None:
            self.not_ready[node] = grad  # checked by the caller
        else:
            self._receive(node, roots[0][1], grad, None)
        return node

    def compute_dependencies(self, root: FunctionNode, lowest: int = 0) -> None:
        """Walk the graph depth first, and count for each node how many send it a gradient.

        Nodes with a smaller topological number than `lowest` cannot lead to an input; the walk
        leaves them out.
        """
        dependencies = self.dependencies
        dependencies.setdefault(root, 0)
        stack = [root]
        while stack:
            for node, _ in stack.pop().edges:
                if node is None or node.topological_nr < lowest:
                    continue
                if node in dependencies:
                    dependencies[node] += 1
                else:
                    dependencies[node] = 1
                    if node.edges:
                        stack.append(node)

    def compute_dependencies_and_prune_node(
        self, root: FunctionNode, inputs: Sequence[Edge]
    ) -> None:
        """Count dependencies, and keep in `exec_info` the nodes that lead to an input."""
        captures: dict[FunctionNode, tuple[tuple[int, int], ...]] = {}
        for position, (node, index) in enumerate(inputs):
            captures[node] = (*captures.get(node, ()), (index, position))
        self._targets = frozenset(captures)
        self.captured_grads = [None] * len(inputs)
        self.compute_dependencies(root, min([node.topological_nr for node in captures]))
        exec_info = {
            node: ExecInfo(False, wanted)
            for node, wanted in captures.items()
            if node in self.dependencies
        }
        for node in sorted(self.dependencies, key=_by_sequence):  # inputs before outputs
            for next_node, _ in node.edges:
                if next_node in exec_info:
                    if node in exec_info:
                        exec_info[node].needed = True
                    else:
                        exec_info[node] = _NEEDED
                    break
        self.exec_info = exec_info

    def compute_dependencies_of_chain(self, root: FunctionNode) -> list[FunctionNode]:
        """Take the straight-line prefix of a graph, then count the rest.

        While a node sends its gradient to one node that is no leaf, that node waits for nobody
        else: the walk needs neither counts nor sorting. Returns the nodes of the prefix; the rest,
        and all leaves, go into `dependencies`.
        """
        chain: list[FunctionNode] = []
        dependencies = self.dependencies
        node: FunctionNode | None = root
        while node is not None:
            following = None
            for next_node, _ in node.edges:
                if next_node is not None and next_node.edges and next_node is not following:
                    if following is not None:  # a branch: the prefix ends before it
                        self.compute_dependencies(node)
                        return chain
                    following = next_node
            for next_node, _ in node.edges:
                if next_node is not None and not next_node.edges:
                    dependencies[next_node] = dependencies.get(next_node, 0) + 1
            if node.edges:
                chain.append(node)
            else:
                dependencies[node] = 0
            node = following
        return chain

    def order(self, prefix: list[FunctionNode]) -> list[FunctionNode]:
        """Return the nodes to run, the latest created first; raise when one was freed."""
        if len(self.dependencies) > 1:
            nodes = sorted(self.dependencies, key=_by_sequence, reverse=True)
        else:
            nodes = list(self.dependencies)
        if self.exec_info is not None:
            nodes = [node for node in nodes if node in self.exec_info]
        if prefix:
            nodes = prefix + nodes
        for node in nodes:
            if node.saved is None and self._is_needed(node):
                raise _freed(node)
        self.nodes = nodes
        return nodes

    def _is_needed(self, node: FunctionNode) -> bool:
        """Return whether the node's gradient function runs, and not only its gradient arrives."""
        return self.exec_info is None or self.exec_info[node].needed

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
        streams = {
            (node.device, node.stream) for node in nodes if node.infos and node.stream is not None
        }
        if streams or self.always_queued or self.state.trace is not None:
            self._run_queued(root, streams)
        elif self.state.anomaly is not None:
            self._run_in_order(nodes)
        else:
            self._run_nodes(nodes)

    def _run_nodes(self, nodes: list[FunctionNode]) -> None:
        """Run nodes that are all on the CPU. What `_evaluate` does, without its calls."""
        not_ready, owned = self.not_ready, self.owned
        exec_info, targets = self.exec_info, self._targets
        recorded, retain_graph = self.recorded, self.retain_graph
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
                    raise _freed(node)  # by a hook or by another thread, while the task runs
                elif node.attrs or function.many:
                    state = function.open(node, saved, recorded)
                else:
                    state = _NOTHING_SAVED
                in_grads = None
                if node.infos is not None:  # several outputs
                    out_grads = self._materialize(node, out_grad)
                    in_grads = self._apply_all(node, function, F, state, out_grads)
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
                            if not (next_node.edges or recorded) and is_fresh(
                                in_grad, out_grad, node, in_grads
                            ):
                                owned.add(next_node)
                        elif recorded:
                            not_ready[next_node] = FUNCTORS_F.add(not_ready[next_node], in_grad)
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

    def _run_in_order(self, nodes: list[FunctionNode]) -> None:
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
            self.node = node
        F = self.gradients.F if node.infos is None else self._namespace(node.device)
        saved = node.saved
        if saved is None:
            raise _freed(node)
        function = node.grad_function  # read once: a hook that comes now comes too late
        state = function.open(node, saved, self.recorded)
        out_grads = (out_grad,) if node.infos is None else self._materialize(node, out_grad)
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
            raise self._wrong_count(node, in_grads)
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

    # What arrives at a node

    def _receive(self, node: FunctionNode, index: int, grad: Any, sender: Any) -> None:
        """Check a gradient and add it to the partial sum of one output of a node."""
        grad = self._conform(grad, node, index, sender)
        buffers = self.not_ready.get(node)
        if node.infos is not None:
            if buffers is None:
                buffers = self.not_ready[node] = [None] * len(node.infos)
            before = buffers[index]
            buffers[index] = grad if before is None else self.gradients.add(before, grad)
        elif buffers is None:
            self.not_ready[node] = grad
        else:
            self.owned.discard(node)
            self.not_ready[node] = self.gradients.add(buffers, grad)

    def _conform(self, grad: Any, node: FunctionNode, index: int, sender: Any) -> Any:
        """Sum a gradient to the shape of its value and check it; name the culprit otherwise."""
        data = getattr(grad, "_data", None) if self.recorded else grad
        if (
            type(data) is ndarray
            and data.shape == node.shape
            and data.dtype is node.dtype
            and node.infos is None
        ):
            return grad
        if isinstance(grad, (tuple, list)):
            if len(grad) != 1:
                raise self._wrong_count(sender, tuple(grad))
            grad = grad[0]
        info = node.output_tensor_infos[index]
        assert info is not None
        if isinstance(grad, Tensor) != self.recorded or not hasattr(grad, "dtype"):
            wanted = "Tensor" if self.recorded else "array"
            raise self._wrong_gradient(sender, "type", wanted, type(grad).__name__)
        if grad.shape != info.shape:
            if not fits(grad.shape, info.shape):
                raise self._wrong_gradient(sender, "shape", info.shape, grad.shape)
            grad = self._namespace(info.device).sum_to(grad, shape=info.shape)
        if grad.dtype is not info.dtype:
            if grad.dtype.kind == "c" and info.dtype.kind == "f":
                F = self._namespace(info.device)
                grad = F.clone(F.real(grad))
            if grad.dtype != info.dtype:
                raise self._wrong_gradient(sender, "dtype", info.dtype, grad.dtype)
        device = grad.device if isinstance(grad, Tensor) else None
        if device is None:
            if isinstance(grad, np.generic):
                grad = np.asarray(grad)
            device = device_of(grad)
        if device != info.device:
            raise self._wrong_gradient(sender, "device", info.device, device)
        return grad

    def _namespace(self, device: Device) -> Any:
        """Return F for gradients on a device."""
        if self.recorded or device is CPU:
            return self.gradients.F
        return KernelNamespace(array_module(device))

    def _wrong_gradient(
        self, sender: Any, what: str, expected: object, got: object
    ) -> GradientError:
        name = "the caller" if sender is None else sender.name()
        return GradientError(
            f"{name} returned a gradient of {what} {got}, expected {what} {expected}, that of the "
            "input; mend its gradient rule"
        )

    def _wrong_count(self, node: FunctionNode, grads: tuple[Any, ...]) -> GradientError:
        return GradientError(
            f"{node.name()} returned {len(grads)} gradient(s) for {len(node.edges)} input(s); "
            "return one gradient, or None, per input"
        )

    def _materialize(self, node: FunctionNode, grads: list[Any]) -> tuple[Any, ...]:
        """Fill the missing gradients of a node's outputs with zeros, where its rule wants that."""
        if not node.grad_function.materialize:
            return tuple(grads)
        assert node.infos is not None
        return tuple(
            self.gradients.zeros(info) if grad is None and info is not None else grad
            for grad, info in zip(grads, node.infos, strict=True)
        )

    # What happens to a gradient that is complete

    def _finish(self, node: FunctionNode, out_grad: Any) -> Any:
        """Run hooks on complete gradients, keep retained ones, capture, and end at leaves."""
        captures = () if self.exec_info is None else self.exec_info[node].captures
        metas: Any = node.metas or ()
        if not (node.edges or captures or node.infos or metas[0].hooks):
            if node.hooks or metas[0].post_accumulate_hooks:  # type: ignore[attr-defined]
                self._accumulate(node, metas[0], out_grad)
            else:
                self._add(node, metas[0], out_grad)
            return None
        grads = [out_grad] if node.infos is None else out_grad
        if self._seen is None:
            self._seen = {}
        self._seen[node] = grads
        for index, grad in enumerate(grads):
            if grad is None:
                continue
            meta = metas[index] if metas else None
            if meta is not None and meta.hooks:
                grad = grads[index] = self._run_hooks(node, index, meta, grad)
            captured = [position for i, position in captures if i == index]
            if not self.accumulate:
                ours = self.recorded or (node in self.owned and len(captured) == 1)
                for position in captured:
                    self.captured_grads[position] = grad if ours else grad.copy()
            elif type(node) is AccumulateGrad or captured or (meta and meta.retain_grad):
                self._accumulate(node, meta or node.output_meta(index), grad)
        del self._seen[node]
        return grads[0] if node.infos is None else grads

    def _run_hooks(self, node: FunctionNode, index: int, meta: AutogradMeta, grad: Any) -> Any:
        self.owned.discard(node)  # a hook may keep what it sees
        assert meta.hooks is not None
        for hook in list(meta.hooks.values()):
            replaced = hook(self.gradients.wrap(grad))
            if replaced is None:
                continue
            info = node.output_tensor_infos[index]
            check_replacement(f"a hook on the gradient of {node.name()}", replaced, info)
            grad = self.gradients.unwrap(replaced)
        return grad

    def _accumulate(self, node: FunctionNode, meta: AutogradMeta, grad: Any) -> None:
        """Add a complete gradient to `.grad`, between the hooks that run before and after."""
        hooks = node.hooks if type(node) is AccumulateGrad else None
        if hooks is not None:
            self.owned.discard(node)
            (grad,) = as_given(hooks.run_pre(node, as_tensors((grad,))))
            if grad is None:
                return
        self._add(node, meta, grad)
        if meta.post_accumulate_hooks:
            for hook in list(meta.post_accumulate_hooks.values()):
                hook()
        if hooks is not None:
            hooks.run_post(node, (), as_tensors((grad,)))

    def _add(self, node: FunctionNode, meta: AutogradMeta, grad: Any) -> None:
        """Add a complete gradient to `acc_grad`, in memory that no other gradient shares."""
        with _accumulate_lock:
            before = meta.acc_grad
            if self.recorded and self.create_graph:
                clone = FUNCTORS_F.clone
                meta.acc_grad = clone(grad) if before is None else FUNCTORS_F.add(before, grad)
                return
            array = grad._data if self.recorded else grad
            if before is None:
                if self.recorded or type(node) is not AccumulateGrad or node not in self.owned:
                    array = array.copy()
                meta.acc_grad = make_tensor(array)
            elif before._edge is not None:
                meta.acc_grad = make_tensor(before._data + array)
            else:
                before._data += array
                (before._storage or before.storage).version += 1

    def current_grad(self, meta: AutogradMeta) -> Tensor | None:
        """Return the partial sum for one value, while this task sums into it."""
        sums = self.not_ready.copy()  # copy() is one step, whatever other threads do
        for node, grads in (self._seen or {}).copy().items():
            sums[node] = grads[0] if node.infos is None else grads
        for node, grad in sums.items():
            for index, candidate in enumerate(node.metas or ()):
                if candidate is meta:
                    found = grad if node.infos is None else grad[index]
                    return None if found is None else self.gradients.wrap(found)
        return None
