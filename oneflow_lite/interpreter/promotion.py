"""Operands of several dtypes meet in one; numbers become tensors of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import CPU
from oneflow_lite.arrays.dtype import SCALAR_TYPES, float16, result_dtype
from oneflow_lite.arrays.dtype_object import CHAR, HALVES, bfloat16
from oneflow_lite.interpreter.explain import not_a_tensor_error
from oneflow_lite.interpreter.widening import CAST, WIDE
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.scalars import is_half, number_tensor
from oneflow_lite.tensors.tensor import Tensor, make_tensor

ndarray = np.ndarray


def promote_operands(
    enter1: Callable[..., Any], op: OpExpr, x: Any, y: Any
) -> tuple[Tensor, Tensor] | None:
    """Make two operands tensors of the dtype in which they meet.

    Casts go through the door `enter1`. None says that the op computes in float32: see
    `rounded_once`.
    """
    if isinstance(x, Tensor) and (type(y) is float or type(y) is int):
        dtype = x._data.dtype
        if dtype.char in "fdFD" or (type(y) is int and dtype.kind in "iu"):
            return x, number_tensor(y, dtype, CPU if type(x._data) is ndarray else x.device)
    operands = promote(enter1, op.op_type_name, x, y)
    return (operands[0], operands[1]) if operands else None


# The ops that PyTorch computes in float32 where a half meets a number.
_SCALES = ("mul", "div", "div_trunc", "floor_divide")


def _rounded(x: Any) -> bool:
    """Return whether an operand is a number, or a 0-d tensor, that float16 may have to round."""
    if isinstance(x, Tensor):
        return bool(x._data.ndim == 0 and x._data.dtype.char not in "?eE")
    return not is_half(x)


def rounded_once(
    enter1: Callable[..., Any], function: Callable[..., Any], *operands: Any, **options: Any
) -> Any:
    """Call a function with tensors of float16 as float32, and round its result.

    So a number beside a half need not be one: 100 / 1e5 is 0.001, though in float16 1e5 is inf.
    """
    wide = [enter1(CAST, x, WIDE) if isinstance(x, Tensor) else x for x in operands]
    chars = [x._data.dtype.char for x in operands if isinstance(x, Tensor)]
    half = {"dtype": bfloat16() if CHAR in chars else float16}
    return enter1(CAST, function(*wide, **options), half)


def promote(enter1: Callable[..., Any], op: str, *operands: Any) -> list[Tensor]:
    """Make tensors of operands (tensors, arrays, scalars) and cast them to their common dtype.

    PyTorch's rules: tensors with dimensions outrank 0-d tensors, which outrank scalars. An empty
    list says that the op is for `rounded_once`.
    """
    tensors: list[Any] = []
    scalars = []
    arrays: list[Any] = []
    for i, x in enumerate(operands):
        if isinstance(x, ndarray):
            x = make_tensor(x)
        if isinstance(x, Tensor):
            arrays.append((x._data.dtype, x._data.ndim))
        elif isinstance(x, SCALAR_TYPES):
            scalars.append(x)
        else:
            name = ("input", "other")[i] if i < 2 and len(operands) == 2 else f"operand {i}"
            raise not_a_tensor_error(op, name, x, "a Tensor or a number")
        tensors.append(x)
    dtype: Any = arrays[0][0] if arrays else None
    same = dtype is not None and all([d is dtype for d, _ in arrays])
    if same and scalars:  # real numbers raise no floating point dtype
        same = dtype.kind in "fc" and all([type(x) is float or type(x) is int for x in scalars])
    if not same:
        dtype = result_dtype(arrays, scalars)
    if dtype.char in HALVES and op in _SCALES:
        numbers = dtype.char == CHAR and bool(scalars)
        if numbers or any(map(_rounded, tensors)):
            return []
    device = CPU
    if scalars:
        device = next((x.device for x in tensors if isinstance(x, Tensor)), CPU)
    return [
        number_tensor(x, dtype, device)
        if not isinstance(x, Tensor)
        else x
        if x._data.dtype is dtype
        else enter1(CAST, x, {"dtype": dtype})
        for x in tensors
    ]
