"""The results of a run of the suite, and the parts that both reports are made of."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Timing:
    """Seconds per iteration: medians, over the rounds, of each process's best and median.

    `resident` is the most memory of a process during the iterations, above what it had after the
    import.
    """

    best: float
    median: float
    others: float = 0.0
    resident: float | None = None


@dataclass(frozen=True)
class Results:
    """Everything that was measured; what was not is empty or None.

    `memory` counts the demo's step by side, `byte_counts` every work, eager and compiled;
    `left_out` says which sides did not take part in what, and why.
    """

    timings: dict[str, dict[str, Timing]]
    memory: dict[str, dict[str, int]]
    anomaly: dict[str, dict[str, float]]
    import_seconds: float | None
    scaling: dict[str, float] | None
    sides: Sequence[str]
    rounds: int
    threads: int
    byte_counts: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    hits: dict[str, dict[str, Any]] | None = None
    recording: dict[str, float] | None = None
    left_out: Sequence[str] = ()
    versions: dict[str, str] = field(default_factory=lambda: versions())


class Verdict(NamedTuple):
    """One requirement: what was measured, in a unit, and the most it may be."""

    what: str
    measured: float
    target: float
    predicted: float | None = None
    unit: str = ""

    @property
    def reached(self) -> bool:
        return self.measured <= self.target


def versions() -> dict[str, str]:
    """Return the version of Python and of every package that takes part and is installed."""
    found = {"Python": platform.python_version()}
    for name, package in (
        ("NumPy", "numpy"),
        ("SciPy", "scipy"),
        ("PyTorch", "torch"),
        ("HIPS/autograd", "autograd"),
        ("Paddle", "paddlepaddle"),
        ("JAX", "jax"),
        ("Numba", "numba"),
    ):
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def ratio(timings: dict[str, Timing], side: str, peer: str) -> float | None:
    """Return how many times the time of ``peer`` the time of ``side`` is."""
    if side not in timings or peer not in timings:
        return None
    return timings[side].median / timings[peer].median


def milliseconds(timings: dict[str, Timing], side: str) -> str:
    """Return a side's time as a cell of a table."""
    return f"{1e3 * timings[side].median:.4g}" if side in timings else "-"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with columns of even width, which also reads well in a terminal."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rules = ["-" * width for width in widths]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (header, rules, *rows)
    ]
    return "\n".join(lines)


def write(text: str, page: Path, start: str, end: str) -> None:
    """Put a text between its marks on a page."""
    before = page.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(start)}.*{re.escape(end)}", re.DOTALL)
    if not pattern.search(before):
        raise SystemExit(f"{page} has no marks {start} and {end}")
    page.write_text(pattern.sub(lambda _: text, before), encoding="utf-8")


def verdicts_table(found: Sequence[Verdict]) -> str:
    """Return the requirements as a table; the predictions are a column where there are any."""
    rows = [
        [
            v.what,
            "" if v.predicted is None else f"{v.predicted:g}",
            f"{v.target:.4g}{v.unit}",
            f"{v.measured:.2f}{v.unit}",
            "yes" if v.reached else "NO",
        ]
        for v in found
    ]
    rows.insert(0, ["", "predicted", "target", "measured", "reached"])
    if all(v.predicted is None for v in found):
        rows = [[what, *others] for what, _, *others in rows]
    return table(rows[0], rows[1:])
