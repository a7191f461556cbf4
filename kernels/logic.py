"""Kernels of logic on truth values and bits; called by the interpreter, never by a gradient."""

from __future__ import annotations

from oneflow_lite.kernels.infer_rules import of_ufunc
from oneflow_lite.registry import register_kernel, register_ufunc

# Ops that are one function of the array module: op name to function name.
_UNARY = {
    "logical_not": "logical_not",
    "bitwise_not": "invert",
}
_BINARY = {
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


# NumPy shifts the last bit out where the distance is negative or the width of the number and more;
# CUDA leaves open what happens there.


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
