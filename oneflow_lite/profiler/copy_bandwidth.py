"""The speed at which this machine copies memory: the measure for a pass over memory."""

from __future__ import annotations

import functools
import itertools
import time
from functools import partial

import numpy as np

from oneflow_lite.arrays.threads import in_threads, threads

_BYTES = 64 << 20  # more than most caches hold
_TURNS = 5


@functools.cache
def copy_bandwidth() -> float:
    """Return the bytes a second, read and written, of the fastest of five large copies.

    Measured once in a process, with as many threads as loops use; takes about 0.1 s.

    >>> from oneflow_lite.profiler.copy_bandwidth import copy_bandwidth
    >>> copy_bandwidth() > 0
    True
    """
    count = threads()
    source, target = np.ones(_BYTES, np.uint8), np.zeros(_BYTES, np.uint8)
    bounds = [_BYTES * i // count for i in range(count + 1)]
    pieces = [slice(*pair) for pair in itertools.pairwise(bounds)]

    def copy(piece: slice) -> None:
        np.copyto(target[piece], source[piece])

    # The best of several turns: the first also maps pages, and any may share the machine.
    best = float("inf")
    for _ in range(_TURNS):
        start = time.perf_counter()
        in_threads([partial(copy, piece) for piece in pieces])
        best = min(best, time.perf_counter() - start)
    return 2 * _BYTES / best
