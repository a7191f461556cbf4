"""Growth of time with nodes, with ops and with elements: eager, compiled, and PyTorch's.

`python -m tests.benchmarks.growth --write` draws docs/figures/growth.svg, with matplotlib, and
fills its part of docs/benchmarks.md. Each side runs in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.results import PAGE, table, write
from tests.benchmarks.worker import timings
from tests.benchmarks.works import COMPILED, OURS, PACKAGES, settle

FIGURE = PAGE.parent / "figures" / "growth.svg"
START, END = "<!-- growth: begin -->", "<!-- growth: end -->"
SIDES = {OURS: "eager", COMPILED: "flow.compile", "torch": "PyTorch eager"}
SIZES = {
    "nodes": (100, 1_000, 10_000, 100_000),
    "ops": (10, 30, 100, 300, 1_000),
    "elements": (1 << 4, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 22),
}
TITLES = {
    "nodes": "backward pass of a chain of adds",
    "ops": "step of small ops, 16 elements",
    "elements": "GELU of elementary ops, forward and backward",
}
Step = Callable[[], Any]


def _chain(lib: Any, nodes: int) -> Callable[[], float]:
    """Return what times one backward pass over a chain in which every node sends to a leaf."""
    x = lib.ones((), requires_grad=True)

    def once() -> float:
        y = x
        for _ in range(nodes):
            y = y + x
        gc.collect()
        start = time.perf_counter()
        y.backward()
        return time.perf_counter() - start

    return once


def _ops(lib: Any, count: int) -> Step:
    x = lib.full((16,), 0.5, requires_grad=True)

    def step() -> Any:
        x.grad = None
        y = x
        for _ in range(count // 5):
            y = lib.tanh(y * x + x) - 0.2
            y = lib.exp(-y)
        y.sum().backward()
        return x.grad

    return step


def _gelu(lib: Any, elements: int) -> Step:
    x, dy = lib.full((elements,), 0.5, requires_grad=True), lib.ones((elements,))

    def step() -> Any:
        x.grad = None
        y = 0.5 * x * (1.0 + lib.tanh(0.7978845608 * (x + 0.044715 * (x * x * x))))
        y.backward(dy)
        return x.grad

    return step


def measure(
    side: str, budget: float = 0.3, sizes: Mapping[str, Sequence[int]] = SIZES
) -> dict[str, list[float | None]]:
    """Return the seconds of one side at all sizes; None where it does not take part."""
    lib = importlib.import_module(PACKAGES.get(side, side))
    found: dict[str, list[float | None]] = {}
    found["nodes"] = [
        None if side == COMPILED else statistics.median(_chain(lib, n)() for _ in range(5))
        for n in sizes["nodes"]
    ]
    for what, make in {"ops": _ops, "elements": _gelu}.items():
        found[what] = []
        for size in sizes[what]:
            step = make(lib, size)
            if side == COMPILED:
                step = lib.compile(step)
                for _ in range(3):
                    step()
                settle(step, turns=50)
            found[what].append(statistics.median(timings(step, budget, batched=0.002)))
    return found


def draw(found: Mapping[str, Mapping[str, Sequence[float | None]]], path: Path) -> None:
    """Draw one plot for nodes, ops and elements each."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams.update({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 9})
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for what, axis in zip(SIZES, axes, strict=True):
        for side, label in SIDES.items():
            if side not in found:
                continue
            points = [
                (size, 1e3 * seconds)
                for size, seconds in zip(SIZES[what], found[side][what], strict=True)
                if seconds is not None
            ]
            if points:
                axis.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=label)
        axis.set(title=TITLES[what], xlabel=what)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ms")
    axes[2].legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def section(found: Mapping[str, Mapping[str, Sequence[float | None]]]) -> str:
    """Return the part of the page that is measured: the figure, and what each more costs."""
    rows = []
    for what, sizes in SIZES.items():
        cells = []
        for side in SIDES:
            values = found.get(side, {}).get(what, [None])
            first, last = values[0], values[-1]
            if first is None or last is None:
                cells.append("-")
                continue
            each = 1e9 * (last - first) / (sizes[-1] - sizes[0])
            cells.append(f"{each:.3g}" if each < 100 else f"{each:,.0f}")
        rows.append([f"each of {sizes[0]:,} to {sizes[-1]:,} {what}", *cells])
    text = table(["ns", *SIDES.values()], rows)
    picture = f"![time against nodes, ops and elements]({FIGURE.parent.name}/{FIGURE.name})"
    return "\n\n".join([START, picture, text, END])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every side in its process, print the table, and write it if that was asked for."""
    from tests.benchmarks.__main__ import run_python

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description=__doc__)
    parser.add_argument("--side", choices=list(SIDES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each size (0.3)")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(argv)
    if options.side:
        if options.side == "torch":
            importlib.import_module("torch").set_num_threads(options.threads)
        print(json.dumps(measure(options.side, options.budget)), flush=True)
        return
    more = ["--threads", str(options.threads), "--budget", str(options.budget)]
    found = {
        side: run_python(["-m", "tests.benchmarks.growth", "--side", side, *more], options.threads)
        for side in SIDES
    }
    text = section(found)
    print(text)
    if options.write:
        draw(found, FIGURE)
        write(text, PAGE, START, END)
        print(f"written: {FIGURE.name} and {PAGE.name}")


if __name__ == "__main__":
    main()
