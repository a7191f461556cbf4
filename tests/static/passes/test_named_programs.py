"""What every pass finds in real programs, and that `docs/passes.md` says the same."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.static.passes import DEFAULT_PASSES, run_passes
from oneflow_lite.static.program import ExecutionPlan, PassReport
from tests.static.build import LiteralRunner, run_plainly
from tests.static.passes.named_programs import NAMED, capture

PAGE = Path(__file__).resolve().parents[3] / "docs" / "passes.md"


@functools.cache
def plan_of(name: str) -> ExecutionPlan:
    program, feeds, fetches = capture(name)
    plan = ExecutionPlan.of(program, feeds, fetches)
    run_passes(plan)
    return plan


def row(report: PassReport) -> str:
    """Return the part of a line of the table that tells of one pass."""
    saved = [f"{report.saved.get(unit, '–')}" for unit in ("ops", "bytes")]
    return f"`{report.name}` | {report.fired} | {' | '.join(saved)} |"


def table() -> list[str]:
    lines = []
    for name in NAMED:
        plan = plan_of(name)
        lines += [f"| {name} | {row(report)}" for report in plan.reports]
    return lines


def memory_table() -> list[str]:
    return [
        f"| {name} | {memory.unshared_bytes} | {memory.arena_bytes} |"
        for name in NAMED
        for memory in [plan_of(name).memory_plan]
    ]


def test_every_pass_fires_somewhere() -> None:
    fired = dict.fromkeys(DEFAULT_PASSES, 0)
    for name in NAMED:
        for report in plan_of(name).reports:
            fired[report.name] += report.fired
            if report.fired:
                assert sum(report.saved.values()) > 0, (name, report)
    assert all(fired.values()), fired


def test_the_page_shows_the_figures() -> None:
    text = PAGE.read_text("utf-8")
    shown = [line for line in text.splitlines() if line.startswith(tuple(f"| {n} " for n in NAMED))]
    assert shown == [*table(), *memory_table()], "\n".join(["", *table(), *memory_table()])


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
