"""`flow.compile`: calls are recorded while they run, and replayed while their guards hold."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import attrs

from oneflow_lite.autograd.graph_task import GraphTask
from oneflow_lite.autograd.mode import StateChange, local
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, CaptureError, arg_error
from oneflow_lite.interpreter import AutogradInterpreter
from oneflow_lite.locks import make_lock
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import is_lazy
from oneflow_lite.static.capture.arguments import Arguments
from oneflow_lite.static.capture.call_watch import CallWatch
from oneflow_lite.static.capture.guards import same
from oneflow_lite.static.capture.outside import Outside
from oneflow_lite.static.capture.recorder import RecordingInterpreter, Source, describe
from oneflow_lite.static.capture.recording import Recording
from oneflow_lite.static.capture.results import NotReplayable
from oneflow_lite.static.capture.tensor_states import TensorState
from oneflow_lite.static.compile import judge as judging
from oneflow_lite.static.interpreter_core import MODES
from oneflow_lite.tensor import Tensor

_TOO_MANY = (
    "its calls differ from each other again and again, in arguments or in what it reads from "
    "outside; keep shapes and numbers the same, or pass numbers that change as tensors"
)
RECORDINGS_KEPT = 16  # per function; the one used longest ago goes
# What runs when a `.grad` is read, assigned or added to.
_GRAD = vars(Tensor)["grad"]
_GRADIENT_CODE = {
    function.__code__ for function in (_GRAD.fget, _GRAD.fset, _GRAD.fdel, GraphTask._add)
}
_GRAPH_CODE = {
    vars(Tensor)[name].fget.__code__: name for name in ("_version", "grad_fn", "grad_fn_node")
}
ATTEMPTS = 3  # at a call that cannot be replayed, before calls like it stay eager


@attrs.define
class Explanation:
    """How the calls of a compiled function went.

    Attributes
    ----------
    captures, hits, fallbacks : int
        Calls that were recorded, replayed, and run eagerly for good.
    reasons : list of str
        Why calls were not replayed, without repetitions.
    """

    captures: int = 0
    hits: int = 0
    fallbacks: int = 0
    reasons: list[str] = attrs.field(factory=list)


@attrs.define(eq=False)
class _Refusal:
    """Calls that were not kept."""

    arguments: Arguments
    reason: str
    attempts_left: int


class CompiledFunction:
    """What `flow.compile` returns for a function.

    Attributes
    ----------
    fullgraph : bool
        Whether `CaptureError` is raised where a call would run eagerly.
    notes_of_calls : frozenset of str
        The attributes that every call may change.
    """

    notes_of_calls = frozenset(
        ("_recordings", "_refusals", "_recorded_in_vain", "_explanation", "_lock")
    )

    def __init__(self, function: Callable[..., Any], fullgraph: bool, mode: str | None) -> None:
        functools.update_wrapper(self, function, updated=())
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.function = function
        self.fullgraph = fullgraph
        self.mode = mode
        self._recordings: list[Recording] = []
        self._refusals: list[_Refusal] = []
        self._recorded_in_vain = 0  # recordings since the last hit
        self._explanation = Explanation()
        self._lock = make_lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        """Return a function that calls a copy of what this one calls; most are no copies."""
        function = copy.deepcopy(self.function, memo)
        if function is self.function:
            return self
        made = CompiledFunction(function, self.fullgraph, self.mode)
        users = {name: value for name, value in vars(self).items() if name not in vars(made)}
        vars(made).update(copy.deepcopy(users, memo))
        return made

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        if state.general or local.task is not None:  # somebody looks at every op, or a hook runs
            return self.function(*args, **kwargs)
        for position, recording in enumerate(self._recordings):
            tensors = recording.match(args, kwargs)
            if tensors is not None:
                if judging.current is not None and judging.current.is_free():
                    known = recording.outside.tensors
                    return judging.current(self, args, kwargs, recording.trace, known)
                if position:
                    self._move_to_front(recording)
                self._explanation.hits += 1
                self._recorded_in_vain = 0
                try:
                    return recording.replay(tensors)
                except Exception:
                    if self.fullgraph or not recording.can_begin_again:
                        raise
                return self.function(*args, **kwargs)  # which may handle it
        judge = judging.current
        if judge is not None and judge.recordings and judge.is_free():
            return judge(self, args, kwargs)
        refusal = self._refusal(args, kwargs)
        if refusal is not None and not refusal.attempts_left:
            return self._run_eagerly(refusal.reason, args, kwargs)
        if self._recorded_in_vain >= 2 * RECORDINGS_KEPT:
            return self._run_eagerly(self._note(_TOO_MANY, 1), args, kwargs)
        return self._record(args, kwargs, refusal)

    def explain(self) -> Explanation:
        """Return how the calls went so far.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> double = flow.compile(lambda x: x * 2)
        >>> for k in range(3):
        ...     y = double(flow.ones(k + 1))
        >>> y = double(flow.ones(3))
        >>> double.explain().captures, double.explain().hits
        (3, 1)
        """
        return attrs.evolve(self._explanation, reasons=list(self._explanation.reasons))

    def _move_to_front(self, recording: Recording) -> None:
        with self._lock:
            if recording in self._recordings:
                self._recordings.remove(recording)
                self._recordings.insert(0, recording)

    def _refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Refusal | None:
        """Return what is known of calls like this one that were not kept."""
        for refusal in self._refusals:
            if refusal.arguments.match(args, kwargs) is not None:
                return refusal
        return None

    def _note(self, reason: str, depth: int) -> str:
        """Keep a reason for `explain`, and warn of it once, `depth` frames below the caller."""
        if reason not in self._explanation.reasons:
            self._explanation.reasons.append(reason)
            if not self.fullgraph:
                warnings.warn(
                    f"flow.compile: {self.__name__}() runs eagerly: {reason}",
                    UserWarning,
                    stacklevel=depth + 2,
                )
        return reason

    def _run_eagerly(self, reason: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.fullgraph:
            raise CaptureError(f"flow.compile(fullgraph=True): {reason}")
        self._explanation.fallbacks += 1
        return self.function(*args, **kwargs)

    # Recording

    def _record(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], refusal: _Refusal | None
    ) -> Any:
        """Run a call and keep its recording, when a replay can stand for calls like it."""
        arguments = Arguments(args, kwargs)
        if self.mode == "cuda_graph" and not any(t.is_cuda for t in arguments.tensors):
            raise arg_error(
                "compile",
                "mode",
                expected="another one than 'cuda_graph' for arguments on the CPU",
                got="'cuda_graph'",
                hint="move the arguments with .to('cuda')",
                kind=ArgumentError,
            )
        outside = Outside.of(self.function, args, kwargs)
        reachable = [tensor for tensor, _ in outside.tensors.values()]
        tensors = {id(t): t for t in (*arguments.tensors, *reachable)}
        if any(map(is_lazy, tensors.values())):  # a lazy module gets its parameters in this call
            self._explanation.fallbacks += 1
            return self.function(*args, **kwargs)
        states = [TensorState.of(tensor) for tensor in tensors.values()]
        recorder = RecordingInterpreter(
            self.fullgraph,
            _sources(states),
            {id(state.data): state.edge for state in reversed(states)},
        )
        for i, tensor in enumerate(arguments.tensors):
            desc = describe(f"argument_{i}", tensor, need_check_feed=True)
            recorder.declare(tensor._data, desc)
        watch = CallWatch()
        stack = AutogradInterpreter(recorder)
        with StateChange(interpreter=stack), watch:
            value = self.function(*args, **kwargs)
        try:
            stopped = [recorder.stopped] if recorder.stopped else []
            reasons = [*stopped, *watch.reasons(outside), *_looks_at_the_graph(watch)]
            if reasons:
                raise NotReplayable(reasons[0])
            changes = outside.changes()
            if changes:
                raise NotReplayable(changes[0])
            if outside.has_container(value):
                raise NotReplayable("it returned a list or dict that is also elsewhere")
            late = _optimizer_tensors(recorder, outside)
            guards = outside.guards(watch)
            read = [outside.attributes_read(watch, t) for t in arguments.tensors]
            arguments.look_further(read, outside.containers(watch))
            with StateChange(interpreter=stack):
                recording = Recording(
                    self.__name__,
                    recorder,
                    arguments,
                    states,
                    outside.captured,
                    late,
                    guards,
                    value,
                    not _GRADIENT_CODE.isdisjoint(watch.own),
                    GraphTask.run.__code__ in watch.own,
                    self.mode,
                )
            if not any([code.co_exceptiontable for code in watch.entered]):
                recording.can_begin_again = False  # nothing in the function handles exceptions
        except NotReplayable as stop:
            self._recorded_in_vain += 1
            self._give_up(refusal, arguments, str(stop), bool(reasons))
        else:
            with self._lock:
                self._recordings.insert(0, recording)
                del self._recordings[RECORDINGS_KEPT:]
            self._explanation.captures += 1
            self._recorded_in_vain += 1
        arguments.forget()
        return value

    def _give_up(
        self, refusal: _Refusal | None, arguments: Arguments, reason: str, for_good: bool
    ) -> None:
        """Note why a call was not kept; calls like it stay eager once that is sure."""
        if self.fullgraph:
            raise CaptureError(f"flow.compile(fullgraph=True): {reason}")
        if refusal is None:
            refusal = _Refusal(arguments, reason, ATTEMPTS)
            self._refusals.append(refusal)
            del self._refusals[:-RECORDINGS_KEPT]
        refusal.reason = reason
        # What a first call sets up may stay as it is from now on.
        refusal.attempts_left = 0 if for_good else refusal.attempts_left - 1
        if not refusal.attempts_left:
            self._explanation.fallbacks += 1
            self._note(reason, 3)


def _looks_at_the_graph(watch: CallWatch) -> list[str]:
    """Return a reason when code looked at what replays do not keep the same."""
    found = [name for code, name in _GRAPH_CODE.items() if code in watch.own]
    return [f"it looks at {name}" for name in found]


def _sources(states: list[TensorState]) -> dict[int, Source]:
    found: dict[int, Source] = {}
    for state in states:
        found.setdefault(id(state.data), Source(state.tensor, "tensor"))
    for state in states:
        if state.grad is not None:
            found.setdefault(id(state.grad._data), Source(state.tensor, "grad"))
    return found


def _optimizer_tensors(recorder: RecordingInterpreter, outside: Outside) -> list[Tensor]:
    """Return the tensors of optimizers that took part; they may have been made by this call.

    Raises
    ------
    NotReplayable
        When an optimizer itself was: its state would live on from replay to replay. When a step
        took options that do not stay: all steps of a replay take those from before it.
    """
    found: dict[int, Tensor] = {}
    for owner, values in recorder.options:
        if not outside.reaches(owner):
            raise NotReplayable("it makes an optimizer")
        owner.refresh_options()
        if not all(map(same, values, owner.option_values())):
            raise NotReplayable("it changes options of an optimizer for some steps")
        found.update({id(tensor): tensor for tensor in owner.own_tensors()})
    return list(found.values())


def compile(
    model: Callable[..., Any] | None = None, *, fullgraph: bool = False, mode: str | None = None
) -> Any:
    """Return a function, or a module, that replays what calls of `model` have done before.

    The first call with arguments of certain shapes runs eagerly and is recorded; later ones that
    agree in everything the function read run the recorded Program. Others are recorded anew. A
    call that cannot be repeated without running the function, because it reads values or changes
    objects outside, stays eager, with one warning.

    Parameters
    ----------
    model : callable or Module
        What to compile; left out, `compile` is a decorator with options. A Module is returned as
        an object of the same class and content: parameters, state dict and train/eval are shared.
    fullgraph : bool
        Whether to raise `CaptureError` instead of running eagerly.
    mode : {None, "straight_line", "work_queue", "cuda_graph"}
        How the Program is run, see `static.InterpreterCore`; None takes the first.

    Returns
    -------
    callable
        With `explain()`, which counts captures, hits and fallbacks and gives reasons.

    Raises
    ------
    ArgumentTypeError
        When `model` cannot be called.
    ArgumentError
        For another mode.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> w = flow.ones(2, requires_grad=True)
    >>> @flow.compile
    ... def step(x):
    ...     loss = (w * x).sum()
    ...     loss.backward()
    ...     with flow.no_grad():
    ...         w.sub_(w.grad * 0.1)
    ...     w.grad = None
    ...     return loss
    >>> for _ in range(4):
    ...     print(round(step(flow.ones(2)).item(), 4))
    2.0
    1.8
    1.6
    1.4
    >>> step.explain().captures, step.explain().hits
    (1, 3)
    """
    if mode is not None and mode not in MODES:
        raise arg_error(
            "compile",
            "mode",
            expected=f"None or one of {', '.join(map(repr, MODES))}",
            got=repr(mode),
            hint="leave it out",
            kind=ArgumentError,
        )
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, mode=mode)
    if not callable(model):
        raise arg_error(
            "compile",
            "model",
            expected="a function or a Module",
            got=type(model).__name__,
            hint="pass what is called, not its result",
            kind=ArgumentTypeError,
        )
    function = CompiledFunction(model, fullgraph, mode)
    return _compiled_module(model, function) if isinstance(model, Module) else function


def _compiled_module(module: Module, function: CompiledFunction) -> Module:
    """Return a module that shares everything with another one and is called compiled."""
    kind = type(module)

    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        if self.__dict__ is not module.__dict__:  # a copy that the class made in its own way
            return kind.__call__(self, *args, **kwargs)
        return function(*args, **kwargs)

    def copied(self: Module) -> Module:
        return _compile_again(copy.copy(module), function.fullgraph, function.mode)

    def reduced(self: Module, protocol: Any) -> tuple[Any, ...]:
        return _compile_again, (module, function.fullgraph, function.mode)

    names = {
        "__call__": call,
        "__copy__": copied,
        "__reduce_ex__": reduced,
        "explain": staticmethod(function.explain),
        "__module__": __name__,
    }
    compiled: Module = kind.__new__(type(kind.__name__, (kind,), names))
    compiled.__dict__ = module.__dict__
    return compiled


def _compile_again(module: Module, fullgraph: bool, mode: str | None) -> Module:
    """Compile the copy of a module whose original was compiled."""
    return _compiled_module(module, CompiledFunction(module, fullgraph, mode))
