"""Arithmetic on arrays: sums, products, powers, rounding, extremes."""

import numpy as np

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.kernels.infer_rules import (
    broadcast,
    broadcast_to_last,
    in_c_order,
    like_first,
    of_ufunc,
)
from oneflow_lite.kernels.numerics import copied, keep_where, select_if_quicker
from oneflow_lite.ops.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "neg": "negative",
    "abs": "abs",
    "sqrt": "sqrt",
    "reciprocal": "reciprocal",
}
_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "fmax": "fmax",
    "fmin": "fmin",
    "copysign": "copysign",
    "nextafter": "nextafter",
    "gcd": "gcd",
    "lcm": "lcm",
}
_LINEAR = {"neg": "x", "add": "x+y", "sub": "x+y", "mul": "x y", "div": "x"}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, 1, of_ufunc(_function), _LINEAR.get(_op))
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, 2, of_ufunc(_function), _LINEAR.get(_op))


@register_kernel("pow", infer=of_ufunc("power"), reuses=("x", "y"), scalar="pow(x, y)")
def pow(xp, x, y, *, out=None):
    """Return x to the y. Squares and cubes are products: np.power takes ten times as long."""
    array = np.ndarray  # rules call this with numbers, too
    if type(x) is array and x.dtype.kind == "f" and not (type(y) is array and y.ndim):
        if y == 2:
            return np.multiply(x, x, out=out)
        if y == 3:
            return np.multiply(x * x, x, out=out)
    return xp.power(x, y, out=out)


@register_kernel("sign", infer=in_c_order(like_first), reuses="x")
def sign(xp, x, *, out=None):
    """Return -1, 0 or 1: 0 of nan, as PyTorch does."""
    if x.dtype.kind == "b":
        return copied(x, out)
    y = xp.sign(x, out=out)
    if x.dtype.kind == "f":
        y = xp.asarray(y)  # NumPy answers a 0-d array with a scalar, which copyto cannot write
        xp.copyto(y, 0, where=y != y)
    return y


@register_kernel("mul_scalar", infer=like_first, reuses="x", scalar="x * factor", linear="x")
def mul_scalar(xp, x, *, factor, out=None):
    """Return x times `factor` in the dtype of x, as alpha in add().

    The factor is an attribute: no array of it is made, and none is saved for the gradient.
    """
    return xp.multiply(x, x.dtype.type(factor), out=out)


def _divided(op, function, x, y, out):
    """Divide; integers by 0 raise where NumPy would only warn (CuPy says nothing)."""
    if x.dtype.kind == "f":
        return function(x, y, out=out)
    try:
        with np.errstate(divide="raise"):
            return function(x, y, out=out)
    except FloatingPointError:
        raise arg_error(
            op,
            "other",
            expected="no zero among integers",
            got="a zero",
            hint="convert the tensors with .float()",
            kind=ArgumentError,
        ) from None


@register_kernel("floor_divide", infer=of_ufunc("floor_divide"), reuses=("x", "y"))
def floor_divide(xp, x, y, *, out=None):
    return _divided("floor_divide", xp.floor_divide, x, y, out)


@register_kernel("div_trunc", infer=broadcast_to_last, reuses=("x", "y"))
def div_trunc(xp, x, y, *, out=None):
    if x.dtype.kind == "f":
        return xp.trunc(xp.divide(x, y, out=out), out=out)
    # floor(x / y), and 1 more where a negative quotient was rounded: no integer becomes a float,
    # which could not hold all of int64.
    quotient = _divided("div", xp.floor_divide, x, y, None)
    rest = ((quotient < 0) & (quotient * y != x)).astype(x.dtype)
    return xp.add(quotient, rest, out=out)


@register_kernel("fmod", infer=of_ufunc("fmod"), reuses=("x", "y"))
def fmod(xp, x, y, *, out=None):
    return _divided("fmod", xp.fmod, x, y, out)


@register_kernel("remainder", infer=of_ufunc("remainder"), reuses=("x", "y"))
def remainder(xp, x, y, *, out=None):
    return _divided("remainder", xp.remainder, x, y, out)


@register_kernel("pow_integer", infer=broadcast_to_last, reuses=("x", "y"))
def pow_integer(xp, x, y, *, out=None):
    if x.dtype.kind == "b":  # only False ** True is False
        return xp.bitwise_or(x, ~y, out=out)
    # x ** -n is 1 / x ** n without its fraction: 0, unless x is 1 or -1
    powers = xp.power(x, xp.where(y < 0, y & 1, y))
    return xp.multiply(powers, (y >= 0) | (xp.abs(x) == 1), out=out)


@register_kernel("pow_grad_exponent", infer=broadcast_to_last, reuses=("dz", "x", "y", "z"))
def pow_grad_exponent(xp, dz, x, y, z, *, out=None):
    # z log x, and 0 where x = 0 and y >= 0 (the limit, and PyTorch's choice)
    with np.errstate(all="ignore"):
        slope = z * xp.log(x)
    flat = (x == 0) & (y.real >= 0)
    if y.dtype.kind == "c":
        flat &= y.imag == 0
    return xp.multiply(dz, xp.where(flat, xp.zeros((), z.dtype), slope), out=out)


@register_kernel("square", infer=like_first, reuses="x", scalar="x * x")
def square(xp, x, *, out=None):
    return xp.multiply(x, x, out=out)


@register_kernel("rsqrt", infer=of_ufunc("sqrt"), reuses="x", scalar="1 / sqrt(x)")
def rsqrt(xp, x, *, out=None):
    return xp.reciprocal(xp.sqrt(x, out=out), out=out)


