"""The one table from which Tensor gets its operators and methods, once all functors are loaded."""

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
from oneflow_lite.functors.declare import exposed
from oneflow_lite.functors.matmul import matmul
from oneflow_lite.memory_format import check_memory_format
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor, make_tensor

# Functors that are methods under the same name; the in-place twins are added to them.
METHODS = """
    abs acos acosh add addcdiv addcmul addmm addmv all allclose amax amin angle any argmax
    argmin argsort asin asinh atan atan2 atanh baddbmm bernoulli bernoulli_ bitwise_and
    bitwise_not bitwise_or bitwise_xor bmm broadcast_to ceil chunk clamp clamp_max clamp_min
    clone conj contiguous copy_ cos cosh count_nonzero cumprod cumsum diag diag_embed diagonal
    div dot eq equal erf erfc exp exp2 expand expand_as expm1 fill_ flatten flip floor
    floor_divide fmod frac gather ge gt hardshrink hypot index_add index_fill index_select
    isclose isfinite isinf isnan le lerp log log10 log1p log2 log_softmax logaddexp logical_and
    logical_not logical_or logical_xor logsumexp lt masked_fill masked_scatter masked_select
    matmul max maximum mean min minimum mm movedim mul mv nan_to_num narrow ne neg new_full
    new_ones new_tensor new_zeros nonzero norm normal_ outer permute positive pow prod ravel
    reciprocal relu remainder repeat reshape reshape_as roll round rsqrt scatter scatter_add
    select sgn sigmoid sign sin sinc sinh softmax sort split sqrt square squeeze squeeze_ std
    sub sum t t_ take take_along_dim tan tanh tile topk trace transpose transpose_ tril triu
    trunc unbind unflatten unfold uniform_ unsqueeze unsqueeze_ var view view_as where xlogy
    zero_
""".split()

# Methods that go by another name than their functor.
RENAMED = {
    "absolute": "abs",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "arctan2": "atan2",
    "clip": "clamp",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "subtract": "sub",
    "sum_to_size": "sum_to",
    "swapaxes": "transpose",
    "swapaxes_": "transpose_",
    "swapdims": "transpose",
    "swapdims_": "transpose_",
    "true_divide": "div",
}

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
    "lt": "lt",
    "mod": "remainder",
    "mul": "mul",
    "neg": "neg",
    "or": "bitwise_or",
    "pos": "positive",
    "pow": "pow",
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
}

CASTS = {
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


def attach_methods() -> None:
    """Give Tensor its operators and methods."""
    for name in inplace.TWINS:
        inplace.make_inplace(name)
    table: dict[str, Any] = {name: FUNCTORS.get(name) for name in METHODS}
    table.update({f"{name}_": FUNCTORS.get(f"{name}_") for name in inplace.TWINS})
    table.update({name: FUNCTORS.get(functor) for name, functor in RENAMED.items()})
    binary: dict[str, Any] = {name: FUNCTORS.get(op) for name, op in OPERATORS.items()}
    binary.update(REFLECTED)
    binary.update({name: FUNCTORS.get(twin) for name, twin in AUGMENTED.items()})
    binary.update(matmul=_matmul, rmatmul=_rmatmul)
    others = {name: binary.pop(name) for name in NOT_BINARY}
    table.update({f"__{name}__": function for name, function in others.items()})
    plain = {"add": "add", "radd": "add", "mul": "mul", "rmul": "mul"}
    for name, function in binary.items():
        table[f"__{name}__"] = operator(function, op_expr(plain[name]) if name in plain else None)
    table.update({name: _caster(dtype) for name, dtype in CASTS.items()})
    table.update(
        __eq__=_comparison(FUNCTORS.get("eq")),
        __ne__=_comparison(FUNCTORS.get("ne")),
        __hash__=object.__hash__,
        __array_function__=array_function,
        __array_namespace__=array_namespace,
        __array_ufunc__=array_ufunc,
        backward=_backward,
        to=shape.to,
        cpu=cpu,
        cuda=cuda,
        to_device=to_device,
        type_as=type_as,
        T=property(reversed_dims),
        mT=property(matrix_transpose),
        real=property(FUNCTORS.get("real"), set_real),
        imag=property(FUNCTORS.get("imag"), set_imag),
    )
    table.update(tensor_methods.METHODS)
    table.update(exposed("Tensor"))
    for name, function in table.items():
        setattr(Tensor, name, function)
