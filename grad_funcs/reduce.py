"""Gradients of reductions, which spread dy over x again, and of scans, which run the other way."""

from __future__ import annotations

import functools
import math
from copy import copy

import numpy as np

from oneflow_lite.autograd.rules.forward_rules import (
    piecewise_linear,
    register_parts,
    register_push,
)
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


def keep(F, y, shape, dim, keepdim):
    """Give a reduced tensor its reduced dimensions back, as size 1, unless it broadcasts."""
    if keepdim or len(dim) == len(shape):
        return y
    kept = tuple(1 if d in dim else size for d, size in enumerate(shape))
    return F.reshape(y, shape=kept)


def in_float32(rule):
    """Let a rule of one gradient compute float16 in float32, and round its result once.

    A count of elements may be above all numbers of float16, or 1 over it below them.
    """

    @functools.wraps(rule)
    def rounded_once(F, ctx, dy):
        if dy.dtype.char != "e":
            return rule(F, ctx, dy)
        wide = copy(ctx)
        for name, value in vars(ctx).items():
            if getattr(value, "dtype", None) == dy.dtype:
                setattr(wide, name, F.cast(value, dtype=_SINGLE))
        dx = rule(F, wide, F.cast(dy, dtype=_SINGLE))
        return dx if dx is None else F.cast(dx, dtype=dy.dtype)

    return rounded_once


_SINGLE = np.dtype(np.float32)


@register_grad_func("sum", saves="x.shape")
def sum_grad(F, ctx, dy):
    return F.expand(keep(F, dy, ctx.x_shape, ctx.dim, ctx.keepdim), shape=ctx.x_shape)


@register_grad_func("mean", saves="x.shape")
@in_float32
def mean_grad(F, ctx, dy):
    count = math.prod(ctx.x_shape[d] for d in ctx.dim)
    share = dy / count if count else dy
    return F.expand(keep(F, share, ctx.x_shape, ctx.dim, ctx.keepdim), shape=ctx.x_shape)


@register_grad_func("prod", saves="x")
def prod_grad(F, ctx, dy):
    """dx_i = dy · Π_{j ≠ i} x_j, the product before i times the product after it: no division."""
    x, shape = ctx.x, ctx.x.shape
    dim = ctx.dim[0] if len(ctx.dim) == 1 else 0
    if len(ctx.dim) != 1:
        x = F.reshape(x, shape=(math.prod(shape),))
    others = F.reshape(F.product_of_others(x, dim=dim), shape=shape)
    return keep(F, dy, shape, ctx.dim, ctx.keepdim) * others


@register_grad_func("product_of_others", saves="x")
def product_of_others_grad(F, ctx, dy):
    """y = b flip(c), where b and c are the products of all before, in x and in its reverse."""
    dim, x, turned = ctx.dim, ctx.x, F.flip(ctx.x, dims=(ctx.dim,))
    sides = [(each, F.cumprod(each, dim=dim)) for each in (x, turned)]
    before, after = [F.shift(y, dim=dim, offset=1, fill=1) for _, y in sides]
    dx, dturned = [
        F.cumprod_grad(F.shift(d, dim=dim, offset=-1, fill=0), each, y, dim=dim)
        for d, (each, y) in zip(
            (
                dy * F.flip(after, dims=(dim,)),
                F.flip(dy, dims=(dim,)) * F.flip(before, dims=(dim,)),
            ),
            sides,
            strict=True,
        )
    ]
    return dx + F.flip(dturned, dims=(dim,))


@register_grad_func("logsumexp", saves="x, y")
def logsumexp_grad(F, ctx, dy):
    """dx = dy · exp(x − y)"""
    shape = ctx.x.shape
    y = keep(F, ctx.y, shape, ctx.dim, ctx.keepdim)
    return keep(F, dy, shape, ctx.dim, ctx.keepdim) * F.exp(ctx.x - y)


# --- Largest and smallest elements: dy is shared among ties, or goes to one index -----------------


