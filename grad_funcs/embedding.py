"""Gradient of embedding: the rows' gradients summed at the rows that were looked up."""

from oneflow_lite.autograd.grad_function import register_grad_func


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
