"""Turns what was measured into ratios and verdicts, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

import itertools
import math
import os
import platform
from collections.abc import Sequence

from tests.benchmarks import compiled_report, scaling
from tests.benchmarks.results import (
    PAGE,
    Results,
    Verdict,
    milliseconds,
    ratio,
    table,
    verdicts_table,
    write,
)
from tests.benchmarks.works import (
    ANOMALY_TARGET,
    BYTES_TARGET,
    COMPILED,
    COMPILED_SIDES,
    EAGER_SIDES,
    IMPORT_TARGET_MS,
    LARGE,
    LARGE_MEAN_TARGET,
    NOISE,
    OURS,
    SCALING_TARGET,
    SIDES,
    WORKS,
)

START, END = "<!-- run: begin -->", "<!-- run: end -->"
# The table of docs/performance.md: the columns that it takes of two tables of docs/benchmarks.md.
SUMMARY = PAGE.with_name("performance.md")
SUMMARY_MARKS = "<!-- peers: begin -->", "<!-- peers: end -->"
_TAKEN = {
    START: {
        "/ PyTorch": "eager / PyTorch",
        "/ HIPS/autograd": "eager / autograd",
        "/ NumPy by hand": "eager / NumPy by hand",
        "/ eager": "compiled / eager",
    },
    "<!-- machine code: begin -->": {
        "/ torch.compile": "with `jit` / torch.compile",
        "/ jax.jit": "with `jit` / jax.jit",
        "/ PyTorch eager": "with `jit` / PyTorch",
        "/ NumPy, preallocated": "with `jit` / NumPy, preallocated",
    },
}


def verdicts(results: Results) -> list[Verdict]:
    """Return every requirement that the measurements allow to judge."""
    found = []
    large = []
    for name, timings in results.timings.items():
        work = WORKS[name]
        measured = ratio(timings, OURS, "torch")
        if measured is None:
            continue
        if work.target is not None:
            what = f"{work.title}: / PyTorch"
            found.append(Verdict(what, measured, work.target, work.predicted))
        if name in LARGE:
            large.append(measured)
    if len(large) == len(LARGE):
        mean = math.prod(large) ** (1 / len(large))
        what = "geometric mean of demo, GELU, transformer: / PyTorch"
        found.append(Verdict(what, mean, LARGE_MEAN_TARGET))
    for name, timings in results.timings.items():
        measured = ratio(timings, OURS, "autograd")
        if measured is not None:
            work = WORKS[name]
            found.append(Verdict(f"{work.title}: / HIPS/autograd", measured, work.hips_target))
    if OURS in results.memory and "torch" in results.memory:
        measured = results.memory[OURS]["transient"] / results.memory["torch"]["transient"]
        what = "bytes allocated in the demo's step: / PyTorch"
        found.append(Verdict(what, measured, BYTES_TARGET))
    if OURS in results.anomaly:
        what = "300 small ops forward + backward: anomaly mode on / off"
        found.append(Verdict(what, _slowdown(results.anomaly[OURS]), ANOMALY_TARGET))
    if results.scaling is not None:
        what = f"backward of {scaling.LARGE:,} nodes / of {scaling.SMALL:,}"
        found.append(Verdict(what, results.scaling["ratio"], SCALING_TARGET))
    if results.import_seconds is not None:
        measured = 1e3 * results.import_seconds
        what = "import oneflow_lite after import numpy"
        found.append(Verdict(what, measured, IMPORT_TARGET_MS, unit=" ms"))
    return found


def _times_table(results: Results) -> str:
    """Return our times, each followed by its ratios to the peers'."""
    peers = [side for side in results.sides if side not in (OURS, COMPILED)]
    columns = [(OURS, OURS), *((OURS, peer) for peer in peers if peer in EAGER_SIDES)]
    ours = OURS
    if COMPILED in results.sides:
        ours = COMPILED
        columns += [(COMPILED, COMPILED), (COMPILED, OURS)]
    columns += [(ours, peer) for peer in peers if peer in COMPILED_SIDES]
    called = {**SIDES, OURS: "eager", COMPILED: "compiled"}
    header = [f"/ {called[p]}" if p != side else f"{called[p]}, ms" for side, p in columns]
    rows = []
    for name, timings in results.timings.items():
        row = [WORKS[name].title]
        for side, peer in columns:
            value = ratio(timings, side, peer)
            text = milliseconds(timings, side) if peer == side else f"{value:.2f}" if value else "-"
            row.append(text)
        rows.append(row)
    return table(["", *header], rows)


