"""Kernels of elements chosen by their rank or their number: k-th value, median, mode.

NaN counts as the greatest value, as when sorting.
"""

import numpy as np

from oneflow_lite.kernels.index_arrays import take_along
from oneflow_lite.kernels.infer_rules import extreme_with_index, scalar_like
from oneflow_lite.kernels.reduce import running
from oneflow_lite.kernels.sorting import argsort
from oneflow_lite.registry import register_kernel


def _kth(x, *, k, dim, keepdim):
    return extreme_with_index(x, dim=dim, keepdim=keepdim)


def _picked(xp, x, index, dim, keepdim):
    """Return the elements at an index of size 1 along `dim`, and the index."""
    y = take_along(xp, x, index, dim)
    return (y, index) if keepdim else (y.squeeze(dim), index.squeeze(dim))


@register_kernel("kthvalue", infer=_kth)
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
    """The lower of two middle elements; the first NaN where there is one."""
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
    """The lower of two middle elements of those that are not NaN."""
    if x.dtype.kind != "f" or not x.ndim:
        return median(xp, x, dim=dim, keepdim=keepdim)
    count = (x == x).sum(dim, keepdims=True)
    rank = xp.maximum(count - 1, 0) // 2
    index = take_along(xp, argsort(xp, x, dim=dim), rank, dim)
    return _picked(xp, x, index, dim, keepdim)


def _register_of_all(op_type_name, kernel):
    @register_kernel(f"{op_type_name}_of_all", infer=scalar_like)
    def of_all(xp, x):
        """The same of the flattened array; NaN of nothing."""
        if not x.size:
            return xp.full((), np.nan, x.dtype)
        return kernel(xp, x.reshape(-1), dim=0, keepdim=False)[0]


_register_of_all("median", median)
_register_of_all("nanmedian", nanmedian)


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
