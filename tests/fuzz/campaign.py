"""A campaign: many programs from one seed, and what came of them."""

from __future__ import annotations

from collections import Counter

import attrs
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.programs import Program
from tests.fuzz.strategy import programs
from tests.fuzz.verdict import judge


def run(count: int, number: int) -> Counter[str]:
    """Judge `count` programs drawn with the seed `number`; raise on the first that fails.

    The error shows that program with as few steps as still fail. The same number always draws the
    same programs. The counts say how they ended.
    """
    counts: Counter[str] = Counter()

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(programs())
    def fuzz(program: Program) -> None:
        try:
            judge(program, counts)
        except Exception as error:
            error.add_note(repr(shortest(program, type(error))))
            raise

    fuzz()
    return counts


def attempt(job: tuple[int, int]) -> tuple[int, Counter[str], str | None]:
    """Run a campaign of (count, seed); return the seed, the counts, and the failure as text."""
    count, number = job
    try:
        return number, run(count, number), None
    except Exception as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        return number, Counter(), f"{type(error).__name__}: {error}\n{notes}"


def shortest(program: Program, failure: type[Exception]) -> Program:
    """Return the program without the steps that its failure does not need."""
    for i in reversed(range(len(program.steps))):
        fewer = attrs.evolve(program, steps=program.steps[:i] + program.steps[i + 1 :])
        try:
            judge(fewer, Counter())
        except failure:
            program = fewer
        except Exception:
            continue
    return program


def report(counts: Counter[str]) -> str:
    """Return the counts as a table."""
    return "\n".join(f"{number:8d}  {what}" for what, number in sorted(counts.items()))
