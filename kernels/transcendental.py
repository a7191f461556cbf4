"""Kernels of exponentials, logarithms and what is made of them, called by the interpreter."""

from __future__ import annotations

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.numerics import erf as erf_of
from oneflow_lite.kernels.special_functions import special
from oneflow_lite.registry import register_kernel


@register_kernel("exp")
def exp(xp, x):
    return xp.exp(x)


@register_kernel("exp2")
def exp2(xp, x):
    return xp.exp2(x)


@register_kernel("expm1")
def expm1(xp, x):
    return xp.expm1(x)


@register_kernel("log")
def log(xp, x):
    return xp.log(x)


@register_kernel("log1p")
def log1p(xp, x):
    return xp.log1p(x)


@register_kernel("log2")
def log2(xp, x):
    return xp.log2(x)


@register_kernel("log10")
def log10(xp, x):
    return xp.log10(x)


@register_kernel("tanh")
def tanh(xp, x):
    return xp.tanh(x)


@register_kernel("tanh_grad")
def tanh_grad(xp, dy, y):
    # dy (1 - y²), with arrays alone: a Python scalar would double the cost on a small array.
    t = dy * y
    t *= y
    return dy - t


@register_kernel("sigmoid")
@in_float32
def sigmoid(xp, x):
    # Where exp overflows, the reciprocal of inf is the right answer, 0.
    t = xp.exp(-x)
    t += 1
    return xp.reciprocal(t)


@register_kernel("sigmoid_grad")
@in_float32
def sigmoid_grad(xp, dy, y):
    # dy y (1 - y)
    t = y * y
    t = y - t
    t *= dy
    return t


@register_kernel("erf")
@in_float32
def erf(xp, x):
    return erf_of(xp, x)


@register_kernel("erfc")
@in_float32
def erfc(xp, x):
    return special(xp).erfc(x)


@register_kernel("logaddexp")
def logaddexp(xp, x, y):
    return xp.logaddexp(x, y)


@register_kernel("xlogy")
def xlogy(xp, x, y):
    # 0 log y is 0 for every y but nan, also where log y is not finite.
    t = x * xp.log(y)
    zero = (x == 0) & ~xp.isnan(y)
    return xp.where(zero, 0, t)
