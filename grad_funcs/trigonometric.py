"""Gradients of circular and hyperbolic functions; the engine calls them."""

from __future__ import annotations

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("sin", saves="x")
def sin(F, ctx, dy):
    return dy * F.cos(ctx.x)


@register_grad_func("cos", saves="x")
def cos(F, ctx, dy):
    return -(dy * F.sin(ctx.x))


@register_grad_func("tan", saves="y")
def tan(F, ctx, dy):
    return dy * (ctx.y * ctx.y + 1)


@register_grad_func("asin", saves="x")
def asin(F, ctx, dy):
    # (1 - x)(1 + x) keeps the digits near ±1 that 1 - x² loses.
    return dy / F.sqrt((1 - ctx.x) * (1 + ctx.x))


@register_grad_func("acos", saves="x")
def acos(F, ctx, dy):
    return -(dy / F.sqrt((1 - ctx.x) * (1 + ctx.x)))


@register_grad_func("atan", saves="x")
def atan(F, ctx, dy):
    return dy / (ctx.x * ctx.x + 1)


@register_grad_func("atan2", wrt="y", saves="y, x")
def atan2_dy(F, ctx, dz):
    return dz * ctx.x * _inverse_square_radius(F, ctx)


@register_grad_func("atan2", wrt="x", saves="y, x")
def atan2_dx(F, ctx, dz):
    return -(dz * ctx.y * _inverse_square_radius(F, ctx))


def _inverse_square_radius(F, ctx):
    """1 / (x² + y²), and 0 at the origin: atan2's gradient is 0 there, as in PyTorch."""
    square = ctx.x * ctx.x + ctx.y * ctx.y
    return F.where(square == 0, F.zeros_like(square), 1 / square)


@register_grad_func("hypot", wrt="x", saves="x, out")
def hypot_dx(F, ctx, dz):
    return dz * (ctx.x / ctx.out)


@register_grad_func("hypot", wrt="y", saves="y, out")
def hypot_dy(F, ctx, dz):
    return dz * (ctx.y / ctx.out)


@register_grad_func("sinh", saves="x")
def sinh(F, ctx, dy):
    return dy * F.cosh(ctx.x)


@register_grad_func("cosh", saves="x")
def cosh(F, ctx, dy):
    return dy * F.sinh(ctx.x)


@register_grad_func("asinh", saves="x")
def asinh(F, ctx, dy):
    return dy / F.sqrt(ctx.x * ctx.x + 1)


@register_grad_func("acosh", saves="x")
def acosh(F, ctx, dy):
    # Two roots: the root of x² - 1 would take the wrong branch where Re x < 0. Adding 1 would turn
    # an imaginary part of -0.0 into 0.0, from one side of the cut to the other.
    return dy / F.sqrt(ctx.x - 1) / F.sqrt(ctx.x - -1)


@register_grad_func("atanh", saves="x")
def atanh(F, ctx, dy):
    return dy / ((1 - ctx.x) * (1 + ctx.x))


@register_grad_func("sinc", saves="x")
def sinc(F, ctx, dy):
    return F.sinc_grad(dy, ctx.x, order=1)


@register_grad_func("sinc_grad", wrt="dy", saves="x")
def sinc_grad_ddy(F, ctx, dz):
    return F.sinc_grad(dz, ctx.x, order=ctx.order)


@register_grad_func("sinc_grad", wrt="x", saves="dy, x")
def sinc_grad_dx(F, ctx, dz):
    return F.sinc_grad(dz * ctx.dy, ctx.x, order=ctx.order + 1)
