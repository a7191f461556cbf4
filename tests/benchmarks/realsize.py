"""Works of real size beside PyTorch: time, first step and peak memory; eager, compiled, with `jit`.

`python -m tests.benchmarks.realsize --write` draws docs/figures/realsize.svg, with matplotlib, and
fills its part of docs/benchmarks.md. `--works`, `--sides` and `--threads` choose. Each side of each
work runs in a process of its own. `--keep FILE` adds the figures to a file.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import importlib
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import memory
from tests.benchmarks.realsize_works import KINDS, WORKS
from tests.benchmarks.results import PAGE, Verdict, table, verdicts_table, versions, write
from tests.benchmarks.worker import timings
from tests.benchmarks.works import Digest, difference, digests, settle
from tests.progress import progress

FIGURE = PAGE.parent / "figures" / "realsize.svg"
START, END = "<!-- real size: begin -->", "<!-- real size: end -->"
SIDES = {
    "torch": "PyTorch",
    "numpy": "NumPy alone",
    "jit": "with `jit`",
    "compiled": "compiled, NumPy alone",
    "compiled jit": "compiled with `jit`",
}
# Of PyTorch's time and memory: the geometric mean of all works, and the worst of them.
LIMITS = {"jit": (0.8, 1.3), "numpy": (1.1, 2.0), "compiled jit": (0.7, math.inf)}
FIRST, MEMORY = 3.0, 1.3
FLOOR = 2 << 20  # bytes; less memory above the start is not compared: it is the allocators' steps
KINDS_PAGE = PAGE.with_name("performance.md")
KINDS_MARKS = "<!-- kinds: begin -->", "<!-- kinds: end -->"
Found = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by work and side


def _is_building() -> bool:
    """Return whether a loop of eager mode is being compiled."""
    loops = importlib.import_module("oneflow_lite.ops.eager_loops")._loops
    sites = [site for loop in loops for site in loop.sites.values()]
    return any(site.built is not None and not site.built.done() for site in sites)


def measure(side: str, name: str, threads: int, budget: float) -> dict[str, Any]:
    """Return the figures of one side of a work, in which loops take over as for a user."""
    begun = time.perf_counter()
    lib: Any = importlib.import_module("torch" if side == "torch" else "oneflow_lite")
    if side == "torch":
        lib.set_num_threads(threads)
    else:
        lib.use_jit("jit" in side)
    step = WORKS[name][1](lib)
    if "compiled" in side:
        step = lib.compile(step)
    start = time.perf_counter()
    step()
    first, since = time.perf_counter() - start, time.perf_counter() - begun
    digest = digests(step, 1)
    if "compiled" in side:
        settle(step, seconds=10)
    start, turns = time.perf_counter(), 0
    while turns < 3 or time.perf_counter() - start < 1.0:
        step()
        turns += 1
        if "jit" in side and _is_building():
            turns, start = 0, time.perf_counter()
    seconds = statistics.median(timings(step, budget))
    gc.collect()
    memory.give_back()
    base, peak = memory.resident(), memory.peak_resident(step, 3)
    above = None if peak is None or base is None else peak - base
    found = {"seconds": seconds, "first": first, "since": since, "above": above, "digests": digest}
    if "compiled" in side:
        report = step.explain()  # type: ignore[attr-defined]
        found["replayed"] = bool(report.hits) and not report.fallbacks
    return found


def ratio(found: Mapping[str, Mapping[str, Any]], side: str, what: str) -> float | None:
    """Return how many times PyTorch's time or memory a side takes."""
    ours, theirs = (found.get(each, {}).get(what) for each in (side, "torch"))
    if ours is None or theirs is None or found[side].get("replayed") is False:
        return None
    if what == "above":
        return float(max(ours, FLOOR) / max(theirs, FLOOR))
    return float(ours / theirs)


