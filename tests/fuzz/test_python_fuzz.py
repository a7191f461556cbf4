"""Random Python does the same compiled by `flow.compile` as it does plain."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from oneflow_lite.compiler import recording
from tests.fuzz import campaign, python_judged
from tests.fuzz.python_judged import run
from tests.fuzz.python_programs import CALLS, write
from tests.fuzz.seeds import Difference, shortest

CHUNKS = 2
SIZE = 50

# The seeds of programs that differ today, and why. The table is exact: what is mended leaves it.
KNOWN: dict[int, str] = {}


@pytest.mark.slow
@pytest.mark.unjudged("each program has a judge of its own")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs_do_the_same_compiled(chunk):
    first = chunk * SIZE
    _, counts, failures = python_judged.attempt((SIZE, first))
    print(campaign.report(counts))
    different = [int(failure.split(":")[0].removeprefix("seed ")) for failure in failures]
    expected = [seed for seed in KNOWN if first <= seed < first + SIZE]
    assert different == expected, "\n".join(failures)
    assert counts["programs"] == SIZE
    assert counts["calls judged"] == SIZE * CALLS
    assert counts["programs with a replay"] > SIZE / 8
    assert sum(n for what, n in counts.items() if "raised" in what) < SIZE * CALLS / 2


def test_a_seed_always_writes_the_same_program():
    assert write(3) == write(3) != write(4)
    for seed in range(60):
        compile(write(seed), "<program>", "exec")


class Remembering:
    """Compile badly: give what the first call gave."""

    def __init__(self, function: Any) -> None:
        self.__wrapped__, self.found, self.hits = function, [], 0

    def __call__(self, **given: Any) -> Any:
        if recording.judge.is_free():
            return recording.judge(self, (), given, None, ())
        self.hits += 1
        self.found = self.found or [self.__wrapped__(**given)]
        return self.found[0]

    def explain(self) -> Any:
        return SimpleNamespace(hits=self.hits, captures=0, fallbacks=0, reasons=[])


PROGRAM = """
unused = 1
class Box:
    rate = 2.0
box = Box()
def f(x, y, n, thing):
    if unused:
        pass
    return x * box.rate
f = compiled(f)
for rate in (2.0, 2.0, 3.0):
    box.rate = rate
    attempt(f, x=data(1), y=None, n=1, thing=None)
"""


@pytest.mark.unjudged("each program has a judge of its own")
class TestCatches:
    """The judge on what is not the same; the mistake is made on purpose."""

    def test_nothing_without_a_mistake(self):
        counts: Counter[str] = Counter()
        assert run(PROGRAM, counts) == []
        assert (counts["calls replayed"], counts["calls recorded"]) == (1, 2)

    def test_a_guard_that_is_missing(self, monkeypatch):
        monkeypatch.setattr(python_judged.flow, "compile", Remembering)
        with pytest.raises(Difference, match="the result"):
            run(PROGRAM, Counter())
        shown = shortest(PROGRAM, run)
        assert "unused" not in shown
        assert "attempt(f" in shown
