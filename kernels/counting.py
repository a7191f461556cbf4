"""Kernels that count: distinct values and values in bins."""

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.sorting import argsort
from oneflow_lite.ops.registry import register_kernel


@register_kernel("unique", dynamic_shape=True)
def unique(xp, x, *, return_inverse, return_counts, dim):
    """Return the distinct values in order, and on request the inverse and the counts."""
    rows, axis = _rows(xp, x, dim)
    if dim is None:
        order = argsort(xp, rows, dim=0)
        return _runs(xp, x, rows.take(order), order, return_inverse, return_counts, dim)
    distinct = xp.unique(rows, False, return_inverse, return_counts, axis, equal_nan=False)
    values, *details = distinct if isinstance(distinct, tuple) else (distinct,)
    if return_inverse:  # some versions of NumPy give it more dimensions
        details[0] = details[0].reshape(len(rows))
    return _answer(xp, values, details, dim)


@register_kernel("unique_consecutive", dynamic_shape=True)
def unique_consecutive(xp, x, *, return_inverse, return_counts, dim):
    """Return the first of each run of equal values."""
    rows, _ = _rows(xp, x, dim)
    return _runs(xp, x, rows, slice(None), return_inverse, return_counts, dim)


def _runs(xp, x, rows, order, return_inverse, return_counts, dim):
    """Return the first row of each run of equal rows; `order` is their order in x."""
    first = xp.ones(len(rows), bool)
    differ = rows[1:] != rows[:-1]
    first[1:] = differ if rows.ndim == 1 else differ.any(tuple(range(1, rows.ndim)))
    details = []
    if return_inverse:
        inverse = xp.empty(len(rows), np.int64)
        inverse[order] = first.cumsum() - 1
        details.append(inverse.reshape(x.shape if dim is None else len(rows)))
    if return_counts:
        begins = xp.append(xp.flatnonzero(first), len(rows))
        details.append(begins[1:] - begins[:-1])
    return _answer(xp, rows[first], details, dim)


def _rows(xp, x, dim):
    return (x.reshape(-1), None) if dim is None else (xp.moveaxis(x, dim, 0), 0)


def _answer(xp, values, details, dim):
    if dim:
        values = xp.ascontiguousarray(xp.moveaxis(values, 0, dim))
    return (values, *details) if details else values


@register_kernel("bincount", dynamic_shape=True)
def bincount(xp, x, weights, *, minlength):
    if on_host(xp) and x.size and x.min() < 0:
        raise arg_error(
            "bincount",
            "input",
            expected="integers of at least 0",
            got=int(x.min()),
            hint="shift them",
            kind=ArgumentError,
        )
    if not x.size:
        return xp.zeros(minlength, np.int64)
    counts = xp.bincount(x.astype(np.int64, copy=False), weights, minlength)
    return counts.astype(np.float32) if _is_single(weights) else counts


def _is_single(weights):
    return weights is not None and weights.dtype.char == "f"


def _bins(x, *, bins, **attrs):
    return ArraySpec((bins,), x.dtype)


@register_kernel("histc", infer=_bins)
def histc(xp, x, *, bins, min, max):
    """Count elements in bins of equal width from min to max, or of the data where min is max."""
    xp.empty(bins, x.dtype)  # refuses a number that is too large for the arithmetic below
    x = x.reshape(-1)
    low, high = xp.asarray(min, x.dtype), xp.asarray(max, x.dtype)
    if min == max and x.size:
        low, high = x.min(), x.max()
    same = (low == high).astype(x.dtype)  # a range of one value gets a width, which divides below
    low, high = low - same, high + same
    check_finite(xp, "histc", low, high)
    inside = (x >= low) & (x <= high)
    places = xp.where(inside, (x - low) * bins / (high - low), 0).astype(np.int64)
    places = xp.minimum(places, bins - 1)
    return xp.bincount(places, inside, bins).astype(x.dtype)


def check_finite(xp, op, low, high):
    """Raise `ArgumentError` when a range has no end; on CUDA a look would be a copy."""
    if on_host(xp) and not (np.isfinite(low) and np.isfinite(high)):
        raise arg_error(
            op,
            "input",
            expected="a finite range",
            got=f"{low} to {high}",
            hint="name another one, or drop what is not finite",
            kind=ArgumentError,
        )


@register_kernel(
    "histogram_edges", infer=lambda x, *, bins, low, high: ArraySpec((bins + 1,), x.dtype)
)
def histogram_edges(xp, x, *, bins, low, high):
    """Return bins + 1 numbers at equal distances, over the data's range unless `low` is given."""
    if low is None:
        low, high = (x.min(), x.max()) if x.size else (xp.zeros((), x.dtype), xp.ones((), x.dtype))
    else:
        low, high = xp.asarray(low, x.dtype), xp.asarray(high, x.dtype)
    check_finite(xp, "histogram", low, high)
    apart = (low == high).astype(x.dtype) / 2
    low, high = low - apart, high + apart
    steps = xp.arange(bins + 1).astype(x.dtype)
    width = (high - low) / bins
    # Each half counts from its own end, so that the last edge is `high` to the last bit.
    return xp.where(steps < (bins + 1) / 2, low + steps * width, high - steps[::-1] * width)


def _grid(x, weight, *edges, density):
    return ArraySpec(tuple([e.shape[0] - 1 for e in edges]), x.dtype)


@register_kernel("histogram_of", infer=_grid)
def histogram_of(xp, x, weight, *edges, density):
    """Count the rows of x (N, D), or sum their weights, between D vectors of edges."""
    place, inside = 0, True
    for column, edge in zip(x.T, edges, strict=True):
        bins = edge.size - 1
        k = xp.searchsorted(edge, column, "right") - 1
        k = xp.where(column == edge[-1], bins - 1, k)  # the last bin holds its right edge
        inside = (k >= 0) & (k < bins) & inside
        place = place * bins + k
    weight = inside if weight is None else xp.where(inside, weight, 0)
    shape = tuple([edge.size - 1 for edge in edges])
    counts = xp.bincount(xp.where(inside, place, 0), weight, int(np.prod(shape))).reshape(shape)
    if density:
        counts = counts / counts.sum()
        for d, edge in enumerate(edges):
            widths = edge[1:] - edge[:-1]
            counts /= widths.reshape((-1,) + (1,) * (len(shape) - 1 - d))
    return counts.astype(x.dtype)
