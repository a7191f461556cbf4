"""Gradients of activations; the engine calls them."""

from __future__ import annotations

import math

from oneflow_lite.autograd.rules.forward_rules import piecewise_linear, register_parts
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.autograd.rules.zero import ZERO

# --- Smooth activations ---------------------------------------------------------------------------

# A first derivative is one fused kernel, <op>_grad. The second is written with elementary
# functions, which have derivatives of any order.

_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_GELU_CUBIC = 0.044715


@register_grad_func("gelu", saves="x")
def gelu(F, ctx, dy):
    return F.gelu_grad(dy, ctx.x, approximate=ctx.approximate)


@register_grad_func("gelu_grad", wrt="dy", saves="x")
def gelu_grad_ddy(F, ctx, dz):
    return F.gelu_grad(dz, ctx.x, approximate=ctx.approximate)


@register_grad_func("gelu_grad", wrt="x", saves="dy, x")
def gelu_grad_dx(F, ctx, dz):
    square = ctx.x * ctx.x
    if ctx.approximate == "tanh":
        # With u = √(2/π) (x + 0.044715 x³) and t = tanh(u):
        # gelu'' = (1 - t²) (u' + x u''/2 - x t u'²)
        cubic = _SQRT_2_OVER_PI * _GELU_CUBIC
        t = F.tanh(ctx.x * (square * cubic + _SQRT_2_OVER_PI))
        du = square * (3 * cubic) + _SQRT_2_OVER_PI
        second = (1 - t * t) * (square * (6 * cubic) + _SQRT_2_OVER_PI - ctx.x * t * du * du)
    else:
        second = F.exp(square * -0.5) * (2 - square) * _INV_SQRT_2PI
    return dz * ctx.dy * second


@register_grad_func("silu", saves="x")
def silu(F, ctx, dy):
    return F.silu_grad(dy, ctx.x)


@register_grad_func("silu_grad", wrt="dy", saves="x")
def silu_grad_ddy(F, ctx, dz):
    return F.silu_grad(dz, ctx.x)


@register_grad_func("silu_grad", wrt="x", saves="dy, x")
def silu_grad_dx(F, ctx, dz):
    # σ (1 - σ) (2 + x (1 - 2σ))
    sigma = F.sigmoid(ctx.x)
    return dz * ctx.dy * sigma * (1 - sigma) * (ctx.x * (1 - 2 * sigma) + 2)


@register_grad_func("elu", saves="x")
def elu(F, ctx, dy):
    return F.elu_grad(dy, ctx.x, alpha=ctx.alpha, scale=ctx.scale, input_scale=ctx.input_scale)


@register_grad_func("elu_grad", wrt="dy", saves="x")
def elu_grad_ddy(F, ctx, dz):
    return F.elu_grad(dz, ctx.x, alpha=ctx.alpha, scale=ctx.scale, input_scale=ctx.input_scale)


@register_grad_func("elu_grad", wrt="x", saves="dy, x")
def elu_grad_dx(F, ctx, dz):
    # Left of 0 the derivative is an exponential, its own derivative but for the factor.
    dx = F.elu_grad(
        dz * ctx.dy, ctx.x, alpha=ctx.alpha, scale=ctx.scale, input_scale=ctx.input_scale
    )
    return dx * (ctx.x < 0) * ctx.input_scale


@register_grad_func("softplus", saves="x")
def softplus(F, ctx, dy):
    return F.softplus_grad(dy, ctx.x, beta=ctx.beta, threshold=ctx.threshold)


@register_grad_func("softplus_grad", wrt="dy", saves="x")
def softplus_grad_ddy(F, ctx, dz):
    return F.softplus_grad(dz, ctx.x, beta=ctx.beta, threshold=ctx.threshold)


@register_grad_func("softplus_grad", wrt="x", saves="dy, x")
def softplus_grad_dx(F, ctx, dz):
    z = ctx.x * ctx.beta
    dx = F.sigmoid_grad(dz * ctx.dy, F.sigmoid(z))
    return dx * (z <= ctx.threshold) * ctx.beta


@register_grad_func("mish", saves="x")
def mish(F, ctx, dy):
    return F.mish_grad(dy, ctx.x)


@register_grad_func("mish_grad", wrt="dy", saves="x")
def mish_grad_ddy(F, ctx, dz):
    return F.mish_grad(dz, ctx.x)


@register_grad_func("mish_grad", wrt="x", saves="dy, x")
def mish_grad_dx(F, ctx, dz):
    # With t = tanh(softplus(x)) and t' = σ (1 - t²): mish'' = t' (2 + x (1 - σ - 2 t σ))
    sigma = F.sigmoid(ctx.x)
    t = F.tanh(F.softplus(ctx.x, beta=1.0, threshold=20.0))
    second = sigma * (1 - t * t) * (ctx.x * (1 - sigma - 2 * t * sigma) + 2)
    return dz * ctx.dy * second


