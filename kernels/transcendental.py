"""Kernels of exponentials, logarithms and what is made of them, called by the interpreter."""

from __future__ import annotations

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.numerics import erf as erf_of, quiet_overflow
from oneflow_lite.kernels.special_functions import special
from oneflow_lite.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "log2": "log2",
    "log10": "log10",
    "tanh": "tanh",
}
_BINARY = {
    "logaddexp": "logaddexp",
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1)
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2)


@register_kernel("tanh_grad")
def tanh_grad(xp, dy, y):
    # dy (1 - y²), with arrays alone: a Python scalar would double the cost on a small array.
    t = dy * y
    t *= y
    return dy - t


@register_kernel("sigmoid")
@quiet_overflow
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


@register_kernel("xlogy")
def xlogy(xp, x, y):
    # 0 log y is 0 for every y but nan: log 1 stands in where log y may not be finite.
    zero = (x == 0) & ~xp.isnan(y)
    return x * xp.log(xp.where(zero, 1, y))
