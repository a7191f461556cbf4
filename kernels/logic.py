"""Kernels of logic on truth values and bits; called by the interpreter, never by a gradient."""

from __future__ import annotations

from oneflow_lite.kernels.infer_rules import of_ufunc
from oneflow_lite.registry import register_ufunc

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
}

for _op, _function in _UNARY.items():
    register_ufunc(_op, _function, inputs=1, infer=of_ufunc(_function))
for _op, _function in _BINARY.items():
    register_ufunc(_op, _function, inputs=2, infer=of_ufunc(_function))