def mean(ratios: Iterable[float | None]) -> float:
    """Return the geometric mean of the ratios that are there; nan of none."""
    logs = [math.log(each) for each in ratios if each is not None]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def verdicts(found: Found) -> list[Verdict]:
    """Return the limits of all works together, beside the figures."""
    made = []

    def judge(what: str, values: Iterable[float | None], most: float) -> None:
        there = [value for value in values if value is not None]
        if there and most < math.inf:
            made.append(Verdict(f"{what}, worst", max(there), most))

    for side, (middle, most) in LIMITS.items():
        times = [ratio(each, side, "seconds") for each in found.values()]
        if any(value is not None for value in times):
            made.append(Verdict(f"{SIDES[side]}, mean", mean(times), middle))
            judge(SIDES[side], times, most)
    judge("memory with `jit`", [ratio(each, "jit", "above") for each in found.values()], MEMORY)
    for what, title in (("first", "first step"), ("since", "import and first step")):
        judge(title, [ratio(each, "jit", what) for each in found.values()], FIRST)
    return made


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def section_of(found: Found, threads: int) -> list[str]:
    """Return the table of one number of threads, and the verdicts."""
    header = [
        *[f"{threads} thread(s)", "PyTorch, ms", "MB", *[SIDES[side] for side in SIDES][1:]],
        *["memory: NumPy alone", "with `jit`", "compiled with `jit`"],
        *["first step", "import and first step"],
    ]
    rows = []
    for name, each in found.items():
        torch = each.get("torch", {})
        rows.append(
            [
                WORKS[name][0],
                f"{1e3 * torch['seconds']:.3g}" if torch else "-",
                f"{torch['above'] / 1e6:.0f}" if torch.get("above") is not None else "-",
                *[_cell(ratio(each, side, "seconds")) for side in [*SIDES][1:]],
                *[_cell(ratio(each, s, "above")) for s in ("numpy", "jit", "compiled jit")],
                *[_cell(ratio(each, "jit", what)) for what in ("first", "since")],
            ]
        )
    columns = [(side, "seconds") for side in [*SIDES][1:]]
    columns += [("numpy", "above"), ("jit", "above"), ("compiled jit", "above"), ("jit", "first")]
    columns.append(("jit", "since"))
    means = [mean([ratio(each, *column) for each in found.values()]) for column in columns]
    rows.append(["geometric mean", "", "", *map(_cell, means)])
    return [table(header, rows), verdicts_table(verdicts(found))]


def kind_of(name: str) -> str:
    """Return the kind of a work: `add` is a name of its own, before `adamw`."""
    fitting = [
        (name == start, len(start), kind)
        for kind, starts in KINDS.items()
        for start in starts.split()
        if name.startswith(start)
    ]
    return max(fitting)[2]


def kinds_table(found: Found) -> str:
    """Return the table of docs/performance.md: geometric means of the works of each kind."""
    columns = [("numpy", "seconds"), ("jit", "seconds"), ("compiled jit", "seconds")]
    columns += [("jit", "above")]
    rows = []
    for kind in KINDS:
        works = [each for name, each in found.items() if kind_of(name) == kind]
        means = [mean([ratio(each, *column) for each in works]) for column in columns]
        rows.append([kind, *["-" if math.isnan(value) else f"{value:.2f}" for value in means]])
    header = ["", "eager, NumPy alone", "eager with `jit`", "compiled with `jit`"]
    text = table([*header, "memory, eager with `jit`"], rows)
    return "\n\n".join([KINDS_MARKS[0], text, KINDS_MARKS[1]])


