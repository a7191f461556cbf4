"""The text of a value in the hash of a Program, by which an Executor knows it again."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device
from oneflow_lite.arrays.size import Size
from oneflow_lite.functors.random import default_generator
from oneflow_lite.ops.op_expr import OpExpr

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), slice, Device, OpExpr)


def value_text(value: Any) -> str:
    """Return a text that is the same only for equal values of one type.

    Objects without a text of their own are told apart by identity.
    """
    kind = type(value)
    if kind in _PLAIN or isinstance(value, (np.dtype, np.generic)):
        return repr(value)
    if kind in (tuple, list, Size):
        return f"{'list' if kind is list else 'tuple'}({', '.join(map(value_text, value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{key!r}: {value_text(item)}' for key, item in value.items())})"
    if isinstance(value, np.ndarray):
        layout = None if value.flags.c_contiguous else value.strides
        content = hashlib.sha256(value.tobytes()).hexdigest()
        return f"array({value.dtype}, {value.shape}, {layout}, {content})"
    if value is default_generator:
        return "default generator"
    if hasattr(value, "parent_idx"):
        return f"block {value.idx}"
    return f"{kind.__module__}.{kind.__qualname__} at {id(value)}"
