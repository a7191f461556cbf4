"""Gradients of adaptive pooling; `plane_put` is that of all maxima in grad_funcs/pooling.py."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("adaptive_avg_pool", saves="x.shape")
def adaptive_avg_pool_grad(F, ctx, dy):
    return F.adaptive_avg_pool_grad(dy, input_size=ctx.x_shape[-len(ctx.output_size) :])


@register_grad_func("adaptive_avg_pool_grad", saves="dy.shape")
def adaptive_avg_pool_grad_grad(F, ctx, dx):
    return F.adaptive_avg_pool(dx, output_size=ctx.dy_shape[-len(ctx.input_size) :])


@register_grad_func("adaptive_max_pool", saves="x.shape, y1")
def adaptive_max_pool_grad(F, ctx, dy, _):
    size = ctx.x_shape[-len(ctx.output_size) :]
    return F.plane_put(dy, ctx.y1, input_size=size, disjoint=False)
