"""Gradients of activations made of straight pieces; the engine calls them.

A <op>_grad is linear in dy and constant in x almost everywhere, so its gradient is itself, and
None for x.
"""

from __future__ import annotations

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("relu", saves="y")
def relu(F, ctx, dy):
    return F.relu_grad(dy, ctx.y)


@register_grad_func("relu_grad", saves="y")
def relu_grad(F, ctx, dz):
    return F.relu_grad(dz, ctx.y), None


@register_grad_func("leaky_relu", saves="x")
def leaky_relu(F, ctx, dy):
    return F.leaky_relu_grad(dy, ctx.x, negative_slope=ctx.negative_slope)


@register_grad_func("leaky_relu_grad", saves="x")
def leaky_relu_grad(F, ctx, dz):
    return F.leaky_relu_grad(dz, ctx.x, negative_slope=ctx.negative_slope), None


@register_grad_func("hardtanh", saves="x")
def hardtanh(F, ctx, dy):
    return F.hardtanh_grad(dy, ctx.x, min_val=ctx.min_val, max_val=ctx.max_val)


@register_grad_func("hardtanh_grad", saves="x")
def hardtanh_grad(F, ctx, dz):
    return F.hardtanh_grad(dz, ctx.x, min_val=ctx.min_val, max_val=ctx.max_val), None


@register_grad_func("hardsigmoid", saves="x")
def hardsigmoid(F, ctx, dy):
    return F.hardtanh_grad(dy, ctx.x, min_val=-3.0, max_val=3.0) / 6


@register_grad_func("hardswish", saves="x")
def hardswish(F, ctx, dy):
    return F.hardswish_grad(dy, ctx.x)


@register_grad_func("hardswish_grad", wrt="dy", saves="x")
def hardswish_grad_ddy(F, ctx, dz):
    return F.hardswish_grad(dz, ctx.x)


@register_grad_func("hardswish_grad", wrt="x", saves="dy, x")
def hardswish_grad_dx(F, ctx, dz):
    # The middle piece is a parabola.
    return F.hardtanh_grad(dz * ctx.dy, ctx.x, min_val=-3.0, max_val=3.0) / 3


@register_grad_func("hardshrink", saves="x")
def hardshrink(F, ctx, dy):
    return F.shrink_grad(dy, ctx.x, lambd=ctx.lambd)


@register_grad_func("softshrink", saves="x")
def softshrink(F, ctx, dy):
    return F.shrink_grad(dy, ctx.x, lambd=ctx.lambd)


@register_grad_func("shrink_grad", saves="x")
def shrink_grad(F, ctx, dz):
    return F.shrink_grad(dz, ctx.x, lambd=ctx.lambd), None


@register_grad_func("threshold", saves="x")
def threshold(F, ctx, dy):
    return F.threshold_grad(dy, ctx.x, threshold=ctx.threshold)


@register_grad_func("threshold_grad", saves="x")
def threshold_grad(F, ctx, dz):
    return F.threshold_grad(dz, ctx.x, threshold=ctx.threshold), None
