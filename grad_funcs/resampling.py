"""Gradients of resizing: the two ops are each other's transposes."""

from oneflow_lite.autograd.grad_function import register_grad_func


def _map(ctx):
    return {
        "mode": ctx.mode,
        "align_corners": ctx.align_corners,
        "scales": ctx.scales,
        "antialias": ctx.antialias,
    }


@register_grad_func("resample", saves="x.shape")
def resample_grad(F, ctx, dy):
    size = ctx.x_shape[-len(ctx.output_size) :]
    return F.resample_grad(dy, input_size=size, **_map(ctx))


@register_grad_func("resample_grad", saves="dy.shape")
def resample_grad_grad(F, ctx, d):
    size = ctx.dy_shape[-len(ctx.input_size) :]
    return F.resample(d, output_size=size, **_map(ctx))
