"""GraphTask: one backward call. It finds the nodes that have to run, runs them, and sums gradients.

Every edge points to a smaller sequence number, so on one thread the ready queue is known
beforehand: it is the list of nodes, the latest created first. `_run_nodes` walks that list with
every call spelled out, for the CPU; `_run_in_order` walks it under anomaly mode. A task with nodes
on CUDA devices goes through ready queues (`queued_run.py`), and so does a traced task. The
differences between gradients that are arrays and gradients that are tensors are in
`gradient_modes.py`. docs/engine.md tells how these parts work together.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from sys import modules
from typing import Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.autograd.engine.anomaly import forward_traceback
from oneflow_lite.autograd.engine.gradient_modes import (
    RAW,
    RECORDED,
    GradientMode,
    is_fresh,
    wrong_count_error,
)
from oneflow_lite.autograd.engine.queued_run import QueuedRun
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F, NUMPY_PARTS, Part
from oneflow_lite.autograd.engine.workers import call_in_new_thread, is_deep
from oneflow_lite.autograd.rules.gradient_rules import (
    AutoGradCaptureState,
    OpExprGradFunction,
    as_given,
    as_tensors,
)
from oneflow_lite.autograd.rules.saved_tensor import freed_error
from oneflow_lite.autograd.rules.zero import ZERO
from oneflow_lite.errors import AnomalyError
from oneflow_lite.interpreter.stack import AutogradInterpreter
from oneflow_lite.tensors import hooks
from oneflow_lite.tensors.autograd_meta import AutogradMeta
from oneflow_lite.tensors.hooks import check_replacement
from oneflow_lite.tensors.mode import GRAD, NO_GRAD, local, of_user, with_grad_mode
from oneflow_lite.tensors.node import AccumulateGrad, Edge, FunctionNode, make_graph_root
from oneflow_lite.tensors.tensor import Tensor, make_tensor

ndarray = np.ndarray
_NOTHING_SAVED = AutoGradCaptureState()
_accumulate_lock = make_lock()
_by_sequence = operator.attrgetter("sequence_nr")


class ExecInfo:
    """The work of a task with inputs at one node. Nodes that lead to no input have no ExecInfo.

    Attributes
    ----------
    needed : bool
        Whether the node's gradient function runs, because it leads to an input.
    captures : tuple of (output index, position in `captured_grads`)
        The outputs whose gradients are wanted.
    """

    __slots__ = ("captures", "needed")

    def __init__(self, needed: bool, captures: tuple[tuple[int, int], ...]) -> None:
        self.needed = needed
        self.captures = captures


_NEEDED = ExecInfo(True, ())


class RootGradFunction(OpExprGradFunction):
    """The gradient function of a GraphRoot: it sends the gradients that the caller gave."""

    many = False
    shows_gradients = True  # the gradients belong to the caller
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
        The grad mode of the pass; the caller's interpreter stack, anomaly mode and hooks on saved
        tensors. Every thread that works for the task runs under it.
    dependencies : dict of node to int
        How many nodes of the task send a gradient to each node.
    not_ready : dict of node to gradient
        Partial sums; a list with one place per output for nodes with several outputs.
    owned : set of FunctionNode
        The nodes whose partial sum is memory of the task's own.
    parts : dict of node to index
        Where a part of the gradient was last added to the task's own memory for a node.
    gradients : GradientMode
        How gradients are represented.
    exec_info : dict of node to ExecInfo, or None
        The nodes that lead to an input, when inputs were given.
    captured_grads : list
        The gradients of the inputs, for `autograd.grad`.
    nodes : list of FunctionNode
        The nodes that run, the latest created first.
    callbacks : list of callable
        Called once, after the last node.
    depth : int
        The number of backward calls that the task is inside of.
    kept : frozenset of Level
        The levels of transforms that the roots carry: gradients keep these.
    outer : GraphTask or None
        The innermost task around this task.
    evaluating : dict of thread to FunctionNode
        The node that each thread runs, while anomaly mode is on.
    """

    exec_info: dict[FunctionNode, ExecInfo] | None = None
    captured_grads: list[Any] = []  # noqa: RUF012  (empty until a task sets its own)
    nodes: Sequence[FunctionNode] = ()
    callbacks: Sequence[Callable[[], None]] = ()
    depth = 0
    kept: frozenset[Any] = frozenset()
    given_out: tuple[Any, ...] = ()  # memory of roots and results that carry levels
    outer: GraphTask | None = None
    evaluating: dict[int, FunctionNode] = {}  # noqa: RUF012  (empty unless a task sets its own)
    stops_at_inputs = False  # whether the walk ends at inputs that lead to other inputs
    hooks_at_inputs = True  # whether a tensor's hooks run before its gradient is captured
    always_queued = False  # tests run everything through the ready queues
    _targets: Container[FunctionNode] = ()  # the nodes of the inputs
    _seen: dict[FunctionNode, list[Any]] | None = None  # complete gradients, for hooks to look at

    def __init__(self, retain_graph: bool, create_graph: bool, accumulate: bool) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.accumulate = accumulate  # backward() writes `.grad`, grad() does not
        self.dependencies: dict[FunctionNode, int] = {}
        self.not_ready: dict[FunctionNode, Any] = {}
        self.owned: set[FunctionNode] = set()
        self.parts: dict[FunctionNode, Any] = {}
        state = local.state
        if state.general or state.inference:
            state = with_grad_mode(create_graph)
        else:
            state = GRAD if create_graph else NO_GRAD
        self.state = state
        # A pushed interpreter sees the ops of a backward pass too, so they go through the functors
        # then. Global tensors are no arrays, so their ops go the same way.
        recorded = create_graph or state.interpreter is not None or bool(local.foreign)
        self.gradients: GradientMode = RECORDED if recorded else RAW

    def set_roots(
        self, roots: Sequence[Edge], root_grads: Sequence[Tensor], values: Sequence[Tensor] = ()
    ) -> FunctionNode:
        """Take in the gradients of the roots, and their values; return the node to start from.

        The node is the root itself, or a GraphRoot above several roots.
        """
        for x in root_grads:
            if type(x._data) is not ndarray:
                self._keep_levels(x)
        for x in values:
            if type(x._data) is not ndarray:
                self._keep_levels(x)
        recorded = self.gradients.recorded
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

    def _keep_levels(self, x: Tensor) -> None:
        """Note the levels of a root, or of its gradient: gradients are then no plain arrays."""
        if getattr(x._data, "levels", None):
            self.given_out += (x._data.memory_of_parts,)
            self.kept |= x._data.levels
            self.gradients = RECORDED
        elif x.is_meta:  # nothing to compute with: ops describe the gradients
            self.gradients = RECORDED

    # What runs, and in which order

    def compute_dependencies(self, root: FunctionNode, lowest: int = 0) -> None:
        """Walk the graph depth first, and count for each node the nodes that send it a gradient.

        Nodes with a smaller topological number than `lowest` cannot lead to an input; the walk
        leaves them out.
        """
        dependencies = self.dependencies
        dependencies.setdefault(root, 0)
        stops = self._targets if self.stops_at_inputs else ()
        stack = [root]
        while stack:
            for node, _ in stack.pop().edges:
                if node is None or node.topological_nr < lowest:
                    continue
                if node in dependencies:
                    dependencies[node] += 1
                else:
                    dependencies[node] = 1
                    if node.edges and node not in stops:
                        stack.append(node)

    def compute_dependencies_and_prune_node(
        self, root: FunctionNode, inputs: Sequence[Edge]
    ) -> None:
        """Count dependencies, and keep in `exec_info` the nodes that lead to an input."""
        captures: dict[FunctionNode, ExecInfo] = {}
        for position, (node, index) in enumerate(inputs):
            if node in captures:
                captures[node].captures += ((index, position),)
            else:
                captures[node] = ExecInfo(False, ((index, position),))
        self._targets = captures
        self.captured_grads = [None] * len(inputs)
        self.compute_dependencies(root, min([node.topological_nr for node in captures]))
        exec_info: dict[FunctionNode, ExecInfo] = {}
        nodes = []
        for node in sorted(self.dependencies, key=_by_sequence):  # inputs before outputs
            info = captures.get(node)
            if info is None or not self.stops_at_inputs:
                for next_node, _ in node.edges:
                    if next_node in exec_info:
                        if info is None:
                            info = _NEEDED
                        else:
                            info.needed = True
                        break
            if info is not None:
                exec_info[node] = info
                nodes.append(node)
        nodes.reverse()
        self.exec_info, self.nodes = exec_info, nodes

    def compute_dependencies_of_chain(self, root: FunctionNode) -> list[FunctionNode]:
        """Take the straight-line prefix of a graph, then count the rest.

        While each node sends its gradient to a single node that is no leaf, that node waits for
        no other sender: the walk needs neither counts nor sorting. Returns the nodes of the
        prefix; the rest, and all leaves, go into `dependencies`.
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

    def order(self, prefix: list[FunctionNode]) -> Sequence[FunctionNode]:
        """Return the nodes to run, the latest created first; raise when a node was freed."""
        nodes = self.nodes
        if self.exec_info is None:
            rest = list(self.dependencies)
            if len(rest) > 1:
                rest.sort(key=_by_sequence, reverse=True)
            nodes = self.nodes = prefix + rest if prefix else rest
        if hooks.post_accumulate_seen:
            nodes = self.nodes = _with_hooked_leaves_early(nodes)
        for node in nodes:  # before any `.grad` changes
            if node.saved is None and self._is_needed(node):
                raise freed_error(node)
        return nodes

    def _is_needed(self, node: FunctionNode) -> bool:
        """Return whether the node's gradient function runs, or the node only gets a gradient."""
        return self.exec_info is None or self.exec_info[node].needed

    # Running

    def run(self, root: FunctionNode) -> None:
        """Run the task from its root."""
        outer_task, outer_state = local.task, local.state
        if outer_task is not None:
            self.outer = outer_task
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
            self._seen = {}
            trace = self.state.trace
            try:
                QueuedRun(self, streams).run(root)
            except BaseException as error:
                if trace is not None:
                    trace.end(self, error)
                raise
            if trace is not None:
                trace.end(self, None)
        elif self.state.anomaly is not None:
            self._run_in_order(nodes)
        else:
            self._run_nodes(nodes)

    def _run_nodes(self, nodes: Iterable[FunctionNode]) -> None:
        """Run nodes on the CPU: `evaluate` and `receive` written out, which saves their calls."""
        not_ready, owned = self.not_ready, self.owned
        exec_info, targets = self.exec_info, self._targets
        gradients, retain_graph = self.gradients, self.retain_graph
        recorded, F = gradients.recorded, gradients.F
        of_one = F if recorded else NUMPY_PARTS  # for a rule whose only gradient comes here
        # While a Program is captured only the task sees a new gradient, so it belongs to the task.
        owns = not recorded or (
            type(self.state.interpreter) is AutogradInterpreter and not self.create_graph
        )
        zeros: dict[FunctionNode, None] = {}  # nodes that got a ZERO
        node = None
        try:
            for node in nodes:
                out_grad = not_ready.pop(node, None)
                if out_grad is None:  # nothing arrived: the gradient is zero
                    out_grad = self._zeros_at(node, zeros) if node in zeros else None
                    if out_grad is None:
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
                    raise freed_error(node)  # by a hook or another thread, since order()
                elif node.attrs or function.many:
                    state = function.open(node, saved, recorded)
                else:
                    state = _NOTHING_SAVED
                in_grads = None
                if node.infos is not None:  # several outputs
                    out_grad = gradients.materialize(node, function, out_grad)
                    in_grads = self.apply_all(node, function, F, state, out_grad)
                elif function.whole:
                    in_grads = self.apply_all(node, function, F, state, (out_grad,))
                else:
                    rules = function.rules
                for i, (next_node, index) in enumerate(node.edges):
                    if next_node is None or (exec_info is not None and next_node not in exec_info):
                        continue
                    in_grad = rules[i](of_one, state, out_grad) if in_grads is None else in_grads[i]
                    if in_grad is None:
                        continue
                    # The short way for most gradients: an array of the right shape and dtype on
                    # the CPU. Any other gradient, and every error, goes through receive().
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
                    elif type(in_grad) is Part:
                        self._receive_part(next_node, index, in_grad, node)
                    elif in_grad is ZERO and not self.create_graph and next_node.infos is None:
                        zeros[next_node] = None
                    else:
                        self.receive(next_node, index, in_grad, node)
                state = saved = in_grads = None  # saved arrays go as soon as their node ran
                if not retain_graph and node.saved:
                    node.saved = None
        except Exception as error:
            if node is not None:
                self.explain(error, node)
            raise

    def _zeros_at(self, node: FunctionNode, zeros: dict[FunctionNode, None]) -> Any:
        """Return zeros for a node that got no other gradient, if somebody sees them.

        Else they go on from node to node without being made, and the result is None.
        """
        if node.metas or node in self._targets or node.grad_function.shows_gradients:
            return self.gradients.zeros_at(node, 0)
        wanted = self.exec_info
        for next_node, index in node.edges:
            if next_node is None or (wanted is not None and next_node not in wanted):
                continue
            if next_node.infos is None:
                zeros[next_node] = None
            else:
                self.receive(next_node, index, ZERO, node)
        return None

    def _run_in_order(self, nodes: Iterable[FunctionNode]) -> None:
        """Run nodes, watched by anomaly mode."""
        for node in nodes:
            try:
                for next_node, index, in_grad in self.evaluate(node):
                    if in_grad is not None:
                        self.receive(next_node, index, in_grad, node)
            except Exception as error:
                self.explain(error, node)
                raise

    def evaluate(self, node: FunctionNode) -> list[tuple[FunctionNode, int, Any]]:
        """Run a node; return (next node, output index, gradient or None for zero) of each edge."""
        in_grads = self._in_grads(node, self.not_ready.pop(node, None))
        wanted = self.exec_info
        sent = []
        for i, (next_node, index) in enumerate(node.edges):
            if next_node is not None and (wanted is None or next_node in wanted):
                in_grad = None if in_grads is None else in_grads[i]
                if in_grad is ZERO:
                    in_grad = self.gradients.conform(ZERO, next_node, index, node)
                sent.append((next_node, index, in_grad))
        return sent

    def _in_grads(self, node: FunctionNode, out_grad: Any) -> Sequence[Any] | None:
        """Return the gradients of a node's inputs; None when the node sends none."""
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
        gradients = self.gradients
        F = gradients.F if node.infos is None else gradients.namespace(node.device)
        saved = node.saved
        if saved is None:
            raise freed_error(node)
        function = node.grad_function  # read once: hooks registered from here on come too late
        state = function.open(node, saved, gradients.recorded)
        out_grads = (
            (out_grad,) if node.infos is None else gradients.materialize(node, function, out_grad)
        )
        in_grads = self.apply_all(node, function, F, state, out_grads)
        if anomaly is not None:
            anomaly.check(node, in_grads)
        if not self.retain_graph:
            node.release()
        return in_grads

    def explain(self, error: Exception, node: FunctionNode) -> None:
        """Attach to an exception the op whose gradient was being taken."""
        notes = [f"in the backward pass, at {node.name()}"]
        if self.state.anomaly is not None and not isinstance(error, AnomalyError):
            notes.append(forward_traceback(node))
        for note in notes:
            if note not in getattr(error, "__notes__", ()):  # nested backward calls would repeat it
                error.add_note(note)

    def apply_all(
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
            raise wrong_count_error(node, in_grads)
        return in_grads

    # Gradients arrive at a node

    def receive(self, node: FunctionNode, index: int, grad: Any, sender: Any) -> None:
        """Check a gradient and add it to the partial sum of one output of a node."""
        grad = self.gradients.conform(grad, node, index, sender)
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

    def _receive_part(self, node: FunctionNode, index: int, part: Part, sender: Any) -> None:
        """Add to the partial sum of a node a gradient that is 0 but at an index.

        From the third gradient on, the task adds only at the index. Elsewhere a whole sum would add
        0.0, which matters to -0.0 alone: -0.0 + 0.0 is 0.0. After the second gradient -0.0 can
        stand only where the last part was added, so 0 is added there.
        """
        last = self.parts.get(node)
        if last is None or node not in self.owned:
            grad = part.whole()
            fits = node.infos is None and grad.shape == node.shape and grad.dtype is node.dtype
            before = self.not_ready.get(node)
            if not fits:
                self.receive(node, index, grad, sender)
                return
            if before is None:
                self.not_ready[node] = grad
            elif node in self.owned:
                before += grad
                self.parts[node] = ...
            else:
                self.not_ready[node] = np.asarray(before + grad)
                self.parts[node] = ...
            self.owned.add(node)
            return
        total = self.not_ready[node]
        sum_there = total[part.index] + part.dy
        total[last] += 0
        total[part.index] = sum_there
        self.parts[node] = part.index

    # A complete gradient

    def _finish(self, node: FunctionNode, out_grad: Any) -> Any:
        """Run hooks on complete gradients, keep retained ones, capture, and end at leaves."""
        captures = () if self.exec_info is None else self.exec_info[node].captures
        metas: Any = node.metas
        # A global leaf's gradient lies as the leaf does, whatever the ops made of its parts.
        home = node.home if type(node) is AccumulateGrad else None
        if home is not None and out_grad is not None:
            to = {"placement": home[0], "sbp": home[1], "grad_sbp": None}
            out_grad = FUNCTORS_F.global_to_global(out_grad, **to)
        if not (node.edges or captures or node.infos or metas[0]._hooks):
            if node.hooks or metas[0]._post_accumulate_hooks:  # type: ignore[attr-defined]
                self._accumulate(node, metas[0], out_grad)
            else:
                self._add(node, metas[0], out_grad)
            return None
        if not self.accumulate and not node.infos and not (metas and metas[0] and metas[0]._hooks):
            self._capture(node, captures, out_grad)
            return out_grad
        grads = [out_grad] if node.infos is None else out_grad
        if self._seen is None:
            self._seen = {}
        self._seen[node] = grads
        for index, grad in enumerate(grads):
            if grad is None:
                continue
            meta = metas[index] if metas else None
            captured = [each for each in captures if each[0] == index]
            if meta is not None and meta._hooks and (self.hooks_at_inputs or not captured):
                grad = grads[index] = self._run_hooks(node, index, meta, grad)
            if not self.accumulate:
                self._capture(node, captured, grad)
            elif type(node) is AccumulateGrad or captured or (meta and meta.retain_grad):
                self._accumulate(node, meta or node.output_meta(index), grad)
        del self._seen[node]
        return grads[0] if node.infos is None else grads

    def _capture(self, node: FunctionNode, captures: Sequence[tuple[int, int]], grad: Any) -> None:
        """Keep the complete gradient of a value for `autograd.grad`, in memory of its own."""
        ours = self.create_graph or (node in self.owned and len(captures) == 1)
        if not ours and self.gradients.recorded:
            ours = len(captures) == 1 and self._is_new(grad)
        for _, position in captures:
            self.captured_grads[position] = grad if ours else self.gradients.copy(grad)

    def _is_new(self, grad: Any) -> bool:
        """Return whether a gradient with levels lies in memory of its own."""
        data = grad._data
        if not getattr(data, "levels", None):
            return False
        memory = data.memory_of_parts
        if memory is None or memory in self.given_out:
            return False
        self.given_out += (memory,)
        return True

    def _run_hooks(self, node: FunctionNode, index: int, meta: AutogradMeta, grad: Any) -> Any:
        self.owned.discard(node)  # a hook may keep the gradient that it sees
        assert meta._hooks is not None
        for hook in list(meta._hooks.values()):
            replaced = of_user(hook)(self.gradients.wrap(grad))
            if replaced is None:
                continue
            info = node.output_tensor_infos[index]
            check_replacement(f"a hook on the gradient of {node.name()}", replaced, info)
            grad = self.gradients.unwrap(replaced)
        return grad

    def _accumulate(self, node: FunctionNode, meta: AutogradMeta, grad: Any) -> None:
        """Add a complete gradient to `.grad`, between the hooks that run before and after."""
        own = node.hooks if type(node) is AccumulateGrad else None
        if own:
            self.owned.discard(node)
            (grad,) = as_given(own.run_pre(node, as_tensors((grad,))))
            if grad is None:
                return
        self._add(node, meta, grad)
        if meta._post_accumulate_hooks:
            for hook in list(meta._post_accumulate_hooks.values()):
                hook()
        if own:
            own.run_post(node, (), as_tensors((grad,)))

    def _add(self, node: FunctionNode, meta: AutogradMeta, grad: Any) -> None:
        """Add a complete gradient to `acc_grad`, in memory that no other gradient shares."""
        with _accumulate_lock:
            before = meta.acc_grad
            if self.gradients.recorded:
                meta.acc_grad = self._recorded_sum(node, before, grad)
            elif before is None:
                if type(node) is not AccumulateGrad or node not in self.owned:
                    grad = grad.copy()
                meta.acc_grad = make_tensor(adopted(grad))
            elif before._edge is not None:
                meta.acc_grad = make_tensor(before._data + grad)
            else:
                # First: an interrupt after the write would leave it without a count.
                (before._storage or before.memory).version += 1
                try:
                    before._data += grad
                except ValueError:  # `.grad` was transposed or expanded: the op says so
                    FUNCTORS_F.add_(before, make_tensor(grad))
                    raise

    def _recorded_sum(self, node: FunctionNode, before: Tensor | None, grad: Tensor) -> Any:
        """Return the sum of two gradients, taken by ops, so that a pushed interpreter sees it."""
        F = FUNCTORS_F
        if before is None:
            return grad.detach() if node in self.owned else F.clone(grad)
        if self.create_graph or before._edge is not None:
            return F.add(before, grad)
        return F.add_(before, grad)

    def current_grad(self, meta: AutogradMeta) -> Tensor | None:
        """Return the partial sum for a value, while this task sums into it."""
        sums = self.not_ready.copy()  # copy() is one step, whatever other threads do
        for node, grads in (self._seen or {}).copy().items():
            sums[node] = grads[0] if node.infos is None else grads
        for node, grad in sums.items():
            for index, candidate in enumerate(node.metas or ()):
                if candidate is meta:
                    total = grad if node.infos is None else grad[index]
                    return None if total is None else self.gradients.wrap(total)
        return None


def _with_hooked_leaves_early(nodes: Sequence[FunctionNode]) -> Sequence[FunctionNode]:
    """Put each leaf with a post-accumulate hook right behind the last node that sends to it.

    Its hook may send the gradient on its way, or use it up, while the rest of the pass runs. A leaf
    without a hook is older than the nodes that use it, and comes after them.
    """
    last: dict[FunctionNode, FunctionNode] = {
        node: node
        for node in nodes
        if type(node) is AccumulateGrad and node.meta._post_accumulate_hooks
    }
    if not last:
        return nodes
    for node in nodes:
        for next_node, _ in node.edges:
            if next_node in last:
                last[next_node] = node
    behind: dict[FunctionNode, list[FunctionNode]] = {}
    for leaf, sender in last.items():
        if leaf is not sender:
            behind.setdefault(sender, []).append(leaf)
    ordered = []
    for node in nodes:
        if last.get(node, node) is node:
            ordered.append(node)
            ordered += behind.get(node, ())
    return ordered
