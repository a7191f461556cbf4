"""Gradients of convolution.

The three maps (forward, to the input, to the weight) are linear in both of their arguments, and the
gradients of each are the other two: any order stays within them.
"""

from oneflow_lite.autograd.rules.forward_rules import register_push
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


def _geometry(ctx):
    return {
        "stride": ctx.stride,
        "padding": ctx.padding,
        "dilation": ctx.dilation,
        "groups": ctx.groups,
    }


def _first_windows(F, ctx, y):
    """Return as many windows as dy has: a transposed convolution may be padded for more."""
    if y.shape == ctx.dy_shape:
        return y
    return F.getitem(y, index=(..., *[slice(n) for n in ctx.dy_shape[2:]]))


@register_grad_func("conv", wrt="x", saves="x.shape, weight")
def conv_dx(F, ctx, dy):
    return F.conv_input_grad(dy, ctx.weight, input_size=ctx.x_shape[2:], **_geometry(ctx))


@register_grad_func("conv", wrt="weight", saves="x, weight.shape")
def conv_dweight(F, ctx, dy):
    return F.conv_weight_grad(dy, ctx.x, kernel_size=ctx.weight_shape[2:], **_geometry(ctx))


@register_grad_func("conv", wrt="bias")
def conv_dbias(F, ctx, dy):
    return F.sum(dy, dim=(0, *range(2, dy.ndim)), keepdim=False)


@register_grad_func("conv_input_grad", wrt="dy", saves="dy.shape, weight")
def conv_input_grad_ddy(F, ctx, d):
    return _first_windows(F, ctx, F.conv(d, ctx.weight, None, **_geometry(ctx)))


@register_grad_func("conv_input_grad", wrt="weight", saves="dy, weight.shape")
def conv_input_grad_dweight(F, ctx, d):
    return F.conv_weight_grad(ctx.dy, d, kernel_size=ctx.weight_shape[2:], **_geometry(ctx))


@register_grad_func("conv_weight_grad", wrt="dy", saves="dy.shape, x")
def conv_weight_grad_ddy(F, ctx, d):
    return _first_windows(F, ctx, F.conv(ctx.x, d, None, **_geometry(ctx)))


@register_grad_func("conv_weight_grad", wrt="x", saves="dy, x.shape")
def conv_weight_grad_dx(F, ctx, d):
    return F.conv_input_grad(ctx.dy, d, input_size=ctx.x_shape[2:], **_geometry(ctx))


@register_push("conv")
def conv_push(F, ctx, dx, dweight, dbias):
    attrs = {name: getattr(ctx, name) for name in ("stride", "padding", "dilation", "groups")}
    parts = []
    if dx is not None:
        parts.append(F.conv(dx, ctx.weight, None, **attrs))
    if dweight is not None:
        parts.append(F.conv(ctx.x, dweight, None, **attrs))
    if dbias is not None:
        parts.append(F.reshape(dbias, shape=(-1, *(1,) * (ctx.x.ndim - 2))))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
