"""Gradients of matrix products: each of the three forms has the other two as its gradient."""

from __future__ import annotations

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("matmul", wrt="x", saves="y")
def matmul_dx(F, ctx, dz):
    return F.matmul_nt(dz, ctx.y)


@register_grad_func("matmul", wrt="y", saves="x, y.shape")
def matmul_dy(F, ctx, dz):
    return F.matmul_tn(ctx.x, dz, merge=len(ctx.y_shape) == 2 < ctx.x.ndim)


@register_grad_func("matmul_nt", wrt="x", saves="y")
def matmul_nt_dx(F, ctx, dz):
    return F.matmul(dz, ctx.y)


@register_grad_func("matmul_nt", wrt="y", saves="x, y.shape")
def matmul_nt_dy(F, ctx, dz):
    return F.matmul_tn(dz, ctx.x, merge=len(ctx.y_shape) == 2 < ctx.x.ndim)


@register_grad_func("matmul_tn", wrt="x", saves="y")
def matmul_tn_dx(F, ctx, dz):
    return F.matmul_nt(ctx.y, dz)


@register_grad_func("matmul_tn", wrt="y", saves="x")
def matmul_tn_dy(F, ctx, dz):
    return F.matmul(ctx.x, dz)


@register_grad_func("dot", wrt="x", saves="y")
def dot_dx(F, ctx, dz):
    return dz * ctx.y


@register_grad_func("dot", wrt="y", saves="x")
def dot_dy(F, ctx, dz):
    return dz * ctx.x
