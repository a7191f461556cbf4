"""Kernels of circular and hyperbolic functions, called by the interpreter."""

from __future__ import annotations

import math

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, of_ufunc
from oneflow_lite.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
_BINARY = {
    "hypot": "hypot",
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1, infer=of_ufunc(_function))
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2, infer=of_ufunc(_function))


@register_kernel("atan2", infer=of_ufunc("arctan2"), reuses=("y", "x"))
def atan2(xp, y, x, *, out=None):
    return xp.arctan2(y, x, out=out)


@register_kernel("sinc", infer=in_c_order(like_first))
@in_float32
def sinc(xp, x):
    return xp.sinc(x)


@register_kernel("sinc_grad", infer=in_c_order(like_first))
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
