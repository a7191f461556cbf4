"""Recording: one recorded call of a compiled function, and how it is replayed for another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any
from weakref import WeakMethod

import attrs

from oneflow_lite.autograd.mode import local
from oneflow_lite.autograd.node import Edge, FunctionNode
from oneflow_lite.device import CPU, Device
from oneflow_lite.dtype import default_float
from oneflow_lite.errors import CaptureError, FlowError, FreedGraphError
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.static.compile import calls
from oneflow_lite.static.compile.compiled_node import (
    CompiledGradFunction,
    FreedGradFunction,
    task_between,
)
from oneflow_lite.static.compile.match import Match
from oneflow_lite.static.compile.memory import MemoryClasses
from oneflow_lite.static.compile.recorder import RecordingInterpreter, Source
from oneflow_lite.static.compile.recovery import Recovery
from oneflow_lite.static.compile.results import NotReplayable, Results, Store, Written
from oneflow_lite.static.compile.same import MISSING, is_atom, told
from oneflow_lite.static.compile.stages import stages_of
from oneflow_lite.static.compile.tensor_states import OutsideTensors, TensorState, hooks_of
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.ir.tree import same
from oneflow_lite.static.runtime.addresses import overlap
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.straight_line import StraightLine
from oneflow_lite.tensor import Tensor

judge: Any = None  # of the tests: while it is there, it runs the plain function beside each call


class Recording:
    """A Program with all that a replay needs besides: which calls it is for, and what it leaves.

    It takes the observer after the call, and what that returned. `NotReplayable` is raised where a
    replay could not do what the call did.
    """

    def __init__(self, name: str, observer: Any, value: Any, mode: str | None) -> None:
        stores = _stores(observer)
        reason = observer.check_read()
        if reason is not None:
            raise NotReplayable(reason)
        recorder: RecordingInterpreter = observer.recorder
        late = _optimizer_tensors(observer)
        for tensor in late:
            if id(tensor) not in observer.states:
                observer.states[id(tensor)] = TensorState.of(tensor)
                observer.states[id(tensor)].version = 0
        for optimizer in observer.optimizers.values():
            calls.settle_optimizer(observer, optimizer)
        for state in observer.states.values():
            if state.moved and id(state.tensor) in observer.captured:
                observer.feed(state.tensor)
        observer.after_call = True
        arguments: Match = observer.match
        states: list[TensorState] = list(observer.states.values())
        grads_matter = observer.reads_gradients or recorder.took_gradients
        has_handlers = observer.has_handlers
        if has_handlers:
            recorder.unsettle()
        total, settled = recorder.calls, recorder.settled()
        self.mode = mode or "straight_line"
        self.trace = None if judge is None else judge.traced(recorder.block)
        self.arguments = arguments
        self.callbacks = [WeakMethod(c) for c in recorder.callbacks]  # owners are guarded
        self.modes = local.state.grad_enabled, local.state.inference, default_float()
        _settle(recorder, late)
        _copy_written_constants(recorder)
        if grads_matter:
            _check_gradients_apart(states)
        for state in states:
            change = state.change()
            if change is not None:
                raise NotReplayable(f"a tensor of shape {state.data.shape} from outside {change}")
        results = Results(observer, arguments.tensors, value, stores)
        met = [observer.states[id(tensor)] for tensor in arguments.tensors]
        used_grads = [s.tensor for s in recorder.externals.values() if s.place]
        # The arguments to whose gradients is added: the same tensors at every call.
        pinned = [state for state in met if any(state.tensor is tensor for tensor in used_grads)]
        for given, state in zip(arguments.feed_names, met, strict=True):
            if state in pinned:
                known = arguments.constant(state.tensor)
                arguments.require(f"{given} is {known}", "an argument with a gradient")
            if grads_matter:
                there = "" if state.grad is None else "not "
                arguments.require(f"{given}.grad is {there}None", "gradients of arguments")
            if recorder.took_gradients and state.edge is not None:
                hooks = f"{arguments.constant(hooks_of)}({given})"
                then = arguments.constant(state.hooks)
                arguments.require(f"{hooks} == {then}", "hooks of arguments")
        fed = {id(tensor) for tensor in arguments.tensors} - observer.captured
        outside = [*[state for state in states if id(state.tensor) not in fed], *pinned]
        self.outside = OutsideTensors(outside, used_grads, grads_matter, late)
        arrays = [state.data for state in met]
        feeds: dict[str, int] = {}
        for position, array in enumerate(arrays):
            feeds.setdefault(str(recorder.find(array)), position)
        self.feeds, self.feed_positions = list(feeds), list(feeds.values())
        self.written = _written(results, arrays)
        self._differentiate(name, results)
        self._plan(results)
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
            self.recovery = Recovery(self.core, settled, total, self.written, self.ending)
        self._settle(observer.captured)
        if all([source.array is not None for source in self.sources]):
            self._bind()

    # What goes in

    def _places(self, results: Results) -> dict[str, tuple[Any, str]]:
        """Find the variables with a place in the graph, and the expressions of the tensors."""
        used = {name for op in results.recorder.block.ops for name in op.reads}
        places: dict[str, tuple[Any, str]] = {}
        for state in results.states:
            found = results.recorder.find(state.tensor._data)
            if found is None or found not in used or state.edge is None:
                continue
            if found in places and places[found][0] is not state.edge:
                raise NotReplayable("two tensors around one array require a gradient each")
            places.setdefault(found, (state.edge, results.place(state.tensor)))
        return places

    def _differentiate(self, name: str, results: Results) -> None:
        """Record the backward pass of the tensors that were returned, and add their nodes."""
        recorder, places = results.recorder, self._places(results)
        made = results.differentiable
        if not made:
            return
        if any(entry.place == "leaf" for entry in results.entries):
            raise NotReplayable("it returned a new leaf beside what may have come from it")
        if not places:
            raise NotReplayable("it returned what requires a gradient because of an inner leaf")
        edges = [edge for edge, _ in places.values()]
        freed = [y for y in made if _is_freed(y, edges)]
        alive = [y for y in made if not any(y is z for z in freed)]
        keeper = self._keepers(results)
        visited: dict[FunctionNode, bool] = {}
        outside = {id(s.tensor.autograd_meta) for s in results.states if s.tensor.is_leaf}
        for outputs, before in stages_of(results, alive, edges, outside):
            given = {recorder.name_of(results.entries[i].tensor): i for i in before}
            made_before = [(results.entries[i].tensor._edge, f"y{i}") for i in given.values()]
            inputs = places | dict(zip(given, made_before, strict=True))
            if len(inputs) < len(places) + len(before):
                raise NotReplayable("it returned two tensors around one piece of memory")
            ys = [results.entries[i].tensor for i in outputs]
            senders = [edge for edge, _ in inputs.values()]
            try:
                function = CompiledGradFunction(name, recorder, ys, senders, visited, self.mode)
            except FlowError as error:
                kind = type(error).__name__
                raise NotReplayable(f"its backward pass raised {kind}: {error}") from error
            saved = [(n, f"y{given[n]}", True) if n in given else keeper(n) for n in function.saved]
            owners = [owner for _, owner in inputs.values()]
            results.add_node(function, outputs, [owners[i] for i in function.used], saved)
        if recorder.stopped is not None:
            raise NotReplayable(recorder.stopped)
        if recorder.unknown:
            raise NotReplayable("its backward pass uses memory that the recording has not seen")
        released = FreedGradFunction(name)
        for y in freed:
            owners = [owner for _, owner in places.values()]
            results.add_node(released, (results.position(y),), owners, None)

    def _keepers(self, results: Results) -> Callable[[str], tuple[str, str | None, bool]]:
        """Return a function that finds who else holds the memory of a variable.

        It returns the variable, a tensor's expression, None when nobody can write there, and
        whether the tensor is the variable itself.
        """
        recorder, roots = results.recorder, results.recorder.roots
        holders: dict[str, str] = {}
        for position, entry in enumerate(results.entries):
            if entry.kind == "made" and (name := entry.fetch) is not None:
                holders.setdefault(roots.get(name, name), f"y{position}")
        feeds = zip(self.feeds, self.feed_positions, strict=True)
        holders.update({name: f"x[{position}]" for name, position in feeds})

        def keeper(name: str) -> tuple[str, str | None, bool]:
            root = roots.get(name, name)
            if root != name and not overlap(recorder.arrays[name], recorder.arrays[root]):
                return name, None, False  # a reshape that copied
            source = recorder.externals.get(root)
            if source is not None:
                return name, results.place(source.tensor) + source.place, root == name
            return name, holders.get(root), root == name and root in self.feeds

        return keeper

    def _plan(self, results: Results) -> None:
        recorder, self.ending = results.recorder, results.finish(self.written)
        cards = {desc.device for desc in recorder.block.vars.values()} - {CPU}
        if len(cards) > 1:
            raise NotReplayable("it works on more than one CUDA device")
        device: Device = next(iter(cards), CPU)
        try:
            self.core = InterpreterCore(
                recorder.program, self.feeds, results.fetches, device, mode=self.mode
            )
        except CaptureError as error:
            raise NotReplayable(str(error)) from error
        self.sources = [recorder.externals[name] for name in self.core.external_names]
        runner = self.core.runner
        self._straight = runner if isinstance(runner, StraightLine) else None

    # Replaying

    hits = 0  # so far, for who keeps it
    number = 0  # which capture of its function it is
    why_recorded = ""  # in what its call differed from the one before, in words

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...] | None:
        """Return the tensors among the arguments; None when this recording is for other calls."""
        tensors = self.arguments.check(args, kwargs)
        if tensors == self.outside.guard and self.outside.fit():
            self._bind()
            tensors = self.arguments.check(args, kwargs)
        return tensors if type(tensors) is tuple and self.memory.check(tensors) else None

    def why(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Say in words why this recording is not for a call."""
        self.match(args, kwargs)  # what fits is taken
        return self.arguments.why(args, kwargs) or "what differs: which tensors share memory"

    def _settle(self, captured: Collection[int]) -> None:
        """Add the guards of what the call did not read itself, and write them all."""
        match = self.arguments
        state, default = match.bind(f"{match.constant(local)}.state"), match.constant(default_float)
        now, then = f"({state}.grad_enabled, {state}.inference, {default}())", self.modes
        match.require(
            f"{now} == {match.constant(then)}", "the modes of autograd, the default dtype"
        )
        match.require(f"not {match.constant(EVERYWHERE)}", "hooks on all modules")
        self.outside.require(match)
        match.settle(captured)

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


