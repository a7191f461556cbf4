"""Runs the suite: starts one process per side and work, in turns, and reports the ratios."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import against, report
from tests.benchmarks.results import PAGE, Results, Timing, write
from tests.benchmarks.works import (
    COMPILED,
    EAGER_SIDES,
    NAMES,
    OURS,
    SIDES,
    WORKS,
    Digest,
    difference,
    installed,
)
from tests.progress import progress

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("memory", "anomaly", "import", "scaling", "bytes", "hits", "recording")
OTHER_COMPILERS = ("torch.compile", "paddle")  # may fail at a work, or take too long
LIMIT = 600.0  # seconds that a process may take
IMPORT = """
import importlib, sys, time
import numpy
start = time.perf_counter()
importlib.import_module(sys.argv[1])
print(time.perf_counter() - start)
"""


class SideFailed(Exception):
    """A side's process ended with an error; the message holds the last it said."""


def run_python(arguments: Sequence[str], threads: int, folder: Path = ROOT, **settings: str) -> Any:
    """Run Python with ``arguments`` and every side's thread settings; return the JSON it prints.

    ``folder`` is the checkout that it runs in, ``settings`` are further environment variables.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    environment = {
        **os.environ,
        **dict.fromkeys((*names, "FLAGS_paddle_num_threads"), str(threads)),
        "GLOG_minloglevel": "2",  # Paddle's warnings
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no processes that outlive a side's
        "PYTHONHASHSEED": "0",
        **settings,
    }
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        raise SideFailed(f"not finished within {LIMIT:g} s") from error
    if done.returncode != 0:
        raise SideFailed("\n".join(done.stderr.strip().splitlines()[-5:]))
    return json.loads(done.stdout.strip().splitlines()[-1])


def _worker(
    what: str,
    side: str,
    work: str,
    options: argparse.Namespace,
    folder: Path = ROOT,
    more: Sequence[str] = (),
) -> Any:
    arguments = ["-m", "tests.benchmarks.worker", what, "--side", side, "--work", work]
    arguments += ["--threads", str(options.threads), "--budget", str(options.budget)]
    arguments += ["--eager-jit"] * (side == OURS and getattr(options, "eager_jit", False))
    return run_python([*arguments, *more], options.threads, folder)


def time_work(
    work: str,
    sides: Sequence[str],
    options: argparse.Namespace,
    problems: list[str],
    left_out: list[str],
) -> dict[str, Timing]:
    """Time ``work`` on every side in turns; failing or computing something else is a problem.

    Another compiler that fails is left out of this work.
    """
    rounds: dict[str, list[Any]] = {side: [] for side in sides}
    tries = [] if options.quick else ["--tries", "3"]
    for number in range(options.rounds):
        print(f"  {work}: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for side in list(rounds):
            try:
                result = _worker("time", side, work, options, more=tries)
            except SideFailed as error:
                result = None
                if side in OTHER_COMPILERS:
                    reason = str(error).splitlines()[-1] if str(error) else "no reason given"
                    left_out.append(f"{NAMES[side]} is left out of {work}: {reason}")
                else:
                    problems.append(f"{work}: {NAMES[side]} failed\n{error}")
            if result is None:
                del rounds[side]
            else:
                rounds[side].append(result)
    # All are judged by PyTorch where PyTorch is there, else by the next who is.
    judge = next((side for side in ("torch", "autograd", "numpy", OURS) if side in rounds), None)
    timings = {}
    for side, results in rounds.items():
        assert judge is not None
        got, expected = (
            [Digest(tuple(shape), norm, projection) for shape, norm, projection in r[0]["digests"]]
            for r in (results, rounds[judge])
        )
        wrong = difference(got, expected, WORKS[work].tolerance)
        if wrong is not None:
            problems.append(f"{work}: {NAMES[side]} and {NAMES[judge]} differ: {wrong}")
            continue
        timings[side] = Timing(
            best=statistics.median(result["best"] for result in results),
            median=statistics.median(result["median"] for result in results),
            others=statistics.mean(result["others"] for result in results),
            resident=_median([result.get("resident") for result in results]),
        )
    return timings


def _median(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def _count_memory(
    work: str, sides: Sequence[str], options: argparse.Namespace, problems: list[str]
) -> dict[str, dict[str, int]]:
    """Count the bytes of one iteration of ``work`` on the sides that can."""
    counts = {}
    for side in sides:
        try:
            result = _worker("memory", side, work, options)
        except SideFailed as error:
            problems.append(f"bytes of {work}: {SIDES[side]} failed\n{error}")
            continue
        if result is not None:
            counts[side] = result
    return counts


def _time_anomaly(
    sides: Sequence[str], options: argparse.Namespace, problems: list[str]
) -> dict[str, dict[str, float]]:
    """Time the chain of small ops with anomaly mode off and on, on the sides that have one."""
    times = {}
    for side in sides:
        try:
            rounds = [_worker("anomaly", side, "chain300", options) for _ in range(options.rounds)]
        except SideFailed as error:
            problems.append(f"anomaly mode: {SIDES[side]} failed\n{error}")
            continue
        if rounds[0] is not None:
            times[side] = {
                mode: statistics.median(found[mode] for found in rounds) for mode in ("off", "on")
            }
    return times


def _time_import(options: argparse.Namespace, problems: list[str]) -> float | None:
    """Return the median seconds of importing oneflow_lite after NumPy, in fresh interpreters."""
    # Bytecode is read as from an installed package, even where this process may not write any.
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        try:
            times = [
                run_python(["-c", IMPORT, OURS], options.threads, **settings) for _ in range(8)
            ]
        except SideFailed as error:
            problems.append(f"import: {SIDES[OURS]} failed\n{error}")
            return None
    return statistics.median(times[1:])  # the first wrote the bytecode


def _own_cost(what: str, options: argparse.Namespace, problems: list[str]) -> Any:
    """Return what is measured on oneflow_lite alone, None if it was not asked for or failed."""
    if what not in options.works:
        return None
    try:
        return _worker(what, OURS, "", options)
    except SideFailed as error:
        problems.append(f"{what}: {SIDES[OURS]} failed\n{error}")
        return None


def _against(options: argparse.Namespace) -> int:
    """Compare with another checkout of this library, and print the ratios."""
    works = options.timed
    if set(works) == set(WORKS):
        works = against.SMALL_TENSORS
    rows = against.compare(
        ROOT,
        options.against,
        works,
        options.rounds,
        lambda folder, work: _worker("time", OURS, work, options, folder),
    )
    print(against.table(rows))
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    def names(allowed: Sequence[str]) -> Any:
        def parse(text: str) -> list[str]:
            chosen = [name for name in text.split(",") if name]
            for name in chosen:
                if name not in allowed:
                    raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(allowed)}")
            return chosen

        return parse

    works = [*WORKS, *EXTRAS]
    peers = [side for side in SIDES if side != OURS]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--works", type=names(works), default=works, help=",".join(works))
    parser.add_argument("--peers", type=names(peers), default=peers, help=",".join(peers))
    parser.add_argument("--rounds", type=int, default=5, help="turns that each side gets (5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every side (2)")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds timed in a turn (1.0)")
    parser.add_argument(
        "--quick", action="store_true", help="one short round, to see that all runs"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="compare with an older checkout of this library instead, by default the small works",
    )
    parser.add_argument(
        "--eager-jit", action="store_true", help="eager kernels go by Numba's loops where they win"
    )
    parser.add_argument("--write", action="store_true", help="fill docs/benchmarks.md")
    options = parser.parse_args(argv)
    if options.write and (options.quick or options.eager_jit or set(options.works) != set(works)):
        parser.error("--write is for a whole run: leave out --quick, --eager-jit and --works")
    if options.against is not None and not (options.against / "tests" / "benchmarks").is_dir():
        parser.error(f"--against: {options.against} is no checkout of this library")
    if options.quick:
        options.rounds, options.budget = 1, 0.2
    options.timed = [work for work in options.works if work in WORKS]
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 if a side failed or computed something else."""
    options = _options(argv)
    if options.against is not None:
        return _against(options)
    problems: list[str] = []
    left_out: list[str] = []
    sides = []
    for side in (OURS, *options.peers):
        if installed(side):
            sides.append(side)
        else:
            left_out.append(f"{SIDES[side]} is not installed and is left out.")
    eager = [side for side in sides if side in EAGER_SIDES]
    both = [side for side in sides if side in (OURS, COMPILED)]
    wanted = options.works
    results = Results(
        timings={
            work: time_work(work, sides, options, problems, left_out)
            for work in progress(options.timed, len(options.timed), "work")
        },
        memory=_count_memory("demo_step", eager, options, problems) if "memory" in wanted else {},
        anomaly=_time_anomaly(eager, options, problems) if "anomaly" in wanted else {},
        import_seconds=_time_import(options, problems) if "import" in wanted else None,
        scaling=_own_cost("scaling", options, problems),
        byte_counts={
            work: _count_memory(work, both, options, problems)
            for work in (options.timed or WORKS)
            if "bytes" in wanted and COMPILED in both
        },
        hits=_own_cost("hits", options, problems),
        recording=_own_cost("recording", options, problems),
        left_out=left_out,
        sides=sides,
        rounds=options.rounds,
        threads=options.threads,
    )
    print(report.console(results))
    for problem in problems:
        print(f"\nPROBLEM {problem}", file=sys.stderr)
    if options.write and not problems:
        write(report.section(results), PAGE, report.START, report.END)
        report.write_summary()
        print(f"\nwritten: {PAGE.name}")
    elif options.write:
        print("\nnothing written, because of the problems above", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
