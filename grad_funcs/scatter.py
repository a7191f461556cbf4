"""Gradients of gather and scatter: each is the other's transpose."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("gather", wrt="x", saves="index, x.shape")
def gather_dx(F, ctx, dy):
    return F.gather_grad(dy, ctx.index, dim=ctx.dim, shape=ctx.x_shape)


@register_grad_func("gather_grad", wrt="dy", saves="index")
def gather_grad_ddy(F, ctx, ddx):
    return F.gather(ddx, dim=ctx.dim, index=ctx.index)


@register_grad_func("scatter", wrt="x", saves="index")
def scatter_dx(F, ctx, dy):
    return F.masked_fill(dy, F.scatter_mask(ctx.index, dim=ctx.dim, shape=dy.shape), value=0)


@register_grad_func("scatter", wrt="src", saves="index")
def scatter_dsrc(F, ctx, dy):
    # A value that a later one overwrote is not in y: PyTorch gives it a gradient.
    gone = F.scatter_overwritten(ctx.index, dim=ctx.dim, shape=dy.shape)
    return F.masked_fill(F.gather(dy, dim=ctx.dim, index=ctx.index), gone, value=0)


@register_grad_func("scatter_add", wrt="x")
def scatter_add_dx(F, ctx, dy):
    return dy


@register_grad_func("scatter_add", wrt="src", saves="index")
def scatter_add_dsrc(F, ctx, dy):
    return F.gather(dy, dim=ctx.dim, index=ctx.index)
