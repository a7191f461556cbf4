"""Turns what was measured into ratios and verdicts, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import NamedTuple

from tests.benchmarks import scaling
from tests.benchmarks.works import (
    ANOMALY_TARGET,
    BYTES_TARGET,
    IMPORT_TARGET_MS,
    LARGE,
    LARGE_MEAN_TARGET,
    OURS,
    SCALING_TARGET,
    SIDES,
    WORKS,
)

NOISE = (
    0.1  # processor cores taken by other programs, above which the figures are not to be trusted
)


@dataclass(frozen=True)
class Timing:
    """Seconds per iteration: medians, over the rounds, of each process's best and median."""

    best: float
    median: float
    others: float = 0.0


@dataclass(frozen=True)
class Results:
    timings: dict[str, dict[str, Timing]]
    memory: dict[str, dict[str, int]]
    anomaly: dict[str, dict[str, float]]
    import_seconds: float | None
    scaling: dict[str, float] | None
    sides: Sequence[str]
    rounds: int
    threads: int
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
    ):
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _ratio(timings: dict[str, Timing], peer: str) -> float | None:
    if OURS not in timings or peer not in timings:
        return None
    return timings[OURS].median / timings[peer].median


def verdicts(results: Results) -> list[Verdict]:
    """Return every requirement that the measurements allow to judge."""
    found = []
    large = []
    for name, timings in results.timings.items():
        work = WORKS[name]
        ratio = _ratio(timings, "torch")
        if ratio is not None:
            found.append(Verdict(f"{work.title}: / PyTorch", ratio, work.target, work.predicted))
            if name in LARGE:
                large.append(ratio)
    if len(large) == len(LARGE):
        mean = math.prod(large) ** (1 / len(large))
        what = "geometric mean of demo, GELU, transformer: / PyTorch"
        found.append(Verdict(what, mean, LARGE_MEAN_TARGET))
    for name, timings in results.timings.items():
        ratio = _ratio(timings, "autograd")
        if ratio is not None:
            work = WORKS[name]
            found.append(Verdict(f"{work.title}: / HIPS/autograd", ratio, work.hips_target))
    if OURS in results.memory and "torch" in results.memory:
        ratio = results.memory[OURS]["transient"] / results.memory["torch"]["transient"]
        found.append(Verdict("bytes allocated in the demo's step: / PyTorch", ratio, BYTES_TARGET))
    if OURS in results.anomaly:
        what = "300 small ops forward + backward: anomaly mode on / off"
        found.append(Verdict(what, _slowdown(results.anomaly[OURS]), ANOMALY_TARGET))
    if results.scaling is not None:
        what = f"backward of {scaling.LARGE:,} nodes / of {scaling.SMALL:,}"
        found.append(Verdict(what, results.scaling["ratio"], SCALING_TARGET))
    if results.import_seconds is not None:
        milliseconds = 1e3 * results.import_seconds
        what = "import oneflow_lite after import numpy"
        found.append(Verdict(what, milliseconds, IMPORT_TARGET_MS, unit=" ms"))
    return found


def _milliseconds(timings: dict[str, Timing], side: str) -> str:
    if side not in timings:
        return "-"
    return f"{1e3 * timings[side].median:.4g} ({1e3 * timings[side].best:.4g})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with columns of even width, which also reads well in a terminal."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rules = ["-" * width for width in widths]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (header, rules, *rows)
    ]
    return "\n".join(lines)


def _times_table(results: Results) -> str:
    header = ["ms per iteration (best)", *(SIDES[side] for side in results.sides)]
    rows = [
        [WORKS[name].title, *(_milliseconds(timings, side) for side in results.sides)]
        for name, timings in results.timings.items()
    ]
    return _table(header, rows)


def _ratios_table(results: Results) -> str:
    peers = [side for side in results.sides if side != OURS]
    header = ["oneflow_lite / peer", *(SIDES[side] for side in peers)]
    rows = []
    for name, timings in results.timings.items():
        ratios = [_ratio(timings, peer) for peer in peers]
        rows.append([WORKS[name].title, *("-" if r is None else f"{r:.2f}" for r in ratios)])
    return _table(header, rows)


def _verdicts_table(found: Sequence[Verdict]) -> str:
    rows = [
        [
            v.what,
            "" if v.predicted is None else f"{v.predicted:g}",
            f"{v.target:g}{v.unit}",
            f"{v.measured:.2f}{v.unit}",
            "yes" if v.reached else "NO",
        ]
        for v in found
    ]
    return _table(["", "predicted", "target", "measured", "reached"], rows)


def _memory_table(memory: dict[str, dict[str, int]]) -> str:
    rows = [
        [
            SIDES[side],
            *(f"{count[key] / 1e6:.1f}" for key in ("total", "alive", "transient", "peak")),
        ]
        for side, count in memory.items()
    ]
    return _table(["MB", "allocated", "of it alive after", "beyond what lives on", "peak"], rows)


