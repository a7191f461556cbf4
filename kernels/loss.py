"""Kernels of losses that are more than a sum of differences."""

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import in_c_order, like_first
from oneflow_lite.ops.registry import register_kernel


@register_kernel(
    "huber",
    infer=like_first,
    reuses="x",
    scalar="size = abs(x); c = minimum(size, delta); c * (size - c / 2)",
)
@in_float32
def huber(xp, x, *, delta, out=None):
    """c (|x| - c / 2) with c = min(|x|, delta): x² / 2 inside, delta (|x| - delta / 2) outside."""
    size = xp.abs(x)
    y = xp.minimum(size, delta, out=out)
    size -= y / 2
    y *= size
    return y


@register_kernel(
    "huber_grad",
    infer=in_c_order(like_first),
    reuses="x",
    scalar="dy * where(x < -delta, -delta, where(x > delta, delta, x))",
)
def huber_grad(xp, dy, x, *, delta, out=None):
    return xp.multiply(dy, xp.clip(x, -delta, delta, out=out), out=out)


@register_kernel("least_variance", infer=like_first, reuses="variance")
def least_variance(xp, variance, *, eps, out=None):
    """max(variance, eps)"""
    if on_host(xp) and variance.size and variance.min() < 0:
        raise arg_error(
            "gaussian_nll_loss",
            "var",
            expected="no negative values",
            got=variance.min(),
            hint="pass variances, which are squares",
            kind=ArgumentError,
        )
    return xp.maximum(variance, eps, out=out)
