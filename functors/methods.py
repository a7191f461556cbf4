"""The methods of Tensor beyond the declarations: operators, conversions, properties, protocols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import CPU, DeviceLike, is_array
from oneflow_lite.arrays.dtype import SCALAR_TYPES
from oneflow_lite.arrays.memory_format import check_memory_format, memory_format
from oneflow_lite.autograd.engine.run import backward
from oneflow_lite.functors import shape
from oneflow_lite.functors.matmul import matmul
from oneflow_lite.interpreter.dispatch import dispatch2
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.tensor import Tensor, make_tensor


def _words(text: str) -> dict[str, str]:
    """Return a table of `name`, or of `name=alias`, which maps the name to the alias."""
    entries = (word.partition("=") for word in text.split())
    return {name: other or name for name, _, other in entries}


OPERATORS = _words("""
    abs add and=bitwise_and floordiv=floor_divide ge getitem gt invert=bitwise_not le
    lshift=bitwise_left_shift lt mod=remainder mul neg or=bitwise_or pos=positive pow
    rshift=bitwise_right_shift setitem sub truediv=div xor=bitwise_xor
""")
NOT_BINARY = ("abs", "getitem", "invert", "neg", "pos", "setitem")
AUGMENTED = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
COMMUTATIVE = "add mul and or xor".split()
REFLECTED = "sub truediv floordiv mod pow".split()
CASTS = _words("""
    bfloat16 bool byte=uint8 char=int8 cdouble=complex128 cfloat=complex64 double=float64
    float=float32 half=float16 int=int32 long=int64 short=int16
""")


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of this tensor in the leaves' `.grad`; see `autograd.backward`."""
    backward(self, gradient, retain_graph, create_graph, None, inputs)


def _caster(name: str, dtype: str) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
        if memory_format is not None:
            check_memory_format(dtype, memory_format)
        return shape.cast(self, dtype)

    convert.__doc__ = f"Return the tensor in {dtype}; the tensor itself when it has that dtype."
    convert.__module__, convert.__name__ = Tensor.__module__, name  # where pickle looks for it
    convert.__qualname__ = f"Tensor.{name}"
    return convert


def _comparison(functor: Callable[..., Any]) -> Callable[[Tensor, Any], Tensor]:
    """Leave `tensor == None` and other comparisons with strangers to Python."""

    def compare(self: Tensor, other: Any) -> Tensor:
        if isinstance(other, (Tensor, int, float, complex, np.ndarray, np.generic)):
            return functor(self, other)
        return NotImplemented

    return compare


def _reflected(functor: Callable[..., Tensor]) -> Callable[[Tensor, Any], Tensor]:
    def reflected(self: Tensor, other: Any) -> Tensor:
        return functor(other, self)

    reflected.__name__ = f"r{functor.__name__}"
    reflected.__doc__ = f"Do what `{functor.__name__}` does with the operands exchanged."
    return reflected


def _matmul(self: Tensor, other: Any) -> Tensor:
    return matmul(self, make_tensor(other) if isinstance(other, np.ndarray) else other)


def _rmatmul(self: Tensor, other: Any) -> Tensor:
    return matmul(make_tensor(other) if isinstance(other, np.ndarray) else other, self)


def cpu(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Return the tensor on the CPU; itself when it is there."""
    check_memory_format("cpu", memory_format)
    return shape.transfer(self, CPU)


def cuda(
    self: Tensor,
    device: DeviceLike | None = None,
    non_blocking: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Return the tensor on a CUDA device; itself when it is there."""
    check_memory_format("cuda", memory_format)
    return shape.transfer(self, "cuda" if device is None else device)


def to_device(self: Tensor, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
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
    return shape.transpose(self, -2, -1) if self._data.ndim else shape.permute(self, ())


def _part(name: str) -> property:
    """Return the property of the real or the imaginary parts, which can be written."""
    view, write = FUNCTORS.get(name), FUNCTORS.get("copy_")
    return property(view, lambda self, value: write(view(self), value))


def _is_stranger(value: Any) -> bool:
    return not (isinstance(value, (Tensor, *SCALAR_TYPES)) or is_array(value))


def _operator(functor: Callable[..., Any], op: OpExpr | None = None) -> Callable[..., Any]:
    """Return the method of an operator: with a stranger, the other operand is asked.

    With `op`, the functor only dispatches the two operands, and the method skips its frame.
    """
    if op is not None:

        def operate(self: Tensor, other: Any) -> Tensor:
            try:
                return dispatch2(op, self, other)
            except Exception:
                if _is_stranger(other):
                    return NotImplemented
                raise
    else:

        def operate(self: Tensor, other: Any) -> Tensor:
            try:
                return functor(self, other)
            except Exception:
                if _is_stranger(other):
                    return NotImplemented
                raise

    operate.__name__, operate.__doc__ = functor.__name__, functor.__doc__
    return operate


def _operators() -> dict[str, Any]:
    binary: dict[str, Any] = {name: FUNCTORS.get(op) for name, op in OPERATORS.items()}
    others = {name: binary.pop(name) for name in NOT_BINARY}
    binary.update({f"r{name}": binary[name] for name in COMMUTATIVE})
    binary.update({f"i{name}": FUNCTORS.get(f"{OPERATORS[name]}_") for name in AUGMENTED})
    binary.update({f"r{name}": _reflected(binary[name]) for name in REFLECTED})
    binary.update(matmul=_matmul, rmatmul=_rmatmul)
    table = {f"__{name}__": function for name, function in others.items()}
    for name, function in binary.items():
        plain = name in ("add", "radd", "mul", "rmul")
        table[f"__{name}__"] = _operator(function, op_expr(name.lstrip("r")) if plain else None)
    return table


# What Tensor has beyond what the declarations expose.
METHODS: dict[str, Any] = {
    **_operators(),
    **{name: _caster(name, dtype) for name, dtype in CASTS.items()},
    "__eq__": _comparison(FUNCTORS.get("eq")),
    "__ne__": _comparison(FUNCTORS.get("ne")),
    "backward": _backward,
    **{method.__name__: method for method in (cpu, cuda, to_device, type_as)},
    "H": property(shape.conjugate_transpose),
    "T": property(reversed_dims),
    "mH": property(shape.adjoint),
    "mT": property(matrix_transpose),
    "real": _part("real"),
    "imag": _part("imag"),
}
