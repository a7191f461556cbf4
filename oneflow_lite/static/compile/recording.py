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
    NO_EDGE,
    Edge,
    FunctionNode,
    make_node,
    tensor_info,
)
from oneflow_lite.device import CPU, Device
from oneflow_lite.dtype import default_float
from oneflow_lite.errors import CaptureError, FlowError, FreedGraphError
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.static.compile.compiled_node import CompiledGradFunction, Differentiated
from oneflow_lite.static.compile.memory import MemoryClasses
from oneflow_lite.static.compile.recorder import RecordingInterpreter, Source
from oneflow_lite.static.compile.recovery import Recovery, Written, written_tensor
from oneflow_lite.static.compile.results import Finish, Join, NotReplayable, Results, Store
from oneflow_lite.static.compile.stages import Stage, stages_of
from oneflow_lite.static.compile.tensor_states import OutsideTensors, TensorState, hooks_of
from oneflow_lite.static.ir.aliases import memory_roots
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.addresses import overlap
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.straight_line import StraightLine
from oneflow_lite.storage import Storage
from oneflow_lite.tensor import Tensor

_NEVER_WRITTEN = Storage()  # of what only a node holds
judge: Any = None  # of the tests: while it is there, it runs the plain function beside each call


class Recording:
    """A Program with all that a replay needs besides.

    Parameters
    ----------
    name : str
        Of the function.
    observer : Observer
        After the call.
    arguments : object
        With `tensors`, `match` and `why`: which calls it is for.
    value : object
        What the call returned.
    stores : sequence of Store
        What it left in places outside.
    late : sequence of Tensor
        The state and options of optimizers that took part.
    mode : str, optional
        Of the InterpreterCore.

    Raises
    ------
    NotReplayable
        When a replay could not do what the call did.
    """

    def __init__(
        self,
        name: str,
        observer: Any,
        arguments: Any,
        value: Any,
        stores: Sequence[Store],
        late: Sequence[Tensor],
        mode: str | None,
    ) -> None:
        recorder: RecordingInterpreter = observer.recorder
        states: list[TensorState] = list(observer.states.values())
        grads_matter = observer.reads_gradients or recorder.took_gradients
        has_handlers = observer.has_handlers()
        if has_handlers:
            recorder.unsettle()
        calls, settled = recorder.calls, recorder.settled()
        self.mode = mode or "straight_line"
        self.trace = None if judge is None else judge.traced(recorder.block)
        self.arguments = arguments
        self.callbacks = [WeakMethod(c) for c in recorder.callbacks]  # owners are guarded
        self.default_float = default_float()
        self.grad_enabled = local.state.grad_enabled
        self.inference = local.state.inference
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
        used_grads = [s.tensor for s in recorder.externals.values() if s.kind == "grad"]
        # An argument to whose gradient is added has to be the same tensor at every call.
        self.pinned = [
            (i, t) for i, t in enumerate(arguments.tensors) if any(t is u for u in used_grads)
        ]
        pinned = {id(tensor) for _, tensor in self.pinned}
        outside += [state for state in states if id(state.tensor) in pinned]
        self.outside = OutsideTensors(
            [*outside, *_states_of(late, outside)], used_grads, grads_matter
        )
        before = {id(state.tensor): state for state in states}
        met = [(i, before[id(t)]) for i, t in enumerate(arguments.tensors)]
        self.grads_given = [(i, state.grad is None) for i, state in met if grads_matter]
        self.hooks_given = [
            (i, s.hooks) for i, s in met if recorder.took_gradients and s.edge is not None
        ]
        self.versions = _versions(arguments.tensors, states, late)
        arrays = [state.data for _, state in met]
        self._take_inputs(recorder, arguments, arrays, states)
        self._differentiate(name, recorder, results, states)
        self._plan(recorder, results)
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
        changes = (self.callbacks, results.effects, self.versions, written)
        if has_handlers or recorder.switches or any(changes):
            writes = _writes(recorder, arguments.tensors, arrays, self.versions)
            self.recovery = Recovery(self.core, settled, calls, writes, self._ending)
        if all([source.is_there for source in self.sources]):
            self._bind()

    # What goes in

    def _take_inputs(
        self,
        recorder: RecordingInterpreter,
        arguments: Any,
        arrays: Sequence[Any],
        states: Sequence[TensorState],
    ) -> None:
        """Find the feeds, the captured tensors, and which of them have a place in the graph."""
        feeds: dict[str, int] = {}
        for position, array in enumerate(arrays):
            name = recorder.find(array)
            assert name is not None
            feeds.setdefault(name, position)
        self.feeds = list(feeds)
        self.feed_positions = list(feeds.values())
        self.external_sources = recorder.externals
        used = {name for op in recorder.block.ops for name in op.reads}
        edges: dict[str, Edge] = {}
        self.places: list[tuple[int, Tensor | None]] = []
        for state in states:
            found = recorder.find(state.tensor._data)
            if found is None or found not in used or state.edge is None:
                continue
            if found in edges:
                if edges[found] is not state.edge:
                    raise NotReplayable("two tensors around one array require a gradient each")
                continue
            edges[found] = state.edge
            position = next((i for i, t in enumerate(arguments.tensors) if t is state.tensor), -1)
            self.places.append((position, None if position >= 0 else state.tensor))
        self.differentiable = edges

    def _differentiate(
        self,
        name: str,
        recorder: RecordingInterpreter,
        results: Results,
        states: Sequence[TensorState],
    ) -> None:
        """Record the backward pass of the tensors that were returned."""
        made = results.differentiable
        self.parts: list[_Part] = []
        self.freed: list[int] = []
        self.freed_function = CompiledGradFunction(name, None)
        if not made:
            return
        if any(entry.place == "leaf" for entry in results.entries):
            raise NotReplayable("it returned a new leaf beside what may have come from it")
        edges = list(self.differentiable.values())
        alive = [y for y in made if not self._is_freed(y, edges)]
        released = [y for y in made if not any(y is z for z in alive)]
        self.freed = [results.position(y) for y in released]
        if not edges:
            raise NotReplayable("it returned what requires a gradient because of an inner leaf")
        keeper = self._keepers(recorder, results)
        visited: dict[FunctionNode, bool] = {}
        outside = {id(s.tensor.autograd_meta) for s in states if s.tensor.is_leaf}
        for stage in stages_of(results, alive, edges, outside):
            outputs = [results.entries[i].tensor for i in stage.outputs]
            before = [results.entries[i].tensor for i in stage.before]
            names = [recorder.name_of(y) for y in before]
            inputs = [*self.differentiable, *names]
            if len(set(inputs)) < len(inputs):
                raise NotReplayable("it returned two tensors around one piece of memory")
            places = [*edges, *[y._edge for y in before if y._edge is not None]]
            try:
                found = Differentiated(recorder, outputs, inputs, places, names, visited, self.mode)
            except FlowError as error:
                kind = type(error).__name__
                raise NotReplayable(f"its backward pass raised {kind}: {error}") from error
            given = dict(zip(names, stage.before, strict=True))
            saved = [
                (name, given.get(name, keeper(name)), name in given)
                for name in (*found.saved, *found.again)
            ]
            function = CompiledGradFunction(name, found)
            self.parts.append(_Part(stage, function, found.used, saved))
        if recorder.stopped is not None:
            raise NotReplayable(recorder.stopped)
        if recorder.unknown:
            raise NotReplayable("its backward pass uses memory that the recording has not seen")

    def _keepers(
        self, recorder: RecordingInterpreter, results: Results
    ) -> Callable[[str], str | int | None]:
        """Return a function that finds who else holds the memory of a variable.

        It answers with the name of a feed or captured tensor, with the position of a result, or
        with None when nobody can write there.
        """
        roots = memory_roots(recorder.block.ops)
        made: dict[str, int] = {}
        for position, entry in enumerate(results.entries):
            if entry.kind == "made" and (name := entry.fetch) is not None:
                made.setdefault(roots.get(name, name), position)

        def keeper(name: str) -> str | int | None:
            root = roots.get(name, name)
            if root != name and not overlap(recorder.arrays[name], recorder.arrays[root]):
                return None  # a reshape that copied
            return root if root in self.feeds or root in recorder.externals else made.get(root)

        return keeper

    def _is_freed(self, y: Tensor, edges: Sequence[Edge]) -> bool:
        """Return whether a backward pass inside the call released the graph of an output."""
        task = GraphTask(retain_graph=True, create_graph=False, accumulate=False)
        task.stops_at_inputs = True
        if not edges:
            return False
        assert y._edge is not None
        task.compute_dependencies_and_prune_node(y._edge[0], edges)
        try:
            task.order([])
        except FreedGraphError:
            return True
        return False

    def _plan(self, recorder: RecordingInterpreter, results: Results) -> None:
        block = recorder.block
        saved = [name for part in self.parts for name, _, before in part.saved if not before]
        extra = dict.fromkeys(name for name in saved if block.var(name).is_temporary)
        fetches = [*dict.fromkeys([*results.fetches, *extra])]
        self.fetch_index = {name: i for i, name in enumerate(fetches)}
        devices = list(dict.fromkeys(desc.device for desc in block.vars.values()))
        cards = [device for device in devices if device != CPU]
        if len(cards) > 1:
            raise NotReplayable("it works on more than one CUDA device")
        device = cards[0] if cards else CPU
        self.device: Device = device
        try:
            self.core = InterpreterCore(
                recorder.program, self.feeds, fetches, device, mode=self.mode
            )
        except CaptureError as error:
            raise NotReplayable(str(error)) from error
        self.sources: list[Source] = [
            self.external_sources[name] for name in self.core.external_names
        ]
        runner = self.core.runner
        self._straight = runner if isinstance(runner, StraightLine) else None
        joins: list[tuple[Sequence[int], Sequence[int], Join]] = [
            (part.stage.outputs, part.others, partial(self._join, part)) for part in self.parts
        ]
        if self.freed:
            joins.append((self.freed, (), self._join_freed))
        self._ending = Finish(results, self.versions, joins)
        self.finish = self._ending.run

    # Replaying

    hits = 0  # so far, for who keeps it
    _fixed_edges: tuple[tuple[Edge, ...], int] | None = None  # where no argument is among them

    def require(self, match: Any) -> None:
        """Add guards of what autograd keeps of the arguments."""
        names, constant = match.feed_names, match.constant
        for i, tensor in self.pinned:
            match.require(f"{names[i]} is {constant(tensor)}", "an argument with a gradient")
        for i, missing in self.grads_given:
            match.require(
                f"{names[i]}.grad is {'' if missing else 'not '}None", "gradients of arguments"
            )
        for i, hooks in self.hooks_given:
            match.require(
                f"{constant(hooks_of)}({names[i]}) == {constant(hooks)}", "hooks of arguments"
            )

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...] | None:
        """Return the tensors among the arguments; None when this recording is for other calls."""
        tensors = self.arguments.match(args, kwargs)
        if (
            tensors is None
            or local.state.grad_enabled is not self.grad_enabled
            or local.state.inference is not self.inference
            or default_float() is not self.default_float
            or EVERYWHERE  # hooks on all modules, which a recording does not know
        ):
            return None
        if not self.outside.check():
            if self.outside.why() is not None:
                return None
            self.outside.renew()
            self._bind()
        return tensors if self.memory.check(tensors) else None

    def _bind(self) -> None:
        """Take the arrays that captured tensors have now."""
        self.externals = [source.array for source in self.sources]
        self.memory.renew(self.externals)
        self._fixed_edges = None
        if self.places and all(tensor is not None for _, tensor in self.places):
            self._fixed_edges = self._edges_of(())
        if self._straight is not None:
            self._straight.bind(self.externals)

    def why(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Say why a call does not fit."""
        if local.state.grad_enabled is not self.grad_enabled:
            return "grad mode differs"
        if local.state.inference is not self.inference:
            return "inference_mode differs"
        if default_float() is not self.default_float:
            return "the default dtype differs"
        if EVERYWHERE:
            return "hooks on all modules are registered"
        differs = self.arguments.why(args, kwargs) or self.outside.why()
        return differs or "the arguments share memory in another way"

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
            return self.finish(tensors, found)
        except BaseException as error:
            if self.recovery is None:
                raise
            stopped = error
        try:
            again = partial(function, *args, **kwargs)
            return self.recovery.recover(stopped, tensors, found, kept, again)
        finally:
            del stopped

    def _join(
        self,
        part: _Part,
        tensors: Sequence[Tensor],
        found: Sequence[Any],
        outputs: Sequence[Tensor],
        others: Sequence[Tensor],
    ) -> None:
        """Make a node of this call and give its outputs their places."""
        edges, number = self._fixed_edges or self._edges_of(tensors)
        if part.stage.before:
            more = [y._edge or NO_EDGE for y in others[: len(part.stage.before)]]
            edges = (*edges, *more)
            number = max([number, *[1 + e[0].topological_nr for e in more if e[0] is not None]])
        if len(part.used) < len(edges):
            edges = tuple([edges[i] for i in part.used])
        saved = self._saved(part, tensors, found, others)
        self._make_node(part.function, edges, number, outputs, saved)

    def _join_freed(
        self,
        tensors: Sequence[Tensor],
        found: Sequence[Any],
        outputs: Sequence[Tensor],
        others: Sequence[Tensor],
    ) -> None:
        """Give outputs whose graph was released nodes that are released."""
        edges, number = self._fixed_edges or self._edges_of(tensors)
        for y in outputs:
            self._make_node(self.freed_function, edges, number, (y,), None)

    def _make_node(
        self,
        function: CompiledGradFunction,
        edges: tuple[Edge, ...],
        number: int,
        outputs: Sequence[Tensor],
        saved: Any,
    ) -> None:
        first = outputs[0]._data
        node = make_node(function, edges, number, saved, {}, first.shape, first.dtype)
        if len(outputs) > 1 or self.device is not CPU:
            node.infos = [tensor_info(y) for y in outputs]
        for i, y in enumerate(outputs):
            y._edge = (node, i)

    def _edges_of(self, tensors: Sequence[Tensor]) -> tuple[tuple[Edge, ...], int]:
        """Return the places of the inputs, and the topological number above them."""
        edges = tuple([(tensors[i] if t is None else t)._edge or NO_EDGE for i, t in self.places])
        return edges, 1 + max([e[0].topological_nr for e in edges if e[0] is not None])

    def _saved(
        self,
        part: _Part,
        tensors: Sequence[Tensor],
        found: Sequence[Any],
        others: Sequence[Tensor],
    ) -> tuple[Any, ...]:
        saved = []
        for name, keeper, before in part.saved:
            if keeper is None:
                tensor, storage = None, _NEVER_WRITTEN
            else:
                tensor = self._keeper(part, keeper, tensors, others)
                storage = tensor.memory
            if tensor is not None and (before or keeper == name):
                saved.append((name, tensor._data, storage, storage.version, tensor._edge))
            else:
                array = found[self.fetch_index[name]]
                saved.append((name, array, storage, storage.version, None))
        return tuple(saved)

    def _keeper(
        self, part: _Part, keeper: str | int, tensors: Sequence[Tensor], others: Sequence[Tensor]
    ) -> Tensor:
        """Return the tensor that holds the memory of a variable."""
        if isinstance(keeper, int):
            return others[part.others.index(keeper)]
        if keeper in self.feeds:
            return tensors[self.feed_positions[self.feeds.index(keeper)]]
        source = self.external_sources[keeper]
        if source.kind == "tensor":
            return source.tensor
        assert source.tensor.grad is not None
        return source.tensor.grad


@attrs.define(eq=False)
class _Part:
    """One node that every replay makes.

    Attributes
    ----------
    stage : Stage
    function : CompiledGradFunction
    used : sequence of int
        The inputs that get a gradient.
    saved : list of (variable, keeper, before)
        What the node keeps, who else holds its memory, and whether that is a result of `before`.
    others : list of int
        The results that `before` names, and those whose memory the node keeps.
    """

    stage: Stage
    function: CompiledGradFunction
    used: Sequence[int]
    saved: Sequence[tuple[str, str | int | None, bool]]
    others: list[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        kept = [keeper for _, keeper, _ in self.saved if isinstance(keeper, int)]
        self.others = list(dict.fromkeys([*self.stage.before, *kept]))


def _writes(
    recorder: RecordingInterpreter,
    arguments: Sequence[Tensor],
    arrays: Sequence[Any],
    versions: Sequence[tuple[int, Tensor | None, str, int]],
) -> list[Written]:
    """Find which of the ops that were recorded write each storage of `versions`."""
    numbers: dict[int, list[int]] = {}
    names = map(recorder.find, arrays)
    tensors: dict[str | None, Tensor | None] = dict(zip(names, arguments, strict=True))
    for name, source in recorder.externals.items():
        tensors[name] = source.tensor.grad if source.kind == "grad" else source.tensor
    roots = memory_roots(recorder.block.ops)
    for op in recorder.block.ops:
        for name in op.written:
            tensor = tensors.get(roots[name])
            if tensor is not None:
                numbers.setdefault(id(tensor.memory), []).append(op.number)
    found: list[Written] = []
    for position, tensor, place, count in versions:
        owner = arguments[position] if tensor is None else tensor
        known = numbers.get(id(written_tensor(owner, place).memory), [])
        # What was counted otherwise is taken to come first: too much is noticed, too little not.
        found.append((position, tensor, place, [-1] * (count - len(known)) + known))
    return found


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
        recorder.externals[name] = Source(known[id(tensor._data)], "tensor")
        del recorder.unknown[name]


def _copy_written_constants(recorder: RecordingInterpreter) -> None:
    """Have constants that are written copied first, so that every replay begins with them."""
    block = recorder.block
    roots = memory_roots(block.ops)
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


def _states_of(late: Sequence[Tensor], states: Sequence[TensorState]) -> list[TensorState]:
    known = {id(state.tensor) for state in states}
    return [TensorState.of(tensor) for tensor in late if id(tensor) not in known]


def _versions(
    arguments: Sequence[Tensor], states: Sequence[TensorState], late: Sequence[Tensor]
) -> list[tuple[int, Tensor | None, str, int]]:
    """Find how often the call wrote to each storage: (argument or -1, tensor, place, count).

    The place is "" for the tensor's own, ".grad" for that of its gradient.
    """
    found: dict[int, tuple[int, Tensor | None, str, int]] = {}
    positions = {id(tensor): i for i, tensor in reversed(list(enumerate(arguments)))}
    before = {id(state.tensor): state.version for state in states}
    moved = {id(state.tensor) for state in states if state.moved}
    for tensor in (*[state.tensor for state in states], *late):
        count = 0 if id(tensor) in moved else tensor._version - before.get(id(tensor), 0)
        if count and id(tensor.memory) not in found:
            position = positions.get(id(tensor), -1)
            found[id(tensor.memory)] = (position, None if position >= 0 else tensor, "", count)
    for state in states:
        tensor, grad = state.tensor, state.grad
        if grad is None or tensor.grad is not grad or id(grad.memory) in found:
            continue
        count = grad._version - state.grad_version
        if count:
            position = positions.get(id(tensor), -1)
            owner = None if position >= 0 else tensor
            found[id(grad.memory)] = (position, owner, ".grad", count)
    return list(found.values())
