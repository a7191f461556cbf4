"""Arithmetic on arrays: sums, products, powers, rounding, extremes."""

import numpy as np

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.kernels.numerics import keep_where
from oneflow_lite.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "neg": "negative",
    "abs": "abs",
    "sign": "sign",
    "sqrt": "sqrt",
    "reciprocal": "reciprocal",
}
_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "maximum": "maximum",
    "minimum": "minimum",
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1)
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2)


@register_kernel("mul_scalar")
def mul_scalar(xp, x, *, factor):
    """Return x times a number of the dtype of x, as alpha in add(): nothing is kept of it."""
    return x * x.dtype.type(factor)


def _divided(op, function, x, y):
    """Divide; integers by 0 raise where NumPy would only warn (CuPy says nothing)."""
    if x.dtype.kind == "f":
        return function(x, y)
    try:
        with np.errstate(divide="raise"):
            return function(x, y)
    except FloatingPointError:
        raise bad_argument(
            ArgumentError,
            op,
            "other",
            expected="no zero among integers",
            got="a zero",
            mend="convert the tensors with .float()",
        ) from None


@register_kernel("floor_divide")
def floor_divide(xp, x, y):
    return _divided("floor_divide", xp.floor_divide, x, y)


@register_kernel("div_trunc")
def div_trunc(xp, x, y):
    if x.dtype.kind == "f":
        return xp.trunc(xp.divide(x, y))
    # trunc(x / y) without leaving the integers
    quotient = _divided("div", xp.floor_divide, x, y)
    return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)


@register_kernel("fmod")
def fmod(xp, x, y):
    return _divided("fmod", xp.fmod, x, y)


@register_kernel("remainder")
def remainder(xp, x, y):
    return _divided("remainder", xp.remainder, x, y)


@register_kernel("pow_integer")
def pow_integer(xp, x, y):
    if x.dtype.kind == "b":
        return x | ~y
    # x ** -n is 1 / x ** n without its fraction: 0, unless x is 1 or -1
    powers = xp.power(x, xp.where(y < 0, y & 1, y))
    return powers * ((y >= 0) | (xp.abs(x) == 1))


@register_kernel("pow_grad_exponent")
def pow_grad_exponent(xp, dz, x, y, z):
    # z log x, and 0 where x = 0 and y >= 0 (the limit, and PyTorch's choice)
    with np.errstate(all="ignore"):
        slope = z * xp.log(x)
    flat = (x == 0) & (y.real >= 0)
    if y.dtype.kind == "c":
        flat &= y.imag == 0
    return dz * xp.where(flat, xp.zeros((), z.dtype), slope)


@register_kernel("square")
def square(xp, x):
    return xp.multiply(x, x)


@register_kernel("rsqrt")
def rsqrt(xp, x):
    return xp.reciprocal(xp.sqrt(x))


@register_kernel("floor")
def floor(xp, x):
    return xp.floor(x) if x.dtype.kind == "f" else x.copy()


@register_kernel("ceil")
def ceil(xp, x):
    return xp.ceil(x) if x.dtype.kind == "f" else x.copy()


@register_kernel("trunc")
def trunc(xp, x):
    return xp.trunc(x) if x.dtype.kind == "f" else x.copy()


@register_kernel("frac")
def frac(xp, x):
    return x - xp.trunc(x)


@register_kernel("round")
def round(xp, x, *, decimals=0):
    if x.dtype.kind != "f":
        return x.copy()
    return xp.round(x, decimals)


@register_kernel("extreme_grad")
def extreme_grad(xp, dz, x, y, *, largest):
    # nothing where x loses, even of an infinite gradient; half where both are equal
    loses = (x < y) if largest else (x > y)
    kept = keep_where(xp, xp.logical_not(loses), dz)
    return kept * (1 - (x == y) * dz.dtype.type(0.5))


@register_kernel("clamp_min")
def clamp_min(xp, x, low):
    return xp.maximum(x, low)


@register_kernel("clamp_max")
def clamp_max(xp, x, high):
    return xp.minimum(x, high)


@register_kernel("clamp")
def clamp(xp, x, low, high):
    return xp.minimum(xp.maximum(x, low), high)


@register_kernel("mask_less")
def mask_less(xp, dy, x, y, *, equal):
    # nothing where x is larger, even of an infinite gradient
    return keep_where(xp, x <= y if equal else x < y, dy)


@register_kernel("where")
def where(xp, condition, x, y):
    return xp.where(condition, x, y)


@register_kernel("lerp")
def lerp(xp, x, end, weight):
    # From the nearer end, so that weight = 1 gives exactly `end`.
    difference = end - x
    near = x + weight * difference
    far = end - difference * (1 - weight)
    return xp.where(xp.abs(weight) < 0.5, near, far)


@register_kernel("nan_to_num")
def nan_to_num(xp, x, *, nan, posinf, neginf):
    return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


@register_kernel("mask_finite")
def mask_finite(xp, dy, x):
    if x.dtype.kind != "c":
        return dy * xp.isfinite(x)
    dx = dy.copy()
    dx.real *= xp.isfinite(x.real)
    dx.imag *= xp.isfinite(x.imag)
    return dx
