"""Backward calls as films: the start of each call, and the changes of every step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

from oneflow_lite.arrays.array_spec import owner
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.rules.gradient_rules import as_given, as_tensors
from oneflow_lite.autograd.tools.step_log import TaskWatch
from oneflow_lite.explore.document import Gradient, ReadyChange, RunPart, Start, StepPart
from oneflow_lite.explore.forward import Recorder
from oneflow_lite.functors.random import default_generator
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import AccumulateGrad, Edge, FunctionNode, GraphRoot
from oneflow_lite.tensors.tensor import Tensor, make_tensor


class _Held:
    """The memory that saved tensors and sums hold, each piece once."""

    def __init__(self, number: Callable[[Any], int]) -> None:
        self._number = number
        self._pieces: dict[int, list[int]] = {}  # number of holders and bytes, by memory
        self.bytes = 0

    def add(self, arrays: Iterable[Any]) -> list[int]:
        """Take arrays in, and return their keys, for `drop`."""
        keys = []
        for array in arrays:
            key = self._number(array)
            if key < 0:  # packed by a hook: its memory cannot be followed
                continue
            piece = self._pieces.setdefault(key, [0, owner(array).nbytes])
            self.bytes += 0 if piece[0] else piece[1]
            piece[0] += 1
            keys.append(key)
        return keys

    def drop(self, keys: Sequence[int]) -> int:
        """Let go of arrays, and return the bytes that nothing else holds."""
        dropped = 0
        for key in keys:
            piece = self._pieces[key]
            piece[0] -= 1
            if not piece[0]:
                dropped += self._pieces.pop(key)[1]
        self.bytes -= dropped
        return dropped


class _FilmedCall:
    """A backward call that is being filmed."""

    def __init__(self, run: RunPart, number: Callable[[Any], int]) -> None:
        self.run = run
        self.held = _Held(number)
        self.saved: dict[FunctionNode, list[int]] = {}  # keys of the memory that each node saved
        self.sums: dict[FunctionNode, tuple[list[int], list[Gradient]]] = {}
        self.touched: dict[FunctionNode, None] = {}
        self.turns: dict[int, tuple[int, int]] = {}  # by thread: a node, the first op of its turn
        self.freed = 0


class Film(TaskWatch):
    """Watches the backward calls of a thread, and describes them.

    Attributes
    ----------
    runs : list of RunPart
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._calls: WeakKeyDictionary[Any, _FilmedCall] = WeakKeyDictionary()
        self.runs: list[RunPart] = []

    # The place of a running op

    def now(self) -> tuple[int | None, int | None]:
        """Return the backward call that this thread is in, and the node whose turn it is."""
        call = None if local.task is None else self._calls.get(local.task)
        if call is None:
            return None, None
        return call.run["number"], call.turns.get(get_ident(), (None,))[0]

    def layer(self) -> tuple[int, int | None]:
        """Return the layer of a node that is made now, and the node whose gradient makes it."""
        run, by = self.now()
        return 0 if run is None else self.runs[run]["layer"], by

    # Reports from the engine

    def made(self, node: FunctionNode, outputs: Sequence[Tensor]) -> None:
        """Write down a new node."""
        with self._recorder.lock:
            if not self._recorder.is_full():
                self._recorder.made(node, outputs)

    def turn(self, task: Any, node: FunctionNode) -> None:
        """Remember the node whose turn begins, and the first op of the turn."""
        recorder, call = self._recorder, self._calls.get(task)
        if call is not None:
            with recorder.lock:
                call.turns[get_ident()] = recorder.seen.node(node), len(recorder.ops)

    def changed(self, task: Any, node: FunctionNode) -> None:
        """Remember that a count, and maybe a sum, changed."""
        if (call := self._calls.get(task)) is not None:
            call.touched[node] = None

    def step(self, task: Any, node: FunctionNode | None) -> None:
        """Write down the start of a call, or the changes of a step."""
        recorder = self._recorder
        with recorder.lock:
            if node is None and recorder.is_full():
                recorder.left_out["runs"] += 1
            elif node is None:
                self._begin(task)
            elif (call := self._calls.get(task)) is not None:
                self._step(call, task, node)

    def end(self, task: Any, error: BaseException | None) -> None:
        """Write down the error that ended a call, if any."""
        call = self._calls.get(task)
        if call is not None and error is not None:
            call.run["error"] = self._recorder.say(error)

    def _begin(self, task: Any) -> None:
        recorder, seen = self._recorder, self._recorder.seen
        recorder.settle()
        (root,) = task.not_ready
        behind = _reachable(root)
        ids = {node: seen.node(node) for node in sorted(behind, key=lambda n: n.sequence_nr)}
        order = [ids[node] for node in task.nodes]
        running = set(task.nodes)
        wanted = task.exec_info
        needed = [node for node in task.nodes if wanted is None or wanted[node].needed]
        for node in task.nodes:
            seen.save_anew(node)
        inputs = None
        if wanted is not None:
            places = {at: ids[node] for node in wanted for _, at in wanted[node].captures}
            inputs = [places.get(at, -1) for at in range(len(task.captured_grads))]
        outer = None if task.outer is None else self._calls.get(task.outer)
        run = RunPart(
            number=len(self.runs), parent=None if outer is None else outer.run["number"],
            kind="backward" if task.accumulate else "grad",
            rehearsal=isinstance(task, Rehearsal),
            roots=[ids[n] for n, _ in root.edges] if isinstance(root, GraphRoot) else [ids[root]],
            root=ids[root], inputs=inputs, retain_graph=task.retain_graph,
            create_graph=task.create_graph, recorded=task.gradients.recorded,
            layer=1 + max([seen.nodes[i]["layer"] for i in order]), order=order,
            pruned=[i for node, i in ids.items() if node not in running],
            unvisited=[i for node, i in ids.items() if node not in task.dependencies],
            needed=[] if wanted is None else [ids[node] for node in needed],
            op=len(recorder.ops), source=recorder.sources.place(recorder.where().source),
            start=Start(ready=[], dependencies={}, not_ready={}, held=0, alive=0),
            steps=[], error=None,
        )  # fmt: skip
        call = self._calls[task] = _FilmedCall(run, seen.memory.number)
        self.runs.append(run)
        for node in needed:
            call.saved[node] = call.held.add([saved[1] for saved in node.saved or ()])
        start = run["start"]
        start["dependencies"] = {str(ids[n]): task.dependencies[n] for n in task.nodes}
        start["ready"] = [ids[n] for n in task.nodes if not task.dependencies[n]]
        start["not_ready"] = self._sums(call, task, [n for n in task.nodes if n in task.not_ready])
        start["held"] = call.held.bytes
        start["alive"], call.freed = seen.memory.state()

    def _step(self, call: _FilmedCall, task: Any, node: FunctionNode) -> None:
        seen = self._recorder.seen
        number, first = call.turns.pop(get_ident())
        touched, call.touched = call.touched, {}
        held, current = call.sums.pop(node, ([], []))
        call.held.drop(held)
        kept = call.saved.pop(node, [])
        sums = self._sums(call, task, touched)
        # A rehearsal retains the graph, and shows what a call without retaining would release.
        released = 0
        if not node.saved or call.run["rehearsal"]:
            released = call.held.drop(kept)
        counts = {n: task.dependencies[n] for n in touched}
        added = sorted([n for n, count in counts.items() if not count], key=_latest_first)
        alive, freed = seen.memory.state()
        call.run["steps"].append(
            StepPart(
                node=number,
                ready=ReadyChange(added=[seen.node(n) for n in added], removed=[number]),
                dependencies={str(seen.node(n)): count for n, count in counts.items()},
                not_ready=sums,
                current_grad=current,
                acc_grad=self._accumulated(task, node),
                captured=self._captured(task, node),
                ops=[first, len(self._recorder.ops)],
                released=released,
                held=call.held.bytes,
                freed=freed - call.freed,
                alive=alive,
            )
        )
        call.freed = freed

    def _sums(
        self, call: _FilmedCall, task: Any, nodes: Iterable[FunctionNode]
    ) -> dict[str, list[Gradient]]:
        """Describe the sums that wait at nodes, and hold their memory instead of the last sums'."""
        described = {}
        for node in nodes:
            if node not in task.not_ready:
                continue
            grads = task.not_ready[node]
            grads = list(enumerate([grads] if node.infos is None else grads or ()))
            arrays = [getattr(grad, "_data", grad) for _, grad in grads if grad is not None]
            before = call.sums.get(node, ([], []))[0]
            keys = call.held.add(arrays)  # before the drop, since a sum may keep its memory
            call.held.drop(before)
            parts = [self._recorder.seen.gradient(i, g) for i, g in grads if g is not None]
            call.sums[node] = keys, parts
            described[str(self._recorder.seen.node(node))] = parts
        return described

    def _accumulated(self, task: Any, node: FunctionNode) -> list[Gradient]:
        """Describe the `.grad` of a node's outputs, where the call may change it."""
        if not task.accumulate:
            return []
        wanted = task.exec_info
        captured = {index for index, _ in wanted[node].captures} if wanted else set()
        described = []
        for i, meta in enumerate(node.metas or ()):
            if meta is None:
                continue
            grad = task.sums.get(id(meta)) if isinstance(task, Rehearsal) else meta.acc_grad
            keeps = isinstance(node, AccumulateGrad) or meta.retain_grad or i in captured
            if keeps and grad is not None:
                described.append(self._recorder.seen.gradient(i, grad))
        return described

    def _captured(self, task: Any, node: FunctionNode) -> dict[str, Gradient]:
        """Describe the gradients of a node that `autograd.grad` keeps."""
        if task.accumulate or task.exec_info is None:
            return {}
        captured = [(at, i, task.captured_grads[at]) for i, at in task.exec_info[node].captures]
        describe = self._recorder.seen.gradient
        return {str(at): describe(i, grad) for at, i, grad in captured if grad is not None}


