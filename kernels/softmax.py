"""Kernels of softmax and its logarithm along one dimension, called by the interpreter."""

from __future__ import annotations

import math

from oneflow_lite.kernels.halves import along_lines
from oneflow_lite.kernels.infer_rules import in_c_order, like_first
from oneflow_lite.kernels.numerics import sum_at_each
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way


def _in_line(shapes, attrs):
    """Split any dimension; along the one of the sums two numbers of each line are exchanged."""
    yield "elementwise"
    if shapes[0]:
        dim = attrs["dim"] % len(shapes[0])
        lines = math.prod(shapes[0][:dim] + shapes[0][dim + 1 :])
        moved = lines * (3 - len(shapes))
        yield Way((dim,) * len(shapes), (dim,), run=_with_others, moved=moved)


def _with_others(line, arrays, attrs):
    xp, dim, x, log = line.xp, attrs["dim"], arrays[0], "log" in line.op
    wide = x.astype(xp.float32) if x.dtype.char == "e" else x
    if len(arrays) == 2:
        y = arrays[1].astype(wide.dtype)
        total = line.reduce((wide if log else wide * y).sum(dim, keepdims=True), "sum")
        made = wide - xp.exp(y) * total if log else (wide - total) * y
    else:
        some = wide.shape[dim] > 0  # of no elements, the sum is 0
        top = wide.max(dim, keepdims=True) if some else wide.sum(dim, keepdims=True) - math.inf
        shifted = wide - line.reduce(top, "max")
        total = line.reduce(xp.exp(shifted).sum(dim, keepdims=True), "sum")
        made = shifted - xp.log(total) if log else xp.exp(shifted) / total
    return made.astype(x.dtype, copy=False)


@register_kernel(
    "softmax",
    infer=in_c_order(like_first),
    reuses="x",
    scalar="e = exp(x - amax(x)); e / sum(e)",
    sbp=_in_line,
    batch="front",
)
@along_lines
def softmax(xp, x, *, dim, out=None):
    if x.size == 0:
        return xp.empty_like(x) if out is None else out
    # Without the maximum exp would overflow; it cancels in the quotient.
    t = xp.subtract(x, x.max(axis=dim, keepdims=True), out=out)
    xp.exp(t, out=t)
    t /= sum_at_each(xp, t, dim)
    return t


@register_kernel(
    "softmax_grad",
    infer=in_c_order(like_first),
    scalar="(dy - sum(dy * y)) * y",
    sbp=_in_line,
    batch="front",
)
@along_lines
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
    sbp=_in_line,
    batch="front",
)
@along_lines
def log_softmax(xp, x, *, dim, out=None):
    if x.size == 0:
        return xp.empty_like(x) if out is None else out
    t = xp.subtract(x, x.max(axis=dim, keepdims=True), out=out)
    t -= xp.log(sum_at_each(xp, xp.exp(t), dim))  # at least exp(0): never log 0
    return t


@register_kernel(
    "log_softmax_grad",
    infer=in_c_order(like_first),
    reuses="y",
    scalar="dy - exp(y) * sum(dy)",
    sbp=_in_line,
    batch="front",
)
@along_lines
def log_softmax_grad(xp, dy, y, *, dim, out=None):
    """dy - exp(y) Σ dy."""
    t = xp.exp(y, out=out)
    t *= sum_at_each(xp, dy, dim)
    return xp.subtract(dy, t, out=t)
