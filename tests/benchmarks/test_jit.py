"""The table on machine code and the plots of growth: their arithmetic; no time is judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import growth, jit
from tests.benchmarks.__main__ import ROOT
from tests.benchmarks.results import PAGE, Timing, write
from tests.benchmarks.works import (
    COMPILED,
    FORWARD,
    OURS,
    WORKS,
    build,
    difference,
    digests,
    settle,
)


def _timings() -> dict[str, dict[str, Timing]]:
    times = {OURS: 2.0, COMPILED: 1.0, FORWARD: 1.2, "torch": 1.6, "torch.compile": 2.0, "jax": 4.0}
    resident = {COMPILED: 3e6, "torch": 2e6, "torch.compile": 6e6}
    return {
        "gelu": {
            side: Timing(best=t, median=t, resident=resident.get(side)) for side, t in times.items()
        }
    }


def test_a_cell_shows_what_misses_its_limit() -> None:
    assert jit.cell(None, 1.0) == "-"
    assert jit.cell(0.5, None) == "0.50"
    assert jit.cell(0.5, 0.6) == "0.50 (≤ 0.6)"
    assert jit.cell(0.0304, 0.02) == "**0.030** (≤ 0.02)"
    assert jit.cell(0.6, 0.7, at_least=True) == "**0.60** (≥ 0.7)"


def test_shares_and_means() -> None:
    timings = _timings()
    assert jit.forward_share(timings["gelu"]) == pytest.approx(0.8)
    assert jit.forward_share({OURS: Timing(1, 1)}) is None
    assert jit.resident_ratio(timings["gelu"], "torch") == 1.5
    assert jit.resident_ratio(timings["gelu"], "jax") is None
    assert jit.eager_mean(timings) == pytest.approx(1.25)
    assert jit.eager_mean({}) is None


def test_the_section_has_each_limit() -> None:
    text = jit.section(_timings(), ["a note"], rounds=2, threads=1)
    row = next(line for line in text.splitlines() if line.startswith("| GELU"))
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells == ["1000", "0.50 (≤ 0.6)", "0.25 (≤ 1)", "**0.62** (≤ 0.2)", "-"]
    assert "a note" in text and "2 round(s)" in text
    assert "**1.25** (≤ 0.7)" in text and "3.0" in text and "**1.50** (≤ 1)" in text


def test_the_page_has_places_for_what_is_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text("utf-8"), "utf-8")
    marks = jit.START, jit.END
    write(jit.section(_timings(), [], 1, 2), page, *marks)
    found = {side: {what: [1.0] * len(sizes) for what, sizes in growth.SIZES.items()}
             for side in growth.SIDES}  # fmt: skip
    write(growth.section(found), page, growth.START, growth.END)
    text = page.read_text("utf-8")
    assert "GELU of elementary" in text and "figures/growth.svg" in text
    write(jit.section(_timings(), ["again"], 1, 2), page, *marks)
    section = page.read_text("utf-8").partition(jit.START)[2].partition(jit.END)[0]
    assert section.count("| GELU of") == 2  # one in each table
    (tmp_path / "bare.md").write_text("nothing")
    with pytest.raises(SystemExit, match="no marks"):
        write("text", tmp_path / "bare.md", *marks)


def test_limits_are_those_of_works() -> None:
    assert set(jit.LIMITS) <= set(WORKS)
    with pytest.raises(SystemExit):
        jit.main(["--works", "relu2", "--write"])
    with pytest.raises(SystemExit):
        jit.main(["--works", "relu3"])


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", [n for n in jit.LIMITS if n not in ("third_order", "resnet18")])
def test_a_forward_pass_compiled_alone_computes_the_same(name: str) -> None:
    step = build(FORWARD, name)
    assert step is not None
    eager = build(OURS, name)
    assert eager is not None and difference(digests(step), digests(eager)) is None


def test_what_has_no_forward_pass_of_its_own() -> None:
    assert build(FORWARD, "third_order") is None


def test_settling_ends_beyond_the_takeover() -> None:
    from oneflow_lite.static.runtime.takeover import TakesOver

    class Runs(TakesOver):
        def __init__(self) -> None:
            self._left = 12

    waits, stays = Runs(), Runs()
    calls = []

    def step() -> None:
        calls.append(1)
        waits._left = max(0, waits._left - 1)

    settle(step)
    assert waits._left == 0 and stays._left == 12
    assert 12 < len(calls) <= 20


RESIDENT = """
from tests.benchmarks.memory import peak_resident, resident
print(resident(), peak_resident(lambda: [bytearray(64 << 20).count(1)]))
"""


def test_resident_memory_is_that_of_the_steps() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    before, peak = done.stdout.split()
    if "None" in (before, peak):
        pytest.skip("this system does not count it, or does not forget an older peak")
    assert (60 << 20) < int(peak) - int(before) < (80 << 20)


@pytest.mark.slow
def test_growth_is_measured_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    sizes = {"nodes": (2, 4), "ops": (5, 10), "elements": (4, 8)}
    monkeypatch.setattr(growth, "SIZES", sizes)
    found = {side: growth.measure(side, 0.001, sizes) for side in (OURS, COMPILED)}
    assert found[COMPILED]["nodes"] == [None, None]
    assert all(seconds > 0 for values in found[OURS].values() for seconds in values)
    growth.draw(found, tmp_path / "figures" / "growth.svg")
    assert "<svg" in (tmp_path / "figures" / "growth.svg").read_text()
    rows = growth.section(found).splitlines()
    assert "| -" in next(row for row in rows if "nodes |" in row or "4 nodes" in row)
