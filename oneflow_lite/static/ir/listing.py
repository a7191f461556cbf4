"""What print(program) shows: variables with their types, ops as assignments, source lines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite.device import Device
from oneflow_lite.functors.random import default_generator
from oneflow_lite.op_expr import OpExpr

if TYPE_CHECKING:
    from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc

_FEW = 8  # elements of an array that are shown


def list_program(program: Program) -> str:
    """Return the listing of all blocks."""
    return "\n\n".join(map(list_block, program.blocks))


def list_block(block: Block) -> str:
    """Return the listing of one block: its variables, then its ops.

    Temporaries are not listed apart: each op ends with the types of what it makes.
    """
    parent = "" if block.parent_idx < 0 else f" in block {block.parent_idx}"
    lines = [f"block {block.idx}{parent}"]
    lines += [f"  {list_var(desc)}" for desc in block.vars.values() if not desc.is_temporary]
    for op in block.ops:
        lines.append(f"  {_typed(op, block)}")
    return "\n".join(lines)


def list_var(desc: VarDesc) -> str:
    """Return one line about a variable."""
    kind = "temporary"
    if desc.need_check_feed:
        kind = "feed"
    elif desc.is_parameter:
        kind = "parameter"
    elif desc.persistable:
        kind = "persistable"
    elif desc.value is not None:
        kind = "constant"
    text = f"{kind} {desc.name}: {type_text(desc)}"
    if desc.value is not None and desc.value.size <= _FEW:
        text += f" = {desc.value.tolist()}"
    return text if desc.device.type == "cpu" else f"{text} on {desc.device}"


def type_text(desc: VarDesc) -> str:
    """Return dtype and shape, as `float32[2, 3]`."""
    return f"{desc.dtype}{list(desc.shape)}"


def list_op(op: OpDesc) -> str:
    """Return one op as an assignment: `y = matmul(x, w)  {attrs}  # file.py:12`."""
    return _assignment(op) + _source(op)


def _typed(op: OpDesc, block: Block) -> str:
    types = [type_text(block.var(name)) for name in op.outputs]
    role = "" if op.role == "forward" else f"  [{op.role}]"
    return f"{_assignment(op)} -> {', '.join(types) or 'nothing'}{role}{_source(op)}"


def _assignment(op: OpDesc) -> str:
    outputs = f"{', '.join(op.outputs)} = " if op.outputs else ""
    inputs = ", ".join("None" if name is None else name for name in op.inputs)
    return f"{outputs}{op.type}({inputs}){attrs_text(op)}"


def _source(op: OpDesc) -> str:
    if op.location is None:
        return ""
    return f"  # {os.path.basename(op.location.filename)}:{op.location.line}"


def attrs_text(op: OpDesc) -> str:
    """Return the attributes in braces, each name with its value; nothing where there are none."""
    if not op.attrs:
        return ""
    return f"  {{{', '.join(f'{name}={_value_text(value)}' for name, value in op.attrs.items())}}}"


def _value_text(value: Any) -> str:
    if isinstance(value, (np.dtype, Device)):
        return str(value)
    if isinstance(value, np.ndarray):
        shape = list(value.shape)
        return f"{value.dtype}{shape}" if value.size > _FEW else str(value.tolist())
    if isinstance(value, OpExpr):
        return value.op_type_name
    if value is default_generator:
        return "default"
    if hasattr(value, "parent_idx"):
        return f"block {value.idx}"
    if type(value) in (tuple, list):
        inner = ", ".join(map(_value_text, value))
        return f"[{inner}]" if type(value) is list else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}={_value_text(item)}' for key, item in value.items())}}}"
    return repr(value)
