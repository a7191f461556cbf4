"""GraphTask: one backward call. It finds the nodes, orders them, and runs them.

Gradients are raw arrays while nothing is recorded, and tensors while the backward pass is itself
recorded; `gradients.py` holds the few operations that differ.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.autograd_meta import AutogradMeta
from oneflow_lite.autograd.function_node import AccumulateGrad, Edge, FunctionNode
from oneflow_lite.autograd.grad_function import AutoGradCaptureState
from oneflow_lite.autograd.gradients import (
    FUNCTORS_F,
    NUMPY_F,
    RAW,
    RECORDED,
    fits,
    is_fresh,
)
from oneflow_lite.autograd.mode import local, with_grad_mode
from oneflow_lite.autograd.rule_namespace import KernelNamespace
from oneflow_lite.device import CPU, Device, device_of, on_device
from oneflow_lite.errors import FreedGraphError, GradientError
from oneflow_lite.tensor import Tensor, make_tensor

ndarray = np.ndarray
_by_sequence = operator.attrgetter("sequence_nr")
_accumulate_lock = threading.Lock()
_NOTHING_SAVED = AutoGradCaptureState()


class GraphTask:
    """One backward call.

    Attributes
    ----------
    dependencies : dict of node to int
        How many nodes of the task send a gradient to each node.
    not_ready : dict of node to gradient
        Partial sums; a list with one place per output for nodes with several outputs.
    needed : set of nodes or None
        The nodes that lead to an input, when inputs were given.
    captures : dict of (node, output index) to positions in `captured_grads`
    captured_grads : list
        The gradients of the inputs, for `autograd.grad`.
    """

    needed: set[FunctionNode] | None = None
    captures: dict[Edge, list[int]] = {}  # noqa: RUF012  (empty until a task sets its own)
    captured_grads: list[Any] = []  # noqa: RUF012
    running: tuple[FunctionNode, list[Any]] | None = None
    _devices: contextlib.ExitStack | None = None

    def __init__(self, retain_graph: bool, create_graph: bool, accumulate: bool) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.accumulate = accumulate  # backward() writes `.grad`, grad() does not
        self.dependencies: dict[FunctionNode, int] = {}
        self.not_ready: dict[FunctionNode, Any] = {}
        self.owned: set[FunctionNode] = set()  # nodes whose partial sum is the task's own memory
        # A pushed interpreter sees the backward ops too, so they go through the functors then.
        self.recorded = create_graph or local.state.interpreter is not None
        self.gradients: Any = RECORDED if self.recorded else RAW
        self.F: Any = self.gradients.F  # of the device that the task is on

    # What runs

    def compute_dependencies(self, roots: Sequence[FunctionNode], lowest: int = 0) -> None:
        """Walk the graph depth first, and count for each node how many send it a gradient.

        Nodes with a smaller topological number than `lowest` cannot lead to an input; the walk
        leaves them out.
        """
        dependencies = self.dependencies
        stack = []
        for root in roots:
            if root not in dependencies:
                dependencies[root] = 0
                stack.append(root)
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
        self, roots: Sequence[FunctionNode], inputs: Sequence[Edge]
    ) -> None:
        """Count dependencies, then keep only the nodes that lead to an input."""
        self.captures = {}
        for position, edge in enumerate(inputs):
            self.captures.setdefault(edge, []).append(position)
        self.captured_grads = [None] * len(inputs)
        targets = {edge[0] for edge in inputs}
        lowest = min([node.topological_nr for node in targets])
        self.compute_dependencies(roots, lowest)
        needed = {node for node in targets if node in self.dependencies}
        for node in sorted(self.dependencies, key=_by_sequence):  # inputs before outputs
            for next_node, _ in node.edges:
                if next_node in needed:
                    needed.add(node)
                    break
        self.needed = needed

    def compute_dependencies_of_chain(self, root: FunctionNode) -> list[FunctionNode]:
        """Take the straight-line prefix of a graph with one root, then count the rest.

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
                        self.compute_dependencies([node])
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
        """Return the nodes to run, the latest created first; raise when one was freed.

        Edges point to smaller sequence numbers, so that in this order every node has all of its
        gradient when it is reached: the ready queue is this list.
        """
        if len(self.dependencies) > 1:
            nodes = sorted(self.dependencies, key=_by_sequence, reverse=True)
        else:
            nodes = list(self.dependencies)
        if self.needed is not None:
            nodes = [node for node in nodes if node in self.needed]
        if prefix:
            nodes = prefix + nodes
        for node in nodes:
            if node.saved is None and self._runs(node):
                raise FreedGraphError(
                    f"backward(): the saved tensors of {node.name()} were released by an earlier "
                    "backward; pass retain_graph=True to that one to go through the graph twice"
                )
        return nodes

    def _runs(self, node: FunctionNode) -> bool:
        """Return whether the node's gradient function is needed, not only its incoming gradient."""
        needed = self.needed
        return needed is None or any([edge[0] in needed for edge in node.edges])

    # Running

    def run(self, roots: Sequence[Edge], root_grads: Sequence[Any]) -> None:
        """Run the task from gradients of the roots (tensors)."""
        prefix: list[FunctionNode] = []
        if self.dependencies:  # pruned by the caller
            pass
        elif len(roots) == 1:
            prefix = self.compute_dependencies_of_chain(roots[0][0])
        else:
            self.compute_dependencies([node for node, _ in roots])
        nodes = self.order(prefix)
        for i, (node, index) in enumerate(roots):
            grad = root_grads[i] if self.recorded else root_grads[i]._data
            if node.infos is None and node not in self.not_ready:
                self.not_ready[node] = grad  # checked by the caller
            else:
                self._receive(node, index, grad, None)
        try:
            if self.recorded:
                with self._current():
                    self._run_nodes(nodes)
            else:  # arrays and kernels: no mode matters, but see _run_hooks
                self._run_nodes(nodes)
        finally:
            self.running = None
            if self._devices is not None:
                self._devices.close()

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Make this the thread's task, in the grad mode of the backward pass."""
        outer_task, outer_state = local.task, local.state
        local.task = self
        local.state = with_grad_mode(self.create_graph)
        try:
            yield
        finally:
            local.task, local.state = outer_task, outer_state

    def _run_nodes(self, nodes: list[FunctionNode]) -> None:
        not_ready, owned = self.not_ready, self.owned
        captured_nodes = {node for node, _ in self.captures} if self.captures else ()
        needed, recorded, retain_graph = self.needed, self.recorded, self.retain_graph
        F = self.F
        device = CPU
        node = None
        try:
            for node in nodes:
                out_grad = not_ready.pop(node, None)
                if out_grad is None:  # nothing arrived: the gradient is zero
                    if not retain_graph:
                        node.release()
                    continue
                metas = node.metas
                if metas is not None or node in captured_nodes:
                    out_grad = self._finish(node, out_grad)
                    if not node.edges or (needed is not None and not self._runs(node)):
                        continue
                function = node.grad_function
                if node.saved or node.attrs or function.many:
                    state = function.open(node, recorded)
                else:
                    state = _NOTHING_SAVED
                in_grads = None
                if node.infos is not None:  # several outputs, or not on the CPU
                    if not recorded and node.device != device:
                        device = node.device
                        F = self.F = self._kernels_on(device)
                    in_grads = self._apply_all(node, F, state, self._materialize(node, out_grad))
                elif function.whole:
                    in_grads = self._apply_all(node, F, state, (out_grad,))
                else:
                    rules = function.rules
                    if device is not CPU:
                        device, F = CPU, self._kernels_on(CPU)
                        self.F = F
                for i, (next_node, index) in enumerate(node.edges):
                    if next_node is None or (needed is not None and next_node not in needed):
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
                state = in_grads = None  # saved arrays go as soon as their node ran
                if not retain_graph and node.saved:
                    node.saved = None
        except Exception as error:
            if node is not None:
                error.add_note(f"in the backward pass, at {node.name()}")
            raise

    def _apply_all(
        self, node: FunctionNode, F: Any, state: Any, out_grads: tuple[Any, ...]
    ) -> Sequence[Any]:
        """Take the gradients of a node of several outputs, or of one rule for all inputs."""
        function = node.grad_function
        if not function.whole:
            return [
                None if edge[0] is None else rule(F, state, *out_grads)
                for rule, edge in zip(function.rules, node.edges, strict=True)
            ]
        in_grads = function.rule(F, state, *out_grads)
        if type(in_grads) is not tuple:
            in_grads = tuple(in_grads) if type(in_grads) is list else (in_grads,)
        if len(in_grads) != len(node.edges):
            raise self._wrong_count(node, in_grads)
        return in_grads

    def _kernels_on(self, device: Device) -> KernelNamespace:
        """Make a device current for the rest of the task, and return its kernels."""
        if self._devices is not None:
            self._devices.close()
        self._devices = contextlib.ExitStack()
        xp = self._devices.enter_context(on_device(device))
        return NUMPY_F if device is CPU else KernelNamespace(xp)

    def _receive(self, node: FunctionNode, index: int, grad: Any, sender: Any) -> None:
        """Check a gradient and add it to the partial sum of one output of a node."""
        if isinstance(grad, (tuple, list)):
            if len(grad) != 1:
                raise self._wrong_count(sender, tuple(grad))
            grad = grad[0]
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
        info = node.output_tensor_infos[index]
        assert info is not None
        if isinstance(grad, Tensor) != self.recorded or not hasattr(grad, "dtype"):
            wanted = "Tensor" if self.recorded else "array"
            raise self._wrong_gradient(sender, "type", wanted, type(grad).__name__)
        if grad.shape != info.shape:
            if not fits(grad.shape, info.shape):
                raise self._wrong_gradient(sender, "shape", info.shape, grad.shape)
            grad = self.F.sum_to(grad, shape=info.shape)
        if grad.dtype is not info.dtype:
            if grad.dtype.kind == "c" and info.dtype.kind == "f":
                grad = self.F.clone(self.F.real(grad))
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
        if not (node.edges or self.captures or node.infos or node.metas[0].hooks):  # type: ignore[index, union-attr]
            self._accumulate(node, node.metas[0], out_grad)  # type: ignore[index, arg-type]
            return None
        grads = [out_grad] if node.infos is None else out_grad
        self.running = (node, grads)
        for index, grad in enumerate(grads):
            if grad is None:
                continue
            meta = None if node.metas is None else node.metas[index]
            if meta is not None and meta.hooks:
                grad = grads[index] = self._run_hooks(node, index, meta, grad)
            captured = self.captures.get((node, index), ())
            if not self.accumulate:
                ours = self.recorded or (node in self.owned and len(captured) == 1)
                for position in captured:
                    self.captured_grads[position] = grad if ours else grad.copy()
            elif type(node) is AccumulateGrad or captured or (meta and meta.retain_grad):
                self._accumulate(node, meta or node.output_meta(index), grad)
        self.running = None
        return grads[0] if node.infos is None else grads

    def _run_hooks(self, node: FunctionNode, index: int, meta: AutogradMeta, grad: Any) -> Any:
        self.owned.discard(node)  # a hook may keep what it sees
        assert meta.hooks is not None
        for hook in list(meta.hooks.values()):
            with self._current():
                replaced = hook(self.gradients.wrap(grad))
            if replaced is None:
                continue
            if not isinstance(replaced, Tensor):
                raise GradientError(
                    f"a hook on the gradient of {node.name()} returned "
                    f"{type(replaced).__name__}; return a Tensor or None"
                )
            grad = self.gradients.unwrap(replaced)
            grad = self._conform(grad, node, index, None)
        return grad

    def _accumulate(self, node: FunctionNode, meta: AutogradMeta, grad: Any) -> None:
        """Add a complete gradient to `.grad`, in memory that no other gradient shares."""
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
        sums = list(self.not_ready.items())
        if self.running is not None:
            node, grads = self.running
            sums.append((node, grads[0] if node.infos is None else grads))
        for node, grad in sums:
            for index, candidate in enumerate(node.metas or ()):
                if candidate is meta:
                    found = grad if node.infos is None else grad[index]
                    return None if found is None else self.gradients.wrap(found)
        return None
