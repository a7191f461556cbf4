"""The node that a compiled function is in the eager graph; one for each of its stages.

While a call is recorded, its backward pass is recorded as well, with gradients that stand for
those to come; what it reads of the forward pass becomes results of the forward Program, kept by
the node. A backward pass that is itself recorded takes the other way: it runs the recorded ops
once more, through dispatch, and differentiates that. The user's function is not run again: it would
draw other numbers for dropout, write running statistics twice, and cannot be asked for the
derivative of one of its outputs while its arguments may have been written since.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from oneflow_lite.autograd.engine import grad
from oneflow_lite.autograd.gradient_rules import (
    AutoGradCaptureState,
    HookedGradFunction,
    OpExprGradFunction,
)
from oneflow_lite.autograd.graph_task import GraphTask
from oneflow_lite.autograd.mode import (
    enable_grad,
    is_grad_enabled,
    local,
    no_grad,
    set_grad_enabled,
)
from oneflow_lite.autograd.node import NO_EDGE, Edge, FunctionNode
from oneflow_lite.autograd.saved_tensor import SavedTensor, stale_error, unpack
from oneflow_lite.device import on_device
from oneflow_lite.errors import GradientError
from oneflow_lite.interpreter import dispatch, rebase_history, record
from oneflow_lite.op_expr import op_expr
from oneflow_lite.scalar_expression import scalar_of
from oneflow_lite.static.compile.recorder import RecordingInterpreter, describe
from oneflow_lite.static.compile.results import NotReplayable
from oneflow_lite.static.fusion.group import DEAR
from oneflow_lite.static.ir.aliases import memory_roots
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.passes.effects import is_pure
from oneflow_lite.static.runtime.takeover import may_fuse
from oneflow_lite.tensor import Tensor, make_tensor

_FEW_OPERATIONS = 3  # of a result that is rather made again than stored and read
_CLONE = op_expr("clone")
_RESHAPE = op_expr("reshape")


class FreedGradFunction(OpExprGradFunction):
    """The gradient function of a node whose graph a backward pass in the call has released."""

    def __init__(self, name: str) -> None:
        self.node_name = f"{name}_backward"


class CompiledGradFunction(FreedGradFunction):
    """Takes the gradients of a compiled function's inputs, by the recorded backward pass.

    It is made from outputs that have a place in the graph, and the places of `inputs`, some of them
    made by the forward pass (`before`); the recorder gets the ops of the backward pass appended.
    `visited` says what the backward passes of other outputs went through, and whether users' code
    ran there: where it would get a gradient in parts, `NotReplayable` is raised.

    Attributes
    ----------
    shows_gradients : bool
        Whether what it returns may be memory that others see.
    used : sequence of int
        Whether each input can get a gradient; none is taken of the others.
    saved : list of str
        The variables of the forward pass that the backward pass reads.
    again : list of str
        The variables from which the forward pass can be run once more: the arguments and captured
        tensors that it reads, and what its random ops drew. A node saves these after the others.
    """

    materialize = False

    def __init__(
        self,
        name: str,
        recorder: RecordingInterpreter,
        outputs: Sequence[Tensor],
        inputs: Mapping[str, Edge],
        before: Collection[str],
        visited: dict[FunctionNode, bool],
        mode: str,
    ) -> None:
        super().__init__(name)
        self._mode = mode
        block = recorder.block
        self.forward_ops = list(block.ops)
        recorder.note_write()
        self.needs = [recorder.needs.get(id(op), ()) for op in self.forward_ops]
        self.took_history = [id(op) in recorder.took_history for op in self.forward_ops]
        self.outputs = [recorder.name_of(y) for y in outputs]
        for name, y in zip(self.outputs, outputs, strict=True):
            recorder.note_place(name, y._edge)
        given = self._stand_ins(recorder, outputs)
        task = GraphTask(retain_graph=True, create_graph=False, accumulate=False)
        # What lies behind the inputs, their hooks too, is gone through when a gradient arrives.
        task.hooks_at_inputs, task.stops_at_inputs = False, True
        root = task.set_roots([y._edge for y in outputs if y._edge is not None], given)
        task.compute_dependencies_and_prune_node(root, list(inputs.values()))
        between = [node for node, info in (task.exec_info or {}).items() if not info.captures]
        if any(map(_has_hooks, between)):
            if len(outputs) > 1:  # a gradient of some of them would have to run the hooks again
                raise NotReplayable("it set hooks in the graph of several results")
            recorder.unrepeatable = "sets hooks on gradients"
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
        self.inputs = [list(inputs)[i] for i in self.used]
        self.before = {name for name in self.inputs if name in before}
        self.grads = [grads[i] for i in self.used]
        ops = block.ops[len(self.forward_ops) :]
        del block.ops[len(self.forward_ops) :]
        made = {name for op in ops for name in op.new_outputs}
        read = dict.fromkeys(name for op in ops for name in op.reads)
        read.update(dict.fromkeys(name for name in self.grads if name is not None))
        self.saved = [
            name
            for name in read
            if name not in made and name not in self.given and block.var(name).value is None
        ]
        if mode == "straight_line" and may_fuse(given[0].device):
            ops = [*self._made_again(block), *ops]
            made = {name for op in ops for name in op.new_outputs}
        # Where every gradient is made by an op, none lies in memory that it saved or was given.
        roots = memory_roots(ops)
        self.shows_gradients = not made.issuperset([roots.get(n, n) for n in self.grads if n])
        self._talks = any(op.has_effect for op in ops)  # its backward pass, with other processes
        self.again = self._needed_again(recorder, block)
        self.core = self._core(recorder, ops)

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

    def _made_again(self, block: Block) -> list[OpDesc]:
        """Take from `saved` what follows by few operations from the rest; return ops that do so.

        Where loops are fused, these cost less than to store a result and to read it.
        """
        roots = memory_roots(self.forward_ops)
        written = {roots[name] for op in self.forward_ops for name in op.written}
        ops: list[OpDesc] = []
        for op in reversed(self.forward_ops):
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

    def _needed_again(self, recorder: RecordingInterpreter, block: Block) -> list[str]:
        """Find what the forward pass reads of others, and whether it can be run again at all."""
        roots = memory_roots(self.forward_ops)
        found: dict[str, None] = {}
        made: set[str] = set()
        self.unrepeatable = recorder.unrepeatable
        self.constants: dict[str, Any] = {}
        self.effects = [
            op
            for op in self.forward_ops
            if any(not block.var(roots[name]).is_temporary for name in op.written)
        ]
        written = {roots[name] for op in self.effects for name in op.written}
        inside = {roots[name] for op in self.forward_ops for name in op.written} - written
        self.rewritten = {name for name, root in roots.items() if root in inside}
        for op in self.forward_ops:
            if op in self.effects:
                continue
            for name in op.reads:
                if roots[name] in written:
                    self.unrepeatable = "reads what it writes outside"
                if block.var(name).value is not None:
                    self.constants[name] = block.var(name).value
                elif name not in made:
                    found[name] = None
            made.update(op.new_outputs)
            if op.schema.random and op.written:
                self.unrepeatable = "draws random numbers in place"
            if op.draws and op.blocks:
                self.unrepeatable = "draws random numbers inside control flow"
            if op.has_effect:  # others took part once, and do not a second time
                found.update(dict.fromkeys(op.outputs))
                if op.written or op.blocks or not self.rewritten.isdisjoint(op.outputs):
                    self.unrepeatable = "talks to other processes in place, or in control flow"
            if op.draws:
                found.update(dict.fromkeys(op.outputs))
                if any(recorder.needs.get(id(op), ())):
                    self.unrepeatable = "draws random numbers from what requires a gradient"
                if not self.rewritten.isdisjoint(op.outputs):
                    self.unrepeatable = "writes over random numbers"
        if any(name in roots and roots[name] in written | inside for name in self.before):
            self.unrepeatable = "writes over what it returns"
        found.update(dict.fromkeys(self.inputs))
        return list(found)

    def _run_again(self, variables: dict[str, Tensor]) -> None:
        """Dispatch the recorded ops, but for the writes to what is outside and random draws.

        An op in which other processes took part is recorded with the results that it had.
        """
        for name, value in self.constants.items():
            variables[name] = make_tensor(value)
        steps = zip(self.forward_ops, self.needs, self.took_history, strict=True)
        for op, needs, took_history in steps:
            if op in self.effects or (op.draws and set(op.outputs) <= set(variables)):
                continue
            inputs = [None if name is None else variables[name] for name in op.inputs]
            written = op.schema.written
            for i, x in enumerate(inputs):
                if x is None or i in written:
                    continue
                if op.inputs[i] in self.rewritten and op.inputs[i] != op.viewed:
                    inputs[i] = x = dispatch(_CLONE, (x,))  # its gradient needs the old content
                if not (needs and needs[i]) and x._edge is not None:
                    inputs[i] = x.detach()  # what was detached is detached again
            if op.has_effect:
                kept = tuple([variables[name].detach() for name in op.outputs])
                edges = tuple([NO_EDGE if x is None else x._edge or NO_EDGE for x in inputs])
                if any(needs):
                    record(op_expr(op.type), tuple(inputs), kept, op.attrs, edges)
                variables.update(zip(op.outputs, kept, strict=True))
                continue
            edge = inputs[1]._edge if took_history and inputs[1] is not None else None
            # A view of a constant may be written, and then gives its base a history.
            of_constant = op.viewed is not None and variables[op.viewed]._edge is None
            with set_grad_enabled((any(needs) or of_constant) and edge is None):
                result = dispatch(op_expr(op.type), tuple(inputs), op.attrs)
            if edge is not None:  # as in-place ops do: the old content gets no gradient
                rebase_history(result, edge)
            results = result if type(result) is tuple else (result,)
            made = zip(op.outputs, results, strict=True)
            variables.update((name, y) for name, y in made if name not in self.before)

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
        here = saved[: len(self.saved)]
        if state.recorded or any([g is None for g in out_grads]) or self._is_pruned(node):
            rest = saved[len(self.saved) :]
            return self._through_dispatch(node, rest, out_grads, state.recorded)
        for s in here:
            if s[2].version != s[3]:
                raise stale_error(s, node)
        with on_device(node.device) as xp:
            given = [xp.ascontiguousarray(g).reshape(g.shape) for g in out_grads]
        found = self.core.run([*[s[1] for s in here], *given], ())
        by_name = dict(zip(self.fetches, found, strict=True))
        return tuple([None if name is None else by_name[name] for name in self.grads])

    def _is_pruned(self, node: FunctionNode) -> bool:
        """Return whether ranks that run op by op would leave out some of the backward pass.

        Then this one does so, too, where other processes take part in it.
        """
        return self._talks and len(self._wanted(node)) < len(self.inputs)

    def _wanted(self, node: FunctionNode) -> list[int]:
        """Return which of the inputs the running pass wants a gradient for."""
        info = None if local.task is None else local.task.exec_info
        edges = enumerate(node.edges)
        return [i for i, (sender, _) in edges if sender and (info is None or sender in info)]

    def _through_dispatch(
        self,
        node: FunctionNode,
        saved: tuple[SavedTensor, ...],
        out_grads: tuple[Any, ...],
        recorded: bool,
    ) -> tuple[Any, ...]:
        """Run the recorded ops once more and take the gradient of that."""
        if self.unrepeatable is not None:
            raise GradientError(
                f"{self.node_name}: a compiled function that {self.unrepeatable} has no second "
                "derivative, nor one for some of its outputs alone; write it without that, or "
                "call it without flow.compile"
            )
        create_graph = is_grad_enabled()
        variables: dict[str, Tensor] = {}
        with enable_grad():
            for name, s in zip(self.again, saved, strict=True):
                if s[2].version != s[3]:
                    raise stale_error(s, node)
                # A place of its own in the graph: hooks on the input run when the gradient is
                # there, and not here as well.
                x = unpack(s, node)
                variables[name] = dispatch(_RESHAPE, (x,), {"shape": x.shape})
            self._run_again(variables)
        for i, name in enumerate(self.outputs):
            _save_with_place(variables[name], (node, i))
        roots, grads = [], []
        for name, g in zip(self.outputs, out_grads, strict=True):
            if g is not None:
                roots.append(variables[name])
                grads.append(g if recorded else make_tensor(g))
        positions = self._wanted(node) if self._talks else range(len(self.inputs))
        wanted = [variables[self.inputs[i]] for i in positions]
        taken = grad(roots, wanted, grads, create_graph=create_graph, allow_unused=True)
        found: list[Tensor | None] = [None] * len(self.inputs)
        for i, g in zip(positions, taken, strict=True):
            found[i] = g
        if recorded:
            return tuple(found)
        return tuple([None if g is None else g._data for g in found])


def _has_hooks(node: FunctionNode) -> bool:
    """Return whether hooks run at a node or on its gradients."""
    return isinstance(node.grad_function, HookedGradFunction) or any(
        [meta is not None and bool(meta.hooks) for meta in node.metas or ()]
    )


def _save_with_place(y: Tensor, edge: Edge) -> None:
    """Let the node of an output, when it saved that, lead to the output that was returned."""
    if y._edge is None or not y._edge[0].saved:
        return
    node, index = y._edge
    node.saved = tuple([(*s[:4], edge) if s[4] == (None, index) else s for s in node.saved])


def as_fed(desc: VarDesc) -> VarDesc:
    """Return the description of a variable as one that is given at each run."""
    return attrs.evolve(desc, persistable=False, need_check_feed=True, value=None)
