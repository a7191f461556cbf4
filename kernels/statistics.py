"""Kernels of variance, standard deviation and norms."""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.kernels.infer_rules import broadcast, real_dtype, reduction
from oneflow_lite.kernels.numerics import dot_of_lines, sum_over
from oneflow_lite.ops.registry import register_kernel

_VARIANCE = "d = x - mean(x); s = sum(d * d); n = count - correction; where(n > 0, s / n, s * inf)"


def _wide(x):
    # Halves are squared and summed in float32.
    return x.astype(np.float32) if x.dtype.char == "e" else x


def _variance(xp, x, dim, correction, keepdim):
    """Σ |x − mean x|² / (n − correction)"""
    count = math.prod(x.shape[d] for d in dim)
    if count == 0:
        return x.real.sum(dim, None, None, keepdim) * math.nan
    x = _wide(x)
    # Two passes: mean x² - (mean x)² loses all digits where the mean is large.
    centred = xp.asarray(x - sum_over(xp, x, dim, keepdim=True) / count)
    if x.dtype.kind == "c":
        centred = xp.abs(centred)
    squares = _sum_of_squares(xp, centred, dim, keepdim)
    freedom = count - correction
    if freedom > 0:
        return squares / freedom
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN
        return squares * math.inf


@register_kernel("var", infer=reduction(real_dtype), scalar=_VARIANCE)
def var(xp, x, *, dim, correction, keepdim):
    return _variance(xp, x, dim, correction, keepdim).astype(x.real.dtype, copy=False)


@register_kernel(
    "std",
    infer=reduction(real_dtype),
    scalar=f"{_VARIANCE.replace('; where', '; v = where')}; sqrt(v)",
)
def std(xp, x, *, dim, correction, keepdim):
    return xp.sqrt(_variance(xp, x, dim, correction, keepdim)).astype(x.real.dtype, copy=False)


def _norm_scalar(p, dim, keepdim):
    return {
        1: "sum(abs(x))",
        2: "sqrt(sum(x * x))",
        math.inf: "amax(abs(x))",
        -math.inf: "amin(abs(x))",
    }.get(p)


@register_kernel("norm", infer=reduction(real_dtype), scalar=_norm_scalar)
def norm(xp, x, *, p, dim, keepdim):
    """(Σ |x|^p)^(1/p); its limits max |x| and min |x|, and the count of non-zeros for p = 0."""
    if p == 0:
        return (x != 0).sum(dim, x.dtype, None, keepdim)
    if abs(p) == math.inf:
        size = abs(x)
        if not x.ndim:
            return size
        return size.max(dim, None, keepdim) if p > 0 else size.min(dim, None, keepdim)
    wide = _wide(x)
    if p == 2:
        y = xp.sqrt(_sum_of_squares(xp, wide, dim, keepdim))
    elif p == 1:
        y = sum_over(xp, abs(wide), dim, keepdim=keepdim)
    else:
        with np.errstate(divide="ignore"):  # 0 to a negative power is inf, whose power is 0
            y = sum_over(xp, abs(wide) ** p, dim, keepdim=keepdim) ** (1 / p)
    return y.astype(x.dtype, copy=False)


def _sum_of_squares(xp, x, dim, keepdim):
    kept = x.ndim - len(dim)
    last = not kept or sorted(dim) == list(range(kept, x.ndim))
    if xp is not np or not x.flags.c_contiguous or not last:
        return sum_over(xp, x * x, dim, keepdim=keepdim)
    lines = x.reshape(*x.shape[:kept], math.prod(x.shape[kept:]))
    made = dot_of_lines(lines, lines)
    return made.reshape((*made.shape, *(1,) * len(dim))) if keepdim else made


@register_kernel(
    "safe_divide", infer=broadcast, reuses=("x", "y"), scalar="where(y == 0, 0, x / y)"
)
def safe_divide(xp, x, y, *, out=None):
    """x / y, and 0 where y is 0: the quotient of norm and std at their kink."""
    zero = y == 0
    quotient = xp.divide(x, y + zero, out=out)
    if out is None:
        return xp.where(zero, 0, quotient)
    xp.copyto(out, 0, where=zero)
    return out
