"""Run public PyTorch scripts on PyTorch and on oneflow_lite, side by side, and compare.

    python -m tests.scripts.run CHECKOUTS [--only REGEX] [--aside] [--jobs 2] [--write]

CHECKOUTS is a folder with one folder `owner+name` for each repository of `sources.toml`, at the
commit given there, and a folder `libraries` with what the scripts import beside PyTorch. Both sides
run the same text on the CPU, one thread each, with the same random numbers (`draws.py`), generated
data where a script wants a data set (`stand_ins/`), and stop after some gradients (`side.py`).
`--write` puts the table into docs/coming_from_pytorch.md.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tests.scripts.sources import SOURCES, Source

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "coming_from_pytorch.md"
START, END = "<!-- scripts: begin -->", "<!-- scripts: end -->"
CLOSE = 2e-3  # of each recorded value, relative to the larger of it and a hundredth of the first


def verdict(theirs: dict[str, Any], ours: dict[str, Any], close: float) -> str:
    """Say of the outcomes of both sides "agrees", or what is wrong."""
    if theirs["error"]:
        return f"PyTorch 2.13: {theirs['error']}"
    if ours["error"]:
        return str(ours["error"])
    found = difference(theirs["values"], ours["values"])
    return "agrees" if found < close else f"differs by {found:.1e}"


def difference(a: list[float], b: list[float]) -> float:
    """Return the largest relative difference of two lists, infinity if they are not as long."""
    if len(a) != len(b) or not a:
        return math.inf
    scale = max([abs(x) for x in a if math.isfinite(x)], default=1.0) / 100 or 1.0
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x != y and (x == x or y == y)]
    apart = [abs(x - y) / max(abs(x), scale) for x, y in pairs]
    return max((math.inf if d != d else d for d in apart), default=0.0)


class Outcome(NamedTuple):
    source: Source
    theirs: dict[str, Any]
    ours: dict[str, Any]
    double: bool = False

    @property
    def difference(self) -> float:
        """The largest relative difference of a recorded value."""
        return difference(self.theirs["values"], self.ours["values"])

    @property
    def verdict(self) -> str:
        """Say "agrees", or what is wrong."""
        return verdict(self.theirs, self.ours, CLOSE)

    @property
    def ratio(self) -> float:
        """Our time over PyTorch's, from the first gradient to the last."""
        ours, theirs = self.ours.get("seconds", 0), self.theirs.get("seconds", 0)
        return ours / theirs if theirs > 0.01 else math.nan


def _prepare(code: str, folder: Path) -> None:
    """Write data that a script reads: generated texts and images."""
    rng = np.random.default_rng(0)

    def text(path: str, content: str) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)

    def images(path: str, count: int, height: int, width: int) -> None:
        (folder / path).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
            Image.fromarray(pixels).save(folder / path / f"{number}.jpg")

    def waves(path: str) -> None:
        steps = np.arange(60) + rng.integers(-80, 80, (12, 1))
        np.save(folder / path, np.sin(steps / 20.0))

    exec(code, {"text": text, "images": images, "waves": waves, "random": random.Random(0)})


