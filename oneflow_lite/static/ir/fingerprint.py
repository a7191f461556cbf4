"""The hash of a Program, by which an Executor finds what it has analysed before."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite.device import Device
from oneflow_lite.functors.random import default_generator
from oneflow_lite.op_expr import OpExpr
from oneflow_lite.size import Size

if TYPE_CHECKING:
    from oneflow_lite.static.ir.program import OpDesc, Program, VarDesc

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), slice, Device, OpExpr)


def fingerprint(program: Program) -> str:
    """Return a hash of blocks, ops, attributes and variables, source lines left out."""
    found = hashlib.sha256()
    for block in program.blocks:
        found.update(f"block {block.parent_idx}\n".encode())
        for desc in block.vars.values():
            found.update(f"{_var_text(desc)}\n".encode())
        for op in block.ops:
            found.update(f"{_op_text(op)}\n".encode())
    return found.hexdigest()


def _var_text(desc: VarDesc) -> str:
    flags = (desc.persistable, desc.stop_gradient, desc.need_check_feed, desc.is_parameter)
    place = (desc.strides, desc.device, value_text(desc.value))
    return f"{desc.name!r} {desc.shape} {desc.dtype} {flags} {place}"


def _op_text(op: OpDesc) -> str:
    options = sorted(op.attrs.items())
    return (
        f"{op.type!r} {op.inputs} {op.outputs} {op.role} {op.returns_tuple} {value_text(options)}"
    )


def value_text(value: Any) -> str:
    """Return text that is the same for equal values of one type only.

    What has no text of its own is known by its identity.
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