def _extremum_grad(F, ctx, dy):
    dy = keep(F, dy, ctx.x.shape, ctx.dim, ctx.keepdim)
    y = keep(F, ctx.y, ctx.x.shape, ctx.dim, ctx.keepdim)
    return dy * F.tie_weights(ctx.x, y, dim=ctx.dim)


register_grad_func("amax", saves="x, y")(_extremum_grad)
register_grad_func("amin", saves="x, y")(_extremum_grad)


@register_grad_func("tie_weights")
def tie_weights_grad(F, ctx, dw):
    return None, None  # constant wherever it has a derivative


def chosen_grad(F, ctx, dy, dindices):
    indices = ctx.y1
    if ctx.x_shape and not ctx.keepdim:
        dy, indices = F.unsqueeze(dy, dim=ctx.dim), F.unsqueeze(indices, dim=ctx.dim)
    return F.gather_grad(dy, indices, dim=ctx.dim, shape=ctx.x_shape)


register_grad_func("max", saves="y1, x.shape")(chosen_grad)
register_grad_func("min", saves="y1, x.shape")(chosen_grad)


# --- Running sums, products and extremes ----------------------------------------------------------


@register_grad_func("cumsum")
def cumsum_grad(F, ctx, dy):
    return F.cumsum_grad(dy, dim=ctx.dim)


@register_grad_func("cumsum_grad")
def cumsum_grad_grad(F, ctx, ddx):
    return F.cumsum(ddx, dim=ctx.dim)


@register_grad_func("cumprod", saves="x, y")
def cumprod_grad(F, ctx, dy):
    return F.cumprod_grad(dy, ctx.x, ctx.y, dim=ctx.dim)


@register_grad_func("cumprod_grad", saves="dy, x, y")
def cumprod_grad_grad(F, ctx, d):
    """Of dx_i = y_{i-1} s_i with s_i = dy_i + x_{i+1} s_{i+1}, which divides by nothing."""
    dim = ctx.dim

    def shifted(x, offset, fill=0):
        return F.shift(x, dim=dim, offset=offset, fill=fill)

    s = F.recurrence(shifted(ctx.x, -1), ctx.dy, dim=dim, reverse=True)
    g = F.recurrence(ctx.x, d * shifted(ctx.y, 1, 1), dim=dim, reverse=False)  # of s_i
    return g, shifted(g * shifted(s, -1), 1), shifted(d * s, -1)


@register_grad_func("shift")
def shift_grad(F, ctx, dy):
    return F.shift(dy, dim=ctx.dim, offset=-ctx.offset, fill=0)


def _adjoint(F, ctx, ds):
    """g_i = ds_i + a_{i+1} g_{i+1}: the same recurrence from the other end."""
    step = 1 if ctx.reverse else -1
    a = F.shift(ctx.a, dim=ctx.dim, offset=step, fill=0)
    return F.recurrence(a, ds, dim=ctx.dim, reverse=not ctx.reverse)


@register_grad_func("recurrence", wrt="a", saves="a, out")
def recurrence_da(F, ctx, ds):
    step = -1 if ctx.reverse else 1
    previous = F.shift(ctx.out, dim=ctx.dim, offset=step, fill=0)
    return _adjoint(F, ctx, ds) * previous


@register_grad_func("recurrence", wrt="b", saves="a")
def recurrence_db(F, ctx, ds):
    return _adjoint(F, ctx, ds)


def _running_extreme_grad(F, ctx, dy, dindices):
    return F.gather_grad(dy, ctx.y1, dim=ctx.dim, shape=ctx.y1.shape)


register_grad_func("cummax", saves="y1")(_running_extreme_grad)
register_grad_func("cummin", saves="y1")(_running_extreme_grad)


