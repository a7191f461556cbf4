"""Gradients of repeating elements, moving them around, and of diagonals of matrices."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("repeat", saves="x.shape")
def repeat_dx(F, ctx, dy):
    """Fold each dimension into (copy, element) and sum over the copies."""
    shape = (1,) * (len(ctx.sizes) - len(ctx.x_shape)) + ctx.x_shape
    folded = tuple(n for pair in zip(ctx.sizes, shape, strict=True) for n in pair)
    dx = F.sum(F.reshape(dy, shape=folded), dim=tuple(range(0, len(folded), 2)), keepdim=False)
    return F.reshape(dx, shape=ctx.x_shape)


@register_grad_func("flip")
def flip_dx(F, ctx, dy):
    return F.flip(dy, dims=ctx.dims)


@register_grad_func("roll")
def roll_dx(F, ctx, dy):
    return F.roll(dy, shifts=tuple(-shift for shift in ctx.shifts), dims=ctx.dims)


# --- Diagonals and triangles ----------------------------------------------------------------------


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
