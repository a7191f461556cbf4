"""Kernels of sorting, of elements by their rank or number, and of values looked up in a sequence.

NaN counts as the greatest value, as in PyTorch, and equal elements keep their order: sorting is
always stable, so that both devices and PyTorch agree on the indices.
"""

import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.batches import flat, of_all
from oneflow_lite.kernels.index_arrays import on_host, take_along
from oneflow_lite.kernels.infer_rules import (
    extreme_with_index,
    in_c_order,
    order_of,
    ordered,
    scalar_like,
)
from oneflow_lite.kernels.ordering import SHORT, order_of_many
from oneflow_lite.kernels.reduce import running
from oneflow_lite.ops.registry import register_kernel

_LONG = 4096  # elements of a line, of which few are candidates for the k largest
_FEW = 8  # so many maxima, taken one after the other, cost less than a selection


@register_kernel("argsort", infer=order_of)
def argsort(xp, x, *, dim, descending=False):
    if not x.ndim:
        return xp.zeros((), xp.int64)
    order = order_of_many(x, dim, descending) if on_host(xp) else None
    if order is not None:
        return order
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


@register_kernel("topk", sbp="elementwise")
def topk(xp, x, *, k, dim, largest=True, sorted=True):
    if not x.ndim:
        return x.copy(), xp.zeros((), xp.int64)
    size = x.shape[dim]
    if xp is np and largest and 0 < k <= _FEW and size > 2 * _FEW and x.dtype.kind in "fiu":
        few = _few_largest(x, k, dim)
        if few is not None:
            return few
    if on_host(xp) and size >= _LONG and 0 < 32 * k <= size:
        return _of_candidates(x, k, dim, largest)
    # A full sort of a short line, or for half of it, costs no more than a selection.
    short = SHORT if on_host(xp) and x.dtype.itemsize < 8 else 2 * _FEW
    if k == 0 or 2 * k >= size or size <= short:
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
    rows, places = np.arange(len(lines)), np.empty((len(lines), k), np.int64)
    values = np.empty(places.shape, x.dtype)
    for i in range(k):
        where = places[:, i] = lines.argmax(1)
        values[:, i] = lines[rows, where]
        lines[rows, where] = lowest  # not found again, unless the lowest value is the maximum
    if (values[:, -1] == lowest).any():
        return None
    made = (np.moveaxis(each.reshape(shape), -1, dim) for each in (values, places))
    return tuple(map(np.ascontiguousarray, made))


