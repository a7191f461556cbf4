"""The report on compiled code: ratios, bytes, the cost of a hit and of recording."""

import pytest

from tests.benchmarks import compiled_report, report
from tests.benchmarks.results import Results, Timing, Verdict, verdicts_table
from tests.benchmarks.works import COMPILED, OURS

SIDES = [OURS, "torch", COMPILED, "torch.compile", "paddle", "prealloc"]


def _timing(seconds: float) -> Timing:
    return Timing(best=seconds / 2, median=seconds)


def _results(**changes: object) -> Results:
    times = dict(zip(SIDES, (1.0, 2.0, 0.8, 1.6, 0.4, 0.5), strict=True))
    values: dict[str, object] = {
        "timings": {
            "mlp": {side: _timing(1e-3 * time) for side, time in times.items()},
            "gelu": {side: _timing(1e-3 * times[side]) for side in (OURS, COMPILED)},
        },
        "memory": {},
        "anomaly": {},
        "import_seconds": None,
        "scaling": None,
        "sides": SIDES,
        "rounds": 1,
        "threads": 1,
        "byte_counts": {
            "gelu": {
                OURS: {"total": 10_000, "peak": 8_000},
                COMPILED: {"total": 6_000, "peak": 5_000, "held": 3_000},
            },
            "mlp": {OURS: {"total": 10_000, "peak": 8_000}},
        },
        "hits": {
            "arguments": {"seconds": [2e-6, 5e-6, 3e-5], "fixed": 2e-6, "each": 3e-7},
            "modules": {"seconds": [4e-6, 1e-5, 8e-5], "fixed": 3e-6, "each": 8e-7},
        },
        "recording": {
            "ops": 2104,
            "eager": 0.1,
            "recorded": 1.6,
            "extra": 1.5,
            "steps": 16.0,
            "function": 9e-4,
        },
        "left_out": ["Paddle static is left out of gelu: no kernel"],
        **changes,
    }
    return Results(**values)  # type: ignore[arg-type]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[2:-1]]


def test_verdicts() -> None:
    found = {verdict.what: verdict for verdict in compiled_report.verdicts(_results())}
    mlp = "MLP 784-64-64-10, batch 32, training step: / "
    expected = {
        f"{mlp}eager": (0.8, 1 / 1.3, False),
        f"{mlp}torch.compile": (0.5, 1.0, True),
        f"{mlp}Paddle static": (2.0, 1.0, False),
        f"{mlp}NumPy, preallocated": (1.6, 1.1, False),
        "GELU of elementary ops, 1024 x 1024: / eager": (0.8, 1.0, True),
        "GELU of elementary ops, 1024 x 1024: bytes / eager": (0.6, 0.7, True),
        "a hit with guarded arguments, fixed cost": (2.0, 2.5, True),
        "a hit with guarded arguments, each of them": (0.3, 0.12, False),
        "a hit with 75 modules of a parameter": (63.0, 55.0, False),
        "recording a training step of 2,104 ops": (1.5, 2.0, True),
        "recording an MLP step, in eager steps": (16.0, 15.0, False),
        "recording, each function met for the first time": (0.9, 1.0, True),
    }
    assert found.keys() == expected.keys()
    for what, (measured, target, reached) in expected.items():
        verdict = found[what]
        assert verdict.measured == pytest.approx(measured), what
        assert (verdict.target, verdict.reached) == (target, reached), what


def test_the_compiled_time_is_divided_by_those_of_eager_and_compiled_peers() -> None:
    header, _, row, *_ = dict(report._sections(_results()))["Beside others"].splitlines()
    peers = ["/ eager", "/ torch.compile", "/ Paddle static", "/ NumPy, preallocated"]
    assert _cells(header) == ["eager, ms", "/ PyTorch", "compiled, ms", *peers]
    assert _cells(row) == ["1", "0.50", "0.8", "0.80", "0.50", "2.00", "1.60"]


def test_bytes_hits_and_recording_are_shown() -> None:
    sections = dict(compiled_report.sections(_results()))
    lines = {title: text.splitlines() for title, text in sections.items()}
    bytes_lines = next(text for title, text in lines.items() if "bytes" in title)
    assert _cells(bytes_lines[2]) == ["10.0", "6.0", "8.0", "5.0", "3.0"]
    assert _cells(bytes_lines[3]) == ["10.0", "-", "8.0", "-", "-"]
    hits = lines["Compiled: a replayed call beyond its Program"]
    assert _cells(hits[2]) == ["2.00", "5.00", "30.00", "2.00", "0.30"]
    recording = lines["Compiled: the call that is recorded"]
    assert _cells(recording[2]) == ["0.1", "1.6", "1.5"]


def test_nothing_is_said_of_what_was_not_measured() -> None:
    timings = {"mlp": {OURS: _timing(1e-3), "torch": _timing(1e-3)}}
    bare = _results(
        timings=timings, sides=[OURS, "torch"], byte_counts={}, hits=None, recording=None
    )
    assert compiled_report.verdicts(bare) == []
    assert compiled_report.sections(bare) == []


def test_without_our_compiled_side_peers_are_beside_eager_code() -> None:
    timings = {"mlp": {OURS: _timing(1e-3), "torch.compile": _timing(2e-3)}}
    alone = _results(timings=timings, sides=[OURS, "torch.compile"], byte_counts={})
    header, _, row = dict(report._sections(alone))["Beside others"].splitlines()
    assert _cells(header) == ["eager, ms", "/ torch.compile"]
    assert _cells(row) == ["1", "0.50"]


def test_the_page_says_who_was_left_out() -> None:
    page = report.section(_results())
    assert "\nPaddle static is left out of gelu: no kernel\n" in page
    assert "## Compiled: a replayed call beyond its Program" in page
    assert "a hit with guarded arguments, each of them 0.30 (0.12) µs" in page
    assert "Paddle static is left out of gelu" in report.console(_results())


def test_predictions_are_a_column_where_there_are_any() -> None:
    plain = Verdict("a", 1.0, 2.0)
    assert "predicted" not in verdicts_table([plain])
    assert "predicted" in verdicts_table([plain, Verdict("b", 1.0, 2.0, 0.5)])
