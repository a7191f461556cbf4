"""The node that a compiled function is in the eager graph; one for each of its stages.

While a call is recorded, its backward pass is recorded as well, with stand-ins for the gradients to
come. The values that it reads of the forward pass become results of the forward Program, which the
node keeps. A backward pass that is itself recorded, or that starts from some of the outputs only,
goes another way: the graph of the recorded call is made again around the values that the node has
kept, and the engine runs that graph. The user's function is not run again: it would draw new
numbers for dropout, and write running statistics twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

import attrs

from oneflow_lite.arrays.device import on_device
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.rules.gradient_rules import (
    AutoGradCaptureState,
    HookedGradFunction,
    OpExprGradFunction,
)
from oneflow_lite.autograd.rules.saved_tensor import SavedTensor, stale_error
from oneflow_lite.compiler.outside import NotReplayable
from oneflow_lite.compiler.recorder import RecordingInterpreter, describe, holds_array
from oneflow_lite.compiler.results import NEVER_WRITTEN, Entry, Results
from oneflow_lite.errors import GradientError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.fusion.group import DEAR
from oneflow_lite.static.ir.memory import memory_roots
from oneflow_lite.static.ir.program import Block, OpDesc, Program
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.passes.memory import is_pure
from oneflow_lite.static.runtime.takeover import may_fuse
from oneflow_lite.tensors.mode import is_grad_enabled, local, no_grad
from oneflow_lite.tensors.node import (
    NO_EDGE,
    AccumulateGrad,
    Edge,
    FunctionNode,
    GraphRoot,
    make_node,
)
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.transforms import levels

_FEW_OPERATIONS = 3  # of a result that is rather made again than stored and read


class FreedGradFunction(OpExprGradFunction):
    """The gradient function of a node whose graph a backward pass in the call has released."""

    saved: list[str] | None = None  # the variables of the forward pass that a node keeps

    def __init__(self, name: str) -> None:
        self.node_name = f"{name}_backward"


class CompiledGradFunction(FreedGradFunction):
    """Takes the gradients of a compiled function's inputs, by the recorded backward pass.

    It is made from outputs that have a place in the graph, and the places of the inputs; the
    recorder gets the ops of the backward pass appended. `visited` has the nodes of the backward
    passes of earlier outputs, and says whether users' code ran at each: where that code would get a
    gradient in parts, `NotReplayable` is raised.
    """

    materialize = False

    def __init__(
        self,
        name: str,
        recorder: RecordingInterpreter,
        outputs: Sequence[Tensor],
        inputs: Sequence[Edge],
        visited: dict[FunctionNode, bool],
        mode: str,
    ) -> None:
        super().__init__(name)
        block = recorder.block
        forward = list(block.ops)
        given = [_stand_in(y) for y in outputs]
        names = [recorder.program.unique_name("out_grad") for _ in given]
        for n, g in zip(names, given, strict=True):
            recorder.declare(g._data, describe(n, g))
        task, root = task_between([y._edge for y in outputs], given, inputs)
        info = task.exec_info or {}
        between = [n for n in info if not (info[n].captures or isinstance(n, GraphRoot))]
        if len(outputs) > 1 and any(map(_has_hooks, between)):
            # a gradient of some of them would have to run the hooks again
            raise NotReplayable("it set hooks in the graph of several results")
        calls = local.observer.user_calls
        recorder.rehearses = True
        try:
            with no_grad():
                task.run(root)
        finally:
            recorder.rehearses = False
        entered = local.observer.user_calls > calls
        if any([node in visited and (entered or visited[node]) for node in between]):
            raise NotReplayable("users' code gets the gradient of several results, not summed")
        visited.update(dict.fromkeys(between, entered))
        grads = [None if g is None else recorder.name_of(g) for g in task.captured_grads]
        # The inputs that can get a gradient. An input without one has no place in the graph, or
        # passes would go on from there.
        self.used = [i for i, g in enumerate(grads) if g is not None] or range(len(grads))
        self.grads = [grads[i] for i in self.used]
        self._fetches = list(dict.fromkeys([name for name in self.grads if name is not None]))
        ops = block.ops[len(forward) :]
        del block.ops[len(forward) :]
        made = {name for op in ops for name in op.new_outputs}
        read = dict.fromkeys([*[name for op in ops for name in op.reads], *self._fetches])
        inner = made.union(names)
        saved = [n for n in read if n not in inner and block.var(n).value is None]
        again = []
        if mode == "straight_line" and may_fuse(given[0].device):
            again = _made_again(saved, forward, block)
            ops = [*again, *ops]
            made.update(name for op in again for name in op.new_outputs)
        # Where every gradient is made by an op, none lies in memory that it saved or was given.
        roots = memory_roots(ops)
        self.shows_gradients = not made.issuperset([roots.get(n, n) for n in self._fetches])
        self._talks = any(op.has_effect for op in ops)  # its backward pass, with other processes
        feeds = [*saved, *names]
        program = _program(ops, block, feeds, self._fetches)
        device = given[0].device
        self.core = InterpreterCore(program, feeds, self._fetches, device, mode=mode)
        self._feeds = len(saved)
        edges = [inputs[i] for i in self.used]
        self._graph = GraphCopy(recorder, between, edges, [y._edge for y in outputs], again)
        self.saved = [*saved, *[name for name in self._graph.variables if name not in saved]]

    def open(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...], recorded: bool
    ) -> AutoGradCaptureState:
        """Return the `ctx` for `apply`."""
        state = AutoGradCaptureState()
        state.__dict__.update(node=node, saved=saved, recorded=recorded)
        return state

    def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
        """Return one gradient or None for each input."""
        node, saved = state.node, state.saved
        # Ranks that run op by op leave out ops that lead to no wanted input. This rank does so,
        # too, where other processes take part.
        is_pruned = self._talks and len(self._wanted(node)) < len(self.grads)
        watched = is_grad_enabled() or local.state.interpreter is not None
        tensors = state.recorded and not (is_pruned or watched) and levels.are_plain(out_grads)
        is_whole = not (is_pruned or node.attrs or any([g is None for g in out_grads]))
        for s in saved if is_whole or self._graph.makes_values else ():
            if s[2].version != s[3]:
                raise stale_error(s, node)
        if not is_whole or (state.recorded and not tensors):
            return self._graph.run(state, out_grads, self._wanted(node))
        if tensors:  # as anywhere in a pass that may meet the level of a transform
            out_grads = tuple([g._data for g in out_grads])
        with on_device(node.device) as xp:
            given = [xp.ascontiguousarray(g).reshape(g.shape) for g in out_grads]
        grads = self.core.run([*[s[1] for s in saved[: self._feeds]], *given], ())
        by_name = dict(zip(self._fetches, grads, strict=True))
        found = [None if name is None else by_name[name] for name in self.grads]
        return tuple([make_tensor(g) if tensors and g is not None else g for g in found])

    def _wanted(self, node: FunctionNode) -> list[int]:
        """Return which of the inputs the running pass wants a gradient for."""
        info = None if local.task is None else local.task.exec_info
        edges = enumerate(node.edges)
        return [i for i, (sender, _) in edges if sender and (info is None or sender in info)]


def _stand_in(y: Tensor) -> Tensor:
    """Return a gradient that stands for those to come."""
    with on_device(y.device) as xp:
        return make_tensor(xp.ones(y.shape, y.dtype))


def _made_again(saved: list[str], forward: Sequence[OpDesc], block: Block) -> list[OpDesc]:
    """Take from `saved` the variables that follow by few operations from the rest; return the ops.

    Where loops are fused, such ops cost less than to store a result and to read it.
    """
    roots = memory_roots(forward)
    written = {roots[name] for op in forward for name in op.written}
    ops: list[OpDesc] = []
    for op in reversed(forward):
        if len(op.outputs) > 1 or op.outputs[0] not in saved or op.viewed is not None:
            continue
        scalar = scalar_of(op.type, op.attrs)
        rest = {*saved} - {*op.outputs}
        if (
            scalar is not None
            and not (scalar.reduces or scalar.calls(DEAR))
            and scalar.operations <= _FEW_OPERATIONS
            and is_pure(op, block)
            and all([n in rest or block.var(n).value is not None for n in op.reads])
            and written.isdisjoint([roots[n] for n in (*op.reads, *op.outputs)])
        ):
            saved.remove(op.outputs[0])
            ops.insert(0, attrs.evolve(op, role="backward", number=-1))
    return ops


def _program(
    ops: list[OpDesc], source: Block, feeds: Sequence[str], fetches: Sequence[str]
) -> Program:
    program = Program()
    block = program.global_block()
    block.ops = ops
    used = {name for op in ops for name in (*op.reads, *op.outputs)}
    for name in used.union(feeds, fetches):
        desc = source.var(name)
        if name in feeds:
            desc = attrs.evolve(desc, persistable=False, need_check_feed=True, value=None)
        block.vars[name] = desc
    return program


class GraphCopy:
    """The graph that a recorded call had between outputs and inputs, to be made again.

    Edges stand in a row: an edge that leads nowhere, the edge to the node of the compiled function,
    the edges to the inputs, and an edge to each node that is made. The nodes are kept without
    arrays and edges. A variable stands for an array, and a place in the row, with a number to add
    to its index, for an edge. `again` are the ops that make values that are not kept. `variables`
    are the variables that a node has to keep.
    """

    def __init__(
        self,
        recorder: RecordingInterpreter,
        between: Sequence[FunctionNode],
        inputs: Sequence[Edge],
        outputs: Sequence[Edge | None],
        again: Sequence[OpDesc],
    ) -> None:
        self._unrepeatable: str | None = None
        self._nodes: list[FunctionNode] = []
        self._again = again
        used = {name: recorder.block.var(name).value for op in again for name in op.reads}
        between = sorted(between, key=lambda node: node.sequence_nr)
        numbers = {node: 2 + len(inputs) + k for k, node in enumerate(between)}
        inner = {edge: (2 + i, 0) for i, edge in enumerate(inputs)}

        def place(edge: Any) -> tuple[int, int] | None:
            number = numbers.get(edge[0])
            return inner.get(edge) or (None if number is None else (number, edge[1]))

        for node in between:
            if type(node) is not FunctionNode or any(map(holds_array, node.attrs.values())):
                self._unrepeatable = "has a Function of its own"
            if _has_hooks(node):
                self._unrepeatable = "sets hooks on gradients"
            kept = []
            for name, array, storage, version, edge in node.saved or ():
                variable = levels.taken_apart(array, recorder.find)
                if variable is None or storage.version != version:
                    self._unrepeatable = "keeps what no op has made"
                    continue
                at = None
                if edge is not None:
                    edge = edge[0] or node, edge[1]
                    # Where it keeps an output of its own, no way leads back.
                    at = (0, edge[1]) if edge[0] is node else place(edge)
                    at = (1, outputs.index(edge)) if edge in outputs else at
                kept.append((name, variable, at))
                used.update({n: recorder.block.var(n).value for n in levels.names_in(variable)})
            edges = tuple([place(edge) or (0, 0) for edge in node.edges])
            options = levels.without_crossing(node.attrs)
            self._nodes.append(_like(node, edges, 0, tuple(kept), options))
        saved = [variable for copy in self._nodes for _, variable, _ in copy.saved or ()]
        self._patterns = {v: None for v in saved if type(v) is not str}
        self.makes_values = bool(again or self._patterns)  # the copy would not notice a write
        self._roots = [place(edge) or (0, 0) for edge in outputs]
        self._constants = {name: value for name, value in used.items() if value is not None}
        made = {name for op in again for name in op.outputs}
        self.variables = [name for name in used if name not in made and used[name] is None]

    def run(self, state: Any, out_grads: Sequence[Any], wanted: Sequence[int]) -> tuple[Any, ...]:
        """Make the graph around what a node has saved, and take the wanted gradients."""
        node, recorded = state.node, state.recorded
        if self._unrepeatable is not None:
            raise GradientError(
                f"{node.name()}: a compiled function that {self._unrepeatable} has no second "
                "derivative, nor one for some of its outputs; call it without flow.compile"
            )
        if (roots := node.attrs.get("roots")) is None:
            roots = list(map(self._made(node, state.saved), self._roots))
        retained = local.task.retain_graph
        if not retained:  # it releases the saved tensors of nodes on the way alone
            node.attrs["roots"], node.saved = roots, ()
        given = [
            (root, g if recorded else make_tensor(g))
            for root, g in zip(roots, out_grads, strict=True)
            if g is not None
        ]
        # Two inputs may have one place: the first input gets all of its gradient.
        inputs = {node.edges[i]: i for i in reversed(wanted)}
        edges, grads = zip(*given, strict=True)
        task, root = task_between(edges, grads, list(inputs), retained, is_grad_enabled())
        task.run(root)
        by_input: list[Any] = [None] * len(node.edges)
        for i, g in zip(inputs.values(), task.captured_grads, strict=True):
            if g is not None:
                g = task.gradients.wrap(g)
                by_input[i] = g if recorded else g._data
        return tuple(by_input)

    def _made(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...]
    ) -> Callable[[tuple[int, int]], Edge]:
        """Make the nodes; return a function that finds the edge of a place."""
        kept: dict[Any, Any] = {s[0]: s[1:4] for s in saved}
        kept.update({name: (y, NEVER_WRITTEN, 0) for name, y in self._constants.items()})
        for op in self._again:
            inputs = [None if name is None else make_tensor(kept[name][0]) for name in op.inputs]
            with no_grad():
                result = dispatch(op_expr(op.type), tuple(inputs), op.attrs)
            kept[op.outputs[0]] = result._data, NEVER_WRITTEN, 0
        for pattern in self._patterns:
            kept[pattern] = pattern.put_together(kept), NEVER_WRITTEN, 0
        row = [NO_EDGE, (node, 0), *node.edges]

        def edge(place: tuple[int, int]) -> Edge:
            sender, first = row[place[0]]
            return sender, first + place[1]

        for copy in self._nodes:
            edges = tuple([edge(place) for place in copy.edges])
            above = 1 + max([e[0].topological_nr for e in edges if e[0] is not None], default=0)
            variables = copy.saved or ()
            held = [(n, *kept[v], None if at is None else edge(at)) for n, v, at in variables]
            options = levels.with_crossing(copy.attrs)
            row.append((_like(copy, edges, above, tuple(held), options), 0))
        return edge


def _like(node: FunctionNode, edges: Any, above: int, saved: Any, attrs: Any) -> FunctionNode:
    """Return a node like this node with edges, saved values and attributes of its own."""
    rest = attrs, node.shape, node.dtype
    made: FunctionNode = make_node(node.grad_function, edges, above, saved, *rest)
    made.infos = node.infos
    return made


def task_between(
    roots: Sequence[Any], grads: Sequence[Tensor], inputs: Sequence[Edge], *modes: Any
) -> tuple[GraphTask, FunctionNode]:
    """Return a task between a node's outputs and its inputs, and where it starts.

    `modes` are `retain_graph` and `create_graph`, if not True and False. The engine goes through
    their hooks, and the rest of the graph, when a gradient arrives there.
    """
    task = GraphTask(*(modes or (True, False)), accumulate=False)  # type: ignore[misc]
    task.hooks_at_inputs, task.stops_at_inputs = False, True
    root = task.set_roots(roots, grads)
    task.compute_dependencies_and_prune_node(root, inputs)
    return task, root


def _has_hooks(node: FunctionNode) -> bool:
    """Return whether hooks run at a node or on its gradients."""
    return isinstance(node.grad_function, HookedGradFunction) or any(
        [meta is not None and bool(meta._hooks) for meta in node.metas or ()]
    )


def stages_of(
    results: Results, outputs: Sequence[int], inputs: Collection[Edge], outside: Collection[int]
) -> list[tuple[list[int], list[int]]]:
    """Divide the outputs with a graph into stages, the first one first.

    A stage has the outputs of a node, none of which was made from another output of it, and the
    results that the outputs were made from.

    Raises
    ------
    NotReplayable
        When an op has several outputs, and a result was made from one that was not returned; or
        when one of the metas whose ids are `outside` is met elsewhere than at the inputs.
    """
    entries = results.entries
    places: dict[Any, int] = {
        entry.tensor._edge: i
        for i, entry in enumerate(entries)
        if i in outputs or _is_view_with_history(entry)
    }
    numbers: dict[int, int] = {}  # of the stages of outputs
    stages: defaultdict[int, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    edges: dict[int, Any] = {i: entries[i].tensor._edge for i in outputs}
    for i, edge in sorted(edges.items(), key=lambda item: item[1][0].sequence_nr):
        before = _sources(edge, places, inputs, outside)
        owners = [entries[k].source if entries[k].kind == "view" else k for k in before]
        numbers[i] = 1 + max([numbers.get(owner, -1) for owner in owners], default=-1)
        made, needed = stages[numbers[i]]
        made.add(i)
        needed.update(before)
    return [(sorted(stages[n][0]), sorted(stages[n][1])) for n in sorted(stages)]


def _is_view_with_history(entry: Entry) -> bool:
    """Return whether ops may have taken this very view, and not one made since, as an input."""
    y, view = entry.tensor, entry.tensor._view
    if entry.kind != "view" or view is None or y._edge is None:
        return False
    return view.version == y._version and not isinstance(y._edge[0], AccumulateGrad)


def _sources(
    output: Edge, places: dict[Edge, int], inputs: Collection[Edge], outside: Collection[int]
) -> set[int]:
    """Find the nearest results that an output was made from."""
    several = {node for node, _ in places if node.infos is not None}
    sources: set[int] = set()
    seen = {output[0]}
    stack = [output[0]]
    while stack:
        for edge in stack.pop().edges:
            node = edge[0]
            if node is None or edge in inputs:
                continue
            if isinstance(node, AccumulateGrad) and id(node.meta) in outside:
                raise NotReplayable("it set requires_grad or .data of what it then differentiates")
            if edge in places:
                sources.add(places[edge])
            elif node in several:
                raise NotReplayable(f"it returned one output of {node.name()}, and some of another")
            elif node not in seen:
                seen.add(node)
                stack.append(node)
    return sources
