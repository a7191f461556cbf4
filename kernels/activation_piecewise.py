"""Kernels of activations made of straight pieces, called by the interpreter.

A derivative is 0 or dy outside and inside some interval; which side an end belongs to, and what
nan gives, is as in PyTorch (docs/subgradients.md).
"""

from __future__ import annotations

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.numerics import (
    at_least,
    at_most,
    clip,
    keep_where,
    select,
)
from oneflow_lite.registry import register_kernel

# A 0-d array of the right dtype halves what a ufunc costs on a small array against a Python 0.
_ZERO = {np.dtype(code): np.zeros((), code) for code in "efdbhilqBHILQ"}


@register_kernel("relu")
def relu(xp, x):
    return at_least(xp, x, 0)


@register_kernel("relu", device="cpu")
def relu_cpu(xp, x):
    return np.maximum(x, _ZERO[x.dtype]) if x.size < 8192 else at_least(np, x, 0)


@register_kernel("relu_grad")
def relu_grad(xp, dy, y):
    return keep_where(xp, ~(y <= 0), dy)


@register_kernel("relu_grad", device="cpu")
def relu_grad_cpu(xp, dy, y):
    if y.size < 1024:  # y is never negative: where it is not 0, or nan, it counts as true
        return np.where(y, dy, _ZERO[y.dtype])
    return keep_where(np, ~(y <= 0), dy)


@register_kernel("leaky_relu")
@in_float32
def leaky_relu(xp, x, *, negative_slope):
    t = at_most(xp, x, 0)
    t *= negative_slope
    t += at_least(xp, x, 0)
    return t


@register_kernel("leaky_relu_grad")
def leaky_relu_grad(xp, dy, x, *, negative_slope):
    return select(xp, x > 0, dy, dy * negative_slope)


@register_kernel("hardtanh")
def hardtanh(xp, x, *, min_val, max_val):
    return clip(xp, x, min_val, max_val)


@register_kernel("hardtanh_grad")
def hardtanh_grad(xp, dy, x, *, min_val, max_val):
    outside = x <= min_val
    outside |= x >= max_val
    return keep_where(xp, ~outside, dy)


@register_kernel("hardsigmoid")
@in_float32
def hardsigmoid(xp, x):
    t = x + 3
    t /= 6
    return clip(xp, t, 0, 1)


@register_kernel("hardswish")
@in_float32
def hardswish(xp, x):
    """x times hardsigmoid(x)."""
    t = hardsigmoid(xp, x)
    t *= x
    return t


@register_kernel("hardswish_grad")
@in_float32
def hardswish_grad(xp, dy, x):
    t = x / 3
    t += 0.5
    t *= dy
    t = keep_where(xp, x > -3, t)
    return select(xp, x >= 3, dy, t)


@register_kernel("hardshrink")
def hardshrink(xp, x, *, lambd):
    return shrink_grad(xp, x, x, lambd=lambd)


@register_kernel("softshrink")
def softshrink(xp, x, *, lambd):
    return x - clip(xp, x, -lambd, lambd)


@register_kernel("shrink_grad")
def shrink_grad(xp, dy, x, *, lambd):
    return keep_where(xp, ~(abs(x) <= lambd), dy)


@register_kernel("threshold")
def threshold(xp, x, *, threshold, value):
    return xp.where(x <= threshold, value, x)


@register_kernel("threshold_grad")
def threshold_grad(xp, dy, x, *, threshold):
    return keep_where(xp, ~(x <= threshold), dy)
