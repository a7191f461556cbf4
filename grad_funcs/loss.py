"""Gradients of losses."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("nll_loss", wrt="x", saves="x.shape, target, weight")
def nll_loss_dx(F, ctx, dy):
    return F.nll_loss_grad(
        dy,
        ctx.target,
        ctx.weight,
        shape=ctx.x_shape,
        ignore_index=ctx.ignore_index,
        reduction=ctx.reduction,
    )


@register_grad_func("nll_loss_grad", wrt="dy", saves="target, weight")
def nll_loss_grad_ddy(F, ctx, d):
    # The loss is linear in its input: the gradient's adjoint is the loss itself.
    return F.nll_loss(
        d, ctx.target, ctx.weight, ignore_index=ctx.ignore_index, reduction=ctx.reduction
    )


@register_grad_func("huber", saves="x")
def huber_grad(F, ctx, dy):
    return F.huber_grad(dy, ctx.x, delta=ctx.delta)


@register_grad_func("huber_grad", wrt="dy", saves="x")
def huber_grad_ddy(F, ctx, d):
    return F.huber_grad(d, ctx.x, delta=ctx.delta)


@register_grad_func("huber_grad", wrt="x", saves="dy, x")
def huber_grad_dx(F, ctx, d):
    return d * ctx.dy * (F.abs(ctx.x) < ctx.delta)


@register_grad_func("binary_cross_entropy", wrt="x", saves="x, target")
def binary_cross_entropy_dx(F, ctx, dy):
    return dy * (ctx.x - ctx.target) / F.clamp_min((1 - ctx.x) * ctx.x, 1e-12)


@register_grad_func("binary_cross_entropy", wrt="target", saves="x")
def binary_cross_entropy_dtarget(F, ctx, dy):
    return dy * (F.log1p(-ctx.x) - F.log(ctx.x))


@register_grad_func("bce_with_logits", wrt="x", saves="x, target")
def bce_with_logits_dx(F, ctx, dy):
    return dy * (F.sigmoid(ctx.x) - ctx.target)


@register_grad_func("bce_with_logits", wrt="target", saves="x")
def bce_with_logits_dtarget(F, ctx, dy):
    return -dy * ctx.x


@register_grad_func("least_variance")
def least_variance_grad(F, ctx, dy):
    return dy  # also where eps is larger, as in PyTorch
