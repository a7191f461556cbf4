"""The judge: runs the plain function beside every replay of `flow.compile`, and compares them.

Compiled equals eager, or it is refused: while the judge is on, each call that a recording matches
runs twice from one state of the world, plainly and as a replay. Both must dispatch, return, change
and draw the same.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from oneflow_lite.arrays.device import CPU
from oneflow_lite.arrays.dtype import default_float, set_default_dtype
from oneflow_lite.compiler import recording
from oneflow_lite.errors import CaptureError
from oneflow_lite.functors.random import default_generator
from oneflow_lite.interpreter.stack import AutogradInterpreter, EagerInterpreter, Interpreter
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.static.ir.program import Block
from oneflow_lite.tensors import hooks
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.tensors.tensor import Tensor
from tests.judge.judged_world import World, difference

# Control flow that a Program holds takes both branches as they were, and gives contiguous results.
NEAR = 1e-13
_OF_CONTROL_FLOW = frozenset(
    (".stride()", "'s place in the graph", "'s memory", "._base", ".memory", ".version")
)
# How often a call that raised has written, and in which order, is nobody's business.
_OF_ERRORS = frozenset((".version",))


class JudgeError(AssertionError):
    """A replay of a compiled function did something else than the plain function."""


class TracedOp(NamedTuple):
    """One op as it was dispatched: of constants also the bits are known."""

    name: str
    attrs: dict[str, Any]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    chooses: bool = False  # among blocks
    draws_elsewhere: bool = False  # random numbers, on another device than the CPU


class Compiled(Protocol):
    """A compiled function: what the judge asks of it."""

    __wrapped__: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def explain(self) -> Any: ...


class Judge:
    """Compares; the one that is on stands in `oneflow_lite/compiler/recording.py`.

    Attributes
    ----------
    raises : bool
        Whether a difference raises `JudgeError` at the call; else it is noted only.
    recordings : bool
        Whether calls that are recorded, or run eagerly, are judged as well.
    most : int or None
        How many replays of each compiled function are judged.
    verdicts : list of str
        The differences so far.
    calls : int
        The calls that were judged.
    """

    def __init__(
        self, raises: bool = True, recordings: bool = False, most: int | None = None
    ) -> None:
        self.raises = raises
        self.recordings = recordings
        self.most = most
        self.verdicts: list[str] = []
        self.calls = 0
        self._lock = threading.RLock()
        self._of_thread = threading.local()

    def traced(self, block: Block) -> list[TracedOp]:
        """Return the ops of a recording, before any pass has seen them."""
        return traced(block)

    def is_free(self) -> bool:
        """Return whether this thread is not in a call that is being judged."""
        return not getattr(self._of_thread, "busy", False)

    def takes(
        self, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[], Any] | None:
        """Return what runs a call both ways; None where it is not judged."""
        if not self.is_free() or (self.most is not None and compiled.explain().hits >= self.most):
            return None
        for each in compiled._recordings:
            if each.match(args, kwargs) is not None:
                known = each.outside.tensors
                return functools.partial(self, compiled, args, kwargs, each.trace, known)
        return functools.partial(self, compiled, args, kwargs) if self.recordings else None

    def __call__(
        self,
        compiled: Compiled,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        trace: Sequence[TracedOp] | None = None,
        tensors: Sequence[Tensor] | None = None,
    ) -> Any:
        """Run a call of a compiled function both ways; return what the compiled one returned.

        Parameters
        ----------
        compiled : CompiledFunction
        args, kwargs
            Of the call.
        trace : sequence of TracedOp, optional
            What the recording that matches dispatched, if it was made under a judge.
        tensors : sequence of Tensor, optional
            Those that the recording knows besides the arguments; None when none matches.

        Raises
        ------
        JudgeError
        """
        with self._lock:
            self._of_thread.busy = True
            try:
                if trace is not None and any(op.draws_elsewhere for op in trace):
                    return compiled(*args, **kwargs)  # such generators cannot be put back
                verdict, outcome = self._compare(compiled, args, kwargs, trace, tensors)
            finally:
                self._of_thread.busy = False
        self.calls += 1
        if verdict is not None:
            verdict = f"{getattr(compiled, '__name__', 'compiled function')}(): {verdict}"
            self.verdicts.append(verdict)
            if self.raises:
                raise JudgeError(verdict)
        return outcome.get()

    def _compare(
        self,
        compiled: Compiled,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        trace: Sequence[TracedOp] | None,
        tensors: Sequence[Tensor] | None,
    ) -> tuple[str | None, Outcome]:
        roots = {
            "the function": compiled.__wrapped__,
            "args": args,
            "kwargs": kwargs,
            "tensors of the recording": tuple(tensors or ()),
            "the default generator": default_generator,
            "the generator of `random`": getattr(random, "_inst"),  # noqa: B009
            "the generator of `numpy.random`": np.random.mtrand._rand,
            "the hooks on all modules": EVERYWHERE,
        }
        mode, dtype, number = local.state, default_float(), next(hooks._ids)
        before = World(roots)
        chooses = trace is not None and any(op.chooses for op in trace)
        tracer = Tracer(trace if not chooses else None)
        with StateChange(interpreter=AutogradInterpreter(tracer)):
            plain = Outcome(compiled.__wrapped__, args, kwargs)
        left = World(_after(roots, plain), before)
        before.put_back()
        plain.forget_warnings()
        local.state = mode
        set_default_dtype(dtype)
        hooks._ids = itertools.count(number + 1)
        hits = compiled.explain().hits
        replay = Outcome(compiled, args, kwargs)
        if tensors is None:
            if plain.error is None and isinstance(replay.error, CaptureError):
                return None, replay  # it is refused
        elif compiled.explain().hits != hits + 1:
            return "the recording does not match any more once the state was put back", replay
        for stream, text in zip((sys.stdout, sys.stderr), replay.texts, strict=True):
            stream.write(text)
        for warning in replay.warned:
            warnings.showwarning(*warning)
        found = World(_after(roots, replay), before, left)
        verdict = tracer.difference(plain.error is None)
        if plain.warned != replay.warned:
            verdict = f"it warned {plain.warned}; the replay {replay.warned}"
        if verdict is None:
            unlike = _OF_CONTROL_FLOW if chooses else frozenset()
            if plain.error is not None:
                unlike |= _OF_ERRORS
            verdict = difference(left, found, NEAR if chooses else 0.0, unlike)
        return verdict, replay


class Outcome:
    """The outcome of a call: a value or an exception, and what it printed."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self.printed = [io.StringIO(), io.StringIO()]
        self.warned: list[tuple[Any, ...]] = []  # what filters let through
        out, err = self.printed
        shown, warnings.showwarning = warnings.showwarning, self._warned
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                self.value = function(*args, **kwargs)
            except Exception as error:
                self.error = error
            finally:
                warnings.showwarning = shown
        self.texts = [stream.getvalue() for stream in self.printed]

    def _warned(self, message: Any, category: type, filename: str, lineno: int, *_: Any) -> None:
        own = category is RuntimeWarning  # NumPy's name lines of its caller
        if not own and not str(message).startswith("flow.compile: "):
            self.warned.append((str(message), category, filename, lineno))

    def forget_warnings(self) -> None:
        """Have filters let warnings through once more that are shown once at a place."""
        for text, category, filename, lineno in self.warned:
            for module in list(sys.modules.values()):
                if getattr(module, "__file__", None) == filename:
                    vars(module)["__warningregistry__"].pop((text, category, lineno), None)

    def get(self) -> Any:
        """Return the value, or raise the exception."""
        if self.error is not None:
            raise self.error
        return self.value