def run(
    source: Source, checkouts: Path, steps: int, seconds: float, limit: float, double: bool = False
) -> Outcome:
    """Run one script on both sides, in a copy of its repository.

    Training may amplify the rounding of float32 without bound. Where the values part, both sides
    run once more with float64 as the default dtype, and that comparison counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repository"
        skip = shutil.ignore_patterns(".git", "*.png", "*.jpg", "*.gif", "*.ipynb")
        home = checkouts / source.repository.replace("/", "+", 1)
        shutil.copytree(home, root, ignore_dangling_symlinks=True, ignore=skip)
        script = root / source.path
        for path, old, new in source.edits:
            file = root / (path or source.path)
            text = file.read_text(errors="replace")
            edited = re.sub(old, new, text)
            if edited == text:
                raise ValueError(f"{source}: nothing to edit for {old!r}")
            file.write_text(edited)
        _prepare(source.prepare, script.parent)
        logs = {}
        places = [ROOT, *(checkouts / name for name in source.packages), checkouts / "libraries"]
        env = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(str, places)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",  # scripts number words by the order of a set
        }
        for library in ("torch", "ours"):
            log = Path(folder) / f"{library}.json"
            command = [
                sys.executable,
                "-P",
                "-m",
                "tests.scripts.side",
                library,
                str(root),
                str(script),
            ]
            command += ["--log", str(log), "--steps", str(steps), "--seconds", str(seconds)]
            command += ["--double"] if double else []
            command += ["--call", source.call, *source.args.split()]
            try:
                done = subprocess.run(
                    command, cwd=script.parent, env=env, capture_output=True, text=True,
                    timeout=limit, stdin=subprocess.DEVNULL, check=False,
                )  # fmt: skip
                missing = {"values": [], "error": f"no log: {done.stderr[-300:]}"}
                logs[library] = json.loads(log.read_text()) if log.exists() else missing
            except subprocess.TimeoutExpired:
                logs[library] = {"values": [], "error": f"longer than {limit:.0f} s"}
            if not logs[library]["values"] and not logs[library]["error"]:
                logs[library]["error"] = "ended without a gradient"
            if library == "torch":
                if logs["torch"]["error"]:
                    logs["ours"] = {"values": [], "error": "not tried"}
                    break
                steps, seconds = len(logs["torch"]["values"]), 1e9  # as many of ours
    outcome = Outcome(source, logs["torch"], logs["ours"], double)
    if outcome.verdict.startswith("differs") and not double:
        again = run(source, checkouts, steps, seconds, limit, double=True)
        if again.verdict == "agrees":
            return again
    return outcome


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a page's section."""
    counted = [o for o in outcomes if not o.theirs["error"]]
    good = [o for o in counted if o.verdict == "agrees"]
    aside = [o for o in counted if o.source.aside]
    good_aside = [o for o in aside if o.verdict == "agrees"]
    lines = [
        START,
        f"Of {len(counted)} scripts that PyTorch 2.13 runs, {len(good)} "
        f"({len(good) / len(counted):.0%}) run here with the same values; of the {len(aside)} that "
        f"were set aside, {len(good_aside)} did when they were first run.",
        "",
        "| script | changed | gradients | largest difference | time / PyTorch | |",
        "| --- | --- | --: | --: | --: | --- |",
    ]
    for outcome in sorted(counted, key=lambda o: (o.source.repository, o.source.path)):
        source, ratio = outcome.source, outcome.ratio
        difference = "" if math.isinf(outcome.difference) else f"{outcome.difference:.0e}"
        agreed = "float64" if outcome.double else ""
        verdict = agreed if outcome.verdict == "agrees" else outcome.verdict.replace("|", "/")[:160]
        verdict = " ".join(verdict.split())
        lines.append(
            f"| {source.repository}, {source.path} | {source.changed} "
            f"| {len(outcome.theirs['values'])} | {difference} "
            f"| {'' if math.isnan(ratio) else f'{ratio:.1f}'} | {verdict} |"
        )
    return "\n".join([*lines, END])


def write(section: str) -> None:
    """Put a section into the page, in place of the one with the same markers."""
    start, *_, end = section.splitlines()
    text = PAGE.read_text()
    PAGE.write_text(text.split(start)[0] + section + text.split(end)[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--aside", action="store_true", help="also those that were set aside")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--limit", type=float, default=150)
    parser.add_argument("--results", type=Path, help="keep what came, as JSON")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    chosen = [s for s in SOURCES if re.search(options.only, str(s))]
    chosen = [s for s in chosen if options.aside or not s.aside]
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        given = (options.checkouts.resolve(), options.steps, options.seconds, options.limit)
        for outcome in pool.map(lambda s: run(s, *given), chosen):
            outcomes.append(outcome)
            print(f"{outcome.source}: {outcome.verdict} ({outcome.ratio:.1f})", flush=True)
            if options.results:
                kept = [(str(o.source), o.verdict, o.theirs, o.ours) for o in outcomes]
                options.results.write_text(json.dumps(kept))
    if options.write:
        write(table(outcomes))
    print(table(outcomes).split("\n")[1])


if __name__ == "__main__":
    main()
