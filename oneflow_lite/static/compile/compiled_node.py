"""The node that a compiled function is in the eager graph; one for each of its stages.

While a call is recorded, its backward pass is recorded as well, with gradients that stand for
those to come; what it reads of the forward pass becomes results of the forward Program, kept by
the node. A backward pass that is itself recorded, or that starts from some of the outputs only,
takes the other way: the graph that the recorded call had is made again around what the node has
kept, and the engine runs that. The user's function is not run again: it would draw other numbers
for dropout, and write running statistics twice.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.passes.effects import is_pure
from oneflow_lite.static.runtime.takeover import may_fuse
from oneflow_lite.tensor import Tensor, make_tensor

_FEW_OPERATIONS = 3  # of a result that is rather made again than stored and read


class NodeCopy(NamedTuple):
    """A node of the graph that a call had, without arrays: `saved` has variables in their place.

    Places in the graph are numbers and outputs. Inputs are counted first, and then these nodes; -1
    is the node of the compiled function, and None is no place.
    """

    grad_function: Any
    edges: Sequence[Edge]
    saved: Sequence[tuple[str, str, Edge | None]]
    attrs: dict[str, Any]
    shape: tuple[int, ...]
    dtype: Any
    infos: Any


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

    Attributes
    ----------
    shows_gradients : bool
        Whether what it returns may be memory that others see.
    used : sequence of int
        Whether each input can get a gradient; none is taken of the others.
    saved : list of str
        The variables of the forward pass that the backward pass reads, and those that the nodes of
        the call saved besides.
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
        self._mode = mode
        block = recorder.block
        forward = list(block.ops)
        given = self._stand_ins(recorder, outputs)
        task = task_between(create_graph=False)
        root = task.set_roots([y._edge for y in outputs if y._edge is not None], given)
        task.compute_dependencies_and_prune_node(root, inputs)
        between = [
            node
            for node, info in (task.exec_info or {}).items()
            if not info.captures and not isinstance(node, GraphRoot)
        ]
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
        # What gets no gradient has no place in the graph, or passes would go on from there.
        self.used = [i for i, g in enumerate(grads) if g is not None] or range(len(grads))
        edges = [inputs[i] for i in self.used]
        self.grads = [grads[i] for i in self.used]
        ops = block.ops[len(forward) :]
        del block.ops[len(forward) :]
        made = {name for op in ops for name in op.new_outputs}
        read = dict.fromkeys(name for op in ops for name in op.reads)
        read.update(dict.fromkeys(name for name in self.grads if name is not None))
        self.saved = [
            name
            for name in read
            if name not in made and name not in self.given and block.var(name).value is None
        ]
        self._again: list[OpDesc] = []
        if mode == "straight_line" and may_fuse(given[0].device):
            self._again = self._made_again(forward, block)
            ops = [*self._again, *ops]
            made = {name for op in ops for name in op.new_outputs}
        # Where every gradient is made by an op, none lies in memory that it saved or was given.
        roots = memory_roots(ops)
        self.shows_gradients = not made.issuperset([roots.get(n, n) for n in self.grads if n])
        self._talks = any(op.has_effect for op in ops)  # its backward pass, with other processes
        self.core = self._core(recorder, ops)
        self._count = len(self.saved)
        self._take_graph(recorder, between, edges, [y._edge for y in outputs])

    def _take_graph(
        self,
        recorder: RecordingInterpreter,
        between: Sequence[FunctionNode],
        inputs: Sequence[Edge],
        outputs: Sequence[Edge | None],
    ) -> None:
        """Take note of the graph of the call, and add to `saved` what its nodes keep besides."""
        self.unrepeatable: str | None = None
        self._constants: dict[str, Any] = {}
        self._graph: list[NodeCopy] = []
        between = sorted(between, key=lambda node: node.sequence_nr)
        numbers = {node: len(inputs) + k for k, node in enumerate(between)}
        places = {edge: (i, 0) for i, edge in enumerate(inputs)}

        def place(edge: Edge) -> Edge:
            found = places.get(edge)
            return found or (numbers.get(edge[0]), edge[1])

        known = {*self.saved, *[name for op in self._again for name in op.outputs]}
        for node in between:
            if type(node) is not FunctionNode or any(map(holds_array, node.attrs.values())):
                self.unrepeatable = "has a Function of its own"
            if _has_hooks(node):
                self.unrepeatable = "sets hooks on gradients"
            kept = []
            for name, array, storage, version, edge in node.saved or ():
                variable = recorder.find(array)
                if variable is None or storage.version != version:
                    self.unrepeatable = "keeps what no op has made"
                    continue
                if edge is not None:
                    edge = (node, edge[1]) if edge[0] is None else edge
                    own = edge in outputs  # as one that was returned
                    edge = (-1, outputs.index(edge)) if own else place(edge)
                kept.append((name, variable, edge))
                value = recorder.block.var(variable).value
                if value is not None:
                    self._constants[variable] = value
                elif variable not in known:
                    known.add(variable)
                    self.saved.append(variable)
            edges = tuple(map(place, node.edges))
            self._graph.append(
                NodeCopy(
                    node.grad_function, edges, kept, node.attrs, node.shape, node.dtype, node.infos
                )
            )
        self._roots = [place(edge) for edge in outputs if edge is not None]

    def _stand_ins(self, recorder: RecordingInterpreter, outputs: Sequence[Tensor]) -> list[Tensor]:
        self.given: list[str] = []
        grads = []
        for y in outputs:
            with on_device(y.device) as xp:
                grad = make_tensor(xp.ones(y.shape, y.dtype))
            name = recorder.program.unique_name("out_grad")
            self.given.append(recorder.declare(grad._data, describe(name, grad)))
            grads.append(grad)
        return grads

    def _made_again(self, forward: Sequence[OpDesc], block: Block) -> list[OpDesc]:
        """Take from `saved` what follows by few operations from the rest; return ops that do so.

        Where loops are fused, these cost less than to store a result and to read it.
        """
        roots = memory_roots(forward)
        written = {roots[name] for op in forward for name in op.written}
        ops: list[OpDesc] = []
        for op in reversed(forward):
            if len(op.outputs) > 1 or op.outputs[0] not in self.saved or op.viewed is not None:
                continue
            scalar = scalar_of(op.type, op.attrs)
            rest = {*self.saved} - {*op.outputs}
            if (
                scalar is not None
                and not (scalar.reduces or scalar.calls(DEAR))
                and scalar.operations <= _FEW_OPERATIONS
                and is_pure(op, block)
                and all([n in rest or block.var(n).value is not None for n in op.reads])
                and written.isdisjoint([roots[n] for n in (*op.reads, *op.outputs)])
            ):
                self.saved.remove(op.outputs[0])
                ops.insert(0, attrs.evolve(op, role="backward", number=-1))
        return ops

    def _core(self, recorder: RecordingInterpreter, ops: list[OpDesc]) -> InterpreterCore:
        program = Program()
        block = program.global_block()
        block.ops = ops
        source = recorder.block
        names = {name for op in ops for name in (*op.reads, *op.outputs)}
        names.update(self.saved, self.given, [name for name in self.grads if name is not None])
        for name in names:
            desc = source.var(name)
            block.vars[name] = as_fed(desc) if name in self.saved else desc
        feeds = [*self.saved, *self.given]
        for name in self.given:
            block.vars[name] = as_fed(block.vars[name])
        fetches = dict.fromkeys(name for name in self.grads if name is not None)
        self.fetches = list(fetches)
        device = next(source.var(name).device for name in self.given)
        return InterpreterCore(program, feeds, self.fetches, device, mode=self._mode)

    def open(
        self, node: FunctionNode, saved: tuple[SavedTensor, ...], recorded: bool
    ) -> AutoGradCaptureState:
        """Return the `ctx` for `apply`; versions are checked where the way is known."""
        state = AutoGradCaptureState()
        state.__dict__.update(node=node, saved=saved, recorded=recorded)
        return state

    def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
        """Return one gradient or None for each input."""
        node, saved = state.node, state.saved
        if state.recorded or any([g is None for g in out_grads]) or self._is_pruned(node):
            return self._through_graph(node, saved, out_grads, state.recorded)
        for s in saved:
            if s[2].version != s[3]:
                raise stale_error(s, node)
        with on_device(node.device) as xp:
            given = [xp.ascontiguousarray(g).reshape(g.shape) for g in out_grads]
        found = self.core.run([*[s[1] for s in saved[: self._count]], *given], ())
        by_name = dict(zip(self.fetches, found, strict=True))
        return tuple([None if name is None else by_name[name] for name in self.grads])

    def _is_pruned(self, node: FunctionNode) -> bool:
        """Return whether ranks that run op by op would leave out some of the backward pass.

        Then this one does so, too, where other processes take part in it.
        """
        return self._talks and len(self._wanted(node)) < len(self.grads)

    def _wanted(self, node: FunctionNode) -> list[int]:
        """Return which of the inputs the running pass wants a gradient for."""
        info = None if local.task is None else local.task.exec_info
        edges = enumerate(node.edges)
        return [i for i, (sender, _) in edges if sender and (info is None or sender in info)]

    def _through_graph(
        self,
        node: FunctionNode,
        saved: tuple[SavedTensor, ...],
        out_grads: tuple[Any, ...],
        recorded: bool,
    ) -> tuple[Any, ...]:
        """Make the graph of the call again, around what the node has saved, and run that."""
        if self.unrepeatable is not None:
            raise GradientError(
                f"{self.node_name}: a compiled function that {self.unrepeatable} has no second "
                "derivative, nor one for some of its outputs alone; write it without that, or "
                "call it without flow.compile"
            )
        kept = {s[0]: s[1:4] for s in saved}
        kept.update({name: (y, NEVER_WRITTEN, 0) for name, y in self._constants.items()})
        for op in self._again:
            arrays = [None if name is None else make_tensor(kept[name][0]) for name in op.inputs]
            with no_grad():
                made = dispatch(op_expr(op.type), tuple(arrays), op.attrs)
            kept[op.outputs[0]] = made._data, NEVER_WRITTEN, 0
        nodes: list[FunctionNode | None] = [None] * len(node.edges)

        def edge(place: Edge) -> Edge | None:
            number, index = place
            if number is None or number < 0:
                return None if number is None else (node, index)
            if number == len(nodes):  # an output that its own node keeps: no way leads back
                return (None, index)
            sender = nodes[number]
            return node.edges[number] if sender is None else (sender, index)

        for copy in self._graph:
            edges = tuple([edge(place) or NO_EDGE for place in copy.edges])
            above = 1 + max([e[0].topological_nr for e in edges if e[0] is not None], default=0)
            held = [(n, *kept[v], None if at is None else edge(at)) for n, v, at in copy.saved]
            made = make_node(
                copy.grad_function, edges, above, tuple(held), copy.attrs, copy.shape, copy.dtype
            )
            made.infos = copy.infos
            nodes.append(made)
        given = [
            (edge(place) or NO_EDGE, g if recorded else make_tensor(g))
            for place, g in zip(self._roots, out_grads, strict=True)
            if g is not None
        ]
        # One place may be that of two inputs: the first of them gets all of its gradient.
        wanted = {node.edges[i]: i for i in reversed(self._wanted(node))}
        task = task_between(is_grad_enabled())
        root = task.set_roots([place for place, _ in given], [g for _, g in given])
        task.compute_dependencies_and_prune_node(root, list(wanted))
        task.run(root)
        found: list[Any] = [None] * len(self.grads)
        for i, g in zip(wanted.values(), task.captured_grads, strict=True):
            if g is not None:
                found[i] = task.gradients.wrap(g) if recorded else g
        return tuple(found)


def task_between(create_graph: bool) -> GraphTask:
    """Return a task between a node's outputs and its inputs.

    What lies behind the inputs, their hooks too, is gone through when a gradient arrives there.
    """
    task = GraphTask(retain_graph=True, create_graph=create_graph, accumulate=False)
    task.hooks_at_inputs, task.stops_at_inputs = False, True
    return task


def _has_hooks(node: FunctionNode) -> bool:
    """Return whether hooks run at a node or on its gradients."""
    return isinstance(node.grad_function, HookedGradFunction) or any(
        [meta is not None and bool(meta.hooks) for meta in node.metas or ()]
    )


def as_fed(desc: VarDesc) -> VarDesc:
    """Return the description of a variable as one that is given at each run."""
    return attrs.evolve(desc, persistable=False, need_check_feed=True, value=None)