def draw(found: Found, path: Path) -> None:
    """Draw each work's ratios on a line of its own, the worst on top."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams.update({"svg.hashsalt": "realsize", "svg.fonttype": "none", "font.size": 9})
    figure, axis = pyplot.subplots(figsize=(9, 0.24 * len(found) + 1), layout="constrained")
    names = sorted(found, key=lambda name: ratio(found[name], "jit", "seconds") or 0)
    for side, marker in (("numpy", "o"), ("jit", "D"), ("compiled jit", "|")):
        points = [(ratio(found[name], side, "seconds"), i) for i, name in enumerate(names)]
        there = [point for point in points if point[0] is not None]
        if there:
            label = SIDES[side].replace("`", "")
            axis.plot(*zip(*there, strict=True), marker, label=label, markersize=5)
    axis.axvline(1, color="gray", linewidth=0.8)
    axis.set(xscale="log", xlabel="time over PyTorch's; left of 1 is faster")
    axis.set_yticks(range(len(names)), [WORKS[name][0] for name in names])
    axis.grid(alpha=0.3, which="both", axis="x")
    axis.legend(loc="lower right")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def section(found: Mapping[int, Found], rounds: int) -> str:
    """Return the part of the page that is measured."""
    used = ", ".join(
        f"{name} {version}"
        for name, version in versions().items()
        if name in ("Python", "NumPy", "SciPy", "PyTorch", "Numba")
    )
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    parts = [
        f"Measured on {machine}; {rounds} round(s), medians; {used}. Columns behind MB are ratios "
        "to PyTorch's eager figure; memory is the peak above the time between steps.",
        f"![each work's time over PyTorch's]({FIGURE.parent.name}/{FIGURE.name})",
    ]
    for threads, each in sorted(found.items(), reverse=True):
        parts += section_of(each, threads)
    return "\n\n".join([START, *parts, END])


def _measured(
    works: Sequence[str], sides: Sequence[str], threads: int, rounds: int, budget: float
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Run all sides of all works in turns; return the figures, and what failed or differs."""
    from tests.benchmarks.__main__ import SideFailed, _median, run_python

    found: dict[str, dict[str, Any]] = {}
    problems = []
    for name in progress(works, len(works), "work"):
        turns: dict[str, list[Any]] = {side: [] for side in sides}
        for side in [*sides] * rounds:
            more = ["--side", side, "--works", name, "--threads", str(threads)]
            module = ["-m", "tests.benchmarks.realsize", "--budget", str(budget), *more]
            try:
                # Bytecode is read as from an installed package.
                turns[side].append(run_python(module, threads, PYTHONDONTWRITEBYTECODE=""))
            except SideFailed as error:
                problems.append(f"{name}: {SIDES[side]} failed\n{error}")
        found[name] = {}
        for side, each in turns.items():
            if not each:
                continue
            firsts = turns["torch"][0]["digests"] if turns.get("torch") else each[0]["digests"]
            got, expected = ([Digest(tuple(s), n, p) for s, n, p in d]
                             for d in (each[0]["digests"], firsts))  # fmt: skip
            wrong = difference(got, expected)
            if wrong is not None:
                problems.append(f"{name}: {SIDES[side]} and PyTorch differ: {wrong}")
                continue
            found[name][side] = {
                what: value if what == "replayed" else _median([turn[what] for turn in each])
                for what, value in each[0].items()
                if what != "digests"
            }
    return found, problems


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and write them if that was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.realsize", description=__doc__
    )
    parser.add_argument("--works", default=",".join(WORKS), help="names, separated by commas")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--side", choices=list(SIDES), help="be one side, and print JSON")
    parser.add_argument("--threads", default="2,1", help="numbers of threads (2,1)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds timed in a turn (1.0)")
    parser.add_argument("--keep", type=Path, help="a JSON file to add what was measured to")
    parser.add_argument("--write", action="store_true", help="fill docs/benchmarks.md")
    options = parser.parse_args(argv)
    works, sides = options.works.split(","), options.sides.split(",")
    unknown = [*({*works} - {*WORKS}), *({*sides} - {*SIDES})]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; works: {', '.join(WORKS)}")
    if options.side:
        print(json.dumps(measure(options.side, works[0], int(options.threads), options.budget)))
        return 0
    package = PAGE.parents[1] / "oneflow_lite"
    rooms = [package, *(package / room for room in ("functors", "grad_funcs", "kernels"))]
    for room in rooms:  # the three are links
        compileall.compile_dir(room, quiet=1)
    kept: dict[str, Any] = {}
    if options.keep is not None and options.keep.exists():
        kept = json.loads(options.keep.read_text())
    problems: list[str] = []
    for threads in options.threads.split(","):
        found, wrong = _measured(works, sides, int(threads), options.rounds, options.budget)
        problems += wrong
        for name, each in found.items():
            kept.setdefault(threads, {}).setdefault(name, {}).update(each)
        print("\n\n".join(section_of(found, int(threads))), flush=True)
        if options.keep is not None:
            options.keep.write_text(json.dumps(kept))
    for problem in problems:
        print(f"\nPROBLEM {problem}", file=sys.stderr)
    if options.write and not problems:
        ordered = {
            int(threads): {name: each[name] for name in WORKS if name in each}
            for threads, each in kept.items()
        }
        draw(ordered[max(ordered)], FIGURE)
        write(section(ordered, options.rounds), PAGE, START, END)
        write(kinds_table(ordered[max(ordered)]), KINDS_PAGE, *KINDS_MARKS)
        print(f"written: {FIGURE.name}, {PAGE.name} and {KINDS_PAGE.name}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
