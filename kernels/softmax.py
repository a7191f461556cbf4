"""Kernels of softmax and its logarithm along one dimension, called by the interpreter."""

from __future__ import annotations

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import in_c_order, like_first
from oneflow_lite.kernels.numerics import sum_at_each
from oneflow_lite.registry import register_kernel


@register_kernel(
    "softmax",
    infer=in_c_order(like_first),
    reuses="x",
    scalar="e = exp(x - amax(x)); e / sum(e)",
)
@in_float32
def softmax(xp, x, *, dim, out=None):
    if x.size == 0:
        return xp.empty_like(x) if out is None else out
    t = xp.subtract(x, x.max(axis=dim, keepdims=True), out=out)
    xp.exp(t, out=t)
    t /= sum_at_each(xp, t, dim)
    return t


@register_kernel("softmax_grad", infer=in_c_order(like_first), scalar="(dy - sum(dy * y)) * y")
@in_float32
def softmax_grad(xp, dy, y, *, dim, out=None):
    """y (dy - Σ dy y)."""
    t = xp.multiply(dy, y, out=out)
    xp.subtract(dy, sum_at_each(xp, t, dim), out=t)
    t *= y
    return t


@register_kernel(
    "log_softmax",
    infer=in_c_order(like_first),
    reuses="x",
    scalar="t = x - amax(x); t - log(sum(exp(t)))",
)
@in_float32
def log_softmax(xp, x, *, dim, out=None):
    if x.size == 0:
        return xp.empty_like(x) if out is None else out
    t = xp.subtract(x, x.max(axis=dim, keepdims=True), out=out)
    t -= xp.log(sum_at_each(xp, xp.exp(t), dim))
    return t


@register_kernel(
    "log_softmax_grad",
    infer=in_c_order(like_first),
    reuses="y",
    scalar="dy - exp(y) * sum(dy)",
)
@in_float32
def log_softmax_grad(xp, dy, y, *, dim, out=None):
    """dy - exp(y) Σ dy."""
    t = xp.exp(y, out=out)
    t *= sum_at_each(xp, dy, dim)
    return xp.subtract(dy, t, out=t)