def _slowdown(times: dict[str, float]) -> float:
    return times["on"] / times["off"]


def _anomaly_table(anomaly: dict[str, dict[str, float]]) -> str:
    rows = [
        [SIDES[side], f"{1e3 * t['off']:.4g}", f"{1e3 * t['on']:.4g}", f"{_slowdown(t):.2f}"]
        for side, t in anomaly.items()
    ]
    return _table(["ms per iteration", "off", "on", "on / off"], rows)


def _noise(results: Results) -> str | None:
    loads = [t.others for timings in results.timings.values() for t in timings.values()]
    if not loads or max(loads) <= NOISE:
        return None
    return (
        f"Other programs took up to {max(loads):.1f} processor cores meanwhile: works of several "
        "threads suffer from that out of proportion, PyTorch's most."
    )


def _sections(results: Results) -> list[tuple[str, str]]:
    """Return title and table of each part that was measured."""
    sections = []
    if results.timings:
        sections.append(("Times", _times_table(results)))
    if results.timings and OURS in results.sides and len(results.sides) > 1:
        sections.append(("Ratios", _ratios_table(results)))
    if results.memory:
        sections.append(
            ("Bytes allocated in one training step of the demo", _memory_table(results.memory))
        )
    if results.anomaly:
        sections.append(
            ("Anomaly mode: 300 small ops forward + backward", _anomaly_table(results.anomaly))
        )
    found = verdicts(results)
    if found:
        sections.append(("Predicted, wanted, measured", _verdicts_table(found)))
    return sections


def console(results: Results) -> str:
    """Return the report for the terminal."""
    parts = [f"{title}\n{table}" for title, table in _sections(results)]
    found = verdicts(results)
    if found:
        parts.append(f"{sum(v.reached for v in found)} of {len(found)} targets reached.")
    noise = _noise(results)
    if noise is not None:
        parts.append(f"WARNING: {noise}")
    return "\n\n".join(parts)


def _machine() -> str:
    cores = os.cpu_count() or 1
    return f"{cores} core{'s' if cores > 1 else ''}, {platform.machine()}, {platform.system()}"


_INTRODUCTION = """\
# Benchmarks

This page is written by `python -m tests.benchmarks --write`; the peers come with the extra
`bench`, which `make bench` installs. `--quick` shows in a minute that everything runs, `--works`
and `--peers` choose, `--threads 1` answers for a single thread. The ratios are what counts:
absolute times belong to the machine.

## What is measured

The same script (`tests/benchmarks/tensor_works.py`) runs on oneflow_lite and on PyTorch.
HIPS/autograd and NumPy by hand do the same computation in their own way (`hips_works.py`,
`numpy_works.py`) from the same starting values; a dash stands where a side does not do a work.
Before anything is timed, results and gradients of three iterations are compared; this page is not
written if a side computed something else.

- Each side runs in a process of its own, with the same number of threads (`OMP_NUM_THREADS`,
  `OPENBLAS_NUM_THREADS`, `MKL_NUM_THREADS`, `torch.set_num_threads`), in turns: ours, theirs,
  ours, theirs.
- A process warms up, then repeats the work for a second and gives its median time of one
  iteration; the figure is the median of that over the rounds, and in brackets the same of each
  process's best time. The garbage collector runs as it does for users. A turn that other programs
  disturb is taken again, twice at most.
- Bytes: all array data that one training step asks for, after three steps of warming up, less what
  is still alive after it (the gradients). NumPy's side is counted by an allocation handler (NEP
  49), PyTorch's by its profiler's record of its allocator; neither holds scratch memory of BLAS
  and oneDNN.
- Anomaly mode: the chain of 300 small ops in one process, with `autograd.detect_anomaly` off and on
  in turns.
- Backward of many nodes: a chain of adds, each node of which also sends to one leaf; the backward
  pass alone, median of seven ratios.
- Import: `import oneflow_lite` in a fresh interpreter that has imported NumPy; median of seven.
- "Predicted" is what a throw-away prototype of the design reached before oneflow_lite was written.
"""


def markdown(results: Results) -> str:
    """Return docs/benchmarks.md."""
    used = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    rounds = f"{results.rounds} round{'s' if results.rounds > 1 else ''}"
    threads = f"{results.threads} thread{'s' if results.threads > 1 else ''}"
    parts = [_INTRODUCTION, f"Measured on {_machine()}; {threads} each, {rounds}; {used}.\n"]
    noise = _noise(results)
    if noise is not None:
        parts.append(f"**{noise}**\n")
    parts += [f"## {title}\n\n{table}\n" for title, table in _sections(results)]
    return "\n".join(parts)
