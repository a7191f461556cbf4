"""The cost per node of a backward pass in a large graph, compared with a small one."""

from __future__ import annotations

import gc
import importlib
import statistics
import time
from typing import Any

from tests.benchmarks.works import OURS

SMALL, LARGE = 10_000, 100_000


def _backward_seconds(lib: Any, nodes: int) -> float:
    """Time one backward pass over a chain in which every node also sends to a leaf."""
    x = lib.ones((), requires_grad=True)
    y = x
    for _ in range(nodes):
        y = y + x
    gc.collect()
    start = time.perf_counter()
    y.backward()
    return time.perf_counter() - start


def measure(turns: int = 7) -> dict[str, float]:
    """Return the median seconds for both sizes, taken in turns, and of their ratios."""
    lib = importlib.import_module(OURS)
    _backward_seconds(lib, SMALL)  # warms up
    small, large = [], []
    for _ in range(turns):
        # One large pass takes as long as ten small ones: noise weighs on both alike.
        small.append(statistics.mean(_backward_seconds(lib, SMALL) for _ in range(10)))
        large.append(_backward_seconds(lib, LARGE))
    return {
        "small": statistics.median(small),
        "large": statistics.median(large),
        "ratio": statistics.median(b / a for a, b in zip(small, large, strict=True)),
    }
