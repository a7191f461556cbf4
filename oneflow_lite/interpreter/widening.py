"""bfloat16 is computed in float32: an op on it becomes casts around the op on float32.

The interpreter on top asks before it takes an op, so that every interpreter sees the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import modules
from typing import Any

from numpy import ndarray

from oneflow_lite.arrays.bfloat16_arrays import BFloat16Array
from oneflow_lite.arrays.dtype import float32
from oneflow_lite.arrays.dtype_object import CHAR, bfloat16
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.tensors.mode import local

Enter = Callable[[OpExpr, tuple[Any, ...], dict[str, Any]], Any]

CAST = op_expr("cast")
WIDE = {"dtype": float32}
_COPY_ = op_expr("copy_")
# Ops that take bfloat16 as it is: they compute nothing, or their kernels widen it.
_AS_IT_IS = frozenset(
    """
    cast clone copy_ copy_slices empty fill_ full matmul matmul_nt matmul_tn nextafter ones_like
    setitem_ to_device zeros_like
    """.split()
)


def is_bfloat16(x: Any) -> bool:
    """Return whether an input of an op is a tensor of bfloat16."""
    if x is None or type(x._data) is ndarray:
        return False
    return type(x._data) is BFloat16Array or getattr(x._data, "is_bfloat16", False)


def widened(enter: Enter, op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Run an op on bfloat16 in float32, through `enter`; None where nothing is bfloat16."""
    if "ml_dtypes" not in modules or op.op_type_name in _AS_IT_IS:
        return None
    if not inputs:
        dtype = attrs.get("dtype")
        if dtype is None or dtype.char != CHAR:
            return None
        made = enter(op, (), {**attrs, **WIDE})
        return enter(CAST, (made,), {"dtype": dtype})
    if op.schema.view_of or not any(map(is_bfloat16, inputs)):
        return None
    return _in_float32(enter, op, inputs, attrs)


def _in_float32(enter: Enter, op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Do as PyTorch does: compute in float32, and round the result."""
    wide = [enter(CAST, (x,), WIDE) if is_bfloat16(x) else x for x in inputs]
    if op.schema.written:  # random numbers or an optimizer's step: nothing is recorded
        local.state = (before := local.state).replace(grad_enabled=False)
        try:
            results = enter(op, tuple(wide), attrs)
            for i in op.schema.written:
                if wide[i] is not inputs[i]:
                    enter(_COPY_, (inputs[i], wide[i]), {})
        finally:
            local.state = before
        back = {id(y): x for x, y in zip(inputs, wide, strict=True)}
        outputs = results if type(results) is tuple else (results,)
        given = tuple([back.get(id(y), y) for y in outputs])
        return given if type(results) is tuple else given[0]
    results = enter(op, tuple(wide), attrs)
    half = {"dtype": bfloat16()}
    rounded = tuple(
        [
            enter(CAST, (y,), half) if y._data.dtype is float32 else y
            for y in (results if type(results) is tuple else (results,))
        ]
    )
    return rounded if type(results) is tuple else rounded[0]
