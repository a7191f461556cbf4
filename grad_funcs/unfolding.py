"""Gradients of windows along one dimension."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("unfold", saves="x.shape")
def unfold_dx(F, ctx, dy):
    return F.unfold_grad(
        dy, dimension=ctx.dimension, size=ctx.size, step=ctx.step, shape=ctx.x_shape
    )


@register_grad_func("unfold_grad")
def unfold_grad_ddy(F, ctx, ddx):
    return F.unfold(ddx, dimension=ctx.dimension, size=ctx.size, step=ctx.step)
