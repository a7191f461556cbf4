"""The node that a compiled function is in the eager graph; one for each of its stages.

While a call is recorded, its backward pass is recorded as well, with gradients that stand for
those to come; what it reads of the forward pass becomes results of the forward Program, kept by
the node. A backward pass that is itself recorded, or that starts from some of the outputs only,
takes the other way: the graph that the recorded call had is made again around what the node has
kept, and the engine runs that. The user's function is not run again: it would draw other numbers
for dropout, and write running statistics twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import attrs

from oneflow_lite.autograd.gradient_rules import (
    AutoGradCaptureState,
    HookedGradFunction,
    OpExprGradFunction,
)
from oneflow_lite.autograd.graph_task import GraphTask
from oneflow_lite.autograd.mode import is_grad_enabled, local, no_grad
from oneflow_lite.autograd.node import NO_EDGE, Edge, FunctionNode, GraphRoot, make_node
from oneflow_lite.autograd.saved_tensor import SavedTensor, stale_error
from oneflow_lite.device import on_device
from oneflow_lite.errors import GradientError
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.scalar_expression import scalar_of
from oneflow_lite.static.compile.recorder import RecordingInterpreter, describe, holds_array
from oneflow_lite.static.compile.results import NEVER_WRITTEN, NotReplayable
from oneflow_lite.static.fusion.group import DEAR
from oneflow_lite.static.ir.aliases import memory_roots
from oneflow_lite.static.ir.program import Block, OpDesc, Program
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.passes.effects import is_pure
from oneflow_lite.static.runtime.takeover import may_fuse
from oneflow_lite.tensor import Tensor, make_tensor

_FEW_OPERATIONS = 3  # of a result that is rather made again than stored and read


class FreedGradFunction(OpExprGradFunction):
    """The gradient function of a node whose graph a backward pass in the call has released."""

    def __init__(self, name: str) -> None:
        self.node_name = f"{name}_backward"


class CompiledGradFunction(FreedGradFunction):
    """Takes the gradients of a compiled function's inputs, by the recorded backward pass.

    It is made from outputs that have a place in the graph, and the places of the inputs; the
    recorder gets the ops of the backward pass appended. `visited` says what the backward passes of
    other outputs went through, and whether users' code ran there: where it would get a gradient in
    parts, `NotReplayable` is raised.
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
        task = task_between(create_graph=False)
        root = task.set_roots([y._edge for y in outputs if y._edge is not None], given)
        task.compute_dependencies_and_prune_node(root, inputs)
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
        # The inputs that can get a gradient. The others have no place in the graph, or passes
        # would go on from there.
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
        program = _program(ops, block, saved, names, self._fetches)
        device = given[0].device
        self.core = InterpreterCore(program, [*saved, *names], self._fetches, device, mode=mode)
        self._feeds = len(saved)
        edges = [inputs[i] for i in self.used]
        self._graph = GraphCopy(recorder, between, edges, [y._edge for y in outputs], again)
        # The variables of the forward pass that a node keeps.
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
        for s in saved:
            if s[2].version != s[3]:
                raise stale_error(s, node)
        # Ranks that run op by op leave out what leads to no input that is asked for, and so does
        # this one where other processes take part.
        is_pruned = self._talks and len(self._wanted(node)) < len(self.grads)
        if state.recorded or is_pruned or any([g is None for g in out_grads]):
            return self._graph.run(node, saved, out_grads, self._wanted(node), state.recorded)
        with on_device(node.device) as xp:
            given = [xp.ascontiguousarray(g).reshape(g.shape) for g in out_grads]
        found = self.core.run([*[s[1] for s in saved[: self._feeds]], *given], ())
        by_name = dict(zip(self._fetches, found, strict=True))
        return tuple([None if name is None else by_name[name] for name in self.grads])

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
    """Take from `saved` what follows by few operations from the rest; return ops that do so.

    Where loops are fused, these cost less than to store a result and to read it.
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
    ops: list[OpDesc],
    source: Block,
    saved: Sequence[str],
    given: Sequence[str],
    fetches: Sequence[str],
) -> Program:
    program = Program()
    block = program.global_block()
    block.ops = ops
    used = {name for op in ops for name in (*op.reads, *op.outputs)}
    for name in used.union(saved, given, fetches):
        desc = source.var(name)
        if name in saved or name in given:
            desc = attrs.evolve(desc, persistable=False, need_check_feed=True, value=None)
        block.vars[name] = desc
    return program


class NodeCopy(NamedTuple):
    """A node of the graph that a call had, without arrays: `saved` has variables in their place.

    Places in the graph are numbers and outputs. Inputs are counted first, and then these nodes; -1
    is the node of the compiled function, and None is no place.
    """

    grad_function: Any
    edges: Sequence[Edge]
    saved: Sequence[tuple[str, str, Edge | None]]
    rest: tuple[Any, ...]  # attributes, shape and dtype
    infos: Any


class GraphCopy:
    """The graph that a recorded call had between outputs and inputs, to be made again.

    `again` are the ops that make what is not kept. `variables` are those that a node has to keep.
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
        self._nodes: list[NodeCopy] = []
        self._again = again
        used = {name: recorder.block.var(name).value for op in again for name in op.reads}
        between = sorted(between, key=lambda node: node.sequence_nr)
        numbers = {node: len(inputs) + k for k, node in enumerate(between)}
        places = {edge: (i, 0) for i, edge in enumerate(inputs)}

        def place(edge: Edge) -> Edge:
            return places.get(edge) or (numbers.get(edge[0]), edge[1])

        for node in between:
            if type(node) is not FunctionNode or any(map(holds_array, node.attrs.values())):
                self._unrepeatable = "has a Function of its own"
            if _has_hooks(node):
                self._unrepeatable = "sets hooks on gradients"
            kept = []
            for name, array, storage, version, edge in node.saved or ():
                variable = recorder.find(array)
                if variable is None or storage.version != version:
                    self._unrepeatable = "keeps what no op has made"
                    continue
                if edge is not None:
                    edge = (node, edge[1]) if edge[0] is None else edge
                    returned = edge in outputs
                    edge = (-1, outputs.index(edge)) if returned else place(edge)
                kept.append((name, variable, edge))
                used[variable] = recorder.block.var(variable).value
            edges, rest = tuple(map(place, node.edges)), (node.attrs, node.shape, node.dtype)
            self._nodes.append(NodeCopy(node.grad_function, edges, kept, rest, node.infos))
        self._roots = [place(edge) for edge in outputs if edge is not None]
        self._constants = {name: value for name, value in used.items() if value is not None}
        made = {name for op in again for name in op.outputs}
        self.variables = [name for name in used if name not in made and used[name] is None]

    def run(
        self,
        node: FunctionNode,
        saved: tuple[SavedTensor, ...],
        out_grads: tuple[Any, ...],
        wanted: Sequence[int],
        recorded: bool,
    ) -> tuple[Any, ...]:
        """Make the graph around what a node has saved, and take the wanted gradients."""
        if self._unrepeatable is not None:
            raise GradientError(
                f"{node.name()}: a compiled function that {self._unrepeatable} has no second "
                "derivative, nor one for some of its outputs alone; write it without that, or "
                "call it without flow.compile"
            )
        edge = self._made(node, saved)
        given = [
            (edge(place) or NO_EDGE, g if recorded else make_tensor(g))
            for place, g in zip(self._roots, out_grads, strict=True)
            if g is not None
        ]
        # One place may be that of two inputs: the first of them gets all of its gradient.
        inputs = {node.edges[i]: i for i in reversed(wanted)}
        task = task_between(is_grad_enabled())
        root = task.set_roots([place for place, _ in given], [g for _, g in given])
        task.compute_dependencies_and_prune_node(root, list(inputs))
        task.run(root)
        found: list[Any] = [None] * len(node.edges)
        for i, g in zip(inputs.values(), task.captured_grads, strict=True):
            if g is not None:
                found[i] = task.gradients.wrap(g) if recorded else g
        return tuple(found)

    def _made(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...]
    ) -> Callable[[Edge], Edge | None]:
        """Make the nodes; return a function that finds the edge of a place."""
        kept = {s[0]: s[1:4] for s in saved}
        kept.update({name: (y, NEVER_WRITTEN, 0) for name, y in self._constants.items()})
        for op in self._again:
            inputs = [None if name is None else make_tensor(kept[name][0]) for name in op.inputs]
            with no_grad():
                result = dispatch(op_expr(op.type), tuple(inputs), op.attrs)
            kept[op.outputs[0]] = result._data, NEVER_WRITTEN, 0
        nodes: list[FunctionNode | None] = [None] * len(node.edges)

        def edge(place: Edge) -> Edge | None:
            number, index = place
            if number is None or number < 0:
                return None if number is None else (node, index)
            if number == len(nodes):  # an output that its own node keeps: no way leads back
                return (None, index)
            sender = nodes[number]
            found = node.edges[number] if sender is None else (sender, index)
            return found if found[0] is not None else None

        for copy in self._nodes:
            edges = tuple([edge(place) or NO_EDGE for place in copy.edges])
            above = 1 + max([e[0].topological_nr for e in edges if e[0] is not None], default=0)
            held = [(n, *kept[v], None if at is None else edge(at)) for n, v, at in copy.saved]
            made = make_node(copy.grad_function, edges, above, tuple(held), *copy.rest)
            made.infos = copy.infos
            nodes.append(made)
        return edge


def task_between(create_graph: bool) -> GraphTask:
    """Return a task between a node's outputs and its inputs.

    The engine goes through their hooks, and the rest of the graph, when a gradient arrives there.
    """
    task = GraphTask(retain_graph=True, create_graph=create_graph, accumulate=False)
    task.hooks_at_inputs, task.stops_at_inputs = False, True
    return task


def _has_hooks(node: FunctionNode) -> bool:
    """Return whether hooks run at a node or on its gradients."""
    return isinstance(node.grad_function, HookedGradFunction) or any(
        [meta is not None and bool(meta.hooks) for meta in node.metas or ()]
    )