@register_grad_func("logcumsumexp", saves="x, y")
def logcumsumexp_grad(F, ctx, dy):
    """dx_i = exp(x_i − y_i) s_i with s_i = dy_i + exp(y_i − y_{i+1}) s_{i+1}

    y does not fall, so nothing overflows; infinities become finite, as their differences are NaN.
    In float32 the many factors would lose digits.
    """
    dtype = ctx.y.dtype
    wide = np.result_type(dtype, np.float64)
    x, y, dy = [F.cast(each, dtype=wide) for each in (ctx.x, ctx.y, dy)]
    limit = float(np.finfo(dtype).max) / 4
    for infinity, value in ((-math.inf, -limit), (math.inf, limit)):
        y = F.masked_fill(y, y == infinity, value=value)
    following = F.shift(y, dim=ctx.dim, offset=-1, fill=math.inf)
    s = F.recurrence(F.exp(y - following), dy, dim=ctx.dim, reverse=True)
    return F.cast(F.exp(x - y) * s, dtype=dtype)


# --- Forward mode ---------------------------------------------------------------------------------


def extreme_push(F, ctx, dx):
    """The tangent of the element that was chosen."""
    if not ctx.x.ndim:
        return dx, None
    indices = ctx.y1 if ctx.keepdim else F.unsqueeze(ctx.y1, dim=ctx.dim)
    dy = F.gather(dx, dim=ctx.dim, index=indices)
    return (dy if ctx.keepdim else F.squeeze(dy, dim=ctx.dim)), None


def gathered_push(F, ctx, dx):
    """The tangents of the elements that were chosen, one for each of them."""
    return (F.gather(dx, dim=ctx.dim, index=ctx.y1) if ctx.x.ndim else dx), None


for _op in ("max", "min"):
    register_push(_op)(extreme_push)
for _op in ("cummax", "cummin"):
    register_push(_op)(gathered_push)
piecewise_linear("max", "min", "amax", "amin", "cummax", "cummin", "tie_weights")


@register_push("logsumexp")
def logsumexp_push(F, ctx, dx):
    y = keep(F, ctx.y, ctx.x.shape, ctx.dim, ctx.keepdim)
    return F.sum(F.exp(ctx.x - y) * dx, dim=ctx.dim, keepdim=ctx.keepdim)


# --- Series ---------------------------------------------------------------------------------------


@register_parts("prod")
def prod_parts(F, x, *, dim, keepdim):
    """Halves are multiplied with each other until one row is left."""
    shape, dims = x.shape, tuple(d % x.ndim for d in dim) if x.ndim else ()
    rest = tuple(d for d in range(x.ndim) if d not in dims)
    x = F.permute(x, dims=(*dims, *rest))
    x = F.reshape(x, shape=(-1, *[shape[d] for d in rest]))
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        product = F.narrow(x, 0, 0, half) * F.narrow(x, 0, half, half)
        odd = x.shape[0] % 2
        x = F.cat([product, F.narrow(x, 0, 2 * half, 1)], dim=0) if odd else product
    kept = tuple(1 if d in dims else n for d, n in enumerate(shape))
    return F.reshape(x, shape=kept if keepdim else tuple(shape[d] for d in rest))


@register_parts("cumprod")
def cumprod_parts(F, x, *, dim):
    """Runs of 1, 2, 4 ... factors are multiplied with the runs before them."""
    size, run = x.shape[dim] if x.ndim else 1, 1
    while run < size:
        ones = F.ones_like(F.narrow(x, dim, 0, run).detach())
        x = x * F.cat([ones, F.narrow(x, dim, 0, size - run)], dim=dim)
        run *= 2
    return x


@register_parts("var")
def var_parts(F, x, *, dim, correction, keepdim):
    if x.is_complex():
        return F.var(F.real(x), dim=dim, correction=correction, keepdim=keepdim) + F.var(
            F.imag(x), dim=dim, correction=correction, keepdim=keepdim
        )
    count = math.prod(x.shape[d] for d in dim)
    apart = x - F.mean(x, dim=dim, keepdim=True)
    return F.sum(apart * apart, dim=dim, keepdim=keepdim) / max(count - correction, 0)


@register_parts("std")
def std_parts(F, x, *, dim, correction, keepdim):
    return F.sqrt(F.var(x, dim=dim, correction=correction, keepdim=keepdim))
