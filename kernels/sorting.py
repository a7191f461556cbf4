"""Kernels of sort, argsort and topk, and of looking values up in others.

NaN counts as the greatest value, as in PyTorch, and equal elements keep their order: sorting is
always stable, so that both devices and PyTorch agree on the indices.
"""

import numpy as np

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.kernels.index_arrays import take_along
from oneflow_lite.kernels.infer_rules import in_c_order, order_of, ordered
from oneflow_lite.registry import register_kernel

_FEW = 8  # so many maxima, taken one after the other, cost less than a selection


@register_kernel("argsort", infer=order_of)
def argsort(xp, x, *, dim, descending=False):
    if not x.ndim:
        return xp.zeros((), xp.int64)
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable")
    # Backwards through the flipped array: equal elements keep their order and NaN comes first.
    order = xp.flip(xp.argsort(xp.flip(x, dim), axis=dim, kind="stable"), dim)
    return x.shape[dim] - 1 - order


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
    if xp is np and largest and 0 < k <= _FEW < size and x.dtype.kind in "fiu":
        found = _few_largest(x, k, dim)
        if found is not None:
            return found
    if k == 0 or 2 * k >= size:  # then a full sort costs no more than a selection
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


# --- Values looked up in others -------------------------------------------------------------------


@in_c_order
def _places(sorted_sequence, values, sorter, *, out_int32, right):
    return ArraySpec(values.shape, np.dtype(np.int32 if out_int32 else np.int64))


@register_kernel("searchsorted", infer=_places)
def searchsorted(xp, sorted_sequence, values, sorter, *, out_int32, right):
    """The leading dimensions of a sequence of several are those of `values`."""
    if sorted_sequence.ndim == 1:
        side = "right" if right else "left"
        places = xp.searchsorted(sorted_sequence, values.reshape(-1), side, sorter)
        places = places.reshape(values.shape)
    else:
        if sorter is not None:
            sorted_sequence = xp.take_along_axis(sorted_sequence, sorter, -1)
        places = _bisected(xp, sorted_sequence, values, right)
    return places.astype(np.int32 if out_int32 else np.int64)


def _bisected(xp, sequence, values, right):
    """Search all rows at once: the bits of each place are found from the highest on."""
    size = sequence.shape[-1]
    places = xp.zeros(values.shape, np.int64)
    step = (1 << size.bit_length()) >> 1
    while step:
        probes = places + step
        found = xp.take_along_axis(sequence, xp.minimum(probes, size) - 1, -1)
        before = ~(found > values if right else found >= values)
        places = xp.where(before & (probes <= size), probes, places)
        step >>= 1
    return places


@in_c_order
def _found(elements, test_elements, **attrs):
    return ArraySpec(elements.shape, np.dtype(bool))


@register_kernel("isin", infer=_found)
def isin(xp, elements, test_elements, *, assume_unique, invert):
    found = xp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    return xp.asarray(found).reshape(elements.shape)