def _latest_first(node: FunctionNode) -> int:
    return -node.sequence_nr


def _reachable(root: FunctionNode) -> set[FunctionNode]:
    reached = {root}
    stack = [root]
    while stack:
        for node, _ in stack.pop().edges:
            if node is not None and node not in reached:
                reached.add(node)
                stack.append(node)
    return reached


class Rehearsal(GraphTask):
    """A backward call that leaves `.grad` and the graph as they are.

    Attributes
    ----------
    sums : dict
        The would-be `.grad` by the id of the AutogradMeta.
    """

    def __init__(self) -> None:
        super().__init__(retain_graph=True, create_graph=False, accumulate=True)
        self.sums: dict[int, Any] = {}

    def _accumulate(self, node: FunctionNode, meta: Any, grad: Any) -> None:
        """Take the sum, without post-accumulate hooks: nothing is accumulated."""
        own = node.hooks if type(node) is AccumulateGrad else None
        if own is not None:
            self.owned.discard(node)
            (grad,) = as_given(own.run_pre(node, as_tensors((grad,))))
        if grad is not None:
            self._add(node, meta, grad)

    def _add(self, node: FunctionNode, meta: Any, grad: Any) -> None:
        """Keep the would-be `.grad`."""
        array = getattr(grad, "_data", grad)
        before = meta.acc_grad
        total = array.copy() if before is None else before._data + array
        self.sums[id(meta)] = make_tensor(total)


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    before = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(before)


def rehearse(edges: Sequence[Edge], grads: Sequence[Tensor]) -> None:
    """Run a backward call from these roots that changes nothing.

    No `.grad` is written and nothing is released; versions and random numbers are as before. The
    user's hooks on gradients and nodes, and backward functions, run as in `autograd.grad`.
    """
    task = Rehearsal()
    with _same_random_numbers():
        task.run(task.set_roots(edges, grads))
