"""Kernels of exponentials and logarithms, circular and hyperbolic functions."""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.kernels.halves import in_float32, pointwise
from oneflow_lite.kernels.infer_rules import broadcast, in_c_order, like_first, of_ufunc
from oneflow_lite.kernels.numerics import erf as erf_of, quiet_overflow
from oneflow_lite.kernels.special_functions import special
from oneflow_lite.ops.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "tanh": "tanh",
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
    "logaddexp": "logaddexp",
    "logaddexp2": "logaddexp2",
    "hypot": "hypot",
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1, infer=of_ufunc(_function))
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2, infer=of_ufunc(_function))

# --- Exponentials and logarithms ------------------------------------------------------------------


@register_kernel("log1p", infer=of_ufunc("log1p"), reuses="x", scalar="log1p(x)")
def log1p(xp, x, *, out=None):
    if x.dtype.kind != "c":
        return xp.log1p(x, out=out)
    # log|1 + z| is log1p(|1 + z|² - 1)/2; near 0 NumPy's loses the digits that 1 + z rounds away.
    real, imag = x.real, x.imag
    near = xp.abs(x) < 0.5
    small = xp.where(near, x, 0)
    rest = small.real * (2 + small.real) + small.imag * small.imag
    inner = xp.where(rest == 0, small.real, xp.log1p(rest) / 2)  # which keeps -0.0
    with np.errstate(divide="ignore"):  # the pole at -1
        size = xp.where(near, inner, xp.log(xp.hypot(1 + real, imag)))
    y = xp.empty_like(x) if out is None else out
    y.real, y.imag = size, xp.arctan2(imag, 1 + real)
    return y


@register_kernel("tanh_grad", infer=like_first, scalar="dy - dy * y * y")
def tanh_grad(xp, dy, y, *, out=None):
    # dy (1 - y²), with arrays alone: a Python scalar would double the cost on a small array.
    t = xp.multiply(dy, y, out=out)
    t *= y
    return xp.subtract(dy, t, out=out)


@register_kernel("sigmoid", infer=like_first, reuses="x", scalar="sigmoid(x)")
@quiet_overflow
@pointwise
def sigmoid(xp, x, *, out=None):
    # Where exp overflows, the reciprocal of inf is the right answer, 0.
    t = xp.negative(x, out=out)
    t = xp.exp(t, out=out)
    t += 1
    return xp.reciprocal(t, out=out)


@register_kernel("sigmoid_grad", infer=like_first, scalar="(y - y * y) * dy")
@pointwise
def sigmoid_grad(xp, dy, y, *, out=None):
    # dy y (1 - y)
    t = xp.multiply(y, y, out=out)
    t = xp.subtract(y, t, out=out)
    t *= dy
    return t


@register_kernel("erf", infer=like_first, scalar="erf(x)")
@pointwise
def erf(xp, x, *, out=None):
    return erf_of(xp, x, out=out)


@register_kernel("erfc", infer=like_first, reuses="x")
@pointwise
def erfc(xp, x, *, out=None):
    return special(xp).erfc(x, out=out)


@register_kernel("xlogy", infer=broadcast, reuses=("x", "y"))
def xlogy(xp, x, y, *, out=None):
    # 0 log y is 0 for every y but nan: log 1 stands in where log y may not be finite.
    zero = (x == 0) & ~xp.isnan(y)
    return xp.multiply(x, xp.log(xp.where(zero, 1, y)), out=out)


# --- Circular and hyperbolic functions ------------------------------------------------------------


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
