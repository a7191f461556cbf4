"""The gradient of a contraction is a contraction, with the labels' roles exchanged."""

from __future__ import annotations

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("contract", wrt="x", saves="y")
def contract_dx(F, ctx, dz):
    return F.contract(dz, ctx.y, xs=ctx.zs, ys=ctx.ys, zs=ctx.xs)


@register_grad_func("contract", wrt="y", saves="x")
def contract_dy(F, ctx, dz):
    return F.contract(ctx.x, dz, xs=ctx.xs, ys=ctx.zs, zs=ctx.ys)
