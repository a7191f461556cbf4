"""Gradients of variance, standard deviation and norms; 0 at their kinks, as in PyTorch."""

from __future__ import annotations

import math

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.reduce import in_float32, keep


def _centred(F, ctx):
    """(x − mean x) / (n − correction)"""
    x = ctx.x
    freedom = math.prod(x.shape[d] for d in ctx.dim) - ctx.correction
    centred = x - F.mean(x, dim=ctx.dim, keepdim=True)
    return centred * (1 / freedom if freedom > 0 else math.inf)


@register_grad_func("var", saves="x")
@in_float32
def var_grad(F, ctx, dy):
    """dx = dy · 2 (x − mean x) / (n − correction)"""
    return 2 * keep(F, dy, ctx.x.shape, ctx.dim, ctx.keepdim) * _centred(F, ctx)


@register_grad_func("std", saves="x, y")
@in_float32
def std_grad(F, ctx, dy):
    """dx = dy / y · (x − mean x) / (n − correction), and 0 where y is 0"""
    share = F.safe_divide(dy, ctx.y)
    return keep(F, share, ctx.x.shape, ctx.dim, ctx.keepdim) * _centred(F, ctx)


@register_grad_func("norm", saves="x, y")
@in_float32
def norm_grad(F, ctx, dy):
    """dx = dy · sign x · (|x| / y)^(p − 1), and 0 where y is 0

    For p = 2 that is dy · x / y; for p = inf dy goes to the largest elements, shared among ties.
    """
    x, p, shape = ctx.x, ctx.p, ctx.x.shape
    if p == 0:
        return None  # a count: constant wherever it has a derivative
    if p == 2:
        return keep(F, F.safe_divide(dy, ctx.y), shape, ctx.dim, ctx.keepdim) * x
    dy = keep(F, dy, shape, ctx.dim, ctx.keepdim)
    if p == 1:
        return dy * F.sign(x)
    y = keep(F, ctx.y, shape, ctx.dim, ctx.keepdim)
    size = F.abs(x)
    if abs(p) == math.inf:
        return dy * F.sign(x) * F.tie_weights(size, y, dim=ctx.dim)
    scale = dy * F.pow(y, 1 - p) if p < 1 else F.safe_divide(dy, F.pow(y, p - 1))
    return F.safe_divide(F.pow(size, p), x) * scale


@register_grad_func("safe_divide", wrt="x", saves="y")
def safe_divide_dx(F, ctx, dz):
    return F.safe_divide(dz, ctx.y)


@register_grad_func("safe_divide", wrt="y", saves="y, out")
def safe_divide_dy(F, ctx, dz):
    return -dz * F.safe_divide(ctx.out, ctx.y)
