"""Kernels that reduce dimensions: sums, products, truth."""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.registry import register_kernel


def accumulator(dtype):
    """Return the dtype to sum or multiply in: int64 for integers and bools, float32 for halves."""
    if dtype.kind in "iub":
        return np.int64
    return np.float32 if dtype.char == "e" else None


@register_kernel("sum")
def sum(xp, x, *, dim, keepdim):
    y = x.sum(dim, accumulator(x.dtype), None, keepdim)
    return y.astype(x.dtype) if x.dtype.char == "e" else y


@register_kernel("mean")
def mean(xp, x, *, dim, keepdim):
    y = x.sum(dim, accumulator(x.dtype), None, keepdim)
    count = math.prod(x.shape[d] for d in dim)
    # 0 / 0 is NaN in PyTorch too, but there it does not warn.
    y = y / count if count else y * math.nan
    return y.astype(x.dtype) if x.dtype.char == "e" else y


@register_kernel("prod")
def prod(xp, x, *, dim, keepdim):
    y = x.prod(dim, accumulator(x.dtype), None, keepdim)
    return y.astype(x.dtype) if x.dtype.char == "e" else y


@register_kernel("count_nonzero")
def count_nonzero(xp, x, *, dim):
    return (x != 0).sum(dim, np.int64)


@register_kernel("any")
def any(xp, x, *, dim, keepdim):
    y = x.any(dim, keepdims=keepdim)
    return y.astype(x.dtype) if x.dtype.char == "B" else y


@register_kernel("all")
def all(xp, x, *, dim, keepdim):
    y = x.all(dim, keepdims=keepdim)
    return y.astype(x.dtype) if x.dtype.char == "B" else y


@register_kernel("logsumexp")
def logsumexp(xp, x, *, dim, keepdim):
    """m + log Σ exp(x − m) with m = max x; infinite maxima are not subtracted."""
    if x.size == 0:
        zeros = x.sum(dim, None, None, keepdim)
        return xp.full_like(zeros, -math.inf)
    top = x.max(dim, None, True) if x.ndim else x
    top = xp.where(xp.isfinite(top), top, 0)
    y = xp.exp(x - top).sum(dim, None, None, True)
    with np.errstate(divide="ignore"):  # log 0 = -inf is the value for a line of -inf
        y = xp.log(y) + top
    return y if keepdim else y.squeeze(dim)
