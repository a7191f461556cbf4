"""Tools that rules for batches share; a rule gets a `Call` of `transforms/batching.py`.

A rule computes with `call.F`, which runs ops on tensors: those that differ by entry have the batch
in front.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

_INT64 = np.dtype(np.int64)


def merged(call: Any, x: Any, dim: int) -> Any:
    """Merge the batch in front into a dimension of the entries, the batch first."""
    shape = x.shape[1:]
    if dim:
        dims = (*range(1, dim + 1), 0, *range(dim + 1, len(shape) + 1))
        x = call.F.permute(x, dims=dims)
    shape = (*shape[:dim], call.size * shape[dim], *shape[dim + 1 :])
    return call.F.reshape(x, shape=tuple(shape))


def parted(call: Any, y: Any, dim: int) -> Any:
    """Take the batch out of a dimension again, to the front."""
    shape = y.shape
    shape = (*shape[:dim], call.size, shape[dim] // max(call.size, 1), *shape[dim + 1 :])
    y = call.F.reshape(y, shape=tuple(shape))
    if dim:
        y = call.F.permute(y, dims=(dim, *range(dim), *range(dim + 1, len(shape))))
    return y


def entry_numbers(call, ndim, step=1):
    """Return 0, step, 2 step ... for the entries, with so many dimensions of size 1 behind."""
    device = call.level.device_of(call)
    made = call.F.arange(start=0, end=call.size, step=1, dtype=_INT64, device=device)
    made = call.F.mul_scalar(made, factor=step) if step != 1 else made
    return call.F.reshape(made, shape=(call.size,) + (1,) * ndim)


def into_merged(call, index, n):
    """Return indices into a dimension of size n of each entry as indices into all of them."""
    index = call.F.cast(index, dtype=_INT64)
    return call.F.add(index, entry_numbers(call, index.ndim - 1, n))


def flat(call, x):
    """Return x with its entries as vectors."""
    return call.F.reshape(x, shape=(call.size, prod(x.shape[1:])))


def of_all(name):
    """Return the rule of an op that reduces all of x: as the op `name` on vectors."""

    def rule(call, x):
        if 0 in x.shape[1:]:  # entries of nothing, which only the op itself knows a value for
            return NotImplemented
        return getattr(call.F, name)(flat(call, x), dim=1, keepdim=False)[0]

    return rule
