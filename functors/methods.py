"""The one table from which Tensor gets its operators and methods."""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.engine import backward
from oneflow_lite.device import CPU
from oneflow_lite.errors import ArgumentTypeError
from oneflow_lite.functors import arithmetic, inplace, shape
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of this tensor into the `.grad` of the leaves; see
    `autograd.backward`.
    """
    backward(self, gradient, retain_graph, create_graph, inputs)


def attach() -> None:
    for name in inplace.TWINS:
        if name in FUNCTORS and f"{name}_" not in FUNCTORS:
            inplace.make_inplace(name)
    for name in FUNCTORS:
        if not hasattr(Tensor, name):
            setattr(Tensor, name, FUNCTORS.get(name))
    F = FUNCTORS.find
    ops: dict[str, Any] = {
        "__add__": F("add"), "__radd__": F("add"), "__sub__": F("sub"),
        "__rsub__": arithmetic.rsub, "__mul__": F("mul"), "__rmul__": F("mul"),
        "__truediv__": F("div"), "__rtruediv__": arithmetic.rdiv,
        "__floordiv__": F("floor_divide"), "__rfloordiv__": arithmetic.rfloor_divide,
        "__mod__": F("remainder"), "__rmod__": arithmetic.rremainder,
        "__pow__": F("pow"), "__rpow__": arithmetic.rpow, "__neg__": F("neg"),
        "__pos__": F("positive"), "__abs__": F("abs"), "__matmul__": F("matmul"),
        "__eq__": F("eq"), "__ne__": F("ne"), "__lt__": F("lt"), "__le__": F("le"),
        "__gt__": F("gt"), "__ge__": F("ge"), "__and__": F("bitwise_and"),
        "__or__": F("bitwise_or"), "__xor__": F("bitwise_xor"), "__invert__": F("bitwise_not"),
        "__getitem__": F("getitem"), "__setitem__": F("setitem"),
        "__iadd__": F("add_"), "__isub__": F("sub_"), "__imul__": F("mul_"),
        "__itruediv__": F("div_"), "__ipow__": F("pow_"),
        "backward": _backward, "to": shape.to, "sum_to_size": F("sum_to"),
    }  # fmt: skip
    for name, function in ops.items():
        if function is not None:
            setattr(Tensor, name, function)
    Tensor.__hash__ = object.__hash__
    for name, dtype in dict(float="float32", double="float64", half="float16", long="int64", int="int32", short="int16", bool="bool").items():
        setattr(Tensor, name, lambda self, dtype=dtype: shape.cast(self, dtype))
    Tensor.cpu = lambda self: shape.transfer(self, CPU)
    Tensor.cuda = lambda self, device="cuda": shape.transfer(self, device)
    Tensor.type_as = lambda self, other: shape.to(self, other)
    Tensor.T = property(lambda self: shape.permute(self, tuple(range(self.ndim))[::-1]))
    Tensor.mT = property(lambda self: shape.transpose(self, -2, -1))
    del Tensor.real, Tensor.imag
    Tensor.real = property(FUNCTORS.get("real"))
    Tensor.imag = property(FUNCTORS.get("imag"))
