"""Gradients of softmax and its logarithm; the engine calls them."""

from __future__ import annotations

from oneflow_lite.autograd.rules.forward_rules import register_parts, register_push
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("softmax", saves="y")
def softmax(F, ctx, dy):
    return F.softmax_grad(dy, ctx.y, dim=ctx.dim)


@register_grad_func("softmax_grad", wrt="dy", saves="y")
def softmax_grad_ddy(F, ctx, dz):
    # The Jacobian diag(y) - y yᵀ is symmetric.
    return F.softmax_grad(dz, ctx.y, dim=ctx.dim)


@register_grad_func("softmax_grad", wrt="y", saves="dy, y")
def softmax_grad_dy(F, ctx, dz):
    # Of Σ dz y (dy - Σ dy y): dz (dy - Σ dy y) - dy Σ dz y
    dims = (ctx.dim,)
    dy_y = F.sum(ctx.dy * ctx.y, dim=dims, keepdim=True)
    dz_y = F.sum(dz * ctx.y, dim=dims, keepdim=True)
    return dz * (ctx.dy - dy_y) - ctx.dy * dz_y


@register_grad_func("log_softmax", saves="y")
def log_softmax(F, ctx, dy):
    return F.log_softmax_grad(dy, ctx.y, dim=ctx.dim)


@register_grad_func("log_softmax_grad", wrt="dy", saves="y")
def log_softmax_grad_ddy(F, ctx, dz):
    return dz - F.sum(dz * F.exp(ctx.y), dim=(ctx.dim,), keepdim=True)


@register_grad_func("log_softmax_grad", wrt="y", saves="dy, y")
def log_softmax_grad_dy(F, ctx, dz):
    return -(dz * F.exp(ctx.y) * F.sum(ctx.dy, dim=(ctx.dim,), keepdim=True))


# --- Forward mode ---------------------------------------------------------------------------------


@register_push("softmax")
def softmax_push(F, ctx, dx):
    return F.softmax_grad(dx, ctx.y, dim=ctx.dim)  # the Jacobian is symmetric


@register_push("log_softmax")
def log_softmax_push(F, ctx, dx):
    return dx - F.sum(F.exp(ctx.y) * dx, dim=ctx.dim, keepdim=True)


@register_parts("softmax_grad")
def softmax_grad_parts(F, dy, y, *, dim):
    return y * (dy - F.sum(dy * y, dim=dim, keepdim=True))


@register_parts("log_softmax_grad")
def log_softmax_grad_parts(F, dy, y, *, dim):
    return dy - F.exp(y) * F.sum(dy, dim=dim, keepdim=True)
