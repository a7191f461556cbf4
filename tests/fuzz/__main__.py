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
        for number, counts, failure in pool.imap_unordered(campaign.attempt, jobs):
            totals += counts
            failed += failure is not None
            if failure is not None:
                print(f"\nseed {number}: {failure}", flush=True)
    print(campaign.report(totals))
    print(f"{failed} of {chunks} seeds found a difference")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
