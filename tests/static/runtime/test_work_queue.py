"""The work-queue mode: threads, orders, streams, frees, errors, and names that share memory."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.device import as_device
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.work_queue import WorkQueue, earliest
from tests import strict_cupy
from tests.conftest import REAL_CARD
from tests.static.build import Builder, run_plainly
from tests.static.runtime.analysed_programs import (
    PROGRAMS,
    Case,
    draws,
    expected,
    forward,
    given,
    numbers,
    outcome,
    reseed,
    same,
    survives_all_orders,
    training_step,
    written_views,
)
from tests.static.runtime.passes.random_programs import GENERATOR, RandomProgram


@pytest.fixture(params=PROGRAMS.values(), ids=PROGRAMS)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param()


def core_of(case: Case, place: Any = None) -> InterpreterCore:
    b, fetches = case
    return InterpreterCore(
        b.program, b.feeds, fetches, as_device(place), passes=(), mode="work_queue"
    )


@pytest.fixture
def op() -> Iterator[Any]:
    """Registers ops for one test."""
    names = []

    def register(name: str, kernel: Any, **options: Any) -> str:
        flow.register_kernel(name, **options)(kernel)
        names.append(name)
        return name

    yield register
    for name in names:
        KERNELS.remove(name)


class TestOrder:
    def test_every_order_gives_the_same(self, case: Case) -> None:
        assert survives_all_orders(*case, core_of(case))

    def test_straight_line_gives_the_same(self, case: Case) -> None:
        b, fetches = case
        core = InterpreterCore(b.program, b.feeds, fetches, mode="straight_line")
        reseed(b)
        feeds, externals = given(b, core)
        straight = [*core.run(feeds, externals), *externals]
        assert same(outcome(b, core_of(case), None, threads=3), straight)

    @pytest.mark.parametrize("threads", [1, 2, 4])
    def test_threads(self, case: Case, threads: int) -> None:
        b, fetches = case
        core = core_of(case)
        right = expected(b, fetches, core)
        for _ in range(20):
            assert same(outcome(b, core, None, threads), right)

    def test_earliest_is_the_order_of_the_program(self) -> None:
        core = core_of(training_step())
        seen: list[int] = []

        def order(ready: Any) -> int:
            k = earliest(ready)
            seen.append(ready[k].index)
            return k

        outcome(training_step()[0], core, order)
        assert seen == list(range(len(core.instructions)))

    def test_runs_side_by_side(self) -> None:
        """Counts belong to a run: many threads run one core at a time."""
        case = forward()
        core = core_of(case)
        right = expected(*case, core)
        wrong: list[Any] = []

        def work() -> None:
            for _ in range(20):
                results = outcome(case[0], core, None, threads=2)
                if not same(results, right):
                    wrong.append(results)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_independent_ops_run_at_the_same_time(self, op: Any) -> None:
        meeting = threading.Barrier(2, timeout=60)
        waits = [False]

        def meet(xp: Any, x: Any) -> Any:
            if waits[0]:
                meeting.wait()  # returns when the other one is here
            return x + 1

        b = Builder()
        x = b.feed("x", numbers(2))
        op("meet", meet)
        core = core_of((b, (b.op("meet", x), b.op("meet", x))))
        waits[0] = True
        assert same(WorkQueue(core, threads=2).run([numbers(2)], []), [numbers(2) + 1] * 2)

    def test_context_variables_come_along(self, op: Any) -> None:
        b = Builder()
        x = b.feed("x", np.zeros(2))

        def invert(xp: Any, x: Any) -> Any:
            return 1 / x

        op("invert", invert)
        core = core_of((b, tuple(b.op("invert", x) for _ in range(8))))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            core.run([np.zeros(2)], [])
        with np.errstate(divide="ignore"):
            core.run([np.zeros(2)], [])


class TestMemory:
    def test_variables_are_dropped_after_their_last_use(self, op: Any) -> None:
        alive: list[tuple[str, list[bool]]] = []
        made: list[Any] = []

        def watched(xp: Any, x: Any, *, name: str) -> Any:
            alive.append((name, [ref() is not None for ref in made]))
            y = x + 1
            made.append(weakref.ref(y))
            return y

        op("watched", watched)
        b = Builder()
        name = b.feed("x", numbers(2))
        for step in "abc":
            name = b.op("watched", name, name=step)
        core = core_of((b, (name,)))
        alive.clear()
        made.clear()
        [result] = WorkQueue(core, 1, earliest).run([numbers(2)], [])
        assert alive == [("a", []), ("b", [True]), ("c", [False, True])]
        assert made[2]() is result

    def test_a_view_holds_the_memory_and_a_shape_does_not(self) -> None:
        b = Builder()
        x = b.feed("x", numbers(2, 3))
        a = b.op("exp", x)
        flat = b.op("reshape", a, shape=(6,))
        c = b.op("neg", x)
        zeros = b.op("zeros_like", c)
        core = core_of((b, (b.op("neg", flat), zeros)))
        assert core.last_live_ops[a] == ["exp"]
        assert core.last_live_ops_before_shrink[a] == ["exp"]
        assert core.last_live_ops[c] == ["neg"]
        assert survives_all_orders(b, (core.plan.fetches), core)

    def test_nothing_is_left_of_a_run(self) -> None:
        b, fetches = training_step()
        core = core_of((b, fetches))
        feeds, externals = given(b, core)
        feed = weakref.ref(feeds[0])
        results = WorkQueue(core, threads=1).run(feeds, externals)
        del feeds, results
        gc.collect()
        assert feed() is None


class TestSharedMemory:
    """Arrays given under two names, one of which is written: the order is the Program's."""

    def program(self) -> Case:
        b = Builder()
        x, y = b.feed("x", np.ones(4)), b.feed("y", np.ones(4))
        before = b.op("neg", y)
        b.op("copy_", x, b.op("exp", y))
        return b, (before, b.op("sqrt", y))

    @pytest.mark.parametrize("piece", [slice(0, 4), slice(3, None, -1), slice(2, 6), slice(3, 7)])
    def test_runs_in_order(self, piece: slice) -> None:
        b, fetches = self.program()
        core = core_of((b, fetches))
        for order in (None, lambda ready: len(ready) - 1):
            memory, plain = np.arange(1.0, 9.0), np.arange(1.0, 9.0)
            y = plain[piece]
            right = [-y]
            plain[:4] = np.exp(y)
            right.append(np.sqrt(y))
            results = WorkQueue(core, 3, order).run([memory[:4], memory[piece]], [])
            assert same([*results, memory], [*right, plain])

    def test_apart_they_may_go_in_any_order(self) -> None:
        case = self.program()
        core = core_of(case)
        assert {i.name for i in core.instructions if not core.downstream[i.index]} > {"copy_"}
        seen: list[str] = []

        def latest(ready: Any) -> int:
            k = max(range(len(ready)), key=lambda k: ready[k].index)
            seen.append(ready[k].name)
            return k

        memory = np.arange(1.0, 9.0)
        WorkQueue(core, 1, latest).run([memory[:4], memory[4:]], [])
        assert seen.index("sqrt") < seen.index("neg")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("shares", [True, False], ids=["shared", "apart"])
