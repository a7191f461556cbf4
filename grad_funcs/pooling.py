"""Gradients of pooling: maxima put the gradient back where they stood, averages spread it."""

import functools

from oneflow_lite.autograd.rules.forward_rules import piecewise_linear
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.arithmetic import flat


@functools.lru_cache(64)
def _disjoint(kernel_size, stride, dilation):
    """Return whether no two windows of a max_pool share an element."""
    windows = zip(kernel_size, stride, dilation, strict=True)
    return all(s > d * (k - 1) for k, s, d in windows)


@register_grad_func("max_pool", saves="x.shape, x.edge, y1")
def max_pool_grad(F, ctx, dy, _):
    size = ctx.x_shape[-len(ctx.kernel_size) :]
    disjoint = _disjoint(ctx.kernel_size, ctx.stride, ctx.dilation)
    return flat(F, F.plane_put(dy, ctx.y1, input_size=size, disjoint=disjoint), ctx.x_edge)


@register_grad_func("fractional_max_pool", saves="x.shape, x.edge, y1")
def fractional_max_pool_grad(F, ctx, dy, _):
    size = ctx.x_shape[-len(ctx.kernel_size) :]
    dx = F.plane_put(dy, ctx.y1, input_size=size, disjoint=False)
    return flat(F, dx, ctx.x_edge), None


@register_grad_func("max_unpool", saves="indices")
def max_unpool_grad(F, ctx, dy):
    return F.plane_take(dy, ctx.indices, spatial=len(ctx.output_size)), None


@register_grad_func("plane_put", saves="indices")
def plane_put_grad(F, ctx, dx):
    return F.plane_take(dx, ctx.indices, spatial=len(ctx.input_size)), None


@register_grad_func("plane_take", saves="x.shape, indices")
def plane_take_grad(F, ctx, dy):
    size = ctx.x_shape[-ctx.spatial :]
    return F.plane_put(dy, ctx.indices, input_size=size, disjoint=False), None


def _geometry(ctx):
    return {
        "kernel_size": ctx.kernel_size,
        "stride": ctx.stride,
        "padding": ctx.padding,
        "output_size": ctx.output_size,
        "divisor": ctx.divisor,
    }


@register_grad_func("avg_pool", saves="x.shape, x.edge")
def avg_pool_grad(F, ctx, dy):
    size = ctx.x_shape[-len(ctx.kernel_size) :]
    return flat(F, F.avg_pool_grad(dy, input_size=size, **_geometry(ctx)), ctx.x_edge)


@register_grad_func("avg_pool_grad")
def avg_pool_grad_grad(F, ctx, dx):
    return F.avg_pool(dx, **_geometry(ctx))


@register_grad_func("adaptive_avg_pool", saves="x.shape, x.edge")
def adaptive_avg_pool_grad(F, ctx, dy):
    size = ctx.x_shape[-len(ctx.output_size) :]
    return flat(F, F.adaptive_avg_pool_grad(dy, input_size=size), ctx.x_edge)


@register_grad_func("adaptive_avg_pool_grad", saves="dy.shape")
def adaptive_avg_pool_grad_grad(F, ctx, dx):
    return F.adaptive_avg_pool(dx, output_size=ctx.dy_shape[-len(ctx.input_size) :])


@register_grad_func("adaptive_max_pool", saves="x.shape, x.edge, y1")
def adaptive_max_pool_grad(F, ctx, dy, _):
    size = ctx.x_shape[-len(ctx.output_size) :]
    return flat(F, F.plane_put(dy, ctx.y1, input_size=size, disjoint=False), ctx.x_edge)


piecewise_linear("max_pool", "adaptive_max_pool", "fractional_max_pool")
