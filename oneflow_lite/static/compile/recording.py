"""Recording: one recorded call of a compiled function, and how it is replayed for another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakMethod

import attrs

from oneflow_lite.autograd.graph_task import GraphTask
from oneflow_lite.autograd.mode import local
from oneflow_lite.autograd.node import (
    Edge,
    FunctionNode,
)
from oneflow_lite.device import CPU, Device
from oneflow_lite.dtype import default_float
from oneflow_lite.errors import CaptureError, FlowError, FreedGraphError
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.static.compile.compiled_node import CompiledGradFunction, FreedGradFunction
from oneflow_lite.static.compile.finish import Finish, NodeOf
from oneflow_lite.static.compile.match import Match
from oneflow_lite.static.compile.memory import MemoryClasses
from oneflow_lite.static.compile.recorder import RecordingInterpreter, Source
from oneflow_lite.static.compile.recovery import Recovery
from oneflow_lite.static.compile.results import NotReplayable, Results, Store, Written
from oneflow_lite.static.compile.stages import stages_of
from oneflow_lite.static.compile.tensor_states import OutsideTensors, TensorState, hooks_of
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.addresses import overlap
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.straight_line import StraightLine
from oneflow_lite.tensor import Tensor

judge: Any = None  # of the tests: while it is there, it runs the plain function beside each call


class Recording:
    """A Program with all that a replay needs besides: which calls it is for, and what it leaves.

    It takes the observer after the call, what that returned, the places outside that it wrote, and
    the tensors of optimizers that took part. `NotReplayable` is raised where a replay could not do
    what the call did.
    """

    def __init__(
        self,
        name: str,
        observer: Any,
        value: Any,
        stores: Sequence[Store],
        late: Sequence[Tensor],
        mode: str | None,
    ) -> None:
        recorder: RecordingInterpreter = observer.recorder
        arguments: Match = observer.match
        states: list[TensorState] = list(observer.states.values())
        grads_matter = observer.reads_gradients or recorder.took_gradients
        has_handlers = observer.has_handlers
        if has_handlers:
            recorder.unsettle()
        calls, settled = recorder.calls, recorder.settled()
        self.mode = mode or "straight_line"
        self.trace = None if judge is None else judge.traced(recorder.block)
        self.arguments = arguments
        self.callbacks = [WeakMethod(c) for c in recorder.callbacks]  # owners are guarded
        self.modes = local.state.grad_enabled, local.state.inference, default_float()
        given = {id(tensor) for tensor in arguments.tensors}
        outside = [
            s for s in states if id(s.tensor) not in given or id(s.tensor) in observer.captured
        ]
        _settle(recorder, late)
        _copy_written_constants(recorder)
        if grads_matter:
            _check_gradients_apart(states)
        for state in states:
            change = state.change()
            if change is not None:
                raise NotReplayable(f"a tensor of shape {state.data.shape} from outside {change}")
        results = Results(observer, arguments.tensors, states, value, stores)
        used_grads = [s.tensor for s in recorder.externals.values() if s.place]
        before = {id(state.tensor): state for state in states}
        met = [before[id(tensor)] for tensor in arguments.tensors]
        # The arguments to whose gradients is added: the same tensors at every call.
        pinned = [state for state in met if any(state.tensor is tensor for tensor in used_grads)]
        _require(arguments, met, pinned, grads_matter, recorder.took_gradients)
        outside += pinned
        known = {id(state.tensor) for state in outside}
        outside += [TensorState.of(tensor) for tensor in late if id(tensor) not in known]
        self.outside = OutsideTensors(outside, used_grads, grads_matter, late)
        arrays = [state.data for state in met]
        self._take_feeds(recorder, arrays)
        self.written = _written(recorder, results, arrays, states, late)
        nodes = self._differentiate(name, recorder, results, states)
        self._plan(recorder, results, nodes)
        written = self.core.written
        self.externals = [recorder.arrays[name] for name in self.core.external_names]
        self.memory = MemoryClasses(
            self.feed_positions,
            arrays,
            self.outside.tensors,
            self.externals,
            [i for i, name in enumerate(self.feeds) if name in written],
            [i for i, name in enumerate(self.core.external_names) if name in written],
        )
        self.recovery: Recovery | None = None
        changes = (self.callbacks, results.effects, self.written, written)
        if has_handlers or recorder.switches or any(changes):
            self.recovery = Recovery(self.core, settled, calls, self.written, self.ending)
        self.outside.let_go()
        if all([source.is_there for source in self.sources]):
            self._bind()

    # What goes in

    def _take_feeds(self, recorder: RecordingInterpreter, arrays: Sequence[Any]) -> None:
        feeds: dict[str, int] = {}
        for position, array in enumerate(arrays):
            name = recorder.find(array)
            assert name is not None
            feeds.setdefault(name, position)
        self.feeds = list(feeds)
        self.feed_positions = list(feeds.values())

    def _places(
        self, recorder: RecordingInterpreter, results: Results, states: Sequence[TensorState]
    ) -> dict[str, tuple[Edge, str]]:
        """Find the variables with a place in the graph, and the expressions of the tensors."""
        used = {name for op in recorder.block.ops for name in op.reads}
        places: dict[str, tuple[Edge, str]] = {}
        for state in states:
            found = recorder.find(state.tensor._data)
            if found is None or found not in used or state.edge is None:
                continue
            if found in places:
                if places[found][0] is not state.edge:
                    raise NotReplayable("two tensors around one array require a gradient each")
                continue
            places[found] = state.edge, results.place(state.tensor)
        return places

    def _differentiate(
        self,
        name: str,
        recorder: RecordingInterpreter,
        results: Results,
        states: Sequence[TensorState],
    ) -> list[NodeOf]:
        """Record the backward pass of the tensors that were returned."""
        places = self._places(recorder, results, states)
        made = results.differentiable
        if not made:
            return []
        if any(entry.place == "leaf" for entry in results.entries):
            raise NotReplayable("it returned a new leaf beside what may have come from it")
        if not places:
            raise NotReplayable("it returned what requires a gradient because of an inner leaf")
        edges = [edge for edge, _ in places.values()]
        owners = [owner for _, owner in places.values()]
        freed = [y for y in made if _is_freed(y, edges)]
        alive = [y for y in made if not any(y is z for z in freed)]
        keeper = self._keepers(recorder, results)
        visited: dict[FunctionNode, bool] = {}
        outside = {id(s.tensor.autograd_meta) for s in states if s.tensor.is_leaf}
        nodes = []
        for outputs, before in stages_of(results, alive, edges, outside):
            sources = [results.entries[i].tensor for i in before]
            given = {recorder.name_of(y): f"y{i}" for i, y in zip(before, sources, strict=True)}
            inputs = dict(places)
            for (found, owner), y in zip(given.items(), sources, strict=False):
                assert y._edge is not None
                inputs[found] = y._edge, owner
            if len(inputs) < len(places) + len(before):
                raise NotReplayable("it returned two tensors around one piece of memory")
            try:
                function = CompiledGradFunction(
                    name,
                    recorder,
                    [results.entries[i].tensor for i in outputs],
                    {found: edge for found, (edge, _) in inputs.items()},
                    given,
                    visited,
                    self.mode,
                )
            except FlowError as error:
                kind = type(error).__name__
                raise NotReplayable(f"its backward pass raised {kind}: {error}") from error
            saved = [
                (n, (given[n], True) if n in given else keeper(n))
                for n in (*function.saved, *function.again)
            ]
            used = [[*inputs.values()][i][1] for i in function.used]
            device = results.entries[outputs[0]].tensor.device
            nodes.append(NodeOf(function, outputs, used, saved, device))
        if recorder.stopped is not None:
            raise NotReplayable(recorder.stopped)
        if recorder.unknown:
            raise NotReplayable("its backward pass uses memory that the recording has not seen")
        released = FreedGradFunction(name)
        return nodes + [
            NodeOf(released, (results.position(y),), owners, None, y.device) for y in freed
        ]

    def _keepers(
        self, recorder: RecordingInterpreter, results: Results
    ) -> Callable[[str], tuple[str | None, bool]]:
        """Return a function that finds who else holds the memory of a variable.

        It returns the tensor's expression, None when nobody can write there, and whether
        the tensor is the variable itself.
        """
        roots = recorder.roots
        holders: dict[str, str] = {}
        for position, entry in enumerate(results.entries):
            if entry.kind == "made" and (name := entry.fetch) is not None:
                holders.setdefault(roots.get(name, name), f"y{position}")
        feeds = zip(self.feeds, self.feed_positions, strict=True)
        holders.update({name: f"x[{position}]" for name, position in feeds})

        def keeper(name: str) -> tuple[str | None, bool]:
            root = roots.get(name, name)
            if root != name and not overlap(recorder.arrays[name], recorder.arrays[root]):
                return None, False  # a reshape that copied
            source = recorder.externals.get(root)
            if source is not None:
                return results.place(source.tensor) + source.place, root == name
            return holders.get(root), root == name and root in self.feeds

        return keeper

    def _plan(
        self, recorder: RecordingInterpreter, results: Results, nodes: Sequence[NodeOf]
    ) -> None:
        block = recorder.block
        saved = [name for node in nodes for name, (_, is_it) in node.saved or () if not is_it]
        extra = [name for name in saved if block.var(name).is_temporary]
        fetches = [*dict.fromkeys([*results.fetches, *extra])]
        cards = {desc.device for desc in block.vars.values()} - {CPU}
        if len(cards) > 1:
            raise NotReplayable("it works on more than one CUDA device")
        device: Device = next(iter(cards), CPU)
        try:
            self.core = InterpreterCore(
                recorder.program, self.feeds, fetches, device, mode=self.mode
            )
        except CaptureError as error:
            raise NotReplayable(str(error)) from error
        self.sources = [recorder.externals[name] for name in self.core.external_names]
        runner = self.core.runner
        self._straight = runner if isinstance(runner, StraightLine) else None
        arrays = {name: f"found[{i}]" for i, name in enumerate(fetches)}
        self.ending = Finish(results, self.written, nodes, arrays)

    # Replaying

    hits = 0  # so far, for who keeps it
    number = 0  # which capture of its function it is
    why_recorded = ""  # in what its call differed from the one before, in words

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...] | None:
        """Return the tensors among the arguments; None when this recording is for other calls."""
        tensors = self.arguments.match(args, kwargs)
        state = local.state
        if tensors is None or self.modes != (state.grad_enabled, state.inference, default_float()):
            return None
        if EVERYWHERE:  # hooks on all modules, which a recording does not know
            return None
        if not self.outside.check():
            if not self.outside.fit():
                return None
            self.outside.renew()
            self._bind()
        return tensors if self.memory.check(tensors) else None

    def why(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Say in words why this recording is not for a call."""
        found = self.arguments.why(args, kwargs)
        if found is None and not self.outside.fit():
            found = "what differs: the kind, gradients or hooks of a tensor from outside"
        return found or "what differs: the modes of autograd, or which tensors share memory"

    def _bind(self) -> None:
        """Take the arrays that captured tensors have now."""
        self.externals = [source.array for source in self.sources]
        self.memory.renew(self.externals)
        self.ending.bind()
        if self._straight is not None:
            self._straight.bind(self.externals)

    def replay(
        self,
        tensors: Sequence[Tensor],
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run the Program for these tensors; return what `function(*args, **kwargs)` returns."""
        found: list[Any] = []
        kept = None
        try:
            for method in self.callbacks:
                if (callback := method()) is not None:
                    callback()
            feeds = [tensors[i]._data for i in self.feed_positions]
            if self.recovery is not None and self.recovery.keeps:
                kept = self.recovery.keep(feeds, self.externals)
            if self._straight is not None:
                self._straight.fill_bound(found, feeds)
            else:
                self.core.runner.fill(found, feeds, self.externals)
            return self.ending.run(tensors, found)
        except BaseException as error:
            if self.recovery is None:
                raise
            stopped = error
        try:
            again = partial(function, *args, **kwargs)
            return self.recovery.recover(stopped, tensors, found, kept, again)
        finally:
            del stopped


def _require(
    match: Any,
    met: Sequence[TensorState],
    pinned: Sequence[TensorState],
    grads_matter: bool,
    hooks_matter: bool,
) -> None:
    """Add guards of what autograd keeps of the arguments."""
    constant = match.constant
    for name, state in zip(match.feed_names, met, strict=True):
        if state in pinned:
            match.require(f"{name} is {constant(state.tensor)}", "an argument with a gradient")
        if grads_matter:
            there = "" if state.grad is None else "not "
            match.require(f"{name}.grad is {there}None", "gradients of arguments")
        if hooks_matter and state.edge is not None:
            hooks = f"{constant(hooks_of)}({name}) == {constant(state.hooks)}"
            match.require(hooks, "hooks of arguments")


def _is_freed(y: Tensor, edges: Sequence[Edge]) -> bool:
    """Return whether a backward pass inside the call released the graph of an output."""
    task = GraphTask(retain_graph=True, create_graph=False, accumulate=False)
    task.stops_at_inputs = True
    assert y._edge is not None
    task.compute_dependencies_and_prune_node(y._edge[0], edges)
    try:
        task.order([])
    except FreedGraphError:
        return True
    return False


def _settle(recorder: RecordingInterpreter, late: Sequence[Tensor]) -> None:
    """Recognise the tensors that optimizers made while the call ran."""
    known = {id(tensor._data): tensor for tensor in late}
    for name, tensor in list(recorder.unknown.items()):
        if id(tensor._data) not in known:
            raise NotReplayable(
                f"a tensor of shape {tensor.shape} was used that came from where the recording "
                "cannot see"
            )
        recorder.block.var(name).persistable = True
        recorder.externals[name] = Source(known[id(tensor._data)], "")
        del recorder.unknown[name]


def _copy_written_constants(recorder: RecordingInterpreter) -> None:
    """Have constants that are written copied first, so that every replay begins with them."""
    block, roots = recorder.block, recorder.roots
    written = dict.fromkeys(roots[name] for op in block.ops for name in op.written)
    for name in written:
        desc = block.var(name)
        if desc.value is not None:
            kept = recorder.program.unique_name("constant")
            block.create_var(attrs.evolve(desc, name=kept))
            desc.value = None
            block.ops.insert(0, OpDesc("clone", (kept,), (name,)))


def _check_gradients_apart(states: Sequence[TensorState]) -> None:
    """Raise where a gradient is also something else; the Program could not tell which it is."""
    arrays = [id(state.data) for state in states]
    arrays += [id(state.grad._data) for state in states if state.grad is not None]
    repeated = {array for array, count in Counter(arrays).items() if count > 1}
    for state in states:
        if state.grad is not None and id(state.grad._data) in repeated:
            raise NotReplayable("a gradient is another tensor within reach as well")


def _written(
    recorder: RecordingInterpreter,
    results: Results,
    arrays: Sequence[Any],
    states: Sequence[TensorState],
    late: Sequence[Tensor],
) -> list[Written]:
    """Find how often, and by which ops, the call wrote to each storage outside."""
    numbers: dict[int, list[int]] = {}
    tensors: dict[str | None, Tensor | None]
    tensors = dict(zip(map(recorder.find, arrays), results.arguments, strict=True))
    for name, source in recorder.externals.items():
        tensors[name] = source.tensor.grad if source.place else source.tensor
    for op in recorder.block.ops:
        for name in op.written:
            tensor = tensors.get(recorder.roots[name])
            if tensor is not None:
                numbers.setdefault(id(tensor.memory), []).append(op.number)
    seen = [(s.tensor, s.tensor, "", s.version) for s in states if not s.moved]
    known = {id(state.tensor) for state in states}
    seen += [(tensor, tensor, "", 0) for tensor in late if id(tensor) not in known]
    seen += [
        (s.tensor, s.grad, ".grad", s.grad_version)
        for s in states
        if s.grad is not None and s.tensor.grad is s.grad
    ]
    found: dict[int, Written] = {}
    for owner, tensor, place, before in seen:
        count = tensor._version - before
        if count and id(tensor.memory) not in found:
            ops = numbers.get(id(tensor.memory), [])
            # What was counted otherwise is taken to come first: too much is noticed.
            early = [-1] * (count - len(ops))
            found[id(tensor.memory)] = Written(results.place(owner) + place, [*early, *ops])
    return list(found.values())
