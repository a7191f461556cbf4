"""Gradients of reductions: dy comes with fewer dimensions and is spread over x again."""

from __future__ import annotations

import math

from oneflow_lite.autograd.grad_function import register_grad_func


def keep(F, y, shape, dim, keepdim):
    """Give a reduced tensor its reduced dimensions back, as size 1, unless it broadcasts."""
    if keepdim or len(dim) == len(shape):
        return y
    kept = tuple(1 if d in dim else size for d, size in enumerate(shape))
    return F.reshape(y, shape=kept)


@register_grad_func("sum", saves="x.shape")
def sum_grad(F, ctx, dy):
    return F.expand(keep(F, dy, ctx.x_shape, ctx.dim, ctx.keepdim), shape=ctx.x_shape)


@register_grad_func("mean", saves="x.shape")
def mean_grad(F, ctx, dy):
    count = math.prod(ctx.x_shape[d] for d in ctx.dim)
    share = dy / count if count else dy
    return F.expand(keep(F, share, ctx.x_shape, ctx.dim, ctx.keepdim), shape=ctx.x_shape)


@register_grad_func("prod", saves="x")
def prod_grad(F, ctx, dy):
    """dx_i = dy · Π_{j ≠ i} x_j: the product before i times the one after it, no division by x."""
    x, shape = ctx.x, ctx.x.shape
    dim = ctx.dim[0] if len(ctx.dim) == 1 else 0
    if len(ctx.dim) != 1:
        x = F.reshape(x, shape=(math.prod(shape),))
    before = _product_before(F, x, dim)
    after = F.flip(_product_before(F, F.flip(x, dims=(dim,)), dim), dims=(dim,))
    others = F.reshape(before * after, shape=shape)
    return keep(F, dy, shape, ctx.dim, ctx.keepdim) * others


def _product_before(F, x, dim):
    return F.shift(F.cumprod(x, dim=dim), dim=dim, offset=1, fill=1)


@register_grad_func("logsumexp", saves="x, y")
def logsumexp_grad(F, ctx, dy):
    """dx = dy · exp(x − y)"""
    shape = ctx.x.shape
    y = keep(F, ctx.y, shape, ctx.dim, ctx.keepdim)
    return keep(F, dy, shape, ctx.dim, ctx.keepdim) * F.exp(ctx.x - y)
