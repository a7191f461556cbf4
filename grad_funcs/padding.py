"""Gradient of pad: what was added is cut off, or added to what it was copied from."""

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("pad", saves="x.shape")
def pad_dx(F, ctx, dy):
    if ctx.mode != "constant":
        return F.pad_grad(dy, pad=ctx.pad, mode=ctx.mode)
    before = [0] * (len(ctx.x_shape) - len(ctx.pad) // 2) + list(ctx.pad[-2::-2])
    inner = tuple(slice(b, b + n) for b, n in zip(before, ctx.x_shape, strict=True))
    return F.getitem(dy, index=(*inner, ...))


@register_grad_func("pad_grad")
def pad_grad_ddy(F, ctx, ddx):
    return F.pad(ddx, pad=ctx.pad, mode=ctx.mode)
