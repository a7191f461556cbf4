"""Run quick-starts of packages that are built on PyTorch on PyTorch and on oneflow_lite.

    make packages                        # two environments, all quick-starts, the table
    make packages ARGS=--quick           # a few packages, beside the PyTorch of .venv
    make packages ARGS="timm_vit ..."    # these

A quick-start is a script in `starts/` that trains and prints numbers. It runs unchanged in two
environments with the same packages, one with PyTorch and one without, on one thread and with the
same random numbers. Its numbers must agree to 1e-5; where training amplifies the rounding of
float32, both sides run again with float64 as the default dtype and must agree to 1e-9.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tests.scripts.run import difference, verdict, write

ROOT = Path(__file__).resolve().parents[2]
STARTS = Path(__file__).with_name("starts")
PLACE = ROOT / "build" / "packages"
START, END = "<!-- packages: begin -->", "<!-- packages: end -->"
CLOSE = {False: 1e-5, True: 1e-9}  # in float32, and where float64 is the default dtype
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1"}
QUIET["PYTHONDONTWRITEBYTECODE"] = ""  # both sides have their bytecode in files


class Start(NamedTuple):
    """A quick-start; its docstring begins with the name of its package."""

    name: str
    package: str
    version: str
    what: str
    quick: bool


def starts() -> list[Start]:
    """Return the quick-starts, with the versions that the requirements pin."""
    quick, rest = (STARTS.with_name(f"{name}.txt").read_text() for name in ("quick", "all"))
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", quick + rest, re.M))
    found = []
    for path in sorted(STARTS.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        package, _, what = text.partition(": ")
        found.append(Start(path.stem, package, pinned[package], what, f"\n{package}==" in quick))
    return found


class Outcome(NamedTuple):
    start: Start
    theirs: dict[str, Any]
    ours: dict[str, Any]
    double: bool

    @property
    def difference(self) -> float:
        return difference(self.theirs["values"], self.ours["values"])

    @property
    def verdict(self) -> str:
        """Say "agrees", or what is wrong."""
        found = verdict(self.theirs, self.ours, CLOSE[self.double])
        return found + " in float64" * (self.double and found.startswith("differs"))

    @property
    def ratios(self) -> tuple[float, ...]:
        """Our time over PyTorch's: of the median step, and until the first step is done."""
        theirs, ours = steps(self.theirs), steps(self.ours)
        if not (theirs and ours) or self.ours["error"]:
            return (math.nan, math.nan)
        return tuple(min(b) / min(a) for a, b in zip(theirs, ours, strict=True))


def steps(log: dict[str, Any]) -> list[list[float]]:
    """Return the seconds of the median step, and of the first, of each time that a side ran."""
    took = [[b - a for a, b in itertools.pairwise(times)] for times in log.get("runs", [])]
    took = [run for run in took if len(run) > 1]
    return [[statistics.median(run[1:]) for run in took], [run[0] for run in took]] if took else []


def side(start: Start, library: str, python: Path, double: bool, repeat: int) -> dict[str, Any]:
    """Run one side in processes of its own, and return its log."""
    runs = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log.json"
            command = [python, "-P", "-m", "tests.packages.side", library]
            command += [STARTS / f"{start.name}.py", log, *["--double"] * double]
            env = {**os.environ, **QUIET, "PYTHONPATH": str(ROOT)}
            try:
                done = subprocess.run(
                    command, cwd=folder, env=env, capture_output=True, text=True, timeout=600,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return {"values": [], "error": "longer than ten minutes"}
            if not log.exists():
                return {"values": [], "error": f"no log: {done.stderr[-300:]}"}
            found: dict[str, Any] = json.loads(log.read_text())
        runs.append(found["times"])
        if found["error"]:
            break
    return {**found, "runs": runs}


def run(start: Start, torch: Path, flow: Path, repeat: int = 1) -> Outcome:
    """Run a quick-start on both sides, again in float64 where float32 parts."""

    def both(double: bool, repeat: int) -> Outcome:
        theirs = side(start, "torch", torch, double, repeat)
        return Outcome(start, theirs, side(start, "ours", flow, double, repeat), double)

    outcome = both(False, repeat)
    if outcome.verdict.startswith("differs"):
        again = both(True, 1)
        if again.verdict == "agrees":  # the times are those of float32
            runs = [{**b, "runs": a["runs"]} for a, b in zip(outcome[1:3], again[1:3], strict=True)]
            return Outcome(start, *runs, double=True)
    return outcome


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a page's section."""
    good = [o for o in outcomes if o.verdict == "agrees"]
    ratios = [o.ratios[0] for o in good if not math.isnan(o.ratios[0])]
    packages = {o.start.package for o in good}
    lines = [
        START,
        f"Of {len(outcomes)} quick-starts {len(good)} agree with PyTorch, of {len(packages)} "
        f"packages; the median step takes {statistics.median(ratios or [math.nan]):.1f} of "
        "PyTorch's time.",
        "",
        "| package | quick-start | largest difference | time / PyTorch | first step / PyTorch | |",
        "| --- | --- | --: | --: | --: | --- |",
    ]
    for outcome in outcomes:
        start, agrees = outcome.start, outcome.verdict == "agrees"
        apart = "" if math.isinf(outcome.difference) else f"{outcome.difference:.0e}"
        times = " | ".join("" if math.isnan(r) else f"{r:.1f}" for r in outcome.ratios)
        note = "float64" * outcome.double if agrees else outcome.verdict.replace("|", "/")[:200]
        lines.append(
            f"| {start.package} {start.version} | `{start.name}`: {start.what.rstrip('.')} "
            f"| {apart} | {times} | {' '.join(note.split())} |"
        )
    return "\n".join([*lines, END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", help="run these quick-starts only")
    parser.add_argument("--quick", action="store_true", help="run what installs in seconds")
    parser.add_argument("--torch", type=Path, help="the Python of the environment with PyTorch")
    parser.add_argument("--flow", type=Path, help="the Python of the environment without it")
    parser.add_argument("--repeat", type=int, default=1, help="time so many runs, keep the best")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, help="keep what came, as JSON")
    parser.add_argument("--write", action="store_true", help="write docs/coming_from_pytorch.md")
    options = parser.parse_args()
    given = [
        options_python or PLACE / ("quick" if options.quick else name) / "bin" / "python"
        for name, options_python in (("torch", options.torch), ("flow", options.flow))
    ]
    chosen = [s for s in starts() if s.quick or not options.quick]
    chosen = [s for s in chosen if not options.names or s.name in options.names]
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda start: run(start, *given, options.repeat), chosen):
            outcomes.append(outcome)
            step, first = outcome.ratios
            said = f"{outcome.verdict} ({outcome.difference:.0e}, {step:.2f}, first {first:.2f})"
            print(f"{outcome.start.name}: {said}", flush=True)
    if options.results:
        kept = [(o.start.name, o.verdict, o.theirs, o.ours) for o in outcomes]
        options.results.write_text(json.dumps(kept))
    if options.write:
        write(table(outcomes))
    sys.exit(any(outcome.verdict != "agrees" for outcome in outcomes))


if __name__ == "__main__":
    main()
