"""Gradients of losses."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("huber", saves="x")
def huber_grad(F, ctx, dy):
    return F.huber_grad(dy, ctx.x, delta=ctx.delta)


@register_grad_func("huber_grad", wrt="dy", saves="x")
def huber_grad_ddy(F, ctx, d):
    return F.huber_grad(d, ctx.x, delta=ctx.delta)


@register_grad_func("huber_grad", wrt="x", saves="dy, x")
def huber_grad_dx(F, ctx, d):
    return d * ctx.dy * (F.abs(ctx.x) < ctx.delta)


@register_grad_func("least_variance")
def least_variance_grad(F, ctx, dy):
    return dy  # also where eps is larger, as in PyTorch
