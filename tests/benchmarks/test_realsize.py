"""Works of real size: both sides compute the same; the table's arithmetic. No time is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from tests.benchmarks import realsize
from tests.benchmarks.realsize_works import KINDS, WORKS
from tests.benchmarks.results import PAGE
from tests.benchmarks.works import difference, digests


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", ["pinn", "maml", *[n for n in WORKS if n not in ("pinn", "maml")]])
def test_both_sides_compute_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    make = WORKS[name][1]
    assert difference(digests(make(flow), 2), digests(make(torch), 2)) is None


def _found(**seconds: float) -> dict[str, Any]:
    return {
        side.replace("_", " "): {"seconds": s, "first": 4 * s, "since": s, "above": int(s * 1e9)}
        for side, s in seconds.items()
    }


def test_ratios_means_and_verdicts() -> None:
    found = {
        "add": _found(torch=1.0, jit=0.5, numpy=1.0),
        "relu": _found(torch=1.0, jit=2.0, numpy=4.0, compiled_jit=0.2),
    }
    assert realsize.ratio(found["add"], "jit", "seconds") == 0.5
    assert realsize.ratio(found["add"], "compiled", "seconds") is None
    assert realsize.mean([0.5, 2.0, None]) == pytest.approx(1.0)
    assert {v.what: (v.measured, v.reached) for v in realsize.verdicts(found)} == {
        "with `jit`, mean": (pytest.approx(1.0), False),
        "with `jit`, worst": (2.0, False),
        "NumPy alone, mean": (pytest.approx(2.0), False),
        "NumPy alone, worst": (4.0, False),
        "compiled with `jit`, mean": (pytest.approx(0.2), True),
        "memory with `jit`, worst": (2.0, False),
        "first step, worst": (2.0, True),
        "import and first step, worst": (2.0, True),
    }


def test_a_step_that_is_not_replayed_has_no_ratio() -> None:
    found = _found(torch=1.0, compiled_jit=0.5)
    found["compiled jit"]["replayed"] = False
    assert realsize.ratio(found, "compiled jit", "seconds") is None


def test_little_memory_is_not_compared() -> None:
    found = {"torch": {"above": 1000}, "jit": {"above": realsize.FLOOR - 1}}
    assert realsize.ratio(found, "jit", "above") == 1.0


def test_the_section_and_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = {"add": _found(torch=1.0, jit=0.5), "relu": _found(torch=1.0, jit=2.0)}
    text = realsize.section({2: found, 1: found}, rounds=3)
    assert text.startswith(realsize.START) and text.endswith(realsize.END)
    assert text.count(WORKS["add"][0]) == 2 and "| 0.50" in text and "3 round(s)" in text
    realsize.draw(found, tmp_path / "realsize.svg")
    assert WORKS["relu"][0] in (tmp_path / "realsize.svg").read_text()


def test_each_work_has_a_kind() -> None:
    kinds = [realsize.kind_of(name) for name in WORKS]
    assert {*kinds} == {*KINDS}
    assert realsize.kind_of("adamw") != realsize.kind_of("add")
    found = {"add": _found(torch=1.0, jit=0.5), "relu": _found(torch=1.0, jit=2.0)}
    row = next(r for r in realsize.kinds_table(found).splitlines() if "| pointwise" in r)
    assert [cell.strip() for cell in row.split("|")[2:-1]] == ["-", "1.00", "-", "1.00"]


def test_the_pages_have_the_marks() -> None:
    marks = (PAGE, realsize.START, realsize.END), (realsize.KINDS_PAGE, *realsize.KINDS_MARKS)
    for page, begin, end in marks:
        text = page.read_text(encoding="utf-8")
        assert text.index(begin) < text.index(end)
