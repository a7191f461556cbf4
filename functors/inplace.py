"""Writing into tensors; the in-place twins are derived from the functors (`writes.py`)."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.arrays.dtype import Number
from oneflow_lite.errors import ShapeError, arg_error
from oneflow_lite.functors.declaring.checks import cast, check_tensor
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import AnyTensor, TensorOrNumber
from oneflow_lite.functors.declaring.fill_value import fill_value
from oneflow_lite.functors.declaring.writes import check_target
from oneflow_lite.functors.shape import expand, transfer
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import register_functor
from oneflow_lite.tensors.scalars import number_tensor
from oneflow_lite.tensors.tensor import Tensor

_COPY_, _FILL_ = op_expr("copy_"), op_expr("fill_")


@register_functor("copy_")
def copy_(input: Tensor, other: Tensor | Number, non_blocking: bool = False) -> Tensor:
    """Write `other`, broadcast and converted, into the tensor, and return the tensor."""
    check_tensor("copy_", "input", input)
    if not isinstance(other, Tensor):
        return fill_(input, other)
    value = cast(transfer(other, input.device), input.dtype)
    if value._data.shape != input._data.shape:
        value = expand(value, input._data.shape)
    return dispatch(_COPY_, (input, value))


@register_functor("fill_")
def fill_(input: Tensor, value: Tensor | Number) -> Tensor:
    """Write one number, or a 0-d tensor, into every element, and return the tensor."""
    return _fill("fill_", input, value)


def _fill(op: str, input: Tensor, value: Any) -> Tensor:
    check_tensor(op, "input", input)
    check_target(op, input)
    if not isinstance(value, Tensor):
        number = fill_value(op, "value", value, input._data.dtype)
        value = number_tensor(number, input._data.dtype, input.device)
    elif value.ndim:
        raise arg_error(op, "value", "a number or a 0-d tensor", value, "use copy_() for tensors")
    return dispatch(_FILL_, (input, cast(value, input.dtype)))


@functor("flow", samples="x(2, 3), 1.5; x(2, 3), x()")
def fill(input: AnyTensor, value: TensorOrNumber) -> Tensor:
    """Return a tensor of the same shape and dtype with one number in every element."""
    return _fill("fill", input.clone(), value)


@register_functor("zero_")
def zero_(input: Tensor) -> Tensor:
    """Write zeros into the tensor, and return the tensor."""
    return _fill("zero_", input, 0)


def fill_diagonal_(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Set the diagonal, that of equal indices, to a number.

    wrap: go on below the square part of a tall matrix.

    Raises `ShapeError` for fewer than two dimensions, or three and more of different sizes.
    """
    sizes, expected = self.shape, ""
    if len(sizes) < 2:
        expected = "at least 2 dimensions"
    elif len(sizes) > 2 and len(set(sizes)) > 1:
        expected = "dimensions of one size, as there are more than 2"
    if expected:
        hint = "fill each matrix by itself"
        raise arg_error("fill_diagonal_", "self", expected, f"shape {sizes}", hint, ShapeError)
    count, step, start = min(sizes), sum(self.stride()), self.storage_offset()
    if count:
        self.as_strided((count,), (step,), start).fill_(fill_value)
    height, width = sizes[:2]
    if wrap and len(sizes) == 2 and height > width + 1 and count:
        more = math.ceil(self.numel() / (width + 1)) - count
        start += self.stride(0) * (width + 1)
        self.as_strided((more,), (step,), start).fill_(fill_value)
    return self
