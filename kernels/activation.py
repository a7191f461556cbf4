"""Kernels of activations; called by the interpreter.

The steps reuse their own temporaries, and work in `out` where it is given: on a large array a pass
over fresh memory costs as much as the arithmetic.
"""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.kernels.halves import pointwise
from oneflow_lite.kernels.infer_rules import like_first
from oneflow_lite.kernels.numerics import (
    at_least,
    at_most,
    clip,
    copied,
    erf,
    keep_where,
    log1p,
    quiet_overflow,
    select,
)
from oneflow_lite.ops.registry import register_kernel

# --- Smooth activations, each fused with its first derivative -------------------------------------

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_GELU_CUBIC = 0.044715
# Beyond, tanh(softplus(x)) is 1 even in float64, while the square of exp(x) is still finite.
_MISH_LINEAR = 20


def _gelu_scalar(approximate):
    if approximate == "tanh":
        a, b = _SQRT_2_OVER_PI, _SQRT_2_OVER_PI * _GELU_CUBIC
        return f"x * 0.5 * (1 + tanh(x * ({a} + {b} * x * x)))"
    return f"x * 0.5 * (1 + erf(x * {_SQRT_HALF}))"


def _gelu_grad_scalar(approximate):
    if approximate == "tanh":
        a, b = _SQRT_2_OVER_PI, _SQRT_2_OVER_PI * _GELU_CUBIC
        return (
            f"q = x * x; t = tanh(x * ({a} + {b} * q)); "
            f"dy * (0.5 * (1 + t) + x * 0.5 * (1 - t * t) * ({a} + {3 * b} * q))"
        )
    return (
        f"density = exp(-0.5 * x * x) * {_INV_SQRT_2PI}; "
        f"dy * (0.5 * (1 + erf(x * {_SQRT_HALF})) + x * density)"
    )


@register_kernel("gelu", infer=like_first, scalar=_gelu_scalar)
@quiet_overflow
@pointwise
def gelu(xp, x, *, approximate, out=None):
    """x Φ(x), with Φ = (1 + erf(x/√2))/2 or (1 + tanh(√(2/π)(x + 0.044715x³)))/2."""
    if approximate == "tanh":
        t = xp.multiply(x, x, out=out)
        t *= _SQRT_2_OVER_PI * _GELU_CUBIC
        t += _SQRT_2_OVER_PI
        t *= x
        t = xp.tanh(t, out=out)
    else:
        t = erf(xp, x * _SQRT_HALF, out=out)
    t += 1
    t *= 0.5
    t *= x
    return t


@register_kernel("gelu_grad", infer=like_first, scalar=_gelu_grad_scalar)
@quiet_overflow
@pointwise
def gelu_grad(xp, dy, x, *, approximate, out=None):
    """dy (Φ(x) + x Φ'(x))."""
    density = xp.asarray(x * x)  # of a 0-d array NumPy makes a scalar, which is no `out`
    if approximate == "tanh":
        t = xp.multiply(density, _SQRT_2_OVER_PI * _GELU_CUBIC, out=out)
        t += _SQRT_2_OVER_PI
        t *= x
        t = xp.tanh(t, out=out)
        # 2 Φ' = (1 - tanh²) times the derivative of tanh's argument
        density *= 3 * _SQRT_2_OVER_PI * _GELU_CUBIC
        density += _SQRT_2_OVER_PI
        density *= 1 - t * t
        density *= 0.5
    else:
        density *= -0.5
        xp.exp(density, out=density)
        density *= _INV_SQRT_2PI
        t = erf(xp, x * _SQRT_HALF, out=out)
    t += 1
    t *= 0.5
    density *= x
    t += density
    t *= dy
    return t


@register_kernel("silu", infer=like_first, scalar="x * sigmoid(x)")
@quiet_overflow
@pointwise
def silu(xp, x, *, out=None):
    # Where exp overflows, x / inf is the right answer, 0.
    t = xp.negative(x, out=out)
    t = xp.exp(t, out=out)
    t += 1
    return xp.divide(x, t, out=out)


@register_kernel("silu_grad", infer=like_first, scalar="s = sigmoid(x); dy * s * (1 + x * (1 - s))")
@quiet_overflow
@pointwise
def silu_grad(xp, dy, x, *, out=None):
    """dy σ (1 + x (1 - σ))."""
    # Where exp overflows, the reciprocal of inf is the right σ, 0.
    t = xp.negative(x, out=out)
    t = xp.exp(t, out=out)
    t += 1
    sigma = xp.reciprocal(t)
    t = xp.subtract(1, sigma, out=out)
    t *= x
    t += 1
    t *= sigma
    t *= dy
    return t


