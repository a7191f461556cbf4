"""Gradients of the ops between tensors of one rank and global tensors.

The gradient of a global tensor has its placement and its signature, but that of a partial sum is
whole on every rank: each of its terms counts alike.
"""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("local_to_global")
def local_to_global(F, ctx, dy):
    sbp = ctx.placement.of_gradient(ctx.sbp)
    dy = F.global_to_global(dy, placement=ctx.placement, sbp=sbp, grad_sbp=None)
    return F.global_to_local(dy)


@register_grad_func("global_to_local", saves="x")
def global_to_local(F, ctx, dy):
    placement, sbp = ctx.x._data.home
    return F.local_to_global(dy, placement=placement, sbp=sbp, shape=ctx.x.shape)


@register_grad_func("global_to_global", saves="x")
def global_to_global(F, ctx, dy):
    placement, sbp = ctx.x._data.home
    sbp = sbp if ctx.grad_sbp is None else ctx.grad_sbp
    return F.global_to_global(dy, placement=placement, sbp=sbp, grad_sbp=None)
