"""Gradients of views by size and strides: those of an element that was read twice add up."""

from oneflow_lite.autograd.rules.gradient_rules import OpExprGradFunction, register_grad_func


@register_grad_func("as_strided")
class AsStrided(OpExprGradFunction):
    """Keeps the geometry of x and of the view: an index does not say how x lies in memory."""

    def capture(self, state, inputs, outputs, attrs):
        (x,) = inputs
        state.geometry = {**attrs, "shape": x.shape, "strides": x.stride()}

    def apply(self, F, ctx, out_grads):
        return F.as_strided_grad(out_grads[0], **ctx.geometry)


def _geometry(ctx):
    names = ("size", "stride", "storage_offset", "shape", "strides")
    return {name: getattr(ctx, name) for name in names}


@register_grad_func("as_strided_grad")
def as_strided_grad_ddy(F, ctx, ddx):
    return F.as_strided_grad_grad(ddx, **_geometry(ctx))


@register_grad_func("as_strided_grad_grad")
def as_strided_grad_grad_dddx(F, ctx, ddy):
    return F.as_strided_grad(ddy, **_geometry(ctx))
