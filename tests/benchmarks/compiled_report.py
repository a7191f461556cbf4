"""The part of the report on compiled code: its bytes and own costs, and all that was wanted."""

from __future__ import annotations

from tests.benchmarks.results import Results, Verdict, ratio, table
from tests.benchmarks.works import (
    BLOCK_PARAMETERS,
    BLOCK_TARGET_US,
    COMPILED,
    FUNCTION_TARGET_MS,
    HIT_COUNTS,
    HIT_TARGETS_US,
    OURS,
    RECORDING_TARGET,
    SIDES,
    STEPS_TARGET,
    WORKS,
)


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
    if results.byte_counts:
        title = "Compiled: bytes allocated in one iteration, the highest level, and buffers"
        found.append((title, _bytes_table(results)))
    if results.hits is not None:
        found.append(("Compiled: a replayed call beyond its Program", _hits_table(results)))
    if results.recording is not None:
        found.append(("Compiled: the call that is recorded", _recording_table(results.recording)))
    return found
