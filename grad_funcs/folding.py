"""Gradients of columns of windows: the two ops are each other's transposes."""

from oneflow_lite.autograd.grad_function import register_grad_func


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
