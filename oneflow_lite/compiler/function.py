"""`flow.compile`: calls are recorded while they run, and replayed while their guards hold."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import attrs

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.compiler import recording as recordings
from oneflow_lite.compiler.calls import Args, Words
from oneflow_lite.compiler.deferred import Symbol
from oneflow_lite.compiler.match import Match
from oneflow_lite.compiler.observer import Observer
from oneflow_lite.compiler.outside import NotReplayable
from oneflow_lite.compiler.recorder import RecordingInterpreter
from oneflow_lite.compiler.recording import Recording
from oneflow_lite.compiler.stand_ins import FunctionStandIn
from oneflow_lite.errors import ArgumentError, CaptureError, arg_error
from oneflow_lite.interop.notebook import explanation_html
from oneflow_lite.interpreter.stack import AutogradInterpreter
from oneflow_lite.static.runtime.straight_line import StraightLine
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.transforms.levels import active

_TOO_MANY = "pass numbers that change as tensors, and keep shapes: its calls differ again and again"
RECORDINGS_KEPT = 64  # per function; the one replayed least goes
IN_VAIN = 80  # recordings of which none is replayed, before further calls stay eager for a while
ATTEMPTS = 3  # at a call that cannot be replayed, before calls like it stay eager for a while
_MANY = f"more kinds of calls take turns than the {RECORDINGS_KEPT} recordings that are kept"


@attrs.define
class Explanation:
    """An account of the calls of a compiled function.

    Attributes
    ----------
    captures, hits, fallbacks : int
        Calls that were recorded, replayed, and run eagerly for good.
    reasons : list of str
        Why calls were not replayed, without repetitions.
    kept, dropped : int
        Recordings that there are now, and those that made room for others.
    why : str
        The difference between the last call that was recorded anew and the call before it, or why
        its recording was not kept.
    loops : list of str
        Which groups of ops run as machine code, and what each saves.
    building : list of str
        What machine code is being built at the moment.
    """

    captures: int = 0
    hits: int = 0
    fallbacks: int = 0
    reasons: list[str] = attrs.field(factory=list)
    kept: int = attrs.field(default=0, repr=False, eq=False)
    dropped: int = attrs.field(default=0, repr=False, eq=False)
    why: str = attrs.field(default="", repr=False, eq=False)
    loops: list[str] = attrs.field(factory=list, repr=False, eq=False)
    building: list[str] = attrs.field(factory=list, repr=False, eq=False)

    _repr_html_ = explanation_html


@attrs.define(eq=False)
class _Refusal:
    """Calls that were not kept, and stay eager before another attempt: each time twice as many."""

    guarded: Match
    reason: str
    attempts_left: int = ATTEMPTS
    length: int = 2  # of the next pause
    left: int = 0  # of this one

    def pause(self) -> None:
        """Have the next calls stay eager."""
        self.left = self.length
        self.length *= 2

    def goes_on(self) -> bool:
        """Count a call; return whether it stays eager."""
        self.left -= 1
        return self.left >= 0


class CompiledFunction(FunctionStandIn):
    """A compiled function, as `flow.compile` returns it."""

    # The attributes that every call may change.
    notes_of_calls = frozenset(
        "_recordings _lost _refusals _recorded_in_vain _in_vain _volatile _explanation "
        "_lock".split()
    )

    def __init__(self, function: Callable[..., Any], fullgraph: bool, mode: str | None) -> None:
        super().__init__(function, fullgraph, mode)
        self._recordings: list[Recording] = []
        self._lost: list[str] = []  # why the last recording went that is gone
        self._refusals: list[_Refusal] = []
        self._recorded_in_vain = 0  # recordings since one was replayed for the first time
        self._in_vain = _Refusal(Match(), _TOO_MANY, length=2 * IN_VAIN)
        self._volatile: set[tuple[int, str, Any]] = set()
        self._explanation = Explanation()
        self._lock = make_lock()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        # Somebody looks at every op, a hook runs, or a transform does.
        if state.general or local.task is not None or active.levels:
            return self.__wrapped__(*args, **kwargs)
        judge = recordings.judge
        if judge is not None and (judged := judge.takes(self, args, kwargs)) is not None:
            return judged()
        for position, recording in enumerate(self._recordings):
            if (tensors := recording.match(args, kwargs)) is not None:
                if position:
                    self._move_to_front(recording)
                self._explanation.hits += 1
                if not recording.hits:
                    self._recorded_in_vain = 0
                recording.hits += 1
                return recording.replay(tensors, self.__wrapped__, args, kwargs)
        if self._recorded_in_vain >= IN_VAIN:
            self._recorded_in_vain -= 1  # the next recording is in vain again, unless replayed
            self._in_vain.pause()
            if self._in_vain.reason == _TOO_MANY:
                self._in_vain.reason += f", as {self._explanation.why}"
            for recording in self._recordings:
                recording.hits = min(recording.hits, 1)  # what is replayed from now on counts
        refusal = self._refusal(args, kwargs)
        for each in (refusal, self._in_vain):
            if each is not None and each.goes_on():
                self._note(each.reason)
                return self.__wrapped__(*args, **kwargs)
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
        return attrs.evolve(
            self._explanation,
            reasons=[*self._explanation.reasons],
            kept=len(self._recordings),
            loops=[str(loop) for runner in self._runners() for loop in runner.plan.loops],
            building=[runner.building for runner in self._runners() if runner.building],
        )

    def source(self) -> str:
        """Return the code that replays run: a line for each op, then the loops of fused ones.

        Each recording that was replayed has its own. The code changes when machine code
        takes over.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> double = flow.compile(lambda x: x * 2)
        >>> for _ in range(2):
        ...     y = double(flow.ones(3))
        >>> print(double.source())
        def run(found, v0):
            v1 = g0(v0, g1)
            found += v1, False,
        """
        codes = [c for r in self._runners() for c in (r.source, *[x.source for x in r.plan.loops])]
        return "\n".join(filter(None, codes)).strip()

    def _runners(self) -> list[StraightLine]:
        return [r for each in self._recordings if isinstance(r := each.core.runner, StraightLine)]

    def _move_to_front(self, recording: Recording) -> None:
        with self._lock:
            if recording in self._recordings:
                self._recordings.remove(recording)
                self._recordings.insert(0, recording)

    def _refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Refusal | None:
        """Return the refusal of calls like this one that were not kept; None without one."""
        fits = (r for r in self._refusals if type(r.guarded.check(args, kwargs)) is tuple)
        return next(fits, None)

    def _note(self, reason: str) -> None:
        """Count a call that stays eager; say why once, or raise under `fullgraph`."""
        if self._fullgraph:
            raise CaptureError(f"flow.compile(fullgraph=True): {reason}")
        self._explanation.fallbacks += 1
        if reason not in self._explanation.reasons:
            self._explanation.reasons.append(reason)
            warn_caller(f"flow.compile: {self.__name__}() runs eagerly: {reason}")

    # Recording

    def _record(self, args: Args, kwargs: Words, refusal: _Refusal | None) -> Any:
        """Run a call and keep its recording, when a replay can stand for calls like it."""
        recorder = RecordingInterpreter(self._fullgraph)
        observer = Observer(recorder, self._volatile)
        outer, local.observer = getattr(local, "observer", None), observer
        try:
            stack = AutogradInterpreter(recorder)
            _learn(observer, self.__wrapped__, self.__name__)
            given, words = observer.arguments(args, kwargs, self.__wrapped__)
            lost, kept = "".join(self._lost) or self._explanation.why, self._recordings
            why = self._explanation.why = kept[0].why(args, kwargs) if kept else lost
            if self._mode == "cuda_graph" and not any(t.is_cuda for t in observer.match.tensors):
                no = "another one than 'cuda_graph' for arguments on the CPU"
                got, hint = repr(self._mode), "move the arguments with .to('cuda')"
                raise arg_error("compile", "mode", no, got, hint=hint, kind=ArgumentError)
            with StateChange(interpreter=stack):
                made = observer.call(self.__wrapped__, *given, **words)
                value = int(made) if type(made) is Symbol else made
            at, observer.match.at = observer.match.at, None
            recorder.check_generators()
            stopped = recorder.stopped
            try:
                if stopped is not None:
                    raise NotReplayable(stopped)
                with StateChange(interpreter=stack):
                    recording = Recording(self.__name__, observer, made, self._mode)
            except (NotReplayable, RecursionError) as stop:
                reason = str(stop)
                if at is not None and ", at " not in reason:
                    reason += f", at {at}"
                if refusal is None:
                    self._recorded_in_vain += 1
                observer.match.settle()
                self._give_up(refusal, observer.match, reason, stopped is not None)
            else:
                self._explanation.captures += 1
                recording.number, recording.why_recorded = self._explanation.captures, why
                self._keep(recording)
                self._recorded_in_vain += 1
        finally:
            observer.exception()
            local.observer = outer
            observer.end()
        return value

    def _keep(self, recording: Recording) -> None:
        with self._lock:
            if len(self._recordings) >= RECORDINGS_KEPT:
                coldest = min(reversed(self._recordings), key=lambda kept: kept.hits)
                self._recordings.remove(coldest)
                self._explanation.dropped += 1
                if _MANY not in self._explanation.reasons:
                    self._explanation.reasons.append(_MANY)
            self._recordings.insert(0, recording)
        recording.arguments.tie(recording, self._recordings, self._lost)

    def _give_up(self, refusal: _Refusal | None, guarded: Match, reason: str, ever: bool) -> None:
        """Note why a call was not kept; calls like it stay eager once that is sure."""
        if self._fullgraph:
            self._note(reason)
        if refusal is None:
            refusal = _Refusal(guarded, reason)
            self._refusals.append(refusal)
            guarded.tie(refusal, self._refusals, [])
            del self._refusals[:-RECORDINGS_KEPT]
        refusal.reason = self._explanation.why = reason
        # State that a first call sets up may stay as it is from now on.
        refusal.attempts_left = 0 if ever else refusal.attempts_left - 1
        if refusal.attempts_left <= 0:  # later ones may take another branch
            refusal.pause()
            self._note(reason)


def _learn(observer: Observer, function: Any, label: str) -> None:
    """Take note of what is called: it was there before."""
    constant = observer.match.constant
    if type(function) is MethodType:
        _learn(observer, function.__func__, label)
        _learn(observer, function.__self__, "self")
    observer.learn(function, constant(function), label, True)
