"""The part of the report on compiled code: its times, bytes and own costs, and what was wanted."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.results import Results, Verdict, milliseconds, ratio, table, verdicts_table
from tests.benchmarks.works import (
    BLOCK_PARAMETERS,
    BLOCK_TARGET_US,
    COMPILED,
    COMPILED_SIDES,
    FUNCTION_TARGET_MS,
    HIT_COUNTS,
    HIT_TARGETS_US,
    OURS,
    RECORDING_TARGET,
    SIDES,
    STEPS_TARGET,
    WORKS,
)

INTRODUCTION = """\
- Compiled: `flow.compile` and `torch.compile` are given the same functions that are timed eagerly.
  Paddle's static executor runs a Program of each work (`paddle_works.py`). "NumPy, preallocated"
  (`prealloc_works.py`) is the MLP steps by hand, each operation into an array that is there
  already. Compiling and the first runs are not timed; a work that `flow.compile` does not replay
  from beginning to end is an error. Dashes: Paddle has no third-order gradient of a matrix product;
  the chain of 20,000 adds takes Paddle and torch.compile minutes to prepare.
- A hit: a replayed call of a compiled function of 1, 10 and 100 tensors, less the run of its
  Program, in turns; a line is fitted. Tensors are arguments, parameters from outside, or
  parameters of modules that are called, one each.
- Recording: the first call of a compiled training step less an eager call, median of three; and
  recordings of a small MLP's Adam step, with and without functions that no other has met before.
- Bytes "held by compiled" are the buffers that a compiled work keeps from call to call.
"""


def verdicts(results: Results) -> list[Verdict]:
    """Return every requirement on compiled code that the measurements allow to judge."""
    found = []
    for name, timings in results.timings.items():
        for peer, target in WORKS[name].compiled.items():
            measured = ratio(timings, COMPILED, peer)
            if measured is not None:
                label = "eager" if peer == OURS else SIDES[peer]
                found.append(Verdict(f"{WORKS[name].title}: / {label}", measured, target))
    for name, counts in results.byte_counts.items():
        if OURS in counts and COMPILED in counts:
            work = WORKS[name]
            measured = counts[COMPILED]["total"] / counts[OURS]["total"]
            found.append(Verdict(f"{work.title}: bytes / eager", measured, work.bytes_target))
    for kind, line in (results.hits or {}).items():
        fixed, each = (1e6 * line[part] for part in ("fixed", "each"))
        if kind == "modules":
            what, measured = (
                f"a hit with {BLOCK_PARAMETERS} modules",
                fixed + BLOCK_PARAMETERS * each,
            )
            found.append(Verdict(f"{what} of a parameter", measured, BLOCK_TARGET_US, unit=" µs"))
            continue
        what = f"a hit with guarded {kind}"
        found.append(Verdict(f"{what}, fixed cost", fixed, HIT_TARGETS_US["fixed"], unit=" µs"))
        found.append(Verdict(f"{what}, each of them", each, HIT_TARGETS_US["each"], unit=" µs"))
    if results.recording is not None:
        what = f"recording a training step of {results.recording['ops']:,} ops"
        found.append(Verdict(what, results.recording["extra"], RECORDING_TARGET, unit=" s"))
    if results.recording is not None and "steps" in results.recording:
        steps, each = results.recording["steps"], 1e3 * results.recording["function"]
        found.append(Verdict("recording an MLP step, in eager steps", steps, STEPS_TARGET))
        what = "recording, each function met for the first time"
        found.append(Verdict(what, each, FUNCTION_TARGET_MS, unit=" ms"))
    return found


def _times_table(results: Results, sides: Sequence[str]) -> str:
    shown = [OURS, *sides] if OURS in results.sides else list(sides)
    header = ["ms per iteration (best)", *("eager" if s == OURS else SIDES[s] for s in shown)]
    rows = [
        [WORKS[name].title, *(milliseconds(timings, side) for side in shown)]
        for name, timings in results.timings.items()
    ]
    return table(header, rows)


def _ratios_table(results: Results, sides: Sequence[str]) -> str:
    peers = [OURS, *(side for side in sides if side != COMPILED)]
    header = ["flow.compile / peer", *("eager" if p == OURS else SIDES[p] for p in peers)]
    rows = []
    for name, timings in results.timings.items():
        ratios = [ratio(timings, COMPILED, peer) for peer in peers]
        rows.append([WORKS[name].title, *("-" if r is None else f"{r:.2f}" for r in ratios)])
    return table(header, rows)


def _bytes_table(results: Results) -> str:
    rows = []
    for name, counts in results.byte_counts.items():
        totals = [counts.get(side, {}).get("total") for side in (OURS, COMPILED)]
        peaks = [counts.get(side, {}).get("peak") for side in (OURS, COMPILED)]
        held = counts.get(COMPILED, {}).get("held")
        cells = ["-" if n is None else f"{n / 1e3:.1f}" for n in (*totals, *peaks, held)]
        rows.append([WORKS[name].title, *cells])
    return table(["kB", "eager", "compiled", "peak, eager", "compiled", "held by compiled"], rows)


def _hits_table(results: Results) -> str:
    assert results.hits is not None
    rows = [
        [kind, *(f"{1e6 * s:.2f}" for s in (*line["seconds"], line["fixed"], line["each"]))]
        for kind, line in results.hits.items()
    ]
    counts = [f"{count} tensor{'s' if count > 1 else ''}" for count in HIT_COUNTS]
    return table(["µs per call", *counts, "fixed", "each"], rows)


def _recording_table(recording: dict[str, float]) -> str:
    cells = [f"{recording['ops']:,}"]
    cells += [f"{recording[part]:.3g}" for part in ("eager", "recorded", "extra")]
    return table(["ops", "eager call, s", "recorded call, s", "difference, s"], [cells])


def sections(results: Results) -> list[tuple[str, str]]:
    """Return title and content of each part that was measured."""
    found = []
    sides = [side for side in results.sides if side in COMPILED_SIDES]
    if results.timings and sides:
        found.append(("Compiled: times", _times_table(results, sides)))
        if COMPILED in sides:
            found.append(("Compiled: ratios", _ratios_table(results, sides)))
    if results.byte_counts:
        title = "Compiled: bytes allocated in one iteration, the highest level, and buffers"
        found.append((title, _bytes_table(results)))
    if results.hits is not None:
        found.append(("Compiled: a replayed call beyond its Program", _hits_table(results)))
    if results.recording is not None:
        found.append(("Compiled: the call that is recorded", _recording_table(results.recording)))
    judged = verdicts(results)
    if judged:
        found.append(("Compiled: wanted, measured", verdicts_table(judged)))
    return found