@register_kernel("floor", infer=in_c_order(like_first), reuses="x")
def floor(xp, x, *, out=None):
    return xp.floor(x, out=out) if x.dtype.kind == "f" else copied(x, out)


@register_kernel("ceil", infer=in_c_order(like_first), reuses="x")
def ceil(xp, x, *, out=None):
    return xp.ceil(x, out=out) if x.dtype.kind == "f" else copied(x, out)


@register_kernel("trunc", infer=in_c_order(like_first), reuses="x")
def trunc(xp, x, *, out=None):
    return xp.trunc(x, out=out) if x.dtype.kind == "f" else copied(x, out)


@register_kernel("frac", infer=like_first)
def frac(xp, x, *, out=None):
    return xp.subtract(x, xp.trunc(x, out=out), out=out)


@register_kernel("round", infer=in_c_order(like_first))
def round(xp, x, *, decimals=0, out=None):
    if x.dtype.kind != "f":
        return copied(x, out)
    return xp.round(x, decimals, out)


@register_kernel(
    "extreme_grad",
    infer=in_c_order(like_first),
    reuses=("dz", "x", "y"),
    scalar=lambda largest: f"where(x {'<' if largest else '>'} y, 0, where(x == y, dz * 0.5, dz))",
)
def extreme_grad(xp, dz, x, y, *, largest, out=None):
    # nothing where x loses, even of an infinite gradient; half where both are equal
    loses = (x < y) if largest else (x > y)
    share = 1 - (x == y) * dz.dtype.type(0.5)
    kept = keep_where(xp, xp.logical_not(loses), dz, out=out)
    kept *= share
    return kept


@register_kernel(
    "clamp_min", infer=of_ufunc("maximum"), reuses=("x", "low"), scalar="maximum(x, low)"
)
def clamp_min(xp, x, low, *, out=None):
    return xp.maximum(x, low, out=out)


@register_kernel(
    "clamp_max", infer=of_ufunc("minimum"), reuses=("x", "high"), scalar="minimum(x, high)"
)
def clamp_max(xp, x, high, *, out=None):
    return xp.minimum(x, high, out=out)


@register_kernel(
    "clamp", infer=broadcast, reuses=("x", "low"), scalar="minimum(maximum(x, low), high)"
)
def clamp(xp, x, low, high, *, out=None):
    return xp.minimum(xp.maximum(x, low, out=out), high, out=out)


@register_kernel(
    "mask_less",
    infer=in_c_order(like_first),
    reuses=("dy", "x", "y"),
    scalar=lambda equal: f"where(x {'<=' if equal else '<'} y, dy, 0)",
)
def mask_less(xp, dy, x, y, *, equal, out=None):
    # nothing where x is larger, even of an infinite gradient
    return keep_where(xp, x <= y if equal else x < y, dy, out=out)


@register_kernel("flat_in", infer=in_c_order(like_first), reuses="x", scalar="x", linear="x")
def flat_in(xp, x, other, *, out=None):
    """x, as a function of another tensor by which the derivative is zero"""
    return copied(x, out)


@register_kernel(
    "where",
    infer=broadcast_to_last,
    reuses=("x", "y"),
    scalar="where(condition, x, y)",
    linear="x+y",
)
def where(xp, condition, x, y, *, out=None):
    chosen = select_if_quicker(xp, condition, x, y, out)
    if chosen is not None:
        return chosen
    if out is None:
        if xp is np and type(y) is np.ndarray and not (condition.ndim or np.ndim(x) or condition):
            return y.copy()  # a quarter of the time of NumPy's where
        return xp.where(condition, x, y)
    condition = condition.astype(bool, copy=False)
    if out is x:
        xp.copyto(out, y, where=~condition)
        return out
    if out is not y:
        xp.copyto(out, y)
    xp.copyto(out, x, where=condition)
    return out


@register_kernel("lerp", infer=broadcast, reuses=("x", "end", "weight"))
def lerp(xp, x, end, weight, *, out=None):
    # From the nearer end, so that weight = 1 gives exactly `end`.
    difference = end - x
    if xp is np and not weight.ndim:  # a single weight needs one of the two formulas alone
        if abs(weight) < 0.5:
            return np.add(x, weight * difference, out=out)
        return np.subtract(end, difference * (1 - weight), out=out)
    near = x + weight * difference
    far = end - difference * (1 - weight)
    return where(xp, xp.abs(weight) < 0.5, near, far, out=out)


@register_kernel("heaviside", infer=broadcast, reuses=("x", "values"))
def heaviside(xp, x, values, *, out=None):
    # not by NumPy's, which takes no integers and keeps nan
    return where(xp, x == 0, values, (x > 0).astype(x.dtype), out=out)


@register_kernel("frexp", sbp="elementwise")
def frexp(xp, x):
    return xp.frexp(x)


@register_kernel("nan_to_num", infer=in_c_order(like_first), reuses="x")
def nan_to_num(xp, x, *, nan, posinf, neginf, out=None):
    if out is None:
        return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    xp.nan_to_num(copied(x, out), copy=False, nan=nan, posinf=posinf, neginf=neginf)
    return out


@register_kernel("mask_finite", infer=in_c_order(like_first), reuses="dy")
def mask_finite(xp, dy, x, *, out=None):
    """Return dy, and 0 where x is not finite: the gradient of nan_to_num."""
    if x.dtype.kind != "c":
        return xp.multiply(dy, xp.isfinite(x), out=out)
    dx = copied(dy, out)
    dx.real *= xp.isfinite(x.real)
    dx.imag *= xp.isfinite(x.imag)
    return dx
