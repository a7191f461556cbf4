"""Tools that the fuzzers of `flow.compile` share: programs as text, by seed, run and shortened."""

from __future__ import annotations

import functools
import re
import textwrap
from collections import Counter
from collections.abc import Callable

from tests.judge import judged_loops

Run = Callable[[str, Counter[str]], list[str]]
REASON = re.compile(r"[^:(,0-9]*")  # what a reason begins with


class Difference(AssertionError):
    """A compiled program does something else than the plain one."""


def attempt(
    job: tuple[int, int], write: Callable[[int], str], run: Run, kernels: str = ""
) -> tuple[int, Counter[str], list[str]]:
    """Run the programs of (count, first seed); return the seed, the counts and the failures.

    Parameters
    ----------
    write : callable
        Returns the program of a seed.
    run : callable
        Runs a program both ways; returns why calls fell back to running eagerly.
    kernels : str
        "numba", "python joined" and so on: with machine code from the first replay on; see
        `judged_loops`.
    """
    if kernels:
        run = functools.partial(_with_loops, run=run, kernels=kernels)
    count, first = job
    counts: Counter[str] = Counter()
    failures = []
    for seed in range(first, first + count):
        source = write(seed)
        try:
            reasons = run(source, counts)
        except Exception as error:
            needed = indented(shortest(source, run, type(error)))
            failures.append(f"seed {seed}: {type(error).__name__}: {error}\n{needed}")
        else:
            counts.update(f"eager because {REASON.match(reason)[0]}" for reason in reasons)
    return first, counts, failures


def _with_loops(source: str, counts: Counter[str], run: Run, kernels: str) -> list[str]:
    with judged_loops(kernels) as loops:
        reasons = run(source, counts)
    counts["loops built"] += loops.groups
    counts["runs of loops"] += loops.runs
    if loops:
        raise Difference(loops[0])
    return reasons


def shortest(source: str, run: Run, failure: type[Exception] = Difference) -> str:
    """Return a program without the lines and blocks that its failure does not need."""
    lines = source.splitlines()
    again = True
    while again:
        again = False
        for i in reversed(range(len(lines))):
            if i >= len(lines):
                continue
            depth = _depth(lines[i])
            after = (k for k in range(i + 1, len(lines)) if _depth(lines[k]) <= depth)
            end = next(after, len(lines))
            inside = [line[4:] for line in lines[i + 1 : end]]
            for instead in ([], inside, ["    " * depth + "pass"]):
                fewer = [*lines[:i], *instead, *lines[end:]]
                if sum(map(len, fewer)) < sum(map(len, lines)) and _fails(fewer, run, failure):
                    lines, again = fewer, True
                    break
    return "\n".join(lines)


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip())) // 4


def _fails(lines: list[str], run: Run, failure: type[Exception]) -> bool:
    try:
        run("\n".join(lines), Counter())
    except failure:
        return True
    except Exception:
        return False
    return False


def indented(source: str) -> str:
    """Return a program as it is shown in a report."""
    return textwrap.indent(source, "    ")
