"""`python -m tests.fuzz`: run many random programs, on several sides, and load files that lie."""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing.pool import Pool

from tests.fuzz import campaign, compiled, files, lying, python_judged, python_programs
from tests.fuzz.compiled_programs import write
from tests.fuzz.verdict import torch
from tests.progress import note, progress

CHUNK = 250
Attempt = Callable[[tuple[int, int]], tuple[int, Counter[str], list[str]]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument(
        "--compiled", type=int, default=5_000, help="how many for flow.compile (default 5000)"
    )
    parser.add_argument(
        "--python", type=int, default=2_000, help="how many of random Python (default 2000)"
    )
    parser.add_argument("--files", type=int, default=5_000, help="files that lie (default 5000)")
    parser.add_argument(
        "--lying", type=int, default=1_000, help="how many that lie to machine code (default 1000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first programs (default 0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument(
        "--jit",
        choices=["numba", "python", "numba joined", "python joined"],
        default="",
        help="machine code from the first replay on, by Numba or run as Python",
    )
    parser.add_argument("--show", type=int, help="show and run the compiled program of a seed")
    parser.add_argument("--show-python", type=int, help="the same of random Python")
    options = parser.parse_args()
    of_ops = functools.partial(compiled.attempt, kernels=options.jit)
    of_python = functools.partial(python_judged.attempt, kernels=options.jit)
    if options.show is not None:
        return show(options.show, write, of_ops)
    if options.show_python is not None:
        return show(options.show_python, python_programs.write, of_python)
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(options.workers, maxtasksperchild=1) as pool:  # machine code stays in memory
        failed = run_eager(pool, options.programs, options.seed)
        check = compiled.shares if options.compiled >= CHUNK else None
        kind = "programs compiled against eager"
        failed |= run_jobs(pool, options.compiled, options.seed, kind, of_ops, check)
        kind = "programs of random Python compiled against eager"
        failed |= run_jobs(pool, options.python, options.seed, kind, of_python)
        failed |= run_jobs(pool, options.files, options.seed, "files that lie", files.attempt)
        if find_spec("numba") is None:  # without the extra `jit` nothing trusts them
            return failed
        kind = "programs that lie to machine code"
        return failed | run_jobs(pool, options.lying, options.seed, kind, lying.attempt)


def chunks(count: int) -> list[int]:
    """Return the sizes of the jobs for so many programs."""
    return [min(CHUNK, count - start) for start in range(0, count, CHUNK)]


def run_eager(pool: Pool, count: int, seed: int) -> int:
    """Run programs on oneflow_lite, PyTorch and the copying interpreter."""
    sizes = chunks(count)
    if not sizes:
        return 0
    against = "the copying interpreter" + ("" if torch is None else " and PyTorch")
    print(f"{count} programs against {against}, seeds {seed} to {seed + len(sizes) - 1}")
    totals: Counter[str] = Counter()
    failed = 0
    jobs = [(size, seed + k) for k, size in enumerate(sizes)]
    done = pool.imap_unordered(campaign.attempt, jobs)
    for number, counts, failure in progress(done, len(jobs), "seed"):
        totals += counts
        failed += failure is not None
        if failure is not None:
            note(f"\nseed {number}: {failure}")
    print(campaign.report(totals))
    print(f"{failed} of {len(sizes)} seeds found a difference", flush=True)
    return 1 if failed else 0


def run_jobs(
    pool: Pool,
    count: int,
    seed: int,
    kind: str,
    attempt: Attempt,
    check: Callable[[Counter[str]], list[str]] | None = None,
) -> int:
    """Run attempts; `check` says what of the counts is not as it should be."""
    if not count:
        return 0
    print(f"\n{count} {kind}, seeds {seed} to {seed + count - 1}")
    totals: Counter[str] = Counter()
    failed = 0
    jobs = [(size, seed + k * CHUNK) for k, size in enumerate(chunks(count))]
    for _, counts, failures in progress(pool.imap_unordered(attempt, jobs), len(jobs), "chunk"):
        totals += counts
        failed += len(failures)
        for failure in failures:
            note(f"\n{failure}")
    print(campaign.report(totals))
    wrong = [] if check is None else check(totals)
    print("\n".join([*wrong, f"{failed} of {count} fail"]))
    return 1 if failed or wrong else 0


def show(seed: int, write: Callable[[int], str], attempt: Attempt) -> int:
    """Print the compiled program of a seed, and what came of it."""
    print(write(seed))
    _, counts, failures = attempt((1, seed))
    print("\n".join([campaign.report(counts), *failures]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
