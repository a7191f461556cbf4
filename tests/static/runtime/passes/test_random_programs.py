"""Random Programs after any passes: the bits of a plain run, whatever shares memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.passes import DEFAULT_PASSES, run_passes
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.straight_line import StraightLine
from tests.static.build import Builder, LiteralRunner, run_plainly
from tests.static.runtime.passes.random_programs import GENERATOR, RandomProgram

Runner = Callable[[dict[str, Any]], dict[str, Any]]


def literally(plan: ExecutionPlan) -> Runner:
    return LiteralRunner(plan).run


def straight(plan: ExecutionPlan) -> Runner:
    line = StraightLine(plan)

    def run(given: dict[str, Any]) -> dict[str, Any]:
        feeds = [given[n] for n in plan.feeds]
        with np.errstate(all="ignore"):
            results = line.run(feeds, [given[n] for n in line.external_names])
        return dict(zip(plan.fetches, results, strict=True))

    return run


def bits(arrays: dict[str, Any], names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    return {n: (arrays[n].shape, arrays[n].dtype, arrays[n].tobytes()) for n in names}


def choices(draw: np.random.Generator) -> list[tuple[str, ...]]:
    """Return none, all, each alone, each left out, and some other sets of passes."""
    names = DEFAULT_PASSES
    sets = [(), names, *[(n,) for n in names], *[tuple(m for m in names if m != n) for n in names]]
    sets += [tuple(n for n in names if draw.random() < 0.5) for _ in range(3)]
    return sets


def check_early(core: InterpreterCore) -> None:
    """Check what is said of a plan before it is made."""
    assert "plan" not in vars(core)
    names, written = core.external_names, core.written
    plan = core.plan
    assert {*plan.external_names} <= {*names}
    outside = {*plan.feeds, *names}
    assert written == outside & {plan.roots[n] for op in plan.block.ops for n in op.written}


def check(seed: int, make_runner: Callable[[ExecutionPlan], Runner]) -> Counter[str]:
    """Compare two runs of a random Program after several sets of passes; count what fired."""
    random = RandomProgram(seed)
    program, fetches = random.builder.program, random.fetches
    expected = []
    for number in (1, 2):
        given = random.given(number)
        GENERATOR.manual_seed(number)
        values = run_plainly(program, given)
        expected.append((bits(values, fetches), bits(given, list(given))))
    fired: Counter[str] = Counter()
    for passes in choices(random.draw):
        plan = ExecutionPlan.of(program, random.builder.feeds, fetches)
        run_passes(plan, passes)
        fired.update({report.name: report.fired for report in plan.reports})
        core = InterpreterCore(program, random.builder.feeds, fetches, passes=passes)
        check_early(core)
        run = make_runner(plan)
        kept: list[dict[str, Any]] = []
        for number, (results, effects) in zip((1, 2), expected, strict=True):
            given = random.given(number)
            GENERATOR.manual_seed(number)
            values = run(given)
            assert bits(values, fetches) == results, (seed, passes)
            assert bits(given, list(given)) == effects, (seed, passes)
            kept.append(values)
        assert bits(kept[0], fetches) == expected[0][0], (
            seed,
            passes,
        )  # the run after it spared it
    return fired


@pytest.mark.slow
@pytest.mark.parametrize("runner", [literally, straight])
def test_bits_are_those_of_a_plain_run(runner: Callable[[ExecutionPlan], Runner]) -> None:
    fired: Counter[str] = Counter()
    for seed in range(60):
        fired += check(seed, runner)
    # Each of them was put to the test, but for the one that needs millions of logits.
    assert set(fired) == {*DEFAULT_PASSES} - {"vocabularies"}


@pytest.mark.parametrize("runner", [literally, straight])
def test_a_copy_may_be_written_elsewhere(runner: Callable[[ExecutionPlan], Runner]) -> None:
    """The memory that a clone takes over is that of its input, or of what it is copied to."""
    b = Builder()
    x, v = b.op("abs", b.feed("x", np.ones(3))), b.op("exp", b.feed("v", np.ones(3)))
    t = b.op("clone", v)
    b.op("copy_", x, t)
    plan = b.plan(b.op("neg", x), passes=DEFAULT_PASSES)
    assert plan.in_place[t] == x
    values = runner(plan)(dict(b.initial))
    np.testing.assert_array_equal(values[plan.fetches[0]], np.full(3, -np.exp(1.0)))
