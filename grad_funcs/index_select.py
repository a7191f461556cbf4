"""Gradients of reading and writing the entries of one dimension."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("index_select", wrt="x", saves="index, x.shape")
def index_select_dx(F, ctx, dy):
    return F.getitem_advanced_grad(dy, ctx.index, dims=(ctx.dim,), shape=ctx.x_shape)


@register_grad_func("index_add", wrt="x")
def index_add_dx(F, ctx, dy):
    return dy


@register_grad_func("index_add", wrt="source", saves="index")
def index_add_dsource(F, ctx, dy):
    dsource = F.getitem_advanced(dy, ctx.index, dims=(ctx.dim,))
    return dsource if ctx.alpha == 1 else dsource * ctx.alpha
