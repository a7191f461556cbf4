"""What Tensor has beyond the declarations: operators, conversions, properties, protocols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite import tensor_methods
from oneflow_lite.array_protocols import (
    array_function,
    array_namespace,
    array_ufunc,
    operator,
)
from oneflow_lite.autograd.engine import backward
from oneflow_lite.device import CPU
from oneflow_lite.functors import arithmetic, inplace, shape
from oneflow_lite.functors.matmul import matmul
from oneflow_lite.memory_format import check_memory_format
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor, make_tensor

OPERATORS = {
    "abs": "abs",
    "add": "add",
    "and": "bitwise_and",
    "floordiv": "floor_divide",
    "ge": "ge",
    "getitem": "getitem",
    "gt": "gt",
    "invert": "bitwise_not",
    "le": "le",
    "lshift": "bitwise_left_shift",
    "lt": "lt",
    "mod": "remainder",
    "mul": "mul",
    "neg": "neg",
    "or": "bitwise_or",
    "pos": "positive",
    "pow": "pow",
    "rshift": "bitwise_right_shift",
    "setitem": "setitem",
    "sub": "sub",
    "truediv": "div",
    "xor": "bitwise_xor",
}

NOT_BINARY = ("abs", "getitem", "invert", "neg", "pos", "setitem")

REFLECTED: dict[str, Callable[..., Any]] = {
    "radd": FUNCTORS.get("add"),
    "rmul": FUNCTORS.get("mul"),
    "rsub": arithmetic.rsub,
    "rtruediv": arithmetic.rdiv,
    "rand": FUNCTORS.get("bitwise_and"),
    "ror": FUNCTORS.get("bitwise_or"),
    "rxor": FUNCTORS.get("bitwise_xor"),
    "rfloordiv": arithmetic.rfloor_divide,
    "rmod": arithmetic.rremainder,
    "rpow": arithmetic.rpow,
}

AUGMENTED = {
    "iadd": "add_",
    "isub": "sub_",
    "imul": "mul_",
    "itruediv": "div_",
    "ifloordiv": "floor_divide_",
    "imod": "remainder_",
    "ipow": "pow_",
    "iand": "bitwise_and_",
    "ior": "bitwise_or_",
    "ixor": "bitwise_xor_",
    "ilshift": "bitwise_left_shift_",
    "irshift": "bitwise_right_shift_",
}

CASTS = {
    "bfloat16": "bfloat16",
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "cdouble": "complex128",
    "cfloat": "complex64",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of this tensor into the `.grad` of the leaves.

    See `autograd.backward`.
    """
    backward(self, gradient, retain_graph, create_graph, inputs)


def _caster(dtype: str) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            check_memory_format(dtype, memory_format)
        return shape.cast(self, dtype)

    convert.__doc__ = f"Return the tensor as {dtype}; itself when it is."
    return convert


def _comparison(functor: Callable[..., Any]) -> Callable[[Tensor, Any], Any]:
    """Leave `tensor == None` and other comparisons with strangers to Python."""

    def compare(self: Tensor, other: Any) -> Any:
        if isinstance(other, (Tensor, int, float, complex, np.ndarray, np.generic)):
            return functor(self, other)
        return NotImplemented

    return compare


def _matmul(self: Tensor, other: Any) -> Tensor:
    return matmul(self, make_tensor(other) if isinstance(other, np.ndarray) else other)


def _rmatmul(self: Tensor, other: Any) -> Tensor:
    return matmul(make_tensor(other) if isinstance(other, np.ndarray) else other, self)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """Return the tensor on the CPU; itself when it is there."""
    check_memory_format("cpu", memory_format)
    return shape.transfer(self, CPU)


def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """Return the tensor on a CUDA device; itself when it is there."""
    check_memory_format("cuda", memory_format)
    return shape.transfer(self, "cuda" if device is None else device)


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on a device; the array API standard's name of `to`."""
    return shape.transfer(self, device)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor with the dtype and on the device of another one."""
    return shape.to(self, other)


def reversed_dims(self: Tensor) -> Tensor:
    """The tensor with its dimensions reversed."""
    return shape.permute(self, tuple(range(self.ndim))[::-1])


def matrix_transpose(self: Tensor) -> Tensor:
    """The tensor with its last two dimensions exchanged."""
    return shape.transpose(self, -2, -1)


def set_real(self: Tensor, value: Any) -> None:
    """Write the real parts."""
    inplace.copy_(shape.real(self), value)


def set_imag(self: Tensor, value: Any) -> None:
    """Write the imaginary parts."""
    inplace.copy_(shape.imag(self), value)


def _operators() -> dict[str, Any]:
    binary: dict[str, Any] = {name: FUNCTORS.get(op) for name, op in OPERATORS.items()}
    binary.update(REFLECTED)
    binary.update({name: FUNCTORS.get(twin) for name, twin in AUGMENTED.items()})
    binary.update(matmul=_matmul, rmatmul=_rmatmul)
    others = {name: binary.pop(name) for name in NOT_BINARY}
    table = {f"__{name}__": function for name, function in others.items()}
    plain = {"add": "add", "radd": "add", "mul": "mul", "rmul": "mul"}
    for name, function in binary.items():
        table[f"__{name}__"] = operator(function, op_expr(plain[name]) if name in plain else None)
    return table


# What Tensor has beyond what the declarations expose.
METHODS: dict[str, Any] = {
    **_operators(),
    **{name: _caster(dtype) for name, dtype in CASTS.items()},
    **tensor_methods.METHODS,
    "__eq__": _comparison(FUNCTORS.get("eq")),
    "__ne__": _comparison(FUNCTORS.get("ne")),
    "__array_function__": array_function,
    "__array_namespace__": array_namespace,
    "__array_ufunc__": array_ufunc,
    "backward": _backward,
    "copy_": inplace.copy_,
    "fill_": inplace.fill_,
    "zero_": inplace.zero_,
    "to": shape.to,
    "cpu": cpu,
    "cuda": cuda,
    "to_device": to_device,
    "type_as": type_as,
    "H": property(shape.conjugate_transpose),
    "T": property(reversed_dims),
    "mH": property(shape.adjoint),
    "mT": property(matrix_transpose),
    "real": property(FUNCTORS.get("real"), set_real),
    "imag": property(FUNCTORS.get("imag"), set_imag),
}