def test_random_programs(seed: int, shares: bool) -> None:
    """Views, writes and random draws in any order that is allowed: the bits of a plain run."""
    program = RandomProgram(seed)
    b, fetches = program.builder, program.fetches

    def arrays() -> dict[str, Any]:
        found = program.given(1)
        if not shares:
            found["alias"] = found["alias"].copy()
        GENERATOR.manual_seed(1)
        return found

    right = arrays()
    values = run_plainly(b.program, right)
    pick = random.Random(seed)
    picks = (None, lambda ready: len(ready) - 1, lambda ready: pick.randrange(len(ready)))
    for passes in (None, ()):
        core = InterpreterCore(b.program, b.feeds, fetches, passes=passes, mode="work_queue")
        core.check()
        for order in picks:
            found = arrays()
            feeds = [found[name] for name in b.feeds]
            externals = [found[name] for name in core.external_names]
            results = WorkQueue(core, 2, order).run(feeds, externals)
            assert same(results, [values[name] for name in fetches])
            assert same(list(found.values()), list(right.values()))


class TestErrors:
    @pytest.mark.parametrize("threads", [1, 3])
    def test_threads_end_and_the_next_run_works(self, op: Any, threads: int) -> None:
        broken = [False]

        def maybe(xp: Any, x: Any) -> Any:
            if broken[0]:
                raise KeyError("no")
            return x + 1

        op("maybe", maybe)
        b = Builder()
        x = b.feed("x", numbers(2))
        fetches = tuple(b.op("neg", b.op("maybe", x)) for _ in range(5))
        queue = WorkQueue(core_of((b, fetches)), threads)
        for broken[0] in (True, False, True, False):
            if broken[0]:
                with pytest.raises(KeyError) as caught:
                    queue.run([numbers(2)], [])
                assert caught.value.__notes__ == ["in op 'maybe'"]
            else:
                assert same(queue.run([numbers(2)], []), [-(numbers(2) + 1)] * 5)

    def test_an_interrupt_comes_through(self, op: Any) -> None:
        stops = [False]

        def stop(xp: Any, x: Any) -> Any:
            if stops[0]:
                raise KeyboardInterrupt
            return x + 1

        op("stop", stop)
        b = Builder()
        core = core_of((b, (b.op("stop", b.feed("x", numbers(2))),)))
        stops[0] = True
        with pytest.raises(KeyboardInterrupt):
            core.run([numbers(2)], [])

    def test_an_error_does_not_hold_the_run(self, op: Any) -> None:
        def refuse(xp: Any, x: Any) -> Any:
            if x[0]:
                raise KeyError("no")
            return x + 0

        op("refuse", refuse)
        b = Builder()
        core = core_of((b, (b.op("refuse", b.feed("x", np.zeros(2))),)))
        feed = np.ones(2)
        held = weakref.ref(feed)
        gc.disable()
        try:
            with contextlib.suppress(KeyError):
                WorkQueue(core, threads=1).run([feed], [])
                raise AssertionError
            del feed
            assert held() is None
        finally:
            gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_starts_its_own_threads() -> None:
    script = """
import os
import numpy as np
import oneflow_lite
from tests.static.runtime.test_work_queue import core_of, forward, outcome, expected, same
case = forward()
core = core_of(case)
right = expected(*case, core)
assert same(outcome(case[0], core, None, threads=3), right)
child = os.fork()
if not child:
    os._exit(0 if same(outcome(case[0], core, None, threads=3), right) else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120)


def test_no_thread_before_the_first_run() -> None:
    script = """
