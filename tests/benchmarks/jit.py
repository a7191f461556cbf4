"""The table on machine code: compiled steps beside torch.compile, jax.jit, PyTorch and NumPy.

`python -m tests.benchmarks.jit --write` fills its part of docs/benchmarks.md; `--works`
chooses rows. One round takes about ten minutes, most of it in other compilers.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence

from tests.benchmarks.__main__ import time_work
from tests.benchmarks.report import write_summary
from tests.benchmarks.results import PAGE, Timing, ratio, table, versions, write
from tests.benchmarks.works import COMPILED, FORWARD, OURS, SIDES, WORKS, installed
from tests.progress import progress

START, END = "<!-- machine code: begin -->", "<!-- machine code: end -->"
PEERS = ("torch.compile", "jax", "torch", "prealloc")
# What the compiled step is to take of each peer's time.
_NETWORK = {"torch.compile": 1.1, "torch": 1.0}
LIMITS: dict[str, dict[str, float]] = {
    "relu2": {"torch.compile": 0.05, "jax": 1.2, "torch": 0.25},
    "chain300": {"torch.compile": 0.15, "jax": 2.0, "torch": 0.02},
    "mlp": {"torch.compile": 0.45, "jax": 0.7, "torch": 0.45, "prealloc": 1.1},
    "mlp256": {"torch.compile": 0.9, "jax": 0.7, "torch": 0.9, "prealloc": 1.05},
    "third_order": {"torch.compile": 0.3, "jax": 1.0, "torch": 0.25},
    "lstm50": {"torch.compile": 0.5, "jax": 0.3, "torch": 0.2},
    "demo_step": {"torch.compile": 0.95, "jax": 0.5, "torch": 1.0},
    "gelu": {"torch.compile": 0.6, "jax": 1.0, "torch": 0.2},
    "transformer": {"torch.compile": 0.9, "jax": 0.6, "torch": 0.9},
    "resnet18": _NETWORK,
    "char": _NETWORK,
}
EAGER_LIMITS = {"transformer": 1.1, "gelu": 1.2, "demo_step": 1.0}  # of PyTorch's time
EAGER_MEAN_LIMIT = 0.7
FORWARD_SHARE = 0.7  # of the gain of the whole step, at least
Timings = Mapping[str, Mapping[str, Timing]]


def cell(value: float | None, limit: float | None, at_least: bool = False) -> str:
    """Return a ratio beside its limit, in bold where that is not kept."""
    if value is None:
        return "-"
    text = f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
    if limit is None:
        return text
    kept = value >= limit if at_least else value <= limit
    sign = "≥" if at_least else "≤"
    return f"{text if kept else f'**{text}**'} ({sign} {limit:g})"


def forward_share(timings: Mapping[str, Timing]) -> float | None:
    """Return which part of the step's gain a forward pass has that is compiled alone."""
    if not {OURS, COMPILED, FORWARD} <= timings.keys():
        return None
    eager, whole, forward = (timings[side].median for side in (OURS, COMPILED, FORWARD))
    return (eager - forward) / (eager - whole) if eager > whole else None


def resident_ratio(timings: Mapping[str, Timing], peer: str) -> float | None:
    """Return the memory of the compiled step over that of a peer, each above its import."""
    ours, theirs = (timings.get(side) for side in (COMPILED, peer))
    if ours is None or theirs is None or not (ours.resident and theirs.resident):
        return None
    return ours.resident / theirs.resident


def compiled_table(timings: Timings) -> str:
    """Return times of the compiled steps, and their ratios to the peers'."""
    rows = []
    for name, found in timings.items():
        limits = LIMITS[name]
        time = f"{1e3 * found[COMPILED].median:.4g}" if COMPILED in found else "-"
        ratios = [cell(ratio(dict(found), COMPILED, peer), limits.get(peer)) for peer in PEERS]
        rows.append([WORKS[name].title, time, *ratios])
    header = ["compiled with `jit`", "ms", *(f"/ {_called(peer)}" for peer in PEERS)]
    return table(header, rows)


