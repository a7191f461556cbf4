"""Gradients of embedding and embedding_bag: summed at the rows that were looked up."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("embedding", wrt="weight", saves="x, weight.shape")
def embedding_dweight(F, ctx, dy):
    if ctx.padding_idx is not None or ctx.scale_grad_by_freq:
        dy = dy * F.embedding_scale(
            dy,
            ctx.x,
            padding_idx=ctx.padding_idx,
            scale_grad_by_freq=ctx.scale_grad_by_freq,
            rows=ctx.weight_shape[0],
        )
    return F.getitem_advanced_grad(dy, ctx.x, dims=(0,), shape=ctx.weight_shape)


@register_grad_func("embedding_scale", wrt="dy")
def embedding_scale_ddy(F, ctx, dscale):
    return None  # dy gives its dtype alone


# A bag's sum is linear in the rows and in the coefficients: three ops, each the others' gradient.


@register_grad_func(
    "embedding_bag_sum", wrt="weight", saves="coefficients, indices, offsets, weight.shape"
)
def embedding_bag_dweight(F, ctx, dy):
    coefficients, rows = ctx.coefficients, ctx.weight_shape[0]
    if ctx.scale_grad_by_freq:
        scale = F.embedding_scale(
            dy, ctx.indices, padding_idx=None, scale_grad_by_freq=True, rows=rows
        )
        scale = F.reshape(scale, shape=(-1,))
        coefficients = scale if coefficients is None else coefficients * scale
    return F.embedding_bag_sum_grad(dy, coefficients, ctx.indices, ctx.offsets, rows=rows)


@register_grad_func("embedding_bag_sum", wrt="coefficients", saves="weight, indices, offsets")
def embedding_bag_dcoefficients(F, ctx, dy):
    return F.embedding_bag_sum_dots(dy, ctx.weight, ctx.indices, ctx.offsets)


@register_grad_func("embedding_bag_sum_grad", wrt="dy", saves="coefficients, indices, offsets")
def embedding_bag_sum_grad_ddy(F, ctx, d):
    return F.embedding_bag_sum(
        d, ctx.coefficients, ctx.indices, ctx.offsets, scale_grad_by_freq=False
    )


@register_grad_func("embedding_bag_sum_grad", wrt="coefficients", saves="dy, indices, offsets")
def embedding_bag_sum_grad_dcoefficients(F, ctx, d):
    return F.embedding_bag_sum_dots(ctx.dy, d, ctx.indices, ctx.offsets)


@register_grad_func("embedding_bag_sum_dots", wrt="dy", saves="weight, indices, offsets")
def embedding_bag_sum_dots_ddy(F, ctx, d):
    return F.embedding_bag_sum(ctx.weight, d, ctx.indices, ctx.offsets, scale_grad_by_freq=False)


@register_grad_func(
    "embedding_bag_sum_dots", wrt="weight", saves="dy, indices, offsets, weight.shape"
)
def embedding_bag_sum_dots_dweight(F, ctx, d):
    return F.embedding_bag_sum_grad(ctx.dy, d, ctx.indices, ctx.offsets, rows=ctx.weight_shape[0])


@register_grad_func("embedding_bag_coefficients")
def embedding_bag_coefficients_grad(F, ctx, dy):
    return None, None, None  # the weight gives its dtype alone
