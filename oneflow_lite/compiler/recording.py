"""Recording: a recorded call of a compiled function, and its replay for other calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any
from weakref import WeakMethod

from oneflow_lite.arrays.device import CPU, Device, as_device
from oneflow_lite.arrays.dtype import default_float
from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.compiler import calls, compiled_node, outside
from oneflow_lite.compiler.calls import Args, Words
from oneflow_lite.compiler.match import Match
from oneflow_lite.compiler.outside import NotReplayable, TensorState
from oneflow_lite.compiler.recorder import RecordingInterpreter, Source
from oneflow_lite.compiler.recovery import Recovery
from oneflow_lite.compiler.results import Results
from oneflow_lite.compiler.same import MISSING
from oneflow_lite.errors import CaptureError, FlowError, FreedGraphError
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.static.ir.program import make_anew
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import Edge, FunctionNode
from oneflow_lite.tensors.storage import Storage
from oneflow_lite.tensors.tensor import Tensor

judge: Any = None  # tests set one, which runs the plain function beside each call, and compares


class Recording:
    """A Program with all that a replay needs besides: which calls it is for, and what it leaves.

    It takes the observer after the call, and what that returned. `NotReplayable` is raised where a
    replay could not do what the call did.
    """

    def __init__(self, name: str, observer: Any, value: Any, mode: str | None) -> None:
        recorder: RecordingInterpreter = observer.recorder
        match: Match = observer.match
        changes = _changes(observer)
        if (reason := observer.check_read()) is not None:
            raise NotReplayable(reason)
        late = _optimizer_tensors(observer)
        for optimizer, _ in observer.optimizers.values():
            calls.settle_optimizer(observer, optimizer)
        states: list[TensorState] = list(observer.states.values())
        for state in states:
            if state.moved and id(state.tensor) in observer.captured:
                observer.feed(state.tensor)
        observer.after_call = True
        if observer.has_handlers:
            recorder.unsettle()
        total, settled = recorder.calls, recorder.settled()
        self.mode = mode or "straight_line"
        self.trace = None if judge is None else judge.traced(recorder.block)
        self.arguments = match
        self.warnings = recorder.warnings
        self.callbacks = [WeakMethod(c) for c in recorder.callbacks]  # owners are guarded
        now = local.state
        self.modes = now.inference, now.grad_enabled, default_float(), as_device(None)
        written = [recorder.roots[name] for op in recorder.block.ops for name in op.written]
        for array in observer.arrays:
            if recorder.find(array) in written:
                where = recorder.changed_at[id(array)]
                raise NotReplayable(f"it writes to {observer.named(array)}{where}")
        for name in dict.fromkeys(written):
            make_anew(recorder.block, recorder.block.var(name))
        met = [observer.states[id(tensor)] for tensor in match.tensors]
        feeds: dict[str, int] = {}
        for position, state in enumerate(met):
            feeds.setdefault(str(recorder.find(state.data)), position)
        self.feed_positions = list(feeds.values())
        took_gradients = recorder.took_gradients  # itself; those to come are recorded as well
        if took_gradients or observer.reads_gradients:
            _check_gradients_apart(states)
        for state in states:
            if (change := state.change()) is not None:
                at = recorder.changed_at.get(id(state.data), "")
                raise NotReplayable(f"{state.label} {change}{at}")
        results = Results(observer, value, changes, feeds)
        writes = _written(results)
        self._differentiate(name, results)
        self.ending = results.finish(writes)
        self._plan(recorder, list(feeds), results.fetches)
        names = self.core.external_names
        self.sources = [recorder.externals[name] for name in names]
        given = [(met[i].label, met[i].data) for i in self.feed_positions]
        given += [(source.label, source.array) for source in self.sources]
        self.memory = outside.MemoryClasses(
            self.feed_positions,
            [met[i].data for i in self.feed_positions],
            [recorder.arrays[name] for name in names],
            [i for i, name in enumerate(feeds) if name in self.core.written],
            [i for i, name in enumerate(names) if name in self.core.written],
            [label + recorder.changed_at.get(id(array), "") for label, array in given],
        )
        self._lock = make_lock()
        self.recovery: Recovery | None = None
        self._recovers: Any = None  # makes it
        effects = (self.callbacks, results.effects, writes, self.core.written)
        if observer.has_handlers or recorder.switches or any(effects):
            self._recovers = partial(Recovery, self.core, settled, total, self.ending)
        self._guard(observer, late, took_gradients)
        if all([source.array is not None for source in self.sources]):
            self._take()

    # Inputs and nodes

    def _places(self, results: Results) -> dict[str, tuple[Any, str]]:
        """Find the variables with a place in the graph, and the expressions of the tensors."""
        used = {name for op in results.recorder.block.ops for name in op.reads}
        places: dict[str, tuple[Any, str]] = {}
        for state in results.states.values():
            variable = results.recorder.find(state.tensor._data)
            if variable is None or variable not in used or state.edge is None:
                continue
            place = state.edge, results.place(state.tensor)
            if places.setdefault(variable, place)[0] is not state.edge:
                raise NotReplayable(f"{state.label} and another tensor share an array")
        return places

    def _differentiate(self, name: str, results: Results) -> None:
        """Record the backward pass of the tensors that were returned, and add their nodes."""
        recorder, places = results.recorder, self._places(results)
        entries = results.entries
        made = [i for i, entry in enumerate(entries) if entry.kind == "result"]
        if not made:
            return
        if any(entry.kind == "leaf" for entry in entries):
            raise NotReplayable("it returned a new leaf beside what may have come from it")
        if not places:
            raise NotReplayable("it returned what requires a gradient because of an inner leaf")
        edges = [edge for edge, _ in places.values()]
        freed = [i for i in made if _is_freed(entries[i].tensor, edges)]
        alive = [i for i in made if i not in freed]
        visited: dict[FunctionNode, bool] = {}
        metas = {id(s.tensor.autograd_meta) for s in results.states.values() if s.tensor.is_leaf}
        for outputs, before in compiled_node.stages_of(results, alive, edges, metas):
            given = {recorder.name_of(entries[i].tensor): i for i in before}
            made_before = {n: (entries[i].tensor._edge, f"y{i}") for n, i in given.items()}
            inputs = places | made_before
            if len(inputs) < len(places) + len(before):
                raise NotReplayable("it returned two tensors around one piece of memory")
            ys = [entries[i].tensor for i in outputs]
            senders = [edge for edge, _ in inputs.values()]
            try:
                function = compiled_node.CompiledGradFunction(
                    name, recorder, ys, senders, visited, self.mode
                )
            except FlowError as error:
                kind = type(error).__name__
                raise NotReplayable(f"its backward pass raised {kind}: {error}") from error
            owners = [owner for _, owner in inputs.values()]
            results.add_node(function, outputs, [owners[i] for i in function.used], given)
        if recorder.stopped is not None:
            raise NotReplayable(recorder.stopped)
        if recorder.unknown:
            raise NotReplayable("its backward pass uses memory that the recording has not seen")
        owners = [owner for _, owner in places.values()]
        for i in freed:
            results.add_node(compiled_node.FreedGradFunction(name), (i,), owners, {})

    def _plan(self, recorder: RecordingInterpreter, feeds: list[str], fetches: list[str]) -> None:
        cards = {desc.device for desc in recorder.block.vars.values()} - {CPU}
        if len(cards) > 1:
            raise NotReplayable("it works on more than one CUDA device")
        device: Device = next(iter(cards), CPU)
        try:
            self.core = InterpreterCore(recorder.program, feeds, fetches, device, mode=self.mode)
        except CaptureError as error:
            raise NotReplayable(str(error)) from error

    # Replaying

    _is_ready = False
    hits = 0  # so far, for who keeps it
    number = 0  # which capture of its function it is
    why_recorded = ""  # how its call differed from the call before, in words

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...] | None:
        """Return the tensors among the arguments; None when this recording is for other calls."""
        tensors = self.arguments.check(args, kwargs)
        if tensors is True and self.outside.fit():
            self._take()
            tensors = self.arguments.check(args, kwargs)
        warned = self.warnings
        if type(tensors) is not tuple or (warned and any([each.raises() for each in warned])):
            return None
        return tensors if not self.memory.writes or self.memory.check(tensors) else None

    def why(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Say in words why this recording is not for a call."""
        self.match(args, kwargs)  # what fits is taken
        if self.arguments.check(args, kwargs) is True:
            return self.outside.why()
        raised = [f"a filter raises: {each.message}" for each in self.warnings if each.raises()]
        shared = f"whether memory is shared by two of {', '.join(self.labels)}"
        return self.arguments.why(args, kwargs) or (*raised, shared)[0]

    def _guard(self, observer: Any, late: Collection[int], took_gradients: bool) -> None:
        """Add the guards of state that the call did not read itself, and write all guards."""
        match, states = self.arguments, dict(observer.states)
        constant, require = match.constant, match.require
        grads_matter = took_gradients or observer.reads_gradients
        used = {id(s.tensor) for s in observer.recorder.externals.values() if s.place}
        guarded: list[tuple[str, TensorState]] = []
        for given, tensor in zip(match.feed_names, match.tensors, strict=True):
            state = states.pop(id(tensor))
            guarded.append((given, state))
            if id(tensor) in used:  # then it is the same one at every call
                require(f"{given} is {constant(tensor)}", state.label)
                states[id(tensor)] = state
            if grads_matter:
                there = "" if state.grad is None else "not "
                require(f"{given}.grad is {there}None", f"whether {state.label} has a gradient")
            if took_gradients and state.edge is not None:
                hooks = f"{constant(outside.hooks_of)}({given})"
                require(f"{hooks} == {constant(state.hooks)}", f"the hooks of {state.label}")
        mode, dtype = match.bind(f"{constant(local)}.state"), f"{constant(default_float)}()"
        modes = f"{mode}.inference", f"{mode}.grad_enabled", dtype, f"{constant(as_device)}(None)"
        labels = "inference mode", "grad mode", "the default dtype", "the default device"
        for read, value, label in zip(modes, self.modes, labels, strict=True):
            match.same(read, value, label)
        require(f"not {constant(EVERYWHERE)}", "whether there are hooks on all modules")
        guarded += [(constant(state.tensor), state) for state in states.values()]
        asked = {i: "there" if grads_matter and i not in late else "nothing" for i in states}
        asked.update(dict.fromkeys(used, "kind"))
        self.labels = [state.label for _, state in guarded]
        with_asked = [(state, asked[i]) for i, state in states.items()]
        self.outside = outside.OutsideTensors(match, with_asked)
        outside.require_same(match, guarded)
        match.settle(observer.captured)

    def _take(self) -> None:
        """Take the arrays that captured tensors have now."""
        with self._lock:
            self.externals = [source.array for source in self.sources]
            self.memory.renew(self.externals)
            self.ending.bind()
            if self._is_ready:
                self.core.runner.bind(self.externals)

    def _get_ready(self) -> None:
        """Plan the Program, before its first run."""
        with self._lock:
            if self._recovers is not None:
                self.recovery = self._recovers()
            self.core.runner.bind(self.externals)
            self._is_ready = True

    def replay(self, tensors: Sequence[Tensor], function: Any, args: Args, kwargs: Words) -> Any:
        """Run the Program for these tensors; return what `function(*args, **kwargs)` returns."""
        fetched: list[Any] = []
        kept = None
        for warning in self.warnings:
            warning.give()
        if not self._is_ready:
            try:
                self._get_ready()
            except (MemoryError, RecursionError):  # nothing has been done yet
                return function(*args, **kwargs)
        try:
            for method in self.callbacks:
                if (callback := method()) is not None:
                    callback()
            if self.ending.prepare is not None:
                self.ending.prepare(tensors)
            feeds = [tensors[i]._data for i in self.feed_positions]
            if self.recovery is not None and self.recovery.keeps:
                kept = self.recovery.keep(feeds, self.externals)
            self.core.runner.fill_bound(fetched, feeds)
            return self.ending.run(tensors, fetched)
        except BaseException as error:
            if self.recovery is None:
                raise
            stopped = error
        try:
            again = partial(function, *args, **kwargs)
            return self.recovery.recover(stopped, tensors, fetched, kept, again)
        finally:
            del stopped


