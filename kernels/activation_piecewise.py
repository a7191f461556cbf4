"""Kernels of activations made of straight pieces, called by the interpreter.

A derivative is 0 or dy outside and inside some interval; which side an end belongs to, and what
nan gives, is as in PyTorch (docs/subgradients.md).
"""

from __future__ import annotations

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import like_first
from oneflow_lite.kernels.numerics import (
    at_least,
    at_most,
    clip,
    copied,
    keep_where,
    select,
)
from oneflow_lite.registry import register_kernel

# A 0-d array of the right dtype halves what a ufunc costs on a small array against a Python 0.
_ZERO = {np.dtype(code): np.zeros((), code) for code in "efdbhilqBHILQ"}


@register_kernel("relu", infer=like_first, reuses="x")
def relu(xp, x, *, out=None):
    return at_least(xp, x, 0, out=out)


@register_kernel("relu", device="cpu")
def relu_cpu(xp, x, *, out=None):
    return np.maximum(x, _ZERO[x.dtype], out=out) if x.size < 8192 else at_least(np, x, 0, out)


@register_kernel("relu_grad", infer=like_first, reuses=("dy", "y"))
def relu_grad(xp, dy, y, *, out=None):
    return keep_where(xp, ~(y <= 0), dy, out=out)


@register_kernel("relu_grad", device="cpu")
def relu_grad_cpu(xp, dy, y, *, out=None):
    zero = _ZERO[y.dtype]
    if y.size < 1024:  # y is never negative: where it is not 0, or nan, it counts as true
        kept = np.where(y, dy, zero)
        return kept if out is None else copied(kept, out)
    return keep_where(np, np.not_equal(y, zero), dy, out)


@register_kernel("leaky_relu", infer=like_first)
@in_float32
def leaky_relu(xp, x, *, negative_slope, out=None):
    t = at_most(xp, x, 0, out=out)
    t *= negative_slope
    t += at_least(xp, x, 0)
    return t


@register_kernel("leaky_relu_grad", infer=like_first, reuses=("dy", "x"))
def leaky_relu_grad(xp, dy, x, *, negative_slope, out=None):
    return select(xp, x > 0, dy, dy * negative_slope, out=out)


@register_kernel("hardtanh", infer=like_first, reuses="x")
def hardtanh(xp, x, *, min_val, max_val, out=None):
    return clip(xp, x, min_val, max_val, out=out)


@register_kernel("hardtanh_grad", infer=like_first, reuses=("dy", "x"))
def hardtanh_grad(xp, dy, x, *, min_val, max_val, out=None):
    outside = x <= min_val
    outside |= x >= max_val
    return keep_where(xp, ~outside, dy, out=out)


@register_kernel("hardsigmoid", infer=like_first, reuses="x")
@in_float32
def hardsigmoid(xp, x, *, out=None):
    t = xp.add(x, 3, out=out)
    t /= 6
    return clip(xp, t, 0, 1, out=out)


@register_kernel("hardswish", infer=like_first)
@in_float32
def hardswish(xp, x, *, out=None):
    """x times hardsigmoid(x)."""
    t = hardsigmoid(xp, x, out=out)
    t *= x
    return t


@register_kernel("hardswish_grad", infer=like_first)
@in_float32
def hardswish_grad(xp, dy, x, *, out=None):
    t = xp.divide(x, 3, out=out)
    t += 0.5
    t *= dy
    t = keep_where(xp, x > -3, t, out=out)
    return select(xp, x >= 3, dy, t, out=out)


@register_kernel("hardshrink", infer=like_first, reuses="x")
def hardshrink(xp, x, *, lambd, out=None):
    return shrink_grad(xp, x, x, lambd=lambd, out=out)


@register_kernel("softshrink", infer=like_first)
def softshrink(xp, x, *, lambd, out=None):
    return xp.subtract(x, clip(xp, x, -lambd, lambd, out=out), out=out)


@register_kernel("shrink_grad", infer=like_first, reuses=("dy", "x"))
def shrink_grad(xp, dy, x, *, lambd, out=None):
    return keep_where(xp, ~(xp.abs(x) <= lambd), dy, out=out)


@register_kernel("threshold", infer=like_first)
def threshold(xp, x, *, threshold, value):
    return xp.where(x <= threshold, value, x)


@register_kernel("threshold_grad", infer=like_first, reuses=("dy", "x"))
def threshold_grad(xp, dy, x, *, threshold, out=None):
    return keep_where(xp, ~(x <= threshold), dy, out=out)
