"""The finds of every pass in real programs; `docs/passes.md` says the same."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.static.runtime.passes import DEFAULT_PASSES, run_passes
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport
from tests.static.build import LiteralRunner, run_plainly
from tests.static.runtime.passes.named_programs import NAMED, capture

PAGE = Path(__file__).resolve().parents[4] / "docs" / "passes.md"


@functools.cache
def plan_of(name: str) -> ExecutionPlan:
    program, feeds, fetches = capture(name)
    plan = ExecutionPlan.of(program, feeds, fetches)
    run_passes(plan)
    return plan


def table() -> list[str]:
    """Return the lines of the page: a pass or a size of memory, then a cell for each program."""
    plans = [plan_of(name) for name in NAMED]
    rows = [["", *NAMED], ["---", *["---:"] * len(NAMED)]]
    for reports in zip(*[plan.reports for plan in plans], strict=True):
        rows.append([f"`{reports[0].name}`", *map(cell, reports)])
    memory = [plan.memory_plan for plan in plans]
    rows.append(["temporaries, a buffer each", *[f"{m.unshared_bytes} bytes" for m in memory]])
    rows.append(["temporaries, shared memory", *[f"{m.arena_bytes} bytes" for m in memory]])
    return [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows]


def cell(report: PassReport) -> str:
    """Return how often a pass fired and what it saved."""
    saved = [f"{count} {unit}" for unit, count in report.saved.items() if count]
    return f"{report.fired}: {', '.join(saved)}" if report.fired else "0"


def test_every_pass_fires_somewhere() -> None:
    fired = dict.fromkeys(DEFAULT_PASSES, 0)
    for name in NAMED:
        for report in plan_of(name).reports:
            fired[report.name] += report.fired
            if report.fired:
                assert sum(report.saved.values()) > 0, (name, report)
    assert {name for name, count in fired.items() if not count} == {"vocabularies"}, fired


def test_the_page_shows_the_figures() -> None:
    shown = [x for x in PAGE.read_text("utf-8").splitlines() if x.startswith("|")]
    assert shown == table(), "\n".join(["the table is now", *table()])


@pytest.mark.parametrize("name", NAMED)
def test_bits_are_those_of_a_plain_run(name: str) -> None:
    plan = plan_of(name)
    program, feeds, fetches = capture(name)
    runner = LiteralRunner(plan)
    given = arrays_for(plan)
    wanted = {n: x.copy() for n, x in given.items()}
    for _ in range(2):
        flow.manual_seed(3)
        expected = run_plainly(program, wanted)
        flow.manual_seed(3)
        values = runner.run(given)
        for n in (*fetches, *given):
            np.testing.assert_array_equal(values[n], expected[n], strict=True)


def arrays_for(plan: ExecutionPlan) -> dict[str, Any]:
    """Return values for what the program is given: small positive ones, as a variance must be."""
    draw = np.random.default_rng(0)
    given = {}
    for name, desc in plan.block.vars.items():
        if desc.persistable or desc.need_check_feed:
            values = draw.random(desc.shape) * 0.5 if desc.dtype.kind == "f" else 1
            given[name] = np.full(desc.shape, values, desc.dtype)
    return given