@register_grad_func("softsign", saves="x")
def softsign(F, ctx, dy):
    # Divided twice: the square would overflow where the quotients do not.
    size = F.abs(ctx.x) + 1
    return dy / size / size


@register_grad_func("logsigmoid", saves="x")
def logsigmoid(F, ctx, dy):
    return dy * F.sigmoid(-ctx.x)


# --- Activations made of straight pieces ----------------------------------------------------------

# A <op>_grad is linear in dy and constant in x almost everywhere, so its gradient is itself, and
# ZERO for x.


@register_grad_func("relu", saves="y")
def relu(F, ctx, dy):
    return F.relu_grad(dy, ctx.y)


@register_grad_func("relu_grad", saves="y")
def relu_grad(F, ctx, dz):
    return F.relu_grad(dz, ctx.y), ZERO


@register_grad_func("leaky_relu", saves="x")
def leaky_relu(F, ctx, dy):
    return F.leaky_relu_grad(dy, ctx.x, negative_slope=ctx.negative_slope)


@register_grad_func("leaky_relu_grad", saves="x")
def leaky_relu_grad(F, ctx, dz):
    return F.leaky_relu_grad(dz, ctx.x, negative_slope=ctx.negative_slope), ZERO


@register_grad_func("hardtanh", saves="x")
def hardtanh(F, ctx, dy):
    return F.hardtanh_grad(dy, ctx.x, min_val=ctx.min_val, max_val=ctx.max_val)


@register_grad_func("hardtanh_grad", saves="x")
def hardtanh_grad(F, ctx, dz):
    return F.hardtanh_grad(dz, ctx.x, min_val=ctx.min_val, max_val=ctx.max_val), ZERO


@register_grad_func("hardsigmoid", saves="x")
def hardsigmoid(F, ctx, dy):
    return F.hardtanh_grad(dy, ctx.x, min_val=-3.0, max_val=3.0) / 6


@register_grad_func("hardswish", saves="x")
def hardswish(F, ctx, dy):
    return F.hardswish_grad(dy, ctx.x)


@register_grad_func("hardswish_grad", wrt="dy", saves="x")
def hardswish_grad_ddy(F, ctx, dz):
    return F.hardswish_grad(dz, ctx.x)


@register_grad_func("hardswish_grad", wrt="x", saves="dy, x")
def hardswish_grad_dx(F, ctx, dz):
    # The middle piece is a parabola.
    return F.hardtanh_grad(dz * ctx.dy, ctx.x, min_val=-3.0, max_val=3.0) / 3


@register_grad_func("hardshrink", saves="x")
def hardshrink(F, ctx, dy):
    return F.shrink_grad(dy, ctx.x, lambd=ctx.lambd)


@register_grad_func("softshrink", saves="x")
def softshrink(F, ctx, dy):
    return F.shrink_grad(dy, ctx.x, lambd=ctx.lambd)


@register_grad_func("shrink_grad", saves="x")
def shrink_grad(F, ctx, dz):
    return F.shrink_grad(dz, ctx.x, lambd=ctx.lambd), ZERO


@register_grad_func("threshold", saves="x")
def threshold(F, ctx, dy):
    return F.threshold_grad(dy, ctx.x, threshold=ctx.threshold)


@register_grad_func("threshold_grad", saves="x")
def threshold_grad(F, ctx, dz):
    return F.threshold_grad(dz, ctx.x, threshold=ctx.threshold), ZERO


piecewise_linear(
    *"relu relu_grad leaky_relu leaky_relu_grad hardtanh hardtanh_grad hardsigmoid".split(),
    *"hardshrink softshrink shrink_grad threshold threshold_grad".split(),
)


# --- Series: the same functions, put together from others -----------------------------------------


@register_parts("softplus_grad")
def softplus_grad_parts(F, dy, x, *, beta, threshold):
    z = x * beta
    return F.where(z > threshold, dy, dy * F.sigmoid(z))


@register_parts("elu_grad")
def elu_grad_parts(F, dy, x, *, alpha, scale, input_scale):
    left = F.exp(F.where(x > 0, 0.0, x) * input_scale) * (scale * alpha * input_scale)
    return F.where(x > 0, dy * scale, dy * left)


@register_parts("mish_grad")
def mish_grad_parts(F, dy, x):
    t = F.tanh(F.softplus(x, beta=1.0, threshold=20.0))
    return dy * (t + x * F.sigmoid(x) * (1 - t * t))