def _stores(observer: Any) -> list[Store]:
    """Return the places outside that a replay writes."""
    found: list[Store] = []
    for holder, kind, key, new, number in observer.changes():
        place = (id(holder), kind, key)
        where = f"{told(holder)}.{key}" if kind == "attribute" else f"{key!r} of {told(holder)}"
        known = observer.known(holder)
        if known is not None and not known.held:
            observer.hand_out(holder)
        if place in observer.counted:
            suffix = f".{key}" if kind == "attribute" else f"[{key!r}]"
            formula = observer.counted[place]
            found.append(Store(holder, "count", (suffix, formula), None, number))
        elif new is MISSING:
            raise NotReplayable(f"it changed {where}")
        else:
            if not is_atom(new) or id(new) in observer.read_out:
                observer.volatile.add(place)
            found.append(Store(holder, kind, key, new, number))
    return found


def _optimizer_tensors(observer: Any) -> list[Tensor]:
    """Return the tensors of optimizers that took part; they may have been made by this call.

    Raises
    ------
    NotReplayable
        When a step took options that do not stay: all steps of a replay take those from before it.
    """
    found: dict[int, Tensor] = {}
    for owner, values in observer.recorder.options:
        known = observer.known(owner)
        if known is None or known.expression is None:
            raise NotReplayable("it makes an optimizer")
        owner.refresh_options()
        if not all(map(same, values, owner.option_values())):
            raise NotReplayable("it changes options of an optimizer for some steps")
        found.update({id(tensor): tensor for tensor in owner.own_tensors()})
    return list(found.values())


def _is_freed(y: Tensor, edges: Sequence[Edge]) -> bool:
    """Return whether a backward pass inside the call released the graph of an output."""
    task = task_between(create_graph=False)
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


def _written(results: Results, arrays: Sequence[Any]) -> list[Written]:
    """Find how often, and by which ops, the call wrote to each storage outside."""
    recorder, states = results.recorder, results.states
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
