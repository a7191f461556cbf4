"""The model of how training grows with ranks: its arithmetic; no time is judged here."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks import distributed
from tests.benchmarks.distributed import Network

FOUND: dict[str, Any] = {
    "forward": 0.01,
    "backward": 0.02,
    "update": 0.002,
    "hooks": 0.0,
    "alone": 0.032,
    "plain": 0.034,
    "slower": 0.035,
    "together": 0.04,
    "speed_up": 1.6,
    "of_independent": 0.85,
    "buckets": [1_000_000, 1_000_000],
    "gradients": 2_000_000,
    "latency": 1e-4,
    "bandwidth": 1e9,
    "cost": 1.01,
    "hidden": 0.7,
    "buckets_of_model": 8,
}


def test_a_reduction_moves_the_bytes_of_a_ring() -> None:
    network = Network("", 0.0, 1e9)
    assert network.all_reduce(1e9, 1) == 0
    assert network.all_reduce(1e9, 2) == pytest.approx(1)
    assert network.all_reduce(1e9, 1000) == pytest.approx(1.998)
    assert Network("", 1.0, 1e18).all_reduce(8, 1024) == pytest.approx(20)  # messages


def test_what_fits_behind_the_backward_pass_is_hidden() -> None:
    fast, slow = Network("", 0.0, 1e9), Network("", 0.0, 1e6)
    # The first bucket travels while the second is made; that one is seen, with its millisecond.
    assert distributed.step_seconds(FOUND, fast, 2) == pytest.approx(0.033)
    assert distributed.step_seconds(FOUND, fast, 1) == pytest.approx(0.032)
    assert distributed.step_seconds(FOUND, slow, 2) == pytest.approx(0.01 + 0.01 + 2 + 0.002)


def test_what_a_step_waits_for_is_named() -> None:
    assert distributed.limit(FOUND, Network("", 1e-9, 1e12), 1024) == "-"
    assert distributed.limit(FOUND, Network("", 1e-9, 1e6), 1024) == "bandwidth"
    assert distributed.limit(FOUND, Network("", 1.0, 1e12), 1024) == "latency"
    network = Network("", 1e-9, 0.2e9)
    slow, fast = (
        distributed.shares(distributed.hastened(FOUND, n), network, [1, 64]) for n in (1, 10)
    )
    assert slow[0] == fast[0] == 1 and fast[1] < slow[1] < 1


def test_the_prediction_for_two_ranks_hides_nothing() -> None:
    assert distributed.predict_two(FOUND) == pytest.approx(0.035 + 2 * (1e-4 + 1e-3))
    latency, bandwidth = distributed.fit([8, 1000, 10**6], [2e-5 + s / 3e9 for s in (8, 1e3, 1e6)])
    assert latency == pytest.approx(2e-5) and bandwidth == pytest.approx(3e9)


def test_modelled_reductions_end_one_after_the_other() -> None:
    transport = distributed.modelled_group(lambda nbytes: 0.02).transport(np)
    x = np.ones(2)
    begun = time.perf_counter()
    works = [transport.all_reduce(x, x, "sum") for _ in range(2)]
    assert not works[0].is_completed()
    for work in works:
        work.wait()
    assert time.perf_counter() - begun >= 0.04


def test_the_section_says_what_misses_its_limit(tmp_path: Path) -> None:
    text = distributed.section({"digits": FOUND}, 3, 5, 0.5)
    assert "**1.60** (≥ 1.8)" in text and "1.01 (≤ 1.03)" in text and "0.70 (≥ 0.6)" in text
    assert "| 2,000,000" in text and "1.00" in text
    pytest.importorskip("matplotlib")
    distributed.draw({"digits": FOUND}, tmp_path / "figure.svg")
    assert "ranks" in (tmp_path / "figure.svg").read_text()
