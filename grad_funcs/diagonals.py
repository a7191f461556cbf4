"""Gradients of diagonals and triangles of matrices."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("tril")
def tril_dx(F, ctx, dy):
    return F.tril(dy, diagonal=ctx.diagonal)


@register_grad_func("triu")
def triu_dx(F, ctx, dy):
    return F.triu(dy, diagonal=ctx.diagonal)


@register_grad_func("diagonal", saves="x.shape")
def diagonal_dx(F, ctx, dy):
    return F.diagonal_grad(dy, offset=ctx.offset, dim1=ctx.dim1, dim2=ctx.dim2, shape=ctx.x_shape)


@register_grad_func("diagonal_grad")
def diagonal_grad_ddy(F, ctx, ddx):
    return F.diagonal(ddx, offset=ctx.offset, dim1=ctx.dim1, dim2=ctx.dim2)


@register_grad_func("diag_embed")
def diag_embed_dx(F, ctx, dy):
    return F.diagonal(dy, offset=ctx.offset, dim1=ctx.dim1, dim2=ctx.dim2)
