"""Gradients of windows along one dimension, and of planes: two pairs of transposes."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("unfold", saves="x.shape")
def unfold_dx(F, ctx, dy):
    return F.unfold_grad(
        dy, dimension=ctx.dimension, size=ctx.size, step=ctx.step, shape=ctx.x_shape
    )


@register_grad_func("unfold_grad")
def unfold_grad_ddy(F, ctx, ddx):
    return F.unfold(ddx, dimension=ctx.dimension, size=ctx.size, step=ctx.step)


def _geometry(ctx):
    return {
        "kernel_size": ctx.kernel_size,
        "dilation": ctx.dilation,
        "padding": ctx.padding,
        "stride": ctx.stride,
    }


@register_grad_func("im2col", saves="x.shape")
def im2col_grad(F, ctx, dy):
    size = ctx.x_shape[-len(ctx.kernel_size) :]
    return F.col2im(dy, output_size=size, **_geometry(ctx))


@register_grad_func("col2im")
def col2im_grad(F, ctx, dy):
    return F.im2col(dy, **_geometry(ctx))
