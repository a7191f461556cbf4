"""A campaign: many programs from one seed, and what came of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.programs import Program
from tests.fuzz.strategy import programs
from tests.fuzz.verdict import judge


def run(count: int, number: int) -> Counter[str]:
    """Judge `count` programs drawn with the seed `number`; raise on the first that fails, shrunk.

    The same number always draws the same programs. What is counted says how they ended.
    """
    counts: Counter[str] = Counter()

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(programs())
    def fuzz(program: Program) -> None:
        judge(program, counts)

    fuzz()
    return counts


def report(counts: Counter[str]) -> str:
    """Return the counts as a table."""
    return "\n".join(f"{number:8d}  {what}" for what, number in sorted(counts.items()))
