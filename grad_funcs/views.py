"""Gradients of writes through views: the region that was written gets its gradient from the view.

All of them only move real numbers. In PyTorch's convention, where the gradient of z = a + ib is
dL/da + i dL/db, so do their gradients, also through `real` and `imag`: nothing is conjugated.
"""

from oneflow_lite.autograd.rules.gradient_rules import OpExprGradFunction, register_grad_func


class MovesRealNumbers(OpExprGradFunction):
    """Base: the same gradient function serves complex outputs."""

    def capture(self, state, inputs, outputs, attrs):
        state.chain, state.order = attrs["chain"], attrs["order"]

    def conjugated(self):
        return self


@register_grad_func("copy_slices")
class CopySlices(MovesRealNumbers):
    def apply(self, F, ctx, out_grads):
        (dy,) = out_grads
        dbase = dvalue = None
        if ctx.needs_input_grad[0]:
            dbase = F.copy_slices(dy, None, chain=ctx.chain, order=ctx.order)
        if ctx.needs_input_grad[1]:
            dvalue = F.take_slices(dy, chain=ctx.chain, order=ctx.order)
        return dbase, dvalue


@register_grad_func("take_slices")
class TakeSlices(MovesRealNumbers):
    def capture(self, state, inputs, outputs, attrs):
        MovesRealNumbers.capture(self, state, inputs, outputs, attrs)
        x = inputs[0]._data
        state.shape, state.dtype = x.shape, x.dtype

    def apply(self, F, ctx, out_grads):
        geometry = {"shape": ctx.shape, "dtype": ctx.dtype}
        return F.take_slices_grad(out_grads[0], chain=ctx.chain, order=ctx.order, **geometry)


@register_grad_func("take_slices_grad")
class TakeSlicesGrad(MovesRealNumbers):
    def apply(self, F, ctx, out_grads):
        return F.take_slices(out_grads[0], chain=ctx.chain, order=ctx.order)