def _memory_table(memory: dict[str, dict[str, int]]) -> str:
    rows = [
        [
            SIDES[side],
            *(f"{count[key] / 1e6:.1f}" for key in ("total", "alive", "transient", "peak")),
        ]
        for side, count in memory.items()
    ]
    return table(["MB", "allocated", "of it alive after", "beyond what lives on", "peak"], rows)


def _slowdown(times: dict[str, float]) -> float:
    return times["on"] / times["off"]


def _anomaly_table(anomaly: dict[str, dict[str, float]]) -> str:
    rows = [
        [SIDES[side], f"{1e3 * t['off']:.4g}", f"{1e3 * t['on']:.4g}", f"{_slowdown(t):.2f}"]
        for side, t in anomaly.items()
    ]
    return table(["ms per iteration", "off", "on", "on / off"], rows)


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
        sections.append(("Beside others", _times_table(results)))
    if results.memory:
        sections.append(
            ("Bytes allocated in one training step of the demo", _memory_table(results.memory))
        )
    if results.anomaly:
        sections.append(
            ("Anomaly mode: 300 small ops forward + backward", _anomaly_table(results.anomaly))
        )
    return sections + compiled_report.sections(results)


def console(results: Results) -> str:
    """Return the report for the terminal."""
    parts = [f"{title}\n{table}" for title, table in _sections(results)]
    found = verdicts(results) + compiled_report.verdicts(results)
    if found:
        parts += [verdicts_table(found), _missed(found)]
    parts += results.left_out
    noise = _noise(results)
    if noise is not None:
        parts.append(f"WARNING: {noise}")
    return "\n\n".join(parts)


def _missed(found: Sequence[Verdict]) -> str:
    """Return the requirements that were missed, with the targets in brackets."""
    missed = [v for v in found if not v.reached]
    text = f"{len(found) - len(missed)} of {len(found)} targets are reached."
    named = [f"{v.what} {v.measured:.2f} ({v.target:.4g}){v.unit}" for v in missed]
    return f"{text} Missed, with the target in brackets: {'; '.join(named)}." if named else text


def _machine() -> str:
    cores = os.cpu_count() or 1
    return f"{cores} core{'s' if cores > 1 else ''}, {platform.machine()}, {platform.system()}"


def section(results: Results) -> str:
    """Return the part of docs/benchmarks.md that this run measures."""
    used = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    rounds = f"{results.rounds} round{'s' if results.rounds > 1 else ''}"
    threads = f"{results.threads} thread{'s' if results.threads > 1 else ''}"
    parts = [f"Measured on {_machine()}; {threads} each, {rounds}; {used}."]
    noise = _noise(results)
    if noise is not None:
        parts.append(f"**{noise}**")
    parts += results.left_out
    parts += [f"## {title}\n\n{table}" for title, table in _sections(results)]
    found = verdicts(results) + compiled_report.verdicts(results)
    if found:
        parts.append(f"## Targets\n\n{_missed(found)}")
    return "\n\n".join([START, *parts, END])


def summary(page: str) -> str:
    """Return the table of docs/performance.md, made of two tables of docs/benchmarks.md."""
    found: dict[str, dict[str, str]] = {}
    machines = []
    for mark, names in _TAKEN.items():
        lines = page.partition(mark)[2].splitlines()
        machines += [x for x in lines if x.startswith("Measured on")][:1]
        first = itertools.takewhile(bool, itertools.dropwhile(lambda x: x[:1] != "|", lines))
        header, _, *rows = ([c.strip() for c in x.split("|")[1:-1]] for x in first)
        for title, *cells in rows:
            row = dict(zip(header[1:], cells, strict=True))
            found.setdefault(title, {}).update(
                {new: row.get(old, "-").split(" ")[0].strip("*") for old, new in names.items()}
            )
    header = [name for names in _TAKEN.values() for name in names.values()]
    # The rows are those of the last table: it has a cell in the last column.
    cells = [
        [title, *(row.get(name, "-") for name in header)]
        for title, row in found.items()
        if header[-1] in row
    ]
    start, end = SUMMARY_MARKS
    return "\n\n".join([start, table(["", *header], cells), *machines, end])


def write_summary() -> None:
    """Bring the table of docs/performance.md up to date with docs/benchmarks.md."""
    write(summary(PAGE.read_text("utf-8")), SUMMARY, *SUMMARY_MARKS)
