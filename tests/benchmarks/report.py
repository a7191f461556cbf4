"""Turns what was measured into ratios and verdicts, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

import math
import os
import platform

from tests.benchmarks import compiled_report, scaling
from tests.benchmarks.results import Results, Verdict, milliseconds, ratio, table, verdicts_table
from tests.benchmarks.works import (
    ANOMALY_TARGET,
    BYTES_TARGET,
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

EAGER_PEERS = [side for side in EAGER_SIDES if side != OURS]


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
    sides = [side for side in results.sides if side in EAGER_SIDES]
    header = ["ms per iteration (best)", *(SIDES[side] for side in sides)]
    rows = [
        [WORKS[name].title, *(milliseconds(timings, side) for side in sides)]
        for name, timings in results.timings.items()
    ]
    return table(header, rows)


def _ratios_table(results: Results) -> str:
    peers = [side for side in results.sides if side in EAGER_SIDES and side != OURS]
    header = ["oneflow_lite / peer", *(SIDES[side] for side in peers)]
    rows = []
    for name, timings in results.timings.items():
        ratios = [ratio(timings, OURS, peer) for peer in peers]
        rows.append([WORKS[name].title, *("-" if r is None else f"{r:.2f}" for r in ratios)])
    return table(header, rows)


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
        sections.append(("Times", _times_table(results)))
    if results.timings and OURS in results.sides and any(s in EAGER_PEERS for s in results.sides):
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
        sections.append(("Predicted, wanted, measured", verdicts_table(found)))
    return sections + compiled_report.sections(results)


def console(results: Results) -> str:
    """Return the report for the terminal."""
    parts = [f"{title}\n{table}" for title, table in _sections(results)]
    found = verdicts(results) + compiled_report.verdicts(results)
    if found:
        parts.append(f"{sum(v.reached for v in found)} of {len(found)} targets reached.")
    parts += results.left_out
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

The same script (`tests/benchmarks/tensor_works.py`) runs on oneflow_lite and on PyTorch, eagerly
and compiled. The other sides do the same computation in their own way (`hips_works.py`,
`numpy_works.py` and so on) from the same starting values; a dash stands where a side does not do a
work.
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
{compiled}"""


def markdown(results: Results) -> str:
    """Return docs/benchmarks.md."""
    used = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    rounds = f"{results.rounds} round{'s' if results.rounds > 1 else ''}"
    threads = f"{results.threads} thread{'s' if results.threads > 1 else ''}"
    introduction = _INTRODUCTION.format(compiled=compiled_report.INTRODUCTION)
    parts = [introduction, f"Measured on {_machine()}; {threads} each, {rounds}; {used}.\n"]
    noise = _noise(results)
    if noise is not None:
        parts.append(f"**{noise}**\n")
    parts += [f"{line}\n" for line in results.left_out]
    parts += [f"## {title}\n\n{table}\n" for title, table in _sections(results)]
    return "\n".join(parts)
