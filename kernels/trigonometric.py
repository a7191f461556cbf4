"""Kernels of circular and hyperbolic functions, called by the interpreter."""

from __future__ import annotations

import math

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.registry import register_kernel


@register_kernel("sin")
def sin(xp, x):
    return xp.sin(x)


@register_kernel("cos")
def cos(xp, x):
    return xp.cos(x)


@register_kernel("tan")
def tan(xp, x):
    return xp.tan(x)


@register_kernel("asin")
def asin(xp, x):
    return xp.arcsin(x)


@register_kernel("acos")
def acos(xp, x):
    return xp.arccos(x)


@register_kernel("atan")
def atan(xp, x):
    return xp.arctan(x)


@register_kernel("atan2")
def atan2(xp, y, x):
    return xp.arctan2(y, x)


@register_kernel("hypot")
def hypot(xp, x, y):
    return xp.hypot(x, y)


@register_kernel("sinh")
def sinh(xp, x):
    return xp.sinh(x)


@register_kernel("cosh")
def cosh(xp, x):
    return xp.cosh(x)


@register_kernel("asinh")
def asinh(xp, x):
    return xp.arcsinh(x)


@register_kernel("acosh")
def acosh(xp, x):
    return xp.arccosh(x)


@register_kernel("atanh")
def atanh(xp, x):
    return xp.arctanh(x)


@register_kernel("sinc")
@in_float32
def sinc(xp, x):
    return xp.sinc(x)


@register_kernel("sinc_grad")
@in_float32
def sinc_grad(xp, dy, x, *, order):
    """dy times the derivative of sin(πx)/(πx) of this order (at least 1).

    With t = πx and f(t) = sin(t)/t, differentiating t f = sin(t) n times gives
    t fⁿ + n fⁿ⁻¹ = sinⁿ(t), a recurrence that loses digits where |t| < n; there Taylor's series
    fⁿ(t) = Σ (-1)ᵏ t²ᵏ⁻ⁿ / ((2k-n)! (2k+1)), 2k ≥ n, is exact.
    """
    t = x * math.pi
    near = abs(t) < order + 1
    far_t = xp.where(near, 1, t)
    sine, cosine = xp.sin(far_t), xp.cos(far_t)
    far = sine / far_t
    for n in range(1, order + 1):
        sine, cosine = cosine, -sine
        far = (sine - n * far) / far_t

    near_t = xp.where(near, t, 0)
    square = near_t * near_t
    taylor = xp.zeros_like(square)
    first = (order + 1) // 2
    for k in reversed(range(first, first + 12 + 2 * order)):
        power = 2 * k - order
        # A term over the one before it: t² / ((power + 1)(power + 2)), and its own 1 / (2k + 1).
        taylor *= square / ((power + 1) * (power + 2))
        taylor += (-1) ** k / (2 * k + 1)
    if order % 2:
        taylor *= near_t
    return dy * xp.where(near, taylor, far) * math.pi**order
