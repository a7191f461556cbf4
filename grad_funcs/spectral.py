"""Gradients of Fourier transforms: their adjoints, which are transforms the other way.

An adjoint is taken of dy as it is: the engine conjugates nothing around these rules, which would
cost two passes over memory for each transform.
"""

from oneflow_lite.autograd.rules.gradient_rules import OpExprGradFunction, register_grad_func


class Adjoint(OpExprGradFunction):
    """Base: keeps the attributes of the call and the entries along the last of its dimensions."""

    def capture(self, state, inputs, outputs, attrs):
        vars(state).update(attrs)
        state.n = inputs[0].shape[attrs["dim"][-1]] if attrs["dim"] else 1

    def conjugated(self):
        return self


@register_grad_func("fft_c2c")
class ComplexToComplex(Adjoint):
    def apply(self, F, ctx, out_grads):
        dim, normalization = ctx.dim, ctx.normalization
        return F.fft_c2c(
            out_grads[0], dim=dim, normalization=normalization, forward=not ctx.forward
        )


@register_grad_func("fft_r2c")
class RealToComplex(Adjoint):
    def apply(self, F, ctx, out_grads):
        return F.fft_r2c_grad(out_grads[0], dim=ctx.dim, n=ctx.n, normalization=ctx.normalization)


@register_grad_func("fft_r2c_grad")
def fft_r2c_grad_ddy(F, ctx, ddx):
    return F.fft_r2c(ddx, dim=ctx.dim, normalization=ctx.normalization)


@register_grad_func("fft_c2r")
def fft_c2r_dx(F, ctx, dy):
    return F.fft_c2r_grad(dy, dim=ctx.dim, normalization=ctx.normalization)


@register_grad_func("fft_c2r_grad")
class RealToComplexOfBoth(Adjoint):
    def apply(self, F, ctx, out_grads):
        return F.fft_c2r(out_grads[0], dim=ctx.dim, n=ctx.n, normalization=ctx.normalization)
