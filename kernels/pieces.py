"""Pieces of an op's work that stay in a core's caches, and that all threads share."""

import functools
import math

import numpy as np

from oneflow_lite.arrays.blas_threads import products_on_one_thread
from oneflow_lite.arrays.threads import take_turns, threads
from oneflow_lite.kernels.windows import split

# Bytes of the largest array that a piece's steps pass over. In smaller pieces two threads wait for
# each other's Python: max_pool on 26 MB takes 25 ms with 2^17, 10 ms with 2^19, 6 ms from here on.
BYTES = 1 << 20
LARGE = 1 << 17  # elements from which an array is worked on in pieces
_FEW = 1 << 13  # on which every step counts


def in_pieces(work, count, bytes_each):
    """Call `work` with slices of `count` entries, of so many bytes each; threads share them."""
    pieces = max(1, min(count, -(-count * bytes_each // BYTES)))
    ends = [count * i // pieces for i in range(pieces + 1)]
    with products_on_one_thread():
        take_turns(map(slice, ends, ends[1:]), work, min(threads(), pieces))


def by_planes(*more):
    """Let a kernel that works on each plane by itself run on some planes at a time, on the CPU.

    `more` are the dtypes of results after the first one, which is like x. The planes of results are
    of `input_size`, or else of `output_size`.
    """

    def decorate(kernel):
        @functools.wraps(kernel)
        def shared(xp, x, **attrs):
            if x.size < _FEW or xp is not np:
                return kernel(xp, x, **attrs)
            size = attrs.get("input_size") or attrs["output_size"]
            lead, own = split(x.shape, len(size))
            count, largest = math.prod(lead), math.prod(map(max, size, own))
            if count < 2 or count * largest < LARGE:
                return kernel(xp, x, **attrs)
            made = [np.empty((*lead, *size), dtype) for dtype in (x.dtype, *more)]
            planes = x.reshape(-1, *own), *[each.reshape(-1, *size) for each in made]

            def work(piece):
                results = kernel(np, planes[0][piece], **attrs)
                for y, result in zip(planes[1:], results if more else [results], strict=True):
                    y[piece] = result

            in_pieces(work, count, largest * x.itemsize)
            return tuple(made) if more else made[0]

        return shared

    return decorate
