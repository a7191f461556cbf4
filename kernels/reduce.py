"""Kernels that reduce dimensions: sums, products, truth."""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.kernels.infer_rules import (
    index_dtype,
    reduction,
    same_dtype,
    sum_dtype,
    truth_dtype,
)
from oneflow_lite.kernels.numerics import copied, sum_over
from oneflow_lite.registry import register_kernel


def accumulator(dtype):
    """Return the dtype to sum or multiply in: int64 for integers and bools, float32 for halves."""
    if dtype.kind in "iub":
        return np.int64
    return np.float32 if dtype.char == "e" else None


@register_kernel("sum", infer=reduction(sum_dtype))
def sum(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "e":
        return sum_over(xp, x, dim, accumulator(x.dtype), out, keepdim)
    return _narrowed(sum_over(xp, x, dim, np.float32, None, keepdim), x.dtype, out)


@register_kernel("mean", infer=reduction(same_dtype))
def mean(xp, x, *, dim, keepdim, out=None):
    half = x.dtype.char == "e"
    y = sum_over(xp, x, dim, accumulator(x.dtype), None if half else out, keepdim)
    count = math.prod(x.shape[d] for d in dim)
    if half:
        return _narrowed(_quotient(xp, y, count, None), x.dtype, out)
    return _quotient(xp, y, count, out)


@register_kernel("prod", infer=reduction(sum_dtype))
def prod(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "e":
        return x.prod(dim, accumulator(x.dtype), out, keepdim)
    return _narrowed(x.prod(dim, np.float32, None, keepdim), x.dtype, out)


def _narrowed(y, dtype, out):
    return y.astype(dtype) if out is None else copied(y, out)


def _quotient(xp, y, count, out):
    if count:
        return xp.divide(y, count, out=out)
    return xp.multiply(y, math.nan, out=out)  # 0 / 0 is NaN in PyTorch too, and does not warn


@register_kernel("count_nonzero", infer=reduction(index_dtype))
def count_nonzero(xp, x, *, dim, out=None):
    return xp.asarray(x != 0).sum(dim, np.int64, out)


@register_kernel("any", infer=reduction(truth_dtype))
def any(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "B":
        return x.any(dim, out=out, keepdims=keepdim)
    return _narrowed(x.any(dim, keepdims=keepdim), x.dtype, out)


@register_kernel("all", infer=reduction(truth_dtype))
def all(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "B":
        return x.all(dim, out=out, keepdims=keepdim)
    return _narrowed(x.all(dim, keepdims=keepdim), x.dtype, out)


@register_kernel("logsumexp", infer=reduction(same_dtype))
def logsumexp(xp, x, *, dim, keepdim, out=None):
    """m + log Σ exp(x − m) with m = max x; infinite maxima are not subtracted."""
    if x.size == 0:
        zeros = x.sum(dim, None, out, keepdim)
        return xp.full_like(zeros, -math.inf) if out is None else copied(zeros - math.inf, out)
    top = x.real  # of complex numbers too: the logarithm is the principal one
    top = top.max(dim, None, True) if x.ndim else top
    top = xp.where(xp.isfinite(top), top, 0)
    y = sum_over(xp, xp.exp(x - top), dim, keepdim=True)
    with np.errstate(divide="ignore"):  # log 0 = -inf is the value for a line of -inf
        y = xp.log(y)
    kept = out if out is None or keepdim else xp.expand_dims(out, dim)
    y = xp.add(y, top, out=kept)
    if out is not None:
        return out
    return y if keepdim else y.squeeze(dim)
