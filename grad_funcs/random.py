"""Gradients of random ops: what was drawn does not depend on the input."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("dropout_mask")
def dropout_mask_grad(F, ctx, dy):
    return None


@register_grad_func("bernoulli")
def bernoulli_grad(F, ctx, dy):
    return F.zeros_like(dy)


@register_grad_func("poisson")
def poisson_grad(F, ctx, dy):
    return F.zeros_like(dy)


@register_grad_func("normal")
def normal_of_grad(F, ctx, dy):
    return F.zeros_like(dy), F.zeros_like(dy)


def _written(F, ctx, dy):
    return F.zeros_like(dy)


for _name in """uniform_ normal_ bernoulli_ random_ exponential_ geometric_ log_normal_
    cauchy_""".split():
    register_grad_func(_name)(_written)
