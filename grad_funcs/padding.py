"""Gradient of pad: added entries are cut off, or summed into the entries that they copy."""

from oneflow_lite.autograd.rules.forward_rules import register_push
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.arithmetic import flat


@register_grad_func("pad", saves="x.edge")
def pad_dx(F, ctx, dy):
    if ctx.mode == "constant":
        return F.pad(dy, pad=tuple([-n for n in ctx.pad]), mode="constant", value=0)
    dx = F.pad_grad(dy, pad=ctx.pad, mode=ctx.mode)
    return dx if ctx.mode == "circular" else flat(F, dx, ctx.x_edge)


@register_grad_func("pad_grad")
def pad_grad_ddy(F, ctx, ddx):
    return F.pad(ddx, pad=ctx.pad, mode=ctx.mode)


@register_push("pad")
def pad_push(F, ctx, dx):
    return F.pad(dx, pad=ctx.pad, mode=ctx.mode, value=0)
