"""A replay that is stopped at any of its instructions leaves what eager code leaves there."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays import locks
from oneflow_lite.static.runtime import takeover
from tests.static.interruptions import (
    WORLDS,
    Failure,
    Fuse,
    Interrupt,
    World,
    eagerly,
    fuse_kernels,
    fuse_steps,
)

pytestmark = pytest.mark.unjudged("a kernel, or an instruction, of a number raises")

by_kind = pytest.mark.parametrize("kind", [Failure, Interrupt])


class Eager:
    """The state where eager code stops: before each op, and in the middle of it."""

    def __init__(self, name: str, kind: type[BaseException], device: str = "cpu") -> None:
        world, fuse = World(WORLDS[name], device), Fuse()
        world.settle(world.function)
        self.last = world.outcome(lambda: world.function(*world.args))
        assert world.outcome(lambda: eagerly(fuse, world.function, *world.args)) == self.last
        self.count = fuse.calls
        self.states = [world.outcome(_raiser(kind))]
        for number in range(self.count):
            for when in ("before", "after"):
                fuse.blow(number, kind, when)
                self.states.append(
                    world.outcome(lambda: eagerly(fuse, world.function, *world.args))
                )

    def places(self, outcome: Any, without_result: bool = False) -> list[int]:
        """Return at which of its stops eager code left the same, be versions ahead or not."""
        return [i for i, state in enumerate(self.states) if _fits(outcome, state, without_result)]


def _fits(outcome: Any, state: Any, without_result: bool) -> bool:
    """Return whether all but higher versions is the same."""
    pairs = list(zip(outcome[1], state[1], strict=True))
    return (
        (without_result or outcome[0] == state[0])
        and outcome[2:] == state[2:]
        and all(a[0] == b[0] and a[2] == b[2] for a, b in pairs)
        and all(a[1] >= b[1] and a[3] >= b[3] for a, b in pairs)
    )


def _raiser(kind: type[BaseException]) -> Callable[[], Any]:
    def call() -> Any:
        raise kind("there")

    return call


def compiled_world(name: str, mode: str, device: str = "cpu") -> tuple[World, Any]:
    world = World(WORLDS[name], device)
    compiled = flow.compile(world.function, mode=mode)
    world.settle(compiled)
    assert compiled.explain().hits >= 2, compiled.explain()
    return world, compiled


def stop_each(world: World, compiled: Any, fuse: Fuse, eager: Eager, kind: Any, when: str) -> Any:
    """Stop a replay at each call of the fuse; return the places where eager code stood then."""
    hits = compiled.explain().hits
    fuse.blow(-1, kind, when)
    assert world.outcome(lambda: compiled(*world.args)) == eager.last
    count = fuse.calls
    found = []
    for number in range(count):
        fuse.blow(number, kind, when)
        outcome = world.outcome(lambda: compiled(*world.args))
        assert fuse.blown
        places = eager.places(outcome)
        assert places, (number, outcome[0], outcome[2])
        found.append(places)
        fuse.blow(-1, kind, when)
        assert world.outcome(lambda: compiled(*world.args)) == eager.last
    assert compiled.explain().hits == hits + 1 + 2 * count
    return found


def check_order(found: list[list[int]]) -> None:
    """Eager code came farther each time."""
    at = 0
    for places in found:
        at = next(place for place in places if place >= at)


@pytest.mark.slow(but=8)
@pytest.mark.parametrize("when", ["before", "after"])
@by_kind
@pytest.mark.parametrize("name", WORLDS)
def test_straight_line(name: str, kind: type[BaseException], when: str) -> None:
    eager = Eager(name, kind)
    world, compiled = compiled_world(name, "straight_line")
    fuse = Fuse()
    with fuse_kernels(compiled, fuse):
        found = stop_each(world, compiled, fuse, eager, kind, when)
    check_order(found)
    assert 3 < len(found) <= eager.count


@pytest.mark.slow(but=5)
@by_kind
@pytest.mark.parametrize("name", WORLDS)
def test_work_queue(name: str, kind: type[BaseException]) -> None:
    eager = Eager(name, kind)
    world, compiled = compiled_world(name, "work_queue")
    fuse = Fuse()
    with fuse_kernels(compiled, fuse):
        stop_each(world, compiled, fuse, eager, kind, "after")


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["adam_step", "sums_of_gradients", "two_optimizers", "handlers"])
def test_cuda_graph(name: str, when: str, cuda: Any) -> None:
    """Nobody knows whether a graph was launched: versions count what it writes."""
    eager = Eager(name, Interrupt, "cuda")
    world, compiled = compiled_world(name, "cuda_graph", "cuda")
    fuse = Fuse()
    fuse_steps(compiled, fuse)
    found = stop_each(world, compiled, fuse, eager, Interrupt, when)
    check_order(found)
    assert len(found) > (3 if name != "handlers" else 0)


class Tracer:
    """Raises at the bytecode instruction of a number, outside of kernels and of threading.py.

    An interrupt between two instructions of `Condition.wait` loses Python's own lock.
    """

    skipped: tuple[str, ...] = (f"{os.sep}kernels{os.sep}", f"{os.sep}numpy{os.sep}")

    def __init__(self, number: int) -> None:
        self.number, self.count = number, 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        if any(part in path for part in self.skipped):
            return None
        if path == threading.__file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.count += 1
            if self.count == self.number:
                raise Interrupt("there")
        return self

    def calling(self, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        def call() -> Any:
            before = sys.gettrace()
            sys.settrace(self)
            try:
                return function(*args)
            finally:
                sys.settrace(before)
                _release_locks()

        return call


def _release_locks() -> None:
    """Release what a `with` has kept: a tracer stops it before its exit, where no signal comes."""
    for lock in list(locks._locks):
        while lock._is_owned():
            lock.release()


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("name", "mode", "stride"),
    [
        ("adam_step", "straight_line", 11),
        ("dropout_and_statistics", "straight_line", 11),
        ("handlers", "straight_line", 1),
        ("assigned_gradients", "straight_line", 1),
        ("two_optimizers", "straight_line", 5),
        ("only_forward", "straight_line", 3),
        ("effects", "straight_line", 1),
        ("effects_written_twice", "straight_line", 3),
        ("handlers", "work_queue", 83),
    ],
)
def test_anywhere(name: str, mode: str, stride: int) -> None:
    """An interrupt between any two instructions of Python leaves what eager code may leave."""
    eager = Eager(name, Interrupt)
    eager.states.append(eager.last)
    world, compiled = compiled_world(name, mode)
    tracer = Tracer(0)
    assert world.outcome(tracer.calling(compiled, *world.args)) == eager.last
    assert tracer.count > 500
    for number in range(1, tracer.count, stride):
        outcome = world.outcome(Tracer(number).calling(compiled, *world.args))
        assert eager.places(outcome, without_result=True), (number, outcome)
        assert world.outcome(lambda: compiled(*world.args)) == eager.last


class KernelTracer(Tracer):
    """Raises inside of kernels, too."""

    skipped = ()


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("mode", ["straight_line", "eager", "work_queue", "machine code"])
@pytest.mark.parametrize("name", ["sums_of_gradients", "adam_step", "two_optimizers"])
def test_every_write_is_counted(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor with new values has a new version after an interrupt, also inside of a kernel.

    The next call does what it does without an interrupt.
    """
    machine_code = mode == "machine code"
    if machine_code:
        pytest.importorskip("numba", reason="the extra `jit` is not installed")
        monkeypatch.setattr(takeover, "_AT_LEAST", 1)
        monkeypatch.setattr(takeover, "_AT_MOST", 1)
    world = World(WORLDS[name])
    with flow.use_jit(machine_code):
        function = world.function
        if mode != "eager":
            function = flow.compile(function, mode="straight_line" if machine_code else mode)
        world.settle(function)
        usual = world.outcome(lambda: function(*world.args))
        assert not machine_code or function.explain().loops
        tracer = KernelTracer(0)
        assert world.outcome(tracer.calling(function, *world.args)) == usual
        for number in range(1, tracer.count, tracer.count // 60):
            seen: list[tuple[Any, Any, Any, int]] = []

            def stopped(number: int = number, seen: Any = seen) -> Any:
                grads = [t.grad for t in world.everything() if t.grad is not None]
                tensors = [*world.everything(), *grads]
                seen += [(t, t._data, t._data.copy(), t._version) for t in tensors]
                return KernelTracer(number).calling(function, *world.args)()

            with flow.set_grad_enabled(True):  # which an interrupt before a `try` leaves switched
                world.outcome(stopped)
            for t, array, before, version in seen:
                assert t._version > version or np.array_equal(array, before), number
            assert world.outcome(lambda: function(*world.args)) == usual


def copied(name: str) -> int:
    """Return how many arrays a replay copies in case it is stopped."""
    world, compiled = compiled_world(name, "straight_line")
    recording = compiled._recordings[0]
    if recording.recovery is None:
        return 0
    feeds = [world.args[i]._data for i in recording.feed_positions]
    undo = recording.recovery.keep(feeds, recording.externals).undo
    return sum(isinstance(each.func.__self__, np.ndarray) for each in undo)


@pytest.mark.parametrize(
    ("name", "count"),
    [("adam_step", 0), ("only_forward", 0), ("sums_of_gradients", 0), ("dropout_and_statistics", 3),
     ("handlers", 2), ("two_optimizers", 1), ("effects", 2), ("effects_written_twice", 1)],
)  # fmt: skip
def test_what_is_copied(name: str, count: int) -> None:
    """Arrays are copied if a write comes before the last gradient or the last handler's end.

    In `effects` these are the targets of both updates, for a counter is written before and between.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert copied(name) == count


@pytest.fixture
def alarm() -> Iterator[Callable[[float, type[BaseException]], None]]:
    """Have a signal handler raise an exception after some seconds."""
    kinds: list[type[BaseException]] = []

    def handler(number: int, frame: Any) -> None:
        raise kinds[0]

    def set_alarm(seconds: float, kind: type[BaseException]) -> None:
        kinds[:] = [kind]
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, handler)
    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_real_signals(
    mode: str, kind: type[BaseException], alarm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions count all that was written, and every interrupt arrives.

    But for those that come while a finalizer runs: Python itself drops them, and says so. One that
    comes between two lines of `Condition.wait` loses Python's own lock, and arrives as the context
    of an error that says that.
    """
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: dropped.append(found.exc_type))
    n = 20_000
    w, m = flow.zeros(n, requires_grad=True), flow.zeros(n)

    def step(x: Any) -> Any:
        w.grad = None
        loss = (w * x).sum()
        loss.backward()
        with flow.no_grad():
            for _ in range(10):
                w.sub_(w.grad)
                m.add_(w.grad)
        return loss.detach()

    compiled = flow.compile(step, mode=mode)
    x = flow.ones(n)
    for _ in range(3):
        compiled(x)
    start = time.perf_counter()
    compiled(x)
    long = time.perf_counter() - start
    arrived = 0
    for k in range(40):
        before, writes = [t.detach().numpy().copy() for t in (w, m)], (w._version, m._version)
        product = (w * m).sum()  # which saves m
        try:
            alarm(long * (0.05 + k / 45), kind)
            compiled(x)
            time.sleep(1)
        except kind:
            arrived += 1
        except RuntimeError as error:
            if type(error.__context__) is not kind or "un-acquired lock" not in str(error):
                raise
            arrived += 1
        after = [t.detach().numpy() for t in (w, m)]
        counts = w._version - writes[0], m._version - writes[1]
        for old, new, count, sign in zip(before, after, counts, (-1, 1), strict=True):
            assert 0 <= count <= 10
            np.testing.assert_array_less(np.abs(new - old - sign * count), 1.5)
            assert count or np.array_equal(old, new)
        if counts[1]:
            with pytest.raises(flow.errors.StaleTensorError):
                product.backward()
    assert arrived + dropped.count(kind) == 40


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_failing_op_after_a_write_meets_its_handler(fullgraph: bool) -> None:
    count, w = flow.zeros(2), flow.ones(2, 2)

    def f(x: Any) -> Any:
        count.add_(1)
        w.mul_(2)
        try:
            root = flow.linalg.cholesky(x + w * 0)
        except flow.linalg.LinAlgError:
            count.sub_(10)
            return w * 3
        count.add_(1)
        return root

    compiled = flow.compile(f, fullgraph=fullgraph)
    good, bad = flow.eye(2), -flow.eye(2)
    for _ in range(3):
        compiled(good)
    hits = compiled.explain().hits
    results = []
    for function in (compiled, f):
        before = count.numpy().copy(), w.numpy().copy(), count._version, w._version
        y = function(bad)
        results.append((y / w, count - before[0], w / before[1], count._version - before[2]))
        assert w._version == before[3] + 1
    for one, other in zip(*results, strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)
    assert compiled.explain().hits == hits + 1
    compiled(good)
    assert compiled.explain().hits == hits + 2


