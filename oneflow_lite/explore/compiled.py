"""Compiled functions in the explorer's document: their recordings, with guards and reasons.

The document has the counts and reasons of `explain()`, the guards of each recording in words, its
Program, and the outcomes of the calls that the explorer watched.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

from oneflow_lite.compiler.compiled_node import CompiledGradFunction
from oneflow_lite.compiler.face import function_of
from oneflow_lite.compiler.function import CompiledFunction, _Refusal
from oneflow_lite.compiler.graph import Graph
from oneflow_lite.compiler.match import OUTSIDE, Match
from oneflow_lite.compiler.recording import Recording
from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.explore.programs import Events, Measured, Part, core_part, placed, rehearsed
from oneflow_lite.explore.values import Values
from oneflow_lite.profiler.recorder import Recorder, replaced
from oneflow_lite.profiler.session import record_function
from oneflow_lite.tensors.mode import StateChange, local

_CALLS, _MEASURED = 1000, 50  # calls of one function that are described, and measured
_RESULTS = 2000  # of all replays that are written down


def is_compiled(value: Any) -> bool:
    """Return whether `flow.compile` made an object or compiled its calls in place."""
    return _function_of(value) is not None


def compiled_part(compiled: Any, *, number: int = 0, values: bool = True) -> Part:
    """Return the document's part of a compiled function, as it is now.

    Parameters
    ----------
    compiled : callable
        A result of `flow.compile`, a method that it decorates, a Module whose `compile` was called,
        or an `nn.Graph`.
    number : int
        The id of the part.
    values : bool
        Whether the values that guards compare with, and generated code, are in it.

    Returns
    -------
    dict
        - "id", "name", "mode", "fullgraph"
        - "source": file and line of the function, or None
        - "captures", "hits", "fallbacks", "kept", "dropped", "reasons", "why", "loops",
          "building": as `explain()` has them; "why" is empty without values
        - "recordings": all that are kept, in the order in which a call tries them: "number" (of the
          capture), "hits", "why" (how its call differed from the last recording), "guards", "modes"
          ("grad", "inference", "default_dtype"), "outside" (tensors from outside that it reads or
          writes: "shape", "dtype", "requires_grad"), "program" and "backward" (one for each node
          that a replay makes), both as from `core_part`
        - "refusals": calls that were not kept: "reason", "attempts" (similar calls to try before
          such calls stay eager for a while), "paused" (calls that stay eager before the next
          attempt), "guards" (of the calls that are refused)
        - "calls": the calls that were watched and their outcomes, see `Watch`

        A guard has "words" and, with values, its "code".

    Raises
    ------
    ArgumentTypeError
        For an object that is not compiled.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.explore.compiled import compiled_part
    >>> scale = flow.compile(lambda x, n: x * n)
    >>> for n in (2, 2, 3):
    ...     y = scale(flow.ones(2), n)
    >>> part = compiled_part(scale)
    >>> part["captures"], part["hits"], part["why"].startswith("n was 2, is 3, at ")
    (2, 1, True)
    >>> [recording["why"].partition(", at ")[0] for recording in part["recordings"]]
    ['n was 2, is 3', '']
    >>> "n is 3" in [guard["words"] for guard in part["recordings"][0]["guards"]]
    True
    """
    return _part(_checked(compiled), _Seen(), number, values)


def _checked(compiled: Any) -> CompiledFunction:
    function = _function_of(compiled)
    if function is None:
        raise arg_error(
            "explore",
            "compiled",
            expected="what flow.compile returned",
            got=type(compiled).__name__,
            hint="compile it first",
            kind=ArgumentTypeError,
        )
    return function


def _function_of(compiled: Any) -> CompiledFunction | None:
    return function_of(compiled._compiled if isinstance(compiled, Graph) else compiled)


class _Seen:
    """The facts about a function whose calls are watched."""

    def __init__(self) -> None:
        self.calls: list[_WatchedCall] = []
        self.count = 0
        self.measured: dict[Recording, Measured] = {}
        # The fed arrays of each recording that was not replayed so far.
        self.fed: dict[Recording, list[Any]] = {}


class _WatchedCall:
    """One call, and its outcome."""

    def __init__(self, function: CompiledFunction, args: tuple[Any, ...], kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.before = list(function._recordings)
        self.asked = [(each, each.why(args, kwargs)) for each in self.before]
        self.hits = {each: each.hits for each in self.before}
        self.refusals = {id(each): each.attempts_left for each in function._refusals}
        self.captures = function._explanation.captures
        self.fallbacks = function._explanation.fallbacks
        self.outcome, self.why = "plain", ""
        self.after = 0
        self.made: dict[str, list[str]] = {}
        self.recording: Recording | None = None

    def end(self, error: BaseException | None) -> None:
        """Find the outcome, from what the call changed in the function."""
        function = self.function
        recordings = function._recordings
        self.recording = next((each for each in self.before if each.hits > self.hits[each]), None)
        if self.recording is not None:
            self.outcome, self.asked = "replayed", []
        elif function._explanation.captures > self.captures:
            self.outcome = "recorded"
            self.recording = next((each for each in recordings if each not in self.hits), None)
            self.why = "" if self.recording is None else self.recording.why_recorded
        elif error is not None:
            self.outcome, self.why = "raised", type(error).__name__
        else:
            changed = [
                each for each in function._refusals
                if self.refusals.get(id(each)) != each.attempts_left
            ]  # fmt: skip
            refusal = changed[-1] if changed else function._refusal(self.args, self.kwargs)
            eager = function._explanation.fallbacks > self.fallbacks
            if eager or refusal is not None:
                self.outcome = "eager"
                self.why = _reason(function, refusal)
        del self.args, self.kwargs, self.before

    def _ops(self) -> list[Part] | None:
        """Return the ops of the call, with their results if it was replayed; None if unknown."""
        if self.recording is None or (self.outcome == "replayed" and not self.made):
            return None
        return [
            {
                "op": op.type,
                "source": placed(op.location),
                "results": [self.made.get(name) for name in op.outputs],
            }
            for op in self.recording.core.plan.block.ops
        ]

    def part(self, number: int, values: bool) -> Part:
        return {
            "call": number,
            "outcome": self.outcome,
            "recording": None if self.recording is None else self.recording.number,
            "why": self.why if values or self.outcome != "recorded" else "",
            "asked": [
                {"recording": each.number, "why": why if values else _without_values(why)}
                for each, why in self.asked
            ],
            "after": self.after,
            "ops": self._ops() if values else None,
        }


def _reason(function: CompiledFunction, refusal: _Refusal | None) -> str:
    return function._explanation.reasons[-1] if refusal is None else refusal.reason


def _without_values(why: str) -> str:
    """Return the reason of a recording without its values, as "n" of "n was 2, is 3"."""
    return why.partition(" was ")[0]


class Watch:
    """Watches the calls of compiled functions in a block.

    The calls are recorded and replayed as without an explorer, which takes its interpreter off for
    that time. Some replays are measured. Of a recording that was not replayed, a run on copies of
    its arrays is measured instead, where its guards hold after its call.

    The first 1,000 "calls" of each function are described: "call" (its number), "outcome"
    ("recorded", "replayed", "eager", "raised", else "plain"), "recording" (its number, or None),
    "why" (the reason to record, or to stay eager) and "asked" (unless it was replayed: "why" each
    earlier "recording" did not serve this call). Calls under a user's interpreter or mode are not
    described: they run plainly. "after" is the number of the ops before a call that are in the
    document. "ops" are those of a recorded call and, while there is room, of a replay, or None:
    "op", "source" and "results", each a pair of shape and dtype, and values, or None: those of a
    replay that machine code or passes did not leave out.

    Parameters
    ----------
    values : bool
        As for `compiled_part`.
    """

    def __init__(self, values: bool = True) -> None:
        self.values = values
        self._seen: dict[CompiledFunction, _Seen] = {}
        self.place: Callable[[], int] = lambda: 0  # how many ops the document has so far
        self._room, self._texts = _RESULTS, Values(values)

    def __enter__(self) -> Watch:
        self._outside = local.state
        call = CompiledFunction.__call__

        def watched(function: CompiledFunction, /, *args: Any, **kwargs: Any) -> Any:
            with self._as_if_nobody_looked():
                state = local.state
                if state.general or local.task is not None:
                    return call(function, *args, **kwargs)
                return self._watched(call, function, args, kwargs)

        self._put = replaced(CompiledFunction, "__call__", watched)
        next(self._put)
        return self

    def __exit__(self, *_: object) -> None:
        next(self._put, None)

    def show(self, compiled: Any) -> None:
        """Take in a compiled function that may not be called; see `compiled_part`."""
        self._seen.setdefault(_checked(compiled), _Seen())

    def parts(self) -> list[Part]:
        """Return the functions in the order of their first calls; see `compiled_part`."""
        return [
            _part(function, seen, number, self.values)
            for number, (function, seen) in enumerate(self._seen.items())
        ]

    def _as_if_nobody_looked(self) -> Any:
        """Return a context in which the explorer has pushed nothing."""
        state = local.state
        ours = [name for name in _LOOKING if _is_ours(getattr(state, name))]
        if not ours:
            return contextlib.nullcontext()
        return StateChange(**{name: getattr(self._outside, name) for name in ours})

    def _watched(
        self, call: Any, function: CompiledFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        seen = self._seen.setdefault(function, _Seen())
        seen.count += 1
        if seen.count > _CALLS:
            return call(function, *args, **kwargs)
        told = _WatchedCall(function, args, kwargs)
        told.after = self.place()
        seen.calls.append(told)
        measured = Measured(seen.count <= _MEASURED)

        def run() -> Any:
            with record_function(f"call of {function.__name__}"):
                return call(function, *args, **kwargs)

        error = None
        try:
            with self._noting(told.made, measured):
                return measured.measured(run)
        except BaseException as raised:
            error = raised
            raise
        finally:
            told.end(error)
            recording = told.recording
            if recording is not None and told.outcome == "replayed":
                seen.measured.setdefault(recording, Measured()).keep(measured.best)
            elif recording is not None:
                tensors = recording.match(args, kwargs)
                if tensors is not None:
                    seen.fed[recording] = [tensors[i]._data for i in recording.feed_positions]
            self._room -= len(told.made)
            error = None  # else the frame and the exception's traceback would hold each other

    @contextlib.contextmanager
    def _noting(self, made: dict[str, list[str]], measured: Measured) -> Iterator[None]:
        """Write down what each line of a replay makes, when it is made: memory is used again."""

        def note(names: Sequence[str], arrays: list[Any]) -> None:
            for name, array in zip(names, arrays, strict=False):
                if len(made) < self._room:
                    made[name] = [f"{list(array.shape)} {array.dtype}", self._texts.text(array)]

        if not (self.values and measured.goes_on and self._room > 0):
            yield
            return
        put = replaced(Recorder, "results", staticmethod(note))
        next(put)
        try:
            yield
        finally:
            next(put, None)


_LOOKING = ("interpreter", "trace", "saved_hooks", "anomaly")  # parts of a thread's state


def _is_ours(value: Any) -> bool:
    return type(value).__module__.startswith("oneflow_lite.explore.")


def _part(function: CompiledFunction, seen: _Seen, number: int, values: bool) -> Part:
    told = function.explain()
    return {
        "id": number,
        "name": function.__name__,
        "mode": function._mode or "straight_line",
        "fullgraph": function._fullgraph,
        "source": _place(function.__wrapped__),
        "captures": told.captures,
        "hits": told.hits,
        "fallbacks": told.fallbacks,
        "kept": told.kept,
        "dropped": told.dropped,
        "reasons": told.reasons,
        "why": told.why if values else "",
        "loops": told.loops,
        "building": told.building,
        "recordings": [
            _recording(function, recording, seen, values) for recording in function._recordings
        ],
        "refusals": [
            {
                "reason": refusal.reason,
                "attempts": max(refusal.attempts_left, 0),
                "paused": max(refusal.left, 0),
                "guards": _guards(refusal.guarded, values),
            }
            for refusal in function._refusals
        ],
        "calls": [call.part(i, values) for i, call in enumerate(seen.calls, 1)],
    }


def _recording(function: CompiledFunction, recording: Recording, seen: _Seen, values: bool) -> Part:
    name = f"{function.__name__}, recording {recording.number}"
    events: Events = ()
    unmeasured = "it was not replayed while the explorer looked"
    if recording in seen.measured:
        events, unmeasured = seen.measured[recording].best, ""
    elif recording in seen.fed and all(source.array is not None for source in recording.sources):
        arrays = [source.array for source in recording.sources]
        events, unmeasured = rehearsed(recording.core, seen.fed[recording], arrays)
    inference, grad_enabled, default, _ = recording.modes
    functions = recording.ending.functions
    return {
        "number": recording.number,
        "hits": recording.hits,
        "why": recording.why_recorded if values else _without_values(recording.why_recorded),
        "guards": _guards(recording.arguments, values),
        "modes": {
            "grad": grad_enabled,
            "inference": inference,
            "default_dtype": str(default),
        },
        "outside": [
            {
                "shape": list(tensor.shape),
                "dtype": str(tensor._data.dtype),
                "requires_grad": tensor.requires_grad,
            }
            for tensor in recording.outside.tensors
        ],
        "program": core_part(recording.core, events, unmeasured, title=name, values=values),
        "backward": [
            core_part(
                each.core,
                (),
                "it runs in a backward call",
                title=f"{name}, backward",
                values=values,
            )
            for each in functions
            if isinstance(each, CompiledGradFunction)
        ],
    }


def _guards(match: Match, values: bool) -> list[Part]:
    """Return the guards; with values, the words name the values of the recorded call."""
    parts: list[Part] = []
    for guard in match.guards:
        words = f"{guard.label}: as before"
        if guard.label != OUTSIDE and values:
            with contextlib.suppress(NameError):  # it is compared with what an argument holds
                _, value = guard.asked(match.names)
                same = value.removeprefix("a ")  # an object, described by its type alone
                words = f"{guard.label} is {value if same == value else f'the same {same}'}"
        parts.append({"words": words, "code": guard.condition if values else ""})
    return parts


def _place(function: Any) -> list[Any] | None:
    """Return the place of a function, or of the function that a call of an object runs."""
    if not isinstance(function, (FunctionType, MethodType)):
        function = getattr(function, "forward", type(function).__call__)
    if getattr(function, "__name__", "") == "_call_impl":  # of a module compiled in place
        function = function.__self__.forward
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return None if code is None else [code.co_filename, code.co_firstlineno]
