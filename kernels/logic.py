"""Kernels of comparisons, and of logic on truth values and bits; no gradient calls them."""

from __future__ import annotations

from oneflow_lite.kernels.infer_rules import broadcast_to_bool, of_ufunc, scalar_bool
from oneflow_lite.ops.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "isnan": "isnan",
    "isinf": "isinf",
    "isfinite": "isfinite",
    "signbit": "signbit",
    "logical_not": "logical_not",
    "bitwise_not": "invert",
}
_BINARY = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1, infer=of_ufunc(_function))
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2, infer=of_ufunc(_function))


@register_kernel("isclose", infer=broadcast_to_bool)
def isclose(xp, x, y, *, rtol, atol, equal_nan):
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _batch_of_all(name):
    """All pairs are equal, or close: as `name` says of each pair."""

    def rule(call, x, y, **attrs):
        ndim = max(call.ndim(0), call.ndim(1))
        pairs = getattr(call.F, name)(call.front(0, ndim), call.front(1, ndim), **attrs)
        return call.F.all(pairs, dim=tuple(range(1, ndim + 1)), keepdim=False) if ndim else pairs

    return rule


@register_kernel("allclose", infer=scalar_bool, batch=_batch_of_all("isclose"))
def allclose(xp, x, y, *, rtol, atol, equal_nan):
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan).all()


@register_kernel("equal", infer=scalar_bool, batch=_batch_of_all("eq"))
def equal(xp, x, y):
    return (x == y).all()


# NumPy shifts the last bit out where the distance is negative or at least the number's width. CUDA
# leaves that undefined.


@register_kernel("bitwise_left_shift", device="cuda")
def bitwise_left_shift(xp, x, y, *, out=None):
    inside = _inside(x, y)
    return xp.multiply(xp.left_shift(x, y * inside), inside, out=out)


@register_kernel("bitwise_right_shift", device="cuda")
def bitwise_right_shift(xp, x, y, *, out=None):
    inside = _inside(x, y)
    if x.dtype.kind == "u":
        return xp.multiply(xp.right_shift(x, y * inside), inside, out=out)
    return xp.right_shift(x, xp.where(inside, y, 8 * x.dtype.itemsize - 1), out=out)


def _inside(x, y):
    return (y >= 0) & (y < 8 * x.dtype.itemsize)
