"""Questions about tensors that compute nothing."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.dtype import SCALAR_TYPES, DType, result_dtype
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.declare import functor
from oneflow_lite.tensor import Tensor


@functor("flow")
def is_tensor(obj: Any) -> bool:
    """Return whether an object is a Tensor."""
    return isinstance(obj, Tensor)


@functor("flow Tensor")
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return math.prod(check_tensor("numel", "input", input).shape)


@functor("flow Tensor")
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a floating point one."""
    return check_tensor("is_floating_point", "input", input).dtype.kind == "f"


@functor("flow Tensor")
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex."""
    return check_tensor("is_complex", "input", input).dtype.kind == "c"


@functor("flow")
def result_type(tensor1: Any, tensor2: Any) -> DType:
    """Return the dtype in which two operands, tensors or numbers, meet.

    >>> flow.result_type(flow.ones(2, dtype=flow.int32), 1.5)
    dtype('float32')
    """
    arrays, scalars = [], []
    for argument, value in (("tensor1", tensor1), ("tensor2", tensor2)):
        if isinstance(value, SCALAR_TYPES):
            scalars.append(value)
        else:
            x = check_tensor("result_type", argument, value)
            arrays.append((x.dtype, x.ndim))
    return result_dtype(arrays, scalars)