import threading
import oneflow_lite as flow
from tests.static.runtime.test_work_queue import core_of, forward
core_of(forward())
assert threading.enumerate() == [threading.main_thread()]
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120)


class TestStreams:
    @pytest.fixture
    def watch(self) -> Iterator[Any]:
        """Yield the record that the stand-in makes of streams; nothing may be left unordered."""
        if REAL_CARD:
            pytest.skip("only the stand-in sees what streams do")
        with strict_cupy.installed(), strict_cupy.watched() as watch:
            yield watch
            assert watch.found == []

    @pytest.mark.parametrize("make", [forward, training_step, written_views])
    def test_nothing_is_unordered(self, watch: Any, make: Any) -> None:
        b, fetches = make()
        core = core_of((b, fetches), "cuda")
        for threads in (1, 3):
            feeds, externals = given(b, core)
            externals = [core.plan.place.put(array) for array in externals]
            results = WorkQueue(core, threads).run(feeds, externals)
            results += [array.get() for array in externals]
            right = expected(b, fetches, core)
            assert all(np.allclose(a, r, atol=1e-5) for a, r in zip(results, right, strict=True))
        assert len({key for _, key in watch.kernels}) == 3  # computing, and each way of copying

    def test_without_its_events_it_is(self) -> None:
        if REAL_CARD:
            pytest.skip("only the stand-in sees what streams do")
        case = forward()
        with strict_cupy.installed(), strict_cupy.watched() as watch:
            core = core_of(case, "cuda")
            assert "event" in core.edge_kinds.values()
            core.edge_kinds = dict.fromkeys(core.edge_kinds, "synchronous")
            feeds, externals = given(case[0], core)
            core.run(feeds, [core.plan.place.put(array) for array in externals])
            assert any("reads" in line for line in watch.found)

    def test_memory_waits_for_its_last_use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if REAL_CARD:
            pytest.skip("only the stand-in sees what streams do")
        from oneflow_lite.static.runtime.streams import RunStreams

        case = forward()
        with strict_cupy.installed(), strict_cupy.watched() as watch:
            monkeypatch.setattr(RunStreams, "before_drop", lambda self, slot: None)
            core = core_of(case, "cuda")
            feeds, externals = given(case[0], core)
            core.run(feeds, [core.plan.place.put(array) for array in externals])
            assert any("freed" in line for line in watch.found)

    def test_random_ops_on_a_device(self, watch: Any) -> None:
        b, fetches = draws()
        core = core_of((b, fetches), "cuda")
        runs = []
        for order in (None, lambda ready: len(ready) - 1):
            reseed(b)
            runs.append(WorkQueue(core, 2, order).run(*given(b, core)))
        assert same(*runs)