@register_kernel(
    "elu",
    infer=like_first,
    scalar="expm1(minimum(x, 0) * input_scale) * (scale * alpha) + maximum(x, 0) * scale",
)
@pointwise
def elu(xp, x, *, alpha, scale, input_scale, out=None):
    """scale x for x > 0, else scale alpha (exp(input_scale x) - 1): elu, selu and celu in one."""
    # min(x, 0) and max(x, 0) are added up: each is 0 where x has the other sign, and expm1 cannot
    # overflow.
    t = at_most(xp, x, 0, out=out)
    if input_scale != 1:
        t *= input_scale
    t = xp.expm1(t, out=out)
    if scale * alpha != 1:
        t *= scale * alpha
    rest = at_least(xp, x, 0)
    if scale != 1:
        rest *= scale
    t += rest
    return t


@register_kernel(
    "elu_grad",
    infer=like_first,
    scalar="e = exp(minimum(x, 0) * input_scale) * (scale * alpha * input_scale); "
    "where(x <= 0, e * dy, dy * scale)",
)
@pointwise
def elu_grad(xp, dy, x, *, alpha, scale, input_scale, out=None):
    t = at_most(xp, x, 0, out=out)
    if input_scale != 1:
        t *= input_scale
    t = xp.exp(t, out=out)
    if scale * alpha * input_scale != 1:
        t *= scale * alpha * input_scale
    t *= dy
    return select(xp, x <= 0, t, dy if scale == 1 else dy * scale, out=out)


@register_kernel(
    "softplus",
    infer=like_first,
    scalar="z = x * beta; where(z > threshold, x, (log1p(exp(-abs(z))) + maximum(z, 0)) / beta)",
)
@pointwise
def softplus(xp, x, *, beta, threshold, out=None):
    """log(1 + exp(beta x)) / beta, written so that exp cannot overflow; x past the threshold."""
    z = x * beta
    t = xp.abs(z, out=out)
    t = xp.negative(t, out=out)
    t = xp.exp(t, out=out)
    t = log1p(xp, t, out=out)
    t += at_least(xp, z, 0)
    t /= beta
    return select(xp, z > threshold, x, t, out=out)


@register_kernel(
    "softplus_grad",
    infer=like_first,
    scalar="z = x * beta; where(z > threshold, dy, dy / (1 + exp(-z)))",
)
@quiet_overflow
@pointwise
def softplus_grad(xp, dy, x, *, beta, threshold, out=None):
    """dy σ(beta x); dy past the threshold."""
    # Where exp overflows, dy / inf is the right answer, 0.
    z = x * beta
    t = xp.negative(z, out=out)
    t = xp.exp(t, out=out)
    t += 1
    t = xp.divide(dy, t, out=out)
    return select(xp, z > threshold, dy, t, out=out)


@register_kernel(
    "mish", infer=like_first, scalar="e = exp(minimum(x, 20)); n = e * (e + 2); x * (n / (n + 2))"
)
@pointwise
def mish(xp, x, *, out=None):
    """x tanh(log(1 + eˣ)), by tanh(log(1 + e)) = n/(n + 2) with n = e (e + 2)."""
    t = _tanh_softplus(xp, xp.exp(at_most(xp, x, _MISH_LINEAR)), out=out)
    t *= x
    return t


@register_kernel(
    "mish_grad",
    infer=like_first,
    scalar="e = exp(minimum(x, 20)); n = e * (e + 2); t = n / (n + 2); "
    "dy * (t + x * (e / (e + 1)) * (1 - t * t))",
)
@pointwise
def mish_grad(xp, dy, x, *, out=None):
    """dy (t + x σ(x) (1 - t²)), with t = tanh(softplus(x))."""
    e = at_most(xp, x, _MISH_LINEAR, out=out)
    e = xp.exp(e, out=out)
    t = _tanh_softplus(xp, e)
    e /= e + 1  # σ(x)
    e *= x
    e *= 1 - t * t
    e += t
    e *= dy
    return e


def _tanh_softplus(xp, e, out=None):
    n = xp.add(e, 2, out=out)
    n *= e
    n /= n + 2
    return n


@register_kernel("softsign", infer=like_first, scalar="x / (1 + abs(x))")
@pointwise
def softsign(xp, x, *, out=None):
    t = xp.abs(x, out=out)
    t += 1
    return xp.divide(x, t, out=out)


@register_kernel("logsigmoid", infer=like_first, scalar="minimum(x, 0) - log1p(exp(-abs(x)))")
@pointwise
def logsigmoid(xp, x, *, out=None):
    """-log(1 + exp(-x)), written so that exp cannot overflow."""
    t = xp.abs(x, out=out)
    t = xp.negative(t, out=out)
    t = xp.exp(t, out=out)
    t = log1p(xp, t, out=out)
    return xp.subtract(at_most(xp, x, 0), t, out=out)


# --- Activations made of straight pieces ----------------------------------------------------------

# A derivative is 0 or dy outside and inside some interval; which side an end belongs to, and what
# nan gives, is as in PyTorch (docs/subgradients.md).

# On a small array a ufunc takes half the time with a 0-d array of its dtype instead of a Python 0.
_ZERO = {np.dtype(code): np.zeros((), code) for code in "efdbhilqBHILQ"}


@register_kernel("relu", infer=like_first, reuses="x", scalar="maximum(x, 0)")
def relu(xp, x, *, out=None):
    return at_least(xp, x, 0, out=out)


