"""The comparison of two checkouts, and the measurement of the cost per node."""

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import against, scaling
from tests.benchmarks.__main__ import main

HERE, THERE = Path("here"), Path("there")


def test_checkouts_take_turns_and_each_begins_as_often() -> None:
    taken = []

    def take(checkout: Path, work: str) -> dict[str, Any]:
        taken.append((checkout, work))
        ours = checkout == HERE
        return {"best": 2.0 if ours else 1.0, "median": 3.0 if ours else 2.0}

    rows = against.compare(HERE, THERE, ["relu2", "mlp"], 2, take)
    assert rows == [("relu2", 2.0, 1.5), ("mlp", 2.0, 1.5)]
    assert [checkout for checkout, work in taken if work == "mlp"] == [HERE, THERE, THERE, HERE]
    assert against.table(rows).splitlines()[1].split() == ["relu2", "2.000", "1.500"]


def test_a_disturbed_round_does_not_decide() -> None:
    times = iter([1.0, 1.0, 1.0, 9.0, 1.0, 1.0])

    def take(checkout: Path, work: str) -> dict[str, Any]:
        time = next(times)
        return {"best": time, "median": time}

    assert against.compare(HERE, THERE, ["mlp"], 3, take) == [("mlp", 1.0, 1.0)]


@pytest.mark.slow
def test_another_checkout_runs(capsys: pytest.CaptureFixture[str]) -> None:
    root = str(Path(__file__).resolve().parents[2])
    assert main(["--against", root, "--works", "relu2", "--quick", "--threads", "1"]) == 0
    assert "relu2" in capsys.readouterr().out


def test_a_place_without_a_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--against", str(tmp_path)])


def test_scaling_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "SMALL", 50)
    monkeypatch.setattr(scaling, "LARGE", 500)
    result = scaling.measure(turns=1)
    assert result["ratio"] == pytest.approx(result["large"] / result["small"])
    assert result["small"] > 0
