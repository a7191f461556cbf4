"""The costs of `flow.compile` are measured on calls that are replayed; no time is judged here."""

import math

import pytest

from tests.benchmarks import compiled_costs
from tests.benchmarks.works import HIT_COUNTS


@pytest.mark.parametrize("kind", compiled_costs.KINDS)
@pytest.mark.parametrize("count", [1, 3])
def test_the_functions_read_all_their_tensors(kind: str, count: int) -> None:
    function, tensors = compiled_costs.KINDS[kind](count)
    assert function(*tensors).tolist() == [count + 1.0] * 2


def test_hits_are_measured_and_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compiled_costs.measure_hits(turns=1, batch=2)
    assert found.keys() == {"arguments", "parameters", "modules"}
    for line in found.values():
        assert len(line["seconds"]) == len(HIT_COUNTS)
        assert math.isfinite(line["fixed"]) and math.isfinite(line["each"])
    straight = {1: 4.2e-6, 10: 6e-6, 100: 24e-6}
    monkeypatch.setattr(compiled_costs, "hit_seconds", lambda kind, count, *_: straight[count])
    line = compiled_costs.measure_hits()["arguments"]
    assert (line["fixed"], line["each"]) == (pytest.approx(4e-6), pytest.approx(2e-7))


def test_a_hit_is_a_call_less_the_run_of_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([5.0, 2.0, 6.0, 2.0, 9.0, 2.0])
    monkeypatch.setattr(compiled_costs, "_seconds", lambda *_: next(seconds))
    assert compiled_costs.hit_seconds("arguments", 2, turns=3) == 3.0


def test_recording_is_measured() -> None:
    few = compiled_costs.measure_recording(turns=1, layers=1)
    more = compiled_costs.measure_recording(turns=1, layers=3)
    assert few["extra"] == pytest.approx(few["recorded"] - few["eager"])
    each = (more["ops"] - few["ops"]) / 2
    assert more["ops"] + (compiled_costs.LAYERS - 3) * each >= 2_000


def test_small_recordings_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compiled_costs.measure_small_recordings(turns=1)
    assert found["steps"] > 1 and math.isfinite(found["function"])
    seconds = iter([1.0, 29.0, 20.0, 2.0, 30.0, 21.0, 1.0, 31.0, 22.0])
    monkeypatch.setattr(compiled_costs, "_seconds", lambda *_: next(seconds))
    monkeypatch.setattr(compiled_costs, "check_replayed", lambda _: None)
    found = compiled_costs.measure_small_recordings(turns=3)
    assert found["steps"] == 20.0 and found["function"] * len(compiled_costs.rewrite._codes) == 9.0
