"""The text of a value in the listing of a Program: an attribute, or the content of a constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.device import Device
from oneflow_lite.functors.random import default_generator
from oneflow_lite.op_expr import OpExpr

FEW = 8  # elements of an array that are shown


def listed(value: Any) -> str:
    """Return short text for people."""
    if isinstance(value, (np.dtype, Device)):
        return str(value)
    if isinstance(value, np.ndarray):
        shape = list(value.shape)
        return f"{value.dtype}{shape}" if value.size > FEW else str(value.tolist())
    if isinstance(value, OpExpr):
        return value.op_type_name
    if value is default_generator:
        return "default"
    if hasattr(value, "parent_idx"):
        return f"block {value.idx}"
    if type(value) in (tuple, list):
        inner = ", ".join(map(listed, value))
        return f"[{inner}]" if type(value) is list else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}={listed(item)}' for key, item in value.items())}}}"
    return repr(value)