def _changes(observer: Any) -> list[tuple[Any, str, Any, Any, int]]:
    """Return the changes of a replay outside; see `Observer.changes`."""
    changes = list(observer.changes())
    for holder in [each[0] for each in (*changes, *observer.grown)]:
        known = observer.known(holder)
        if known is not None and not known.held:
            observer.hand_out(holder)
    for holder, kind, key, new, _ in changes:
        observer.volatile.add((id(holder), kind, key))
        if new is MISSING:
            raise NotReplayable(f"it changed {observer.place_of(holder, kind, key)[1]}")
    return changes


def _optimizer_tensors(observer: Any) -> dict[int, Tensor]:
    """Take note of the tensors of optimizers that took part: this call may have made them.

    Raises
    ------
    NotReplayable
        When the Program has memory that is neither theirs nor known otherwise.
    """
    recorder: RecordingInterpreter = observer.recorder
    tensors: dict[int, Tensor] = {}
    for owner, _ in observer.optimizers.values():
        label = f"{observer.known(owner).label}.state"
        owner.refresh_options()
        for tensor in owner.own_tensors():
            tensors[id(tensor)] = tensor
            if id(tensor) not in observer.states:
                state = observer.states[id(tensor)] = TensorState(tensor, label)
                state.version = 0
    arrays = {id(tensor._data): tensor for tensor in tensors.values()}
    for name, tensor in recorder.unknown.items():
        if id(tensor._data) not in arrays:
            op = next(op for op in recorder.block.ops if name in op.reads)
            raise NotReplayable(f"{op.type}() takes a tensor of unknown origin, at {op.location}")
        recorder.block.var(name).persistable = True
        recorder.externals[name] = Source(arrays[id(tensor._data)], "", name)
    recorder.unknown.clear()
    return tensors


