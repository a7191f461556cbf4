"""Every side computes the same in every work; nothing is timed here."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.benchmarks.works import OURS, SIDES, WORKS, Digest, build, difference, digests, installed


@functools.cache
def _results(side: str, name: str) -> list[Digest] | None:
    if not installed(side):
        return None
    step = build(side, name)
    return None if step is None else digests(step)


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("peer", [side for side in SIDES if side != OURS])
def test_we_compute_what_a_peer_computes(name: str, peer: str) -> None:
    expected = _results(peer, name)
    if expected is None:
        pytest.skip(f"{SIDES[peer]} is not installed or does not run {name}")
    got = _results(OURS, name)
    assert got is not None
    assert difference(got, expected) is None


@pytest.mark.parametrize("name", WORKS)
def test_results_are_finite_and_not_all_zero(name: str) -> None:
    got = _results(OURS, name)
    assert got is not None
    assert all(np.isfinite(digest.norm) and digest.norm > 0 for digest in got)


def test_a_difference_is_seen() -> None:
    right = [Digest((2,), 1.0, 0.5)]
    assert difference(right, right) is None
    assert "1 results against 2" in str(difference(right, right * 2))
    assert "shape" in str(difference([Digest((1, 2), 1.0, 0.5)], right))
    assert "projection" in str(difference([Digest((2,), 1.0, 0.51)], right))
    assert "norm" in str(difference([Digest((2,), float("nan"), 0.5)], right))
