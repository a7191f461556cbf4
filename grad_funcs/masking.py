"""Gradients of choosing elements by a mask."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("masked_fill", wrt="x", saves="mask")
def masked_fill_dx(F, ctx, dy):
    return F.masked_fill(dy, ctx.mask, value=0)


@register_grad_func("masked_select", wrt="x", saves="mask")
def masked_select_dx(F, ctx, dy):
    return F.masked_select_grad(dy, ctx.mask)


@register_grad_func("masked_select_grad", wrt="dy", saves="mask")
def masked_select_grad_ddy(F, ctx, ddx):
    return F.masked_select(ddx, ctx.mask)


@register_grad_func("masked_scatter", wrt="x", saves="mask")
def masked_scatter_dx(F, ctx, dy):
    return F.masked_fill(dy, ctx.mask, value=0)


@register_grad_func("masked_scatter", wrt="source", saves="mask, source.shape")
def masked_scatter_dsource(F, ctx, dy):
    return F.masked_scatter_grad(dy, ctx.mask, shape=ctx.source_shape)


@register_grad_func("masked_scatter_grad", wrt="dy", saves="mask, dy.dtype")
def masked_scatter_grad_ddy(F, ctx, ddsource):
    zeros = F.masked_fill(F.cast(ctx.mask, dtype=ctx.dy_dtype), ctx.mask, value=0)
    return F.masked_scatter(zeros, ctx.mask, ddsource)
