"""Gradients of x[...] and x[...] = value: put a gradient back to where its element came from."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("getitem", saves="x.shape")
def getitem_dx(F, ctx, dy):
    return F.put_back(dy, index=ctx.index, shape=ctx.x_shape)


@register_grad_func("getitem_grad")
def getitem_grad_ddy(F, ctx, ddx):
    return F.getitem(ddx, index=ctx.index)


@register_grad_func("narrow", saves="x.shape")
def narrow_dx(F, ctx, dy):
    rows = slice(ctx.start, ctx.start + ctx.length)
    return F.put_back(dy, index=(slice(None),) * ctx.dim + (rows,), shape=ctx.x_shape)


@register_grad_func("select", saves="x.shape")
def select_dx(F, ctx, dy):
    index = (slice(None),) * ctx.dim + (ctx.index, ...)
    return F.put_back(dy, index=index, shape=ctx.x_shape)


@register_grad_func("getitem_advanced", saves="x.shape, indices")
def getitem_advanced_dx(F, ctx, dy):
    dx = F.getitem_advanced_grad(dy, *ctx.indices, dims=ctx.dims, shape=ctx.x_shape)
    return dx, *[None] * len(ctx.indices)


@register_grad_func("getitem_advanced_grad", saves="indices")
def getitem_advanced_grad_ddy(F, ctx, ddx):
    return F.getitem_advanced(ddx, *ctx.indices, dims=ctx.dims), *[None] * len(ctx.indices)


@register_grad_func("setitem_", saves="indices")
def setitem_dx(F, ctx, dy):
    indices = ctx.indices if ctx.dims else ()
    dx = dvalue = None
    if ctx.needs_input_grad[0]:
        dx = F.setitem_grad(dy, *indices, index=ctx.index, dims=ctx.dims)
    if ctx.needs_input_grad[1]:
        dvalue = F.getitem(dy, index=ctx.index)
        if indices:
            shape = dvalue.shape
            dvalue = F.getitem_advanced(dvalue, *indices, dims=ctx.dims)
            if any(index.dtype.kind != "b" for index in indices):
                # A value that a later one overwrote is not in y: PyTorch gives it a gradient.
                gone = F.setitem_overwritten(*indices, dims=ctx.dims, shape=shape)
                dvalue = F.masked_fill(dvalue, gone, value=0)
    return dx, dvalue, *[None] * len(indices)


@register_grad_func("setitem_grad", saves="indices")
def setitem_grad_ddy(F, ctx, ddx):
    indices = ctx.indices if ctx.dims else ()
    ddy = F.setitem_grad(ddx, *indices, index=ctx.index, dims=ctx.dims)
    return ddy, *[None] * len(indices)
