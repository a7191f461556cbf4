"""Kernels of sort, argsort and topk.

NaN counts as the greatest value, as in PyTorch, and equal elements keep their order: sorting is
always stable, so that both devices and PyTorch agree on the indices.
"""

import numpy as np

from oneflow_lite.kernels.index_arrays import take_along
from oneflow_lite.kernels.infer_rules import order_of, ordered
from oneflow_lite.registry import register_kernel

_FEW = 8  # so many maxima, taken one after the other, cost less than a selection


@register_kernel("argsort", infer=order_of)
def argsort(xp, x, *, dim, descending=False):
    if not x.ndim:
        return xp.zeros((), xp.int64)
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable")
    # Backwards through the flipped array: equal elements keep their order and NaN comes first.
    backwards = (slice(None),) * dim + (slice(None, None, -1),)
    return x.shape[dim] - 1 - xp.argsort(x[backwards], axis=dim, kind="stable")[backwards]


@register_kernel("sort", infer=ordered)
def sort(xp, x, *, dim, descending=False):
    if not x.ndim:
        return x.copy(), xp.zeros((), xp.int64)
    order = argsort(xp, x, dim=dim, descending=descending)
    return take_along(xp, x, order, dim), order


@register_kernel("topk")
def topk(xp, x, *, k, dim, largest=True, sorted=True):
    if not x.ndim:
        return x.copy(), xp.zeros((), xp.int64)
    size = x.shape[dim]
    if xp is np and largest and 0 < k <= _FEW and size > 2 * _FEW and x.dtype.kind in "fiu":
        found = _few_largest(x, k, dim)
        if found is not None:
            return found
    if (
        k == 0 or 2 * k >= size or size <= 2 * _FEW
    ):  # then a full sort costs no more than a selection
        order = argsort(xp, x, dim=dim, descending=largest)
        order = xp.ascontiguousarray(_first(order, k, dim))
        return take_along(xp, x, order, dim), order
    if largest:
        chosen = xp.argpartition(x, size - k, axis=dim)
        chosen = chosen[(slice(None),) * dim + (slice(size - k, None),)]
    else:
        chosen = _first(xp.argpartition(x, k - 1, axis=dim), k, dim)
    values = take_along(xp, x, chosen, dim)
    if not sorted:
        return values, xp.ascontiguousarray(chosen)
    order = argsort(xp, values, dim=dim, descending=largest)
    return take_along(xp, values, order, dim), take_along(xp, chosen, order, dim)


def _few_largest(x, k, dim):
    """Take the maximum k times; return None where the lowest value of the dtype is among them."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    lines = np.moveaxis(x, dim, -1)
    shape = (*lines.shape[:-1], k)
    lines = lines.reshape(-1, x.shape[dim]).copy()
    rows, found = np.arange(len(lines)), np.empty((len(lines), k), np.int64)
    values = np.empty(found.shape, x.dtype)
    for i in range(k):
        where = found[:, i] = lines.argmax(1)
        values[:, i] = lines[rows, where]
        lines[rows, where] = lowest
    if (values[:, -1] == lowest).any():
        return None
    made = (np.moveaxis(each.reshape(shape), -1, dim) for each in (values, found))
    return tuple(map(np.ascontiguousarray, made))


def _first(x, k, dim):
    return x[(slice(None),) * dim + (slice(0, k),)]
