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


@register_grad_func("index_copy", wrt="x", saves="index")
def index_copy_dx(F, ctx, dy):
    return F.masked_fill(dy, F.index_mask(ctx.index, dim=ctx.dim, shape=dy.shape), value=0)


@register_grad_func("index_copy", wrt="source", saves="index")
def index_copy_dsource(F, ctx, dy):
    # A value that a later one overwrote is not in y: PyTorch gives it a gradient.
    gone = F.setitem_overwritten(ctx.index, dims=(ctx.dim,), shape=dy.shape)
    return F.masked_fill(F.getitem_advanced(dy, ctx.index, dims=(ctx.dim,)), gone, value=0)
