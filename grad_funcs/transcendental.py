"""Gradients of exponentials, logarithms and what is made of them; the engine calls them."""

from __future__ import annotations

import math

from oneflow_lite.autograd.grad_function import register_grad_func

_LN_2 = math.log(2)
_LN_10 = math.log(10)
_2_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


@register_grad_func("exp", saves="y")
def exp(F, ctx, dy):
    return dy * ctx.y


@register_grad_func("exp2", saves="y")
def exp2(F, ctx, dy):
    return dy * ctx.y * _LN_2


@register_grad_func("expm1", saves="y")
def expm1(F, ctx, dy):
    return dy * (ctx.y + 1)


@register_grad_func("log", saves="x")
def log(F, ctx, dy):
    return dy / ctx.x


@register_grad_func("log1p", saves="x")
def log1p(F, ctx, dy):
    return dy / (ctx.x + 1)


@register_grad_func("log2", saves="x")
def log2(F, ctx, dy):
    return dy / (ctx.x * _LN_2)


@register_grad_func("log10", saves="x")
def log10(F, ctx, dy):
    return dy / (ctx.x * _LN_10)


@register_grad_func("tanh", saves="y")
def tanh(F, ctx, dy):
    return F.tanh_grad(dy, ctx.y)


@register_grad_func("tanh_grad", wrt="dy", saves="y")
def tanh_grad_ddy(F, ctx, dz):
    return F.tanh_grad(dz, ctx.y)


@register_grad_func("tanh_grad", wrt="y", saves="dy, y")
def tanh_grad_dy(F, ctx, dz):
    return dz * ctx.dy * ctx.y * -2.0


@register_grad_func("sigmoid", saves="y")
def sigmoid(F, ctx, dy):
    return F.sigmoid_grad(dy, ctx.y)


@register_grad_func("sigmoid_grad", wrt="dy", saves="y")
def sigmoid_grad_ddy(F, ctx, dz):
    return F.sigmoid_grad(dz, ctx.y)


@register_grad_func("sigmoid_grad", wrt="y", saves="dy, y")
def sigmoid_grad_dy(F, ctx, dz):
    return dz * ctx.dy * (1.0 - 2.0 * ctx.y)


@register_grad_func("erf", saves="x")
def erf(F, ctx, dy):
    return dy * F.exp(-(ctx.x * ctx.x)) * _2_OVER_SQRT_PI


@register_grad_func("erfc", saves="x")
def erfc(F, ctx, dy):
    return dy * F.exp(-(ctx.x * ctx.x)) * -_2_OVER_SQRT_PI


@register_grad_func("logaddexp", wrt="x", saves="x, y")
def logaddexp_dx(F, ctx, dz):
    return dz * F.sigmoid(ctx.x - ctx.y)


@register_grad_func("logaddexp", wrt="y", saves="x, y")
def logaddexp_dy(F, ctx, dz):
    return dz * F.sigmoid(ctx.y - ctx.x)


@register_grad_func("logaddexp2", wrt="x", saves="x, y")
def logaddexp2_dx(F, ctx, dz):
    return dz * F.sigmoid((ctx.x - ctx.y) * _LN_2)


@register_grad_func("logaddexp2", wrt="y", saves="x, y")
def logaddexp2_dy(F, ctx, dz):
    return dz * F.sigmoid((ctx.y - ctx.x) * _LN_2)


@register_grad_func("xlogy", wrt="x", saves="x, y")
def xlogy_dx(F, ctx, dz):
    # Where x is 0 the value is constantly 0 for y ≤ 0, so log y is not to be seen there.
    dx = F.xlogy(dz, ctx.y)
    return F.where((ctx.x == 0) & (ctx.y <= 0), F.zeros_like(dx), dx)


@register_grad_func("xlogy", wrt="y", saves="x, y")
def xlogy_dy(F, ctx, dz):
    return dz * ctx.x / ctx.y
