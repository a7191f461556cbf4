"""Kernels of largest and smallest elements, where they stand, and what their gradients need."""

from __future__ import annotations

import numpy as np

from oneflow_lite.kernels.infer_rules import (
    extreme_with_index,
    in_c_order,
    index_dtype,
    like_first,
    reduction,
    same_dtype,
)
from oneflow_lite.kernels.numerics import copied
from oneflow_lite.registry import register_kernel


def _axis(x, dim):
    # A 0-d tensor has a dimension 0 in PyTorch; NumPy's 0-d array has none.
    return dim if x.ndim else None


@register_kernel("amax", infer=reduction(same_dtype))
def amax(xp, x, *, dim, keepdim, out=None):
    # NumPy returns a 0-d array reduced over () as it is; the copy keeps the memory apart.
    return x.max(dim, out, keepdim) if x.ndim else copied(x, out)


@register_kernel("amin", infer=reduction(same_dtype))
def amin(xp, x, *, dim, keepdim, out=None):
    return x.min(dim, out, keepdim) if x.ndim else copied(x, out)


@register_kernel("tie_weights", infer=in_c_order(like_first))
def tie_weights(xp, x, y, *, dim, out=None):
    """1 / (number of ties) where x equals its extremum y (dimensions kept), 0 elsewhere."""
    ties = x == y
    ties |= (x != x) & (y != y)  # where the extremum is NaN, the NaNs are its ties
    weights = ties.astype(x.dtype) if out is None else copied(ties, out)
    weights /= ties.sum(dim, None, None, True).astype(x.dtype)
    return weights


def _at(xp, index, y, keepdim, dim):
    index = index.astype(np.int64, copy=False)
    return (y, xp.expand_dims(index, dim)) if keepdim and y.ndim else (y, index)


@register_kernel("max", infer=extreme_with_index)
def max(xp, x, *, dim, keepdim):
    axis = _axis(x, dim)
    return _at(xp, x.argmax(axis), x.max(axis, None, keepdim), keepdim, dim)


@register_kernel("min", infer=extreme_with_index)
def min(xp, x, *, dim, keepdim):
    axis = _axis(x, dim)
    return _at(xp, x.argmin(axis), x.min(axis, None, keepdim), keepdim, dim)


@register_kernel("argmax", infer=reduction(index_dtype))
def argmax(xp, x, *, dim, keepdim):
    index = xp.asarray(x.argmax(_axis(x, dim)))
    return _index(xp, index, x.ndim, dim, keepdim)


@register_kernel("argmin", infer=reduction(index_dtype))
def argmin(xp, x, *, dim, keepdim):
    index = xp.asarray(x.argmin(_axis(x, dim)))
    return _index(xp, index, x.ndim, dim, keepdim)


def _index(xp, index, ndim, dim, keepdim):
    if keepdim and ndim:
        index = index.reshape((1,) * ndim) if dim is None else xp.expand_dims(index, dim)
    return index.astype(np.int64, copy=False)
