"""Gradients of random ops: what was drawn does not depend on the input."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("dropout_mask")
def dropout_mask_grad(F, ctx, dy):
    return None


@register_grad_func("bernoulli")
def bernoulli_grad(F, ctx, dy):
    return F.zeros_like(dy)


@register_grad_func("uniform_")
def uniform_grad(F, ctx, dy):
    return F.zeros_like(dy)


@register_grad_func("normal_")
def normal_grad(F, ctx, dy):
    return F.zeros_like(dy)


@register_grad_func("bernoulli_")
def bernoulli_inplace_grad(F, ctx, dy):
    return F.zeros_like(dy)
