"""The runner's own arithmetic: ratios, verdicts, byte counts, and one short run from end to end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.benchmarks import __main__ as runner, report
from tests.benchmarks.__main__ import ROOT, main
from tests.benchmarks.results import PAGE, Results, Timing
from tests.benchmarks.works import LARGE, OURS


def _results(**changes: object) -> Results:
    timings = {
        name: {
            OURS: Timing(best=1e-3, median=2e-3),
            "torch": Timing(best=1e-3, median=1e-3),
            "autograd": Timing(best=1e-3, median=4e-3),
        }
        for name in ("relu2", *LARGE)
    }
    memory = {
        OURS: {"total": 30, "alive": 10, "transient": 20, "peak": 15},
        "torch": {"total": 20, "alive": 10, "transient": 10, "peak": 15},
    }
    values: dict[str, object] = {
        "timings": timings,
        "memory": memory,
        "anomaly": {OURS: {"off": 1e-3, "on": 2.5e-3}, "torch": {"off": 2e-3, "on": 3e-3}},
        "import_seconds": 0.05,
        "scaling": {"small": 0.01, "large": 0.12, "ratio": 12.0},
        "sides": [OURS, "torch", "autograd"],
        "rounds": 1,
        "threads": 1,
        **changes,
    }
    return Results(**values)  # type: ignore[arg-type]


def test_verdicts_compare_medians_with_targets() -> None:
    found = {verdict.what: verdict for verdict in report.verdicts(_results())}
    relu = found["relu forward + backward, 2 elements: / PyTorch"]
    assert (relu.measured, relu.target, relu.predicted, relu.reached) == (2.0, 0.35, 0.12, False)
    mean = next(verdict for what, verdict in found.items() if what.startswith("geometric mean"))
    assert mean.measured == pytest.approx(2.0)
    assert found["relu forward + backward, 2 elements: / HIPS/autograd"].reached
    gelu = next(v for what, v in found.items() if "GELU of" in what and "HIPS" in what)
    assert gelu.target == 0.9
    assert found["bytes allocated in the demo's step: / PyTorch"].measured == 2.0
    anomaly = found["300 small ops forward + backward: anomaly mode on / off"]
    assert (anomaly.measured, anomaly.target) == (pytest.approx(2.5), 3.0)
    assert found["backward of 100,000 nodes / of 10,000"].reached
    assert found["import oneflow_lite after import numpy"].measured == pytest.approx(50.0)


def test_a_missing_side_leaves_a_dash() -> None:
    results = _results(
        timings={"relu2": {OURS: Timing(best=1e-3, median=2e-3)}},
        memory={},
        anomaly={},
        import_seconds=None,
        scaling=None,
    )
    assert report.verdicts(results) == []
    assert "| -" in report.console(results)


def test_the_page_says_what_was_found() -> None:
    page = report.section(_results())
    assert page.startswith(report.START) and page.endswith(report.END)
    assert "backward of 100,000 nodes" not in page  # reached
    assert "forward + backward, 2 elements: / PyTorch 2.00 (0.35);" in page
    terminal = report.console(_results())
    assert "| NO " in terminal and "| yes " in terminal
    assert "Other programs" not in page
    assert "| PyTorch          | 2   | 3   | 1.50     |" in page
    busy = {"relu2": {OURS: Timing(best=1e-3, median=2e-3, others=0.7)}}
    assert "Other programs took up to 0.7" in report.section(_results(timings=busy))


def test_a_row_has_our_time_and_its_ratios() -> None:
    rows = [x.split("|") for x in report.section(_results()).splitlines() if x[0:1] == "|"]
    cells = [[cell.strip() for cell in row[2:-1]] for row in rows]
    assert cells[0] == ["eager, ms", "/ PyTorch", "/ HIPS/autograd"]
    assert cells[2] == ["2", "2.00", "0.50"]


def test_the_page_for_users_has_the_figures_of_the_benchmarks() -> None:
    """`python -m tests.benchmarks --write`, and the one for machine code, keep it so."""
    summary = report.summary(PAGE.read_text("utf-8"))
    assert summary in report.SUMMARY.read_text("utf-8")


COUNTED = """
import numpy as np
from tests.benchmarks.memory import {side}_allocations as allocations
{setup}
kept = []
def step():
    a = {zeros}(1000, dtype={lib}.float64)
    kept.append(a + 1.0)
    return [a + a]
print(*allocations(step), flush=True)
import os; os._exit(0)
"""


@pytest.mark.parametrize(("side", "lib"), [("numpy", "np"), ("torch", "torch")])
def test_bytes_are_counted(side: str, lib: str) -> None:
    pytest.importorskip(side)
    code = COUNTED.format(side=side, lib=lib, zeros=f"{lib}.zeros", setup=f"import {side}")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    total, alive, peak = map(int, done.stdout.split()[-3:])
    assert 24_000 <= total < 24_200  # three arrays, and a scalar where the library makes one
    assert 8_000 <= alive < 8_200
    assert 24_000 <= peak < 24_200


@pytest.mark.slow
def test_a_short_run_from_end_to_end(capfd: pytest.CaptureFixture[str]) -> None:
    works = "relu2,anomaly,import"
    assert main(["--quick", "--works", works, "--peers", "numpy", "--threads", "1"]) == 0
    out, err = capfd.readouterr()
    assert "PROBLEM" not in err
    assert "relu forward + backward, 2 elements" in out
    assert "anomaly mode on / off" in out
    assert "import oneflow_lite after import numpy" in out


def test_unknown_names_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--works", "relu3"])
    assert "'relu3' is not one of relu2" in capfd.readouterr().err


def test_a_part_of_the_page_is_not_written(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--works", "relu2", "--write"])
    assert "whole run" in capfd.readouterr().err


def test_a_compiler_that_fails_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(what: str, side: str, *_: object, **__: object) -> dict[str, object]:
        if side != OURS:
            raise runner.SideFailed("Traceback\nValueError: no such op")
        return {"best": 1.0, "median": 1.0, "others": 0.0, "digests": [[[2], 1.0, 0.5]]}

    monkeypatch.setattr(runner, "_worker", fail)
    monkeypatch.setattr(runner, "installed", lambda side: side != "paddle")
    quick = ["--quick", "--works", "relu2", "--peers"]
    assert main([*quick, "torch.compile,paddle"]) == 0
    out, _ = capfd.readouterr()
    assert "torch.compile is left out of relu2: ValueError: no such op" in out
    assert "Paddle static is not installed and is left out." in out
    assert main([*quick, "compiled"]) == 1
    assert "PROBLEM relu2: flow.compile failed" in capfd.readouterr().err


def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LIMIT", 0.2)
    with pytest.raises(runner.SideFailed, match=r"not finished within 0\.2 s"):
        runner.run_python(["-c", "import time; time.sleep(60)"], threads=1)
