"""Programs that lie to machine code neither end the process nor get a wrong answer."""

from __future__ import annotations

import pytest

pytest.importorskip("numba", reason="the extra `jit` is not installed")

from tests.fuzz.lying import attempt


@pytest.mark.parametrize(
    "count", [pytest.param(12, id="few"), pytest.param(60, marks=pytest.mark.slow)]
)
def test_no_program_that_lies_is_trusted(count: int) -> None:
    _, counts, failures = attempt((count, 0))
    assert not failures, "\n".join(failures)
    assert counts.total() == count and counts["lying: right"] and counts["lying: refused"]