@register_kernel("relu", device="cpu")
def relu_cpu(xp, x, *, out=None):
    return np.maximum(x, _ZERO[x.dtype], out=out) if x.size < 8192 else at_least(np, x, 0, out)


@register_kernel("relu_grad", infer=like_first, reuses=("dy", "y"), scalar="where(y == 0, 0, dy)")
def relu_grad(xp, dy, y, *, out=None):
    return keep_where(xp, ~(y <= 0), dy, out=out)  # unlike y > 0 it keeps dy at NaN


@register_kernel("relu_grad", device="cpu")
def relu_grad_cpu(xp, dy, y, *, out=None):
    zero = _ZERO[y.dtype]
    if y.size < 1024:  # y is never negative: where it is not 0, or nan, it counts as true
        kept = np.where(y, dy, zero)
        return kept if out is None else copied(kept, out)
    return keep_where(np, np.not_equal(y, zero), dy, out)


@register_kernel("leaky_relu", infer=like_first, scalar="where(x > 0, x, x * negative_slope)")
@pointwise
def leaky_relu(xp, x, *, negative_slope, out=None):
    if 0 < negative_slope <= 1:  # the larger of both lines is the result
        return xp.maximum(x, x * negative_slope, out=out)
    t = at_most(xp, x, 0, out=out)
    t *= negative_slope
    t += at_least(xp, x, 0)
    return t


@register_kernel(
    "leaky_relu_grad",
    infer=like_first,
    reuses=("dy", "x"),
    scalar="where(x > 0, dy, dy * negative_slope)",
)
def leaky_relu_grad(xp, dy, x, *, negative_slope, out=None):
    return select(xp, x > 0, dy, dy * negative_slope, out=out)


@register_kernel(
    "hardtanh",
    infer=like_first,
    reuses="x",
    scalar="minimum(maximum(x, min_val), max_val)",
)
def hardtanh(xp, x, *, min_val, max_val, out=None):
    return clip(xp, x, min_val, max_val, out=out)


@register_kernel(
    "hardtanh_grad",
    infer=like_first,
    reuses=("dy", "x"),
    scalar="where((x <= min_val) | (x >= max_val), 0, dy)",
)
def hardtanh_grad(xp, dy, x, *, min_val, max_val, out=None):
    outside = x <= min_val
    outside |= x >= max_val
    return keep_where(xp, ~outside, dy, out=out)


@register_kernel(
    "hardsigmoid", infer=like_first, reuses="x", scalar="minimum(maximum((x + 3) / 6, 0), 1)"
)
@pointwise
def hardsigmoid(xp, x, *, out=None):
    t = xp.add(x, 3, out=out)
    t /= 6
    return clip(xp, t, 0, 1, out=out)


@register_kernel("hardswish", infer=like_first, scalar="minimum(maximum((x + 3) / 6, 0), 1) * x")
@pointwise
def hardswish(xp, x, *, out=None):
    """x times hardsigmoid(x)."""
    t = hardsigmoid(xp, x, out=out)
    t *= x
    return t


@register_kernel(
    "hardswish_grad",
    infer=like_first,
    scalar="where(x >= 3, dy, where(x > -3, (x / 3 + 0.5) * dy, 0))",
)
@pointwise
def hardswish_grad(xp, dy, x, *, out=None):
    """dy (x/3 + 1/2), where x > -3; dy where x >= 3."""
    t = clip(xp, xp.divide(x, 3, out=out), -2, 1, out=out)  # values up to -1 are dropped below
    past = xp.trunc(t)  # 1 where x >= 3, and 0 from there to -3
    past *= -0.5
    past += 0.5
    t += past
    t *= dy
    return keep_where(xp, x > -3, t, out=out)


@register_kernel("hardshrink", infer=like_first, reuses="x", scalar="where(abs(x) <= lambd, 0, x)")
def hardshrink(xp, x, *, lambd, out=None):
    return shrink_grad(xp, x, x, lambd=lambd, out=out)


@register_kernel("softshrink", infer=like_first, scalar="x - minimum(maximum(x, -lambd), lambd)")
def softshrink(xp, x, *, lambd, out=None):
    return xp.subtract(x, clip(xp, x, -lambd, lambd, out=out), out=out)


@register_kernel(
    "shrink_grad", infer=like_first, reuses=("dy", "x"), scalar="where(abs(x) <= lambd, 0, dy)"
)
def shrink_grad(xp, dy, x, *, lambd, out=None):
    return keep_where(xp, ~(xp.abs(x) <= lambd), dy, out=out)


@register_kernel("threshold", infer=like_first, scalar="where(x <= threshold, value, x)")
def threshold(xp, x, *, threshold, value):
    return select(xp, x <= threshold, value, x)


@register_kernel(
    "threshold_grad", infer=like_first, reuses=("dy", "x"), scalar="where(x <= threshold, 0, dy)"
)
def threshold_grad(xp, dy, x, *, threshold, out=None):
    return keep_where(xp, ~(x <= threshold), dy, out=out)
