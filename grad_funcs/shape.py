"""Gradients of shape ops: the same elements in the shape they came from."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.autograd.rules.zero import ZERO


@register_grad_func("reshape", saves="x.shape")
def reshape_grad(F, ctx, dy):
    return F.reshape(dy, shape=ctx.x_shape)


@register_grad_func("transpose")
def transpose_grad(F, ctx, dy):
    return F.transpose(dy, dim0=ctx.dim0, dim1=ctx.dim1)


@register_grad_func("permute")
def permute_grad(F, ctx, dy):
    inverse = tuple(sorted(range(len(ctx.dims)), key=ctx.dims.__getitem__))
    return F.permute(dy, dims=inverse)


@register_grad_func("squeeze", saves="x.shape")
def squeeze_grad(F, ctx, dy):
    return F.reshape(dy, shape=ctx.x_shape)


@register_grad_func("unsqueeze", saves="x.shape")
def unsqueeze_grad(F, ctx, dy):
    return F.reshape(dy, shape=ctx.x_shape)


@register_grad_func("expand", saves="x.shape")
def expand_grad(F, ctx, dy):
    return F.sum_to(dy, shape=ctx.x_shape)


@register_grad_func("sum_to", saves="x.shape")
def sum_to_grad(F, ctx, dy):
    return F.expand(dy, shape=ctx.x_shape)


@register_grad_func("clone")
def clone_grad(F, ctx, dy):
    return dy


@register_grad_func("real", saves="x.dtype")
def real_grad(F, ctx, dy):
    return F.cast(dy, dtype=ctx.x_dtype)


@register_grad_func("imag", saves="x.dtype")
def imag_grad(F, ctx, dy):
    return F.cast(dy, dtype=ctx.x_dtype) * 1j


@register_grad_func("cast", saves="x.dtype")
def cast_grad(F, ctx, dy):
    return F.cast(dy, dtype=ctx.x_dtype)


@register_grad_func("copy_", wrt="x")
def copy_dx(F, ctx, dy):
    return ZERO


@register_grad_func("copy_", wrt="value")
def copy_dvalue(F, ctx, dy):
    return dy


@register_grad_func("fill_", wrt="x")
def fill_dx(F, ctx, dy):
    return ZERO


@register_grad_func("fill_", wrt="value")
def fill_dvalue(F, ctx, dy):
    return dy


@register_grad_func("to_device")
def to_device_grad(F, ctx, dy):
    return F.to_device(dy, target=ctx.source, source=ctx.target)