@pytest.mark.parametrize("handle", [False, True])
def test_warnings_that_raise(handle: bool) -> None:
    """NumPy writes its result before it raises; eager code has not written it home by then."""
    w, v = flow.ones(3), flow.zeros(3)

    def f(x: Any) -> Any:
        v.add_(1)
        if handle:
            try:
                w.div_(x)
            except (FloatingPointError, RuntimeWarning):
                v.add_(10)
                raise
        else:
            w.div_(x)
        v.add_(1)

    compiled = flow.compile(f)
    for _ in range(3):
        compiled(flow.full((3,), 2.0))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(flow.zeros(3))
    assert w.tolist() == [0.125] * 3 and v.tolist() == [7 + 10 * handle] * 3
    with pytest.raises(RuntimeWarning), warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(flow.zeros(3))
    assert w.tolist() == [0.125] * 3 and v.tolist() == [8 + 20 * handle] * 3
    assert w._version == 3
    assert compiled.explain().hits == 4


def test_an_option_that_is_wrong_raises_in_the_step() -> None:
    """The options are brought up to date before the Program; the function finds out later."""
    w = flow.ones(2, requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    compiled = flow.compile(step)
    for _ in range(3):
        compiled()
    old = w.grad
    optimizer.param_groups[0]["lr"] = "fast"
    with pytest.raises((TypeError, ValueError)):
        compiled()
    assert w.grad is not old and w.grad.tolist() == pytest.approx([1.024] * 2)


def test_nothing_holds_on_to_an_exception() -> None:

    w = flow.ones(2)

    def f(x: Any) -> Any:
        w.add_(1)
        try:
            return flow.linalg.cholesky(x)
        finally:
            w.sub_(1)

    compiled = flow.compile(f)
    for _ in range(3):
        compiled(flow.eye(2))
    gc.collect()
    gc.disable()
    try:
        x = -flow.eye(2)
        seen = weakref.ref(x)
        with contextlib.suppress(flow.linalg.LinAlgError):
            compiled(x)
        del x
        assert seen() is None
    finally:
        gc.enable()
