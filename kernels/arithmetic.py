"""Arithmetic on arrays: sums, products, powers, rounding, extremes."""

import numpy as np

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
    "floor_divide": "floor_divide",
    "pow": "power",
    "fmod": "fmod",
    "remainder": "remainder",
    "maximum": "maximum",
    "minimum": "minimum",
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1)
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2)


@register_kernel("div_trunc")
def div_trunc(xp, x, y):
    if x.dtype.kind in "iu":
        # trunc(x / y) without leaving the integers
        quotient = xp.floor_divide(x, y)
        return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)
    return xp.trunc(xp.divide(x, y))


@register_kernel("pow_grad_exponent")
def pow_grad_exponent(xp, dz, x, y, z):
    # z log x, and 0 where x = 0 and y >= 0 (the limit, and PyTorch's choice)
    with np.errstate(all="ignore"):
        slope = z * xp.log(x)
    return dz * xp.where((x == 0) & (y.real >= 0), xp.zeros((), z.dtype), slope)


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
    # the whole gradient where x wins, half of it where both are equal
    wins = (x > y) if largest else (x < y)
    share = wins.astype(dz.dtype)
    share += (x == y) * dz.dtype.type(0.5)
    return dz * share


@register_kernel("clamp_min")
def clamp_min(xp, x, low):
    return xp.maximum(x, low)


@register_kernel("clamp_max")
def clamp_max(xp, x, high):
    return xp.minimum(x, high)


@register_kernel("mask_at_least")
def mask_at_least(xp, dy, x, low):
    return dy * (x >= low)


@register_kernel("mask_at_most")
def mask_at_most(xp, dy, x, high):
    return dy * (x <= high)


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
    return dy * xp.isfinite(x)


@register_kernel("conj")
def conj(xp, x):
    return xp.conj(x) if x.dtype.kind == "c" else x.copy()


@register_kernel("angle")
def angle(xp, x):
    return xp.angle(x).astype(x.real.dtype, copy=False)


@register_kernel("complex")
def complex(xp, real, imag):
    out = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), (real[..., None][:0] * 1j).dtype)
    out.real = real
    out.imag = imag
    return out