def _after(roots: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Return what to look at after a call."""
    error = outcome.error
    return {
        "the exception": None if error is None else (type(error).__name__, str(error)),
        "the result": outcome.value,
        **roots,
        "the output": tuple(outcome.texts),
        "grad mode": local.state.grad_enabled,
        "inference mode": local.state.inference,
        "the default dtype": default_float(),
    }


class Tracer(Interpreter):
    """Runs ops eagerly, and compares each with the one that stands in the recording there."""

    def __init__(self, expected: Sequence[TracedOp] | None) -> None:
        self.inner: Interpreter = EagerInterpreter()
        self.expected = expected
        self.position = 0
        self.found: str | None = None

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run the op, and see whether it was recorded."""
        arrays = [None if x is None else x._data for x in inputs]
        specs = tuple([None if a is None else _spec(a) for a in arrays])
        bits = [None if a is None or a.size > 1 else _bits(a) for a in arrays]
        try:
            result = self.inner.apply(op_expr, inputs, attrs)
        except Exception:  # so does the replay, and the function is run instead
            self.expected = None
            raise
        outputs = result if type(result) is tuple else (result,)
        first = outputs[0]._data
        handed_through = not op_expr.schema.mutates and any([first is a for a in arrays])
        if self.expected is not None and self.found is None and not handed_through:
            made = TracedOp(
                op_expr.op_type_name, attrs, specs, tuple([_spec(y._data) for y in outputs])
            )
            self._compare(made, bits)
        return result

    def _compare(self, made: TracedOp, bits: Sequence[Any]) -> None:
        assert self.expected is not None
        place = f"op {self.position}"
        if self.position >= len(self.expected):
            self.found = f"{place}: the plain function dispatches {made.name}(), the recording none"
            return
        op = self.expected[self.position]
        self.position += 1
        inputs = tuple([None if x is None else x[:2] for x in op.inputs])
        for what, have, want in (
            ("name", op.name, made.name),
            ("inputs", inputs, made.inputs),
            ("attributes", sorted(op.attrs), sorted(made.attrs)),
            ("outputs", op.outputs, made.outputs),
        ):
            if have != want:
                self.found = (
                    f"{place}, {made.name}(): the {what}: the recording has {have}, the plain "
                    f"function {want}"
                )
                return
        for name, value in op.attrs.items():
            if not _alike(value, made.attrs[name]):
                self.found = (
                    f"{place}, {made.name}(): the attribute {name}: the recording has {value!r}, "
                    f"the plain function {made.attrs[name]!r}"
                )
                return
        for i, (x, actual) in enumerate(zip(op.inputs, bits, strict=True)):
            if x is not None and x[2] is not None and actual is not None and x[2] != actual:
                self.found = f"{place}, {made.name}(): input {i} is another number now"
                return

    def difference(self, is_whole: bool) -> str | None:
        """Say where the ops differ; those that an exception kept from running do not count."""
        left = (self.expected or ())[self.position :]
        if self.found is None and is_whole and left:
            name = left[0].name
            return f"op {self.position}: the recording has {name}(), the plain function none"
        return self.found


def _spec(array: Any) -> tuple[Any, ...]:
    return (tuple(array.shape), array.dtype)


def _bits(array: Any) -> bytes:
    return bytes(array.tobytes())


def _alike(a: Any, b: Any) -> bool:
    """Return whether two attributes of an op are the same."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, float):
        return repr(a) == repr(b)
    if type(a) in (bool, int, str, bytes, complex, slice) or isinstance(a, np.dtype):
        return bool(a == b)
    return True  # objects that only the op knows


def traced(block: Block) -> list[TracedOp]:
    """Return the ops of a recording, before any pass has seen them."""

    def described(name: str | None, is_input: bool) -> tuple[Any, ...] | None:
        if name is None:
            return None
        desc = block.var(name)
        if not is_input:
            return (desc.shape, desc.dtype)
        small = desc.value is not None and desc.value.size <= 1
        return (desc.shape, desc.dtype, _bits(desc.value) if small else None)

    return [
        TracedOp(
            op.type,
            dict(op.attrs),
            tuple([described(name, True) for name in op.inputs]),
            tuple([described(name, False) for name in op.outputs]),
            bool(op.blocks),
            op.draws and any(block.var(name).device != CPU for name in op.outputs),
        )
        for op in block.ops
        if op.number >= 0  # others are no ops of the plain function
    ]


@contextlib.contextmanager
def judge(
    raises: bool = True, recordings: bool = False, most: int | None = None
) -> Iterator[Judge]:
    """Judge every replay of a compiled function, on all threads, within a `with` block.

    The plain function runs beside every replay, and all that it can reach is looked at three times.

    Parameters
    ----------
    raises : bool
        Whether a difference raises at the call; else it stands in `verdicts`. One that the code in
        the block caught is raised at the end of it.
    recordings : bool
        Whether calls that are recorded, or run eagerly, are judged as well.
    most : int, optional
        How many replays of each compiled function are judged; all by default.

    Raises
    ------
    JudgeError
        Where a replay does something else than the plain function.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from tests.judge import judge
    >>> double = flow.compile(lambda x: x * 2)
    >>> with judge() as judged:
    ...     results = [double(flow.ones(2)) for _ in range(3)]
    >>> judged.calls, judged.verdicts
    (2, [])
    """
    made = Judge(raises, recordings, most)
    before, recording.judge = recording.judge, made
    try:
        yield made
    finally:
        recording.judge = before
    if raises and made.verdicts:
        raise JudgeError(made.verdicts[0])