def _of_candidates(x, k, dim, largest):
    """Sort the candidates for the k largest elements of each line, or for the k smallest.

    The k-th largest element of a sample bounds them: no smaller element is among the k largest.
    """
    lines = np.moveaxis(x, dim, -1)
    shape = (*lines.shape[:-1], k)
    lines = np.ascontiguousarray(lines).reshape(-1, x.shape[dim])
    winners, step = np.empty((len(lines), k), np.int64), math.isqrt(x.shape[dim] // (8 * k))
    for line, chosen in zip(lines, winners, strict=True):
        sample = line[::step]
        rank = len(sample) - k if largest else k - 1
        bound = np.partition(sample, rank)[rank]
        places = np.flatnonzero(~(line < bound if largest else line > bound))
        order = argsort(np, line.take(places), dim=0, descending=largest)
        places.take(order[:k], out=chosen)
    order = np.ascontiguousarray(np.moveaxis(winners.reshape(shape), -1, dim))
    return take_along(np, x, order, dim), order


def _first(x, k, dim):
    return x[(slice(None),) * dim + (slice(0, k),)]


# --- Elements by their rank or their number -------------------------------------------------------


def _kth(x, *, k, dim, keepdim):
    return extreme_with_index(x, dim=dim, keepdim=keepdim)


def _picked(xp, x, index, dim, keepdim):
    """Return the elements at an index of size 1 along `dim`, and the index."""
    y = take_along(xp, x, index, dim)
    return (y, index) if keepdim else (y.squeeze(dim), index.squeeze(dim))


@register_kernel("kthvalue", infer=_kth, sbp="reduce")
def kthvalue(xp, x, *, k, dim, keepdim):
    if not x.ndim:
        return x.copy(), xp.zeros((), np.int64)
    return _picked(xp, x, _partitioned(xp, x, k - 1, dim), dim, keepdim)


def _partitioned(xp, x, rank, dim):
    """Return where the element of this rank, counted from 0, stands along `dim`."""
    order = xp.argpartition(x, rank, axis=dim)
    return xp.ascontiguousarray(order[(slice(None),) * dim + (slice(rank, rank + 1),)])


@register_kernel("median", infer=extreme_with_index)
def median(xp, x, *, dim, keepdim):
    """The lower of two middle elements, or the first NaN of a line."""
    if not x.ndim:
        return x.copy(), xp.zeros((), np.int64)
    index = _partitioned(xp, x, (x.shape[dim] - 1) // 2, dim)
    if x.dtype.kind == "f":
        nan = x != x
        first = xp.expand_dims(nan.argmax(dim), dim)
        index = xp.where(nan.any(dim, keepdims=True), first, index)
    return _picked(xp, x, index, dim, keepdim)


@register_kernel("nanmedian", infer=extreme_with_index)
def nanmedian(xp, x, *, dim, keepdim):
    """The lower of two middle elements, NaN left out."""
    if x.dtype.kind != "f" or not x.ndim:
        return median(xp, x, dim=dim, keepdim=keepdim)
    count = (x == x).sum(dim, keepdims=True)
    rank = xp.maximum(count - 1, 0) // 2
    index = take_along(xp, argsort(xp, x, dim=dim), rank, dim)
    return _picked(xp, x, index, dim, keepdim)


@register_kernel("median_of_all", infer=scalar_like, batch=of_all("median"))
def median_of_all(xp, x):
    """The same of the flattened array; NaN of nothing."""
    if not x.size:
        return xp.full((), np.nan, x.dtype)
    x, rank = x.reshape(-1), (x.size - 1) // 2
    y = xp.partition(x, rank)[rank]
    if x.dtype.kind == "f":
        y = xp.where(xp.isnan(x).any(), x.dtype.type(np.nan), y)
    return xp.asarray(y)


@register_kernel("nanmedian_of_all", infer=scalar_like, batch=of_all("nanmedian"))
def nanmedian_of_all(xp, x):
    x = x.reshape(-1)
    return median_of_all(xp, x[x == x] if x.dtype.kind == "f" else x)


@register_kernel("mode", infer=extreme_with_index)
def mode(xp, x, *, dim, keepdim):
    """The most frequent element, of several the smallest, and where it stands last."""
    if not x.ndim:
        return x.copy(), xp.zeros((), np.int64)
    order = argsort(xp, x, dim=dim)
    values = xp.moveaxis(take_along(xp, x, order, dim), dim, -1)
    places = xp.arange(values.shape[-1])
    begins = xp.zeros(values.shape, np.int64)
    begins[..., 1:] = xp.where(values[..., 1:] != values[..., :-1], places[1:], 0)
    length = places - running(xp, xp.maximum, begins, values.ndim - 1)  # of the run, so far
    last = xp.expand_dims(length.argmax(-1), dim)
    return _picked(xp, x, take_along(xp, order, last, dim), dim, keepdim)


# --- Values looked up in a sequence ---------------------------------------------------------------


@in_c_order
def _places(sorted_sequence, values, sorter, *, out_int32, right):
    return ArraySpec(values.shape, np.dtype(np.int32 if out_int32 else np.int64))


def _batch_of_searches(call, sequence, values, sorter, **attrs):
    """One sequence for all is searched at once; else both get the dimensions of the other."""
    if call.ndim(0) == 1 and not call.batched[0] and not (sorter is not None and call.batched[2]):
        return call.run(sequence, values, sorter, **attrs)
    sequence, values, sorter = [call.front(i) for i in range(3)]
    shape = values.shape
    if call.ndim(0) == 1 and call.ndim(1) != 1:
        values = flat(call, values)
    return call.F.reshape(call.run(sequence, values, sorter, **attrs), shape=shape)


@register_kernel("searchsorted", infer=_places, batch=_batch_of_searches)
def searchsorted(xp, sorted_sequence, values, sorter, *, out_int32, right):
    """A sequence of several dimensions has the leading dimensions of `values`."""
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
        probed = take_along(xp, sequence, xp.minimum(probes, size) - 1, sequence.ndim - 1)
        before = ~(probed > values if right else probed >= values)
        places = xp.where(before & (probes <= size), probes, places)
        step >>= 1
    return places


@in_c_order
def _found(elements, test_elements, **attrs):
    return ArraySpec(elements.shape, np.dtype(bool))


def _batch_of_found(call, elements, test_elements, *, invert, **attrs):
    if not call.batched[1]:
        return call.run(elements, test_elements, invert=invert, **attrs)
    F, elements, tests = call.F, call.front(0), flat(call, test_elements)
    tests = F.reshape(tests, shape=(call.size, *(1,) * (elements.ndim - 1), tests.shape[1]))
    same = F.eq(F.reshape(elements, shape=(*elements.shape, 1)), tests)
    found = F.any(same, dim=(same.ndim - 1,), keepdim=False)
    return F.logical_not(found) if invert else found


@register_kernel("isin", infer=_found, sbp="...,*->...", batch=_batch_of_found)
def isin(xp, elements, test_elements, *, assume_unique, invert):
    mask = xp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    return xp.asarray(mask).reshape(elements.shape)
