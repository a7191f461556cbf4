"""Kernels of comparisons; called by the interpreter, never by a gradient."""

from __future__ import annotations

from oneflow_lite.kernels.infer_rules import broadcast_to_bool, of_ufunc, scalar_bool
from oneflow_lite.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "isnan": "isnan",
    "isinf": "isinf",
    "isfinite": "isfinite",
    "signbit": "signbit",
}
_BINARY = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1, infer=of_ufunc(_function))
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2, infer=of_ufunc(_function))


@register_kernel("isclose", infer=broadcast_to_bool)
def isclose(xp, x, y, *, rtol, atol, equal_nan):
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


@register_kernel("allclose", infer=scalar_bool)
def allclose(xp, x, y, *, rtol, atol, equal_nan):
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan).all()


@register_kernel("equal", infer=scalar_bool)
def equal(xp, x, y):
    return (x == y).all()
