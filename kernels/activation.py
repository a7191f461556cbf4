"""Kernels of smooth activations, each fused with its first derivative; called by the interpreter.

The steps reuse their own temporaries: on a large array a pass over fresh memory costs as much as
the arithmetic.
"""

from __future__ import annotations

import math

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.numerics import at_least, at_most, erf, quiet_overflow, select
from oneflow_lite.registry import register_kernel

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_GELU_CUBIC = 0.044715
# Beyond, tanh(softplus(x)) is 1 even in float64, while the square of exp(x) is still finite.
_MISH_LINEAR = 20


@register_kernel("gelu")
@quiet_overflow
@in_float32
def gelu(xp, x, *, approximate):
    """x Φ(x), with Φ = (1 + erf(x/√2))/2 or (1 + tanh(√(2/π)(x + 0.044715x³)))/2."""
    if approximate == "tanh":
        t = x * x
        t *= _SQRT_2_OVER_PI * _GELU_CUBIC
        t += _SQRT_2_OVER_PI
        t *= x
        t = xp.tanh(t)
    else:
        t = erf(xp, x * _SQRT_HALF)
    t += 1
    t *= 0.5
    t *= x
    return t


@register_kernel("gelu_grad")
@quiet_overflow
@in_float32
def gelu_grad(xp, dy, x, *, approximate):
    """dy (Φ(x) + x Φ'(x))."""
    density = x * x
    if approximate == "tanh":
        t = density * (_SQRT_2_OVER_PI * _GELU_CUBIC)
        t += _SQRT_2_OVER_PI
        t *= x
        t = xp.tanh(t)
        # 2 Φ' = (1 - tanh²) times the derivative of tanh's argument
        density *= 3 * _SQRT_2_OVER_PI * _GELU_CUBIC
        density += _SQRT_2_OVER_PI
        density *= 1 - t * t
        density *= 0.5
    else:
        density *= -0.5
        density = xp.exp(density)
        density *= _INV_SQRT_2PI
        t = erf(xp, x * _SQRT_HALF)
    t += 1
    t *= 0.5
    density *= x
    t += density
    t *= dy
    return t


@register_kernel("silu")
@quiet_overflow
@in_float32
def silu(xp, x):
    # Where exp overflows, x / inf is the right answer, 0.
    t = xp.exp(-x)
    t += 1
    return x / t


@register_kernel("silu_grad")
@quiet_overflow
@in_float32
def silu_grad(xp, dy, x):
    """dy σ (1 + x (1 - σ))."""
    t = xp.exp(-x)
    t += 1
    sigma = xp.reciprocal(t)
    t = 1 - sigma
    t *= x
    t += 1
    t *= sigma
    t *= dy
    return t


@register_kernel("elu")
@in_float32
def elu(xp, x, *, alpha, scale, input_scale):
    """scale x for x > 0, else scale alpha (exp(input_scale x) - 1): elu, selu and celu in one."""
    t = at_most(xp, x, 0)
    t *= input_scale
    t = xp.expm1(t)
    t *= scale * alpha
    rest = at_least(xp, x, 0)
    rest *= scale
    t += rest
    return t


@register_kernel("elu_grad")
@in_float32
def elu_grad(xp, dy, x, *, alpha, scale, input_scale):
    t = at_most(xp, x, 0)
    t *= input_scale
    t = xp.exp(t)
    t *= scale * alpha * input_scale
    t *= dy
    return select(xp, x <= 0, t, dy * scale)


@register_kernel("softplus")
@in_float32
def softplus(xp, x, *, beta, threshold):
    """log(1 + exp(beta x)) / beta, written so that exp cannot overflow; x past the threshold."""
    z = x * beta
    t = -abs(z)
    t = xp.exp(t)
    t = xp.log1p(t)
    t += at_least(xp, z, 0)
    t /= beta
    return select(xp, z > threshold, x, t)


@register_kernel("softplus_grad")
@quiet_overflow
@in_float32
def softplus_grad(xp, dy, x, *, beta, threshold):
    """dy σ(beta x); dy past the threshold."""
    z = x * beta
    t = xp.exp(-z)
    t += 1
    return select(xp, z > threshold, dy, dy / t)


@register_kernel("mish")
@in_float32
def mish(xp, x):
    """x tanh(log(1 + eˣ)), by tanh(log(1 + e)) = n/(n + 2) with n = e (e + 2)."""
    t = _tanh_softplus(xp.exp(at_most(xp, x, _MISH_LINEAR)))
    t *= x
    return t


@register_kernel("mish_grad")
@in_float32
def mish_grad(xp, dy, x):
    """dy (t + x σ(x) (1 - t²)), with t = tanh(softplus(x))."""
    e = xp.exp(at_most(xp, x, _MISH_LINEAR))
    t = _tanh_softplus(e)
    e /= e + 1  # σ(x)
    e *= x
    e *= 1 - t * t
    e += t
    e *= dy
    return e


def _tanh_softplus(e):
    n = e + 2
    n *= e
    n /= n + 2
    return n


@register_kernel("softsign")
@in_float32
def softsign(xp, x):
    t = abs(x)
    t += 1
    return x / t


@register_kernel("logsigmoid")
@in_float32
def logsigmoid(xp, x):
    """-log(1 + exp(-x)), written so that exp cannot overflow."""
    t = -abs(x)
    t = xp.exp(t)
    t = xp.log1p(t)
    return at_most(xp, x, 0) - t
