"""Every side computes the same in every work; nothing is timed here."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import oneflow_lite as flow
from tests.benchmarks.works import (
    COMPILED,
    OURS,
    SIDES,
    WORKS,
    Digest,
    build,
    check_replayed,
    difference,
    digests,
    installed,
    planned_bytes,
)

# torch.compile takes minutes for all of them; the runner compares its results before timing them.
PEERS = [side for side in SIDES if side not in (OURS, COMPILED, "torch.compile")]


@functools.cache
def _results(side: str, name: str) -> list[Digest] | None:
    if not installed(side):
        return None
    step = build(side, name)
    return None if step is None else digests(step)


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("name", WORKS)
def test_compiled_works_are_replayed_with_the_bits_of_eager(name: str) -> None:
    step = build(COMPILED, name)
    assert step is not None
    assert digests(step) == _results(OURS, name)
    check_replayed(step)
    assert planned_bytes(step) >= 0


def test_a_step_that_is_not_replayed_is_refused() -> None:
    x = flow.ones(2)
    once = flow.compile(lambda: [x * 2])
    once()
    with pytest.raises(RuntimeError, match="not replayed"):
        check_replayed(once)
    once()
    check_replayed(once)
    reads = flow.compile(lambda: [x * x.sum().item()])
    with pytest.warns(UserWarning, match="runs eagerly"):
        for _ in range(5):
            reads()
    with pytest.raises(RuntimeError, match="not replayed"):
        check_replayed(reads)


def test_what_compiles_for_too_long_is_left_out() -> None:
    assert build("torch.compile", "chain20000") is None
    assert build("prealloc", "gelu") is None


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("peer", PEERS)
def test_we_compute_what_a_peer_computes(name: str, peer: str) -> None:
    expected = _results(peer, name)
    if expected is None:
        pytest.skip(f"{SIDES[peer]} is not installed or does not run {name}")
    got = _results(OURS, name)
    assert got is not None
    assert difference(got, expected, WORKS[name].tolerance) is None


@pytest.mark.slow(but=3)
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