def _is_freed(y: Tensor, edges: Sequence[Edge]) -> bool:
    """Return whether a backward pass inside the call released the graph of an output."""
    task, _ = compiled_node.task_between([y._edge], [y], edges)
    try:
        task.order([])
    except FreedGraphError:
        return True
    return False


def _check_gradients_apart(states: Sequence[TensorState]) -> None:
    """Raise where a gradient is also something else; the Program could not tell which it is."""
    grads = [(s.label, id(s.grad._data)) for s in states if s.grad is not None]
    counts = Counter([*[array for _, array in grads], *[id(state.data) for state in states]])
    for label, array in grads:
        if counts[array] > 1:
            raise NotReplayable(f"{label}.grad is another tensor within reach as well")


def _written(results: Results) -> dict[str, int]:
    """Find how often the call wrote to each storage outside."""
    states = results.states.values()
    seen: list[Any] = [(s.tensor, s.tensor, "", s.version) for s in states if not s.moved]
    # An ending counts before it gives a tensor another gradient.
    seen += [(s.tensor, s.grad, ".grad", s.grad_version) for s in states if s.grad is not None]
    written: dict[Storage, tuple[str, int]] = {}
    for owner, tensor, place, before in seen:
        count = tensor._version - before
        if count:
            written.setdefault(tensor.memory, (results.place(owner) + place, count))
    return dict(written.values())
