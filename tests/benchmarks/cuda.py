"""`make bench-cuda`: every work on the CUDA device, beside PyTorch's, and the device's bandwidth.

Each side and work has a process of its own, in turns. A compiled side is timed once its machine
code has taken over. Where no device is at hand this says so, and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import oneflow_lite as flow
from tests.benchmarks import cuda_works
from tests.benchmarks.results import PAGE, write
from tests.benchmarks.works import (
    COMPILED,
    OURS,
    TOLERANCE,
    WORKS,
    Digest,
    difference,
    digests,
    installed,
)

ROOT = Path(__file__).resolve().parents[2]
START, END = "<!-- cuda: start -->", "<!-- cuda: end -->"
LIMIT = 900.0  # seconds that a process may take
MOST_WARM = 60.0  # seconds to wait for machine code
OTHERS = {"copy": cuda_works.copying, "pointwise": cuda_works.pointwise}
Times = dict[str, dict[str, float]]  # seconds by work and side


def device_name() -> str | None:
    """Return the name of the CUDA device; None where there is none, or no CuPy."""
    if not flow.cuda.is_available():
        return None
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    return str(name.decode() if isinstance(name, bytes) else name)


def has_taken_over(step: Any) -> bool:
    """Return whether the last used recording does not wait for its machine code any more."""
    recordings = getattr(step, "_recordings", ())
    return not (recordings and getattr(recordings[0].core.runner, "_left", 0))


def seconds(step: Callable[[], Any], wait: Callable[[], None], budget: float) -> float:
    """Return the median time of a step, in batches that end when the device is done."""
    end = time.perf_counter() + MOST_WARM
    for _ in range(5):
        step()
    while not has_taken_over(step) and time.perf_counter() < end:
        step()
    wait()
    batch, samples = 1, []
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(samples) < 5:
        start = time.perf_counter()
        for _ in range(batch):
            step()
        wait()
        taken = time.perf_counter() - start
        if taken < 0.02:
            batch *= 2
        else:
            samples.append(taken / batch)
    return statistics.median(samples)


def measured(side: str, work: str, budget: float) -> dict[str, Any]:
    """Measure one side at one work, in this process."""
    step = OTHERS[work](side) if work in OTHERS else cuda_works.build(side, work)
    wait = cuda_works.library(side).cuda.synchronize

    def on_host() -> list[Any]:
        return [result.detach().cpu() for result in step()]

    found = [] if work in OTHERS else digests(on_host)
    return {"seconds": seconds(step, wait, budget), "digests": found}


def in_process(side: str, work: str, budget: float) -> Any:
    """Measure in a process of its own; return None, and say why, where that fails."""
    command = [sys.executable, "-m", "tests.benchmarks.cuda", "--side", side, "--works", work]
    try:
        done = subprocess.run(
            [*command, "--budget", str(budget)],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{work}: {side} took longer than {LIMIT:g} s", file=sys.stderr)
        return None
    if done.returncode:
        print(f"{work}: {side} failed\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(
    sides: Sequence[str],
    works: Sequence[str],
    rounds: int,
    run: Callable[[str, str], Any],
) -> Times:
    """Measure all sides in turns; one that computes something else than the first is left out."""
    times: Times = {}
    for work in works:
        found: dict[str, list[Any]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side in list(found):
                result = run(side, work)
                if result is None:
                    del found[side]
                else:
                    found[side].append(result)
        times[work] = {}
        first = next(iter(found.values()), [])
        tolerance = WORKS[work].tolerance if work in WORKS else TOLERANCE
        for side, results in found.items():
            got, wanted = ([Digest(*d) for d in each[0]["digests"]] for each in (results, first))
            wrong = difference(got, wanted, tolerance)
            if wrong is not None:
                print(f"{work}: {side} computes something else: {wrong}", file=sys.stderr)
                continue
            times[work][side] = statistics.median(result["seconds"] for result in results)
    return times


def section(name: str, times: Times, rounds: int) -> str:
    """Return the part of the page on CUDA."""
    ours = [side for side in cuda_works.SIDES if any(side in found for found in times.values())]
    head = ["work", *[f"{cuda_works.SIDES[side]}, ms" for side in ours]]
    head += ["compiled / PyTorch", "compiled / torch.compile"]
    lines = [
        "## On a CUDA device",
        "",
        f"Measured on {name} by `make bench-cuda`: medians of {rounds} turns, each side in a "
        "process of its own.",
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
    ]
    for work, found in times.items():
        cells = [f"{found[s] * 1e3:.3f}" if s in found else "" for s in ours]
        for peer in ("torch", "torch.compile"):
            both = COMPILED in found and peer in found
            cells.append(f"{found[COMPILED] / found[peer]:.2f}" if both else "")
        title = WORKS[work].title if work in WORKS else _TITLES[work]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    copied, moved = times.get("copy", {}), 8 * cuda_works.POINTWISE
    if copied:
        best = min(copied.values())
        lines += ["", f"A copy moves {moved / best / 1e9:,.0f} GB/s."]
        if COMPILED in times.get("pointwise", {}):
            share = best / times["pointwise"][COMPILED]
            lines[-1] += f" The fused pointwise work reaches {share:.0%} of that."
    return "\n".join([START, *lines, END])


_TITLES = {
    "copy": f"copy of {cuda_works.POINTWISE:,} numbers",
    "pointwise": f"GELU of elementary ops, {cuda_works.POINTWISE:,} numbers, forward",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 where nothing could be measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cuda", description=__doc__)
    parser.add_argument("--works", default=",".join([*OTHERS, *WORKS]))
    parser.add_argument("--side", help="measure this side alone, here, and print JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds timed in a turn")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args(argv)
    name = device_name()
    if name is None:
        print(
            "No CUDA device is at hand, or CuPy is not installed: nothing was measured or written."
        )
        return 1
    works = options.works.split(",")
    if options.side:
        # Both sides compute in all digits of float32.
        cuda_works.library(options.side).backends.cudnn.allow_tf32 = False
        print(json.dumps(measured(options.side, works[0], options.budget)), flush=True)
        return 0
    sides = [side for side in ("torch", "torch.compile", OURS, COMPILED) if installed(side)]
    times = measure(
        sides, works, options.rounds, lambda side, work: in_process(side, work, options.budget)
    )
    text = section(name, times, options.rounds)
    print(text)
    if options.write:
        write(text, PAGE, START, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
