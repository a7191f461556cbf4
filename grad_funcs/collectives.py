"""Gradients of collectives: each is linear, and its transpose is a collective again.

The loss is the sum of all ranks' losses, so a rank gets gradients from all ranks that it gave to.
"""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("all_reduce")
def all_reduce(F, ctx, dy):
    return F.all_reduce(dy, reduction=ctx.reduction, group=ctx.group)


@register_grad_func("all_reduce_")
def all_reduce_(F, ctx, dy):
    return F.all_reduce(dy, reduction=ctx.reduction, group=ctx.group)


@register_grad_func("reduce_to")
def reduce_to(F, ctx, dy):
    dx = F.broadcast_from(dy, src=ctx.dst, group=ctx.group)
    return dx / ctx.group.size() if ctx.reduction == "avg" else dx


@register_grad_func("broadcast_from")
def broadcast_from(F, ctx, dy):
    return F.reduce_to(dy, dst=ctx.src, reduction="sum", group=ctx.group)


@register_grad_func("broadcast_from_")
def broadcast_from_(F, ctx, dy):
    return F.reduce_to(dy, dst=ctx.src, reduction="sum", group=ctx.group)


@register_grad_func("all_gather")
def all_gather(F, ctx, dy):
    return F.reduce_scatter(dy, reduction="sum", group=ctx.group)


@register_grad_func("reduce_scatter")
def reduce_scatter(F, ctx, dy):
    dx = F.all_gather(dy, group=ctx.group)
    return dx / ctx.group.size() if ctx.reduction == "avg" else dx


@register_grad_func("gather_to")
def gather_to(F, ctx, dy):
    return F.scatter_from(dy, src=ctx.dst, group=ctx.group)


@register_grad_func("scatter_from")
def scatter_from(F, ctx, dy):
    return F.gather_to(dy, dst=ctx.src, group=ctx.group)


@register_grad_func("all_to_all")
def all_to_all(F, ctx, dy):
    return F.all_to_all(dy, sent=ctx.got, got=ctx.sent, group=ctx.group)
