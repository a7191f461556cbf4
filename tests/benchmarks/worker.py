"""One side of the comparison, a process of its own: does one measurement and prints it as JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks import memory
from tests.benchmarks.works import (
    COMPILED,
    FORWARD,
    NOISE,
    OURS,
    PACKAGES,
    build,
    check_replayed,
    digests,
    planned_bytes,
    settle,
)

# What is measured on oneflow_lite alone, on no work of the list.
OWN_COSTS = {
    "scaling": ("scaling", "measure"),
    "hits": ("compiled_costs", "measure_hits"),
    "recording": ("compiled_costs", "measure_recording"),
}


def _busy_seconds() -> float | None:
    """Return the processor seconds that this machine has spent on all programs, where it tells."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def timings(step: Callable[[], Any], budget: float, batched: float = 0.02) -> list[float]:
    """Return the seconds that one ``step`` takes, measured over and over for ``budget`` seconds.

    Short steps are timed in batches of about ``batched`` seconds, so that the clock costs nothing.
    The garbage collector runs as it does for users.
    """
    start = time.perf_counter()
    step()
    batch = max(1, int(batched / (time.perf_counter() - start)))
    samples: list[float] = []
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(samples) < 5:
        start = time.perf_counter()
        for _ in range(batch):
            step()
        samples.append((time.perf_counter() - start) / batch)
    return samples


def _measure(step: Callable[[], Any], budget: float) -> dict[str, Any]:
    """Time ``step``, and see how many processor cores other programs took meanwhile."""
    busy, own, start = _busy_seconds(), time.process_time(), time.perf_counter()
    samples = timings(step, budget)
    wall = time.perf_counter() - start
    others = 0.0
    if busy is not None:
        others = max(0.0, (_busy_seconds() or busy) - busy - (time.process_time() - own)) / wall
    return {"best": min(samples), "median": statistics.median(samples), "others": others}


def measure_time(side: str, name: str, budget: float, tries: int = 1) -> dict[str, Any] | None:
    """Time the work ``name`` on ``side``; None where that side does not run it.

    When other programs disturb, it is timed again, and the least disturbed of ``tries`` counts.
    """
    importlib.import_module(PACKAGES.get(side, side))
    baseline = memory.resident()
    step = build(side, name)
    if step is None:
        return None
    digest = digests(step)
    if side in (COMPILED, FORWARD):
        settle(step)
    timings(step, budget / 4)  # warm caches, thread pools and the processor's clock
    found = []
    while len(found) < tries and not (found and found[-1]["others"] <= NOISE):
        found.append(_measure(step, budget))
    check_replayed(step)
    peak = memory.peak_resident(step)
    above = None if peak is None or baseline is None else peak - baseline
    least = min(found, key=lambda result: result["others"])
    return {**least, "digests": digest, "resident": above}


def measure_memory(side: str, name: str) -> dict[str, int] | None:
    """Count the bytes that one iteration of the work ``name`` allocates on ``side``."""
    step = build(side, name)
    if step is None:
        return None
    for _ in range(3):  # optimizer state and caches live on: they belong to no single step
        step()
    count = memory.torch_allocations if side == "torch" else memory.numpy_allocations
    allocations = count(step)
    check_replayed(step)
    counts = {"transient": allocations.transient, **allocations._asdict()}
    if side == COMPILED:
        counts["held"] = planned_bytes(step)
    return counts


def measure_anomaly(side: str, name: str, budget: float) -> dict[str, float] | None:
    """Time the work ``name`` on ``side`` with anomaly mode off and on, in turns."""
    step = build(side, name)
    if step is None or side not in (OURS, "torch"):
        return None
    detect_anomaly = importlib.import_module(side).autograd.detect_anomaly
    samples: dict[str, list[float]] = {"off": [], "on": []}
    timings(step, budget / 4)
    for _ in range(4):
        samples["off"] += timings(step, budget / 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch says that the mode is slow
            with detect_anomaly():
                samples["on"] += timings(step, budget / 8)
    return {mode: statistics.median(times) for mode, times in samples.items()}


def _switch_loops(wanted: bool) -> None:
    """Let eager kernels go by loops from the first large call on, or never."""
    lib = importlib.import_module(OURS)
    lib.use_jit(wanted)
    if wanted:
        loops = importlib.import_module(f"{OURS}.ops.eager_loops")
        loops.PAYS, loops.deterministic = 0, True


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.worker")
    parser.add_argument("what", choices=("time", "memory", "anomaly", *OWN_COSTS))
    parser.add_argument("--side", default=OURS)
    parser.add_argument("--work", default="relu2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--eager-jit", action="store_true")
    options = parser.parse_args(argv)
    if options.side in (OURS, COMPILED, FORWARD):
        _switch_loops(options.eager_jit or options.side != OURS)
    if PACKAGES.get(options.side, options.side) == "torch":
        importlib.import_module("torch").set_num_threads(options.threads)
    result: Any
    if options.what == "time":
        result = measure_time(options.side, options.work, options.budget, options.tries)
    elif options.what == "anomaly":
        result = measure_anomaly(options.side, options.work, options.budget)
    elif options.what in OWN_COSTS:
        file, function = OWN_COSTS[options.what]
        result = getattr(importlib.import_module(f"tests.benchmarks.{file}"), function)()
    else:
        result = measure_memory(options.side, options.work)
    print(json.dumps(result), flush=True)
    if options.what == "memory":
        # The counted arrays call back into Python when they are freed: not while it shuts down.
        os._exit(0)


if __name__ == "__main__":
    main()
