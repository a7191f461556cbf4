"""Texts for values in a Program, attributes and constants, and the Program in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device
from oneflow_lite.functors.random import default_generator
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.html_text import Html, block as framed, element, joined, table, tree

FEW = 8  # elements of an array that are shown
_ROWS = 200  # of a table in a notebook
_VARIABLES = ("variable", "kind", "shape", "dtype", "device", "value")
_OPS = ("#", "op", "inputs", "outputs", "attributes", "role", "line")


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


def program_html(program: Any) -> str:
    """Return a Program as HTML: for each block its variables, but for temporaries, and its ops."""
    return framed(*[_block_html(block) for block in program.blocks], label="Program")


def _block_html(block: Any) -> Html:
    descs = [desc for desc in block.vars.values() if not desc.is_temporary]
    variables = [_variable(desc) for desc in descs[:_ROWS]]
    ops = [_op(i, op, block) for i, op in enumerate(block.ops[:_ROWS])]
    within = "" if block.parent_idx < 0 else f" in block {block.parent_idx}"
    parts = [
        table(_VARIABLES, variables, caption="Variables") if variables else "",
        _more(len(descs)),
        table(_OPS, ops, caption="Ops", numbers=[0]),
        _more(len(block.ops)),
    ]
    title = f"block {block.idx}{within}: {len(block.ops)} ops, {len(block.vars)} variables"
    return tree(title, [part for part in parts if part])


def _more(count: int) -> Html:
    return element("p", f"... {count - _ROWS} more") if count > _ROWS else Html()


def _variable(desc: Any) -> tuple[Any, ...]:
    few = desc.value is not None and desc.value.size <= FEW
    value = desc.value.tolist() if few else ""
    return desc.name, desc.kind, desc.shape, desc.dtype, desc.device, value


def _op(number: int, op: Any, block: Any) -> tuple[Any, ...]:
    named = [element("div", f"{name}={listed(value)}") for name, value in op.attrs.items()]
    made = [element("div", f"{name}: {block.var(name).type_text}") for name in op.outputs]
    inputs = ", ".join("None" if name is None else name for name in op.inputs)
    return number, op.type, inputs, joined(made), joined(named), op.role, op.location or ""
