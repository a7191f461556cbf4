"""Gradients of extrema: dy goes to where the extremum stands, shared among ties or to one index."""

from __future__ import annotations

from oneflow_lite.autograd.grad_function import register_grad_func
from oneflow_lite.grad_funcs.reduce import keep


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
