"""Gradients of putting tensors together: each gets its part of dy."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("cat", saves="xs.shape")
def cat_dxs(F, ctx, dy):
    grads = []
    start = 0
    for shape, needed in zip(ctx.xs_shape, ctx.needs_input_grad, strict=True):
        length = shape[ctx.dim]
        dx = F.narrow(dy, dim=ctx.dim, start=start, length=length) if needed else None
        grads.append(dx)
        start += length
    return tuple(grads)


@register_grad_func("stack")
def stack_dxs(F, ctx, dy):
    return tuple(
        F.select(dy, dim=ctx.dim, index=i) if needed else None
        for i, needed in enumerate(ctx.needs_input_grad)
    )
