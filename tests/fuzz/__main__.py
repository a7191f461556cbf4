"""`python -m tests.fuzz`: run many random programs on oneflow_lite, PyTorch and the oracle."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter

from tests.fuzz import campaign
from tests.fuzz.verdict import torch

CHUNK = 250


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first programs (default 0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args()
    chunks = -(-options.programs // CHUNK)
    sizes = [min(CHUNK, options.programs - k * CHUNK) for k in range(chunks)]
    against = "the copying interpreter" + ("" if torch is None else " and PyTorch")
    print(f"{options.programs} programs against {against}, seeds {options.seed} to ", end="")
    print(options.seed + chunks - 1, flush=True)
    totals: Counter[str] = Counter()
    failed = 0
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        jobs = [(size, options.seed + k) for k, size in enumerate(sizes)]
        for number, counts, failure in pool.imap_unordered(_run, jobs):
            totals += counts
            failed += failure is not None
            if failure is not None:
                print(f"\nseed {number}: {failure}", flush=True)
    print(campaign.report(totals))
    print(f"{failed} of {chunks} seeds found a difference")
    return 1 if failed else 0


def _run(job: tuple[int, int]) -> tuple[int, Counter[str], str | None]:
    size, number = job
    try:
        return number, campaign.run(size, number), None
    except Exception as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        return number, Counter(), f"{type(error).__name__}: {error}\n{notes}"


if __name__ == "__main__":
    sys.exit(main())
