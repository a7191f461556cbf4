"""Kernels of softmax and its logarithm along one dimension, called by the interpreter."""

from __future__ import annotations

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.registry import register_kernel


@register_kernel("softmax")
@in_float32
def softmax(xp, x, *, dim):
    if x.size == 0:
        return xp.empty_like(x)
    t = x - x.max(axis=dim, keepdims=True)
    xp.exp(t, out=t)
    t /= t.sum(axis=dim, keepdims=True)
    return t


@register_kernel("softmax_grad")
@in_float32
def softmax_grad(xp, dy, y, *, dim):
    """y (dy - Σ dy y)."""
    t = dy * y
    total = t.sum(axis=dim, keepdims=True)
    xp.subtract(dy, total, out=t)
    t *= y
    return t


@register_kernel("log_softmax")
@in_float32
def log_softmax(xp, x, *, dim):
    if x.size == 0:
        return xp.empty_like(x)
    t = x - x.max(axis=dim, keepdims=True)
    t -= xp.log(xp.exp(t).sum(axis=dim, keepdims=True))
    return t


@register_kernel("log_softmax_grad")
@in_float32
def log_softmax_grad(xp, dy, y, *, dim):
    """dy - exp(y) Σ dy."""
    t = xp.exp(y)
    t *= dy.sum(axis=dim, keepdims=True)
    return xp.subtract(dy, t, out=t)