def _called(peer: str) -> str:
    return "PyTorch eager" if peer == "torch" else SIDES[peer]


def other_table(timings: Timings) -> str:
    """Return what else is wanted: eager code, forward passes compiled alone, and memory."""
    rows = []
    for name, found in timings.items():
        eager = ratio(dict(found), OURS, "torch")
        memory = resident_ratio(found, "torch")
        here = found[COMPILED].resident if COMPILED in found else None
        rows.append(
            [
                WORKS[name].title,
                cell(eager, EAGER_LIMITS.get(name)),
                cell(forward_share(found), FORWARD_SHARE, at_least=True),
                "-" if here is None else f"{here / 1e6:.1f}",
                cell(memory, 1.0),
                cell(resident_ratio(found, "torch.compile"), None),
            ]
        )
    header = [
        "",
        "eager with `jit` / PyTorch eager",
        "forward alone: part of the gain",
        "peak MB",
        "/ PyTorch eager",
        "/ torch.compile",
    ]
    return table(header, rows)


def eager_mean(timings: Timings) -> float | None:
    """Return the geometric mean of eager code's ratios to PyTorch."""
    found = [ratio(dict(each), OURS, "torch") for each in timings.values()]
    there = [math.log(value) for value in found if value is not None]
    return math.exp(sum(there) / len(there)) if there else None


def section(timings: Timings, notes: Sequence[str], rounds: int, threads: int) -> str:
    """Return the part of the page that is measured."""
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    mean = eager_mean(timings)
    busy = max([t.others for each in timings.values() for t in each.values()], default=0.0)
    parts = [
        f"Measured on {machine}; {threads} thread(s) each, {rounds} round(s), medians; {used}.",
        *([f"Other programs took up to {busy:.1f} cores meanwhile."] if busy > 0.1 else []),
        compiled_table(timings),
        other_table(timings),
    ]
    if mean is not None:
        limit = cell(mean, EAGER_MEAN_LIMIT)
        parts.append(
            f"Eager with `jit` over PyTorch eager, geometric mean of these works: {limit}."
        )
    parts += notes
    return "\n\n".join([START, *parts, END])


def _names(text: str, allowed: Sequence[str]) -> list[str]:
    chosen = [name for name in text.split(",") if name]
    for name in chosen:
        if name not in allowed:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(allowed)}")
    return chosen


def main(argv: Sequence[str] | None = None) -> int:
    """Time the rows, print the tables, and write them if that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.jit", description=__doc__)
    works, peers = list(LIMITS), list(PEERS)
    parser.add_argument("--works", type=lambda t: _names(t, works), default=works)
    parser.add_argument("--peers", type=lambda t: _names(t, peers), default=peers)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds timed in a turn (1.0)")
    parser.add_argument("--write", action="store_true", help="fill docs/benchmarks.md")
    parser.set_defaults(eager_jit=True)
    options = parser.parse_args(argv)
    if options.write and options.works != works:
        parser.error("--write is for all rows: leave out --works")
    options.quick = False
    notes: list[str] = []
    problems: list[str] = []
    for side in options.peers:
        if not installed(side):
            notes.append(f"{_called(side)} is not installed and is left out.")
    there = [side for side in options.peers if installed(side)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", folder)  # for later rounds
        timings = {}
        for work in progress(options.works, len(options.works), "work"):
            wanted = {"torch", *LIMITS[work]}
            sides = [OURS, COMPILED, FORWARD, *(side for side in there if side in wanted)]
            timings[work] = time_work(work, sides, options, problems, notes)
    text = section(timings, notes, options.rounds, options.threads)
    print(text)
    for problem in problems:
        print(f"\nPROBLEM {problem}", file=sys.stderr)
    if options.write and not problems:
        write(text, PAGE, START, END)
        write_summary()
        print(f"\nwritten: {PAGE.name}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
