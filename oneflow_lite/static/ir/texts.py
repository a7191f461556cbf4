"""Texts of a Program: values for people and for its hash, its HTML in a notebook, its picture."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device
from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES
from oneflow_lite.arrays.size import Size
from oneflow_lite.functors.random import default_generator
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.html_text import Html, block as framed, element, joined, table, tree

FEW = 8  # elements of an array that are shown
_ROWS = 200  # of a table in a notebook
_VARIABLES = ("variable", "kind", "shape", "dtype", "device", "value")
_DOT_HEAD = """digraph {
  rankdir=TB
  node [shape=box, fontname="monospace", fontsize=10]
  edge [fontname="monospace", fontsize=9]"""
_DOT_COLOURS = {"backward": "lightyellow", "optimize": "mistyrose"}
_OPS = ("#", "op", "inputs", "outputs", "attributes", "role", "line")


def listed(value: Any) -> str:
    """Return short text for people."""
    if isinstance(value, (*DTYPE_CLASSES, Device)):
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


_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), slice, Device, OpExpr)


def value_text(value: Any) -> str:
    """Return a text that is the same only for equal values of one type.

    Objects without a text of their own are told apart by identity.
    """
    kind = type(value)
    if kind in _PLAIN or isinstance(value, (*DTYPE_CLASSES, np.generic)):
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


def dot(program: Any) -> str:
    """Return a Program as text for Graphviz."""
    return "\n".join([_DOT_HEAD, *_Picture(program).block(program.global_block(), "  "), "}"])


class _Picture:
    """The lines of `Program.to_dot`; nodes are numbered in the order in which they are met."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.names: dict[Any, str] = {}

    def block(self, block: Any, indent: str) -> list[str]:
        """Return the lines of a block and, as clusters, of its sub-blocks."""
        lines: list[str] = []
        for number, op in enumerate(block.ops):
            node = f"op{block.idx}_{number}"
            lines += self.op(op, node, block, indent)
        for inner in self.program.blocks:
            if inner.parent_idx == block.idx:
                lines.append(f"{indent}subgraph cluster_{inner.idx} {{")
                lines.append(f'{indent}  label="block {inner.idx}"')
                lines += self.block(inner, f"{indent}  ")
                lines.append(f"{indent}}}")
        return lines

    def op(self, op: Any, node: str, block: Any, indent: str) -> list[str]:
        """Return the lines of an op: new variables, the op itself, its edges."""
        text = _escape("\n".join(part for part in (op.type, op.attrs_text) if part))
        colour = _DOT_COLOURS.get(op.role)
        style = f', style=filled, fillcolor="{colour}"' if colour else ""
        lines: list[str] = []
        edges = [f"{self.var(name, block, lines, indent)} -> {node}" for name in op.reads]
        for name in dict.fromkeys((*op.outputs, *op.written)):
            written = " [style=dashed]" if name in op.written else ""
            edges.append(f"{node} -> {self.var(name, block, lines, indent)}{written}")
        lines.append(f'{indent}{node} [label="{text}"{style}]')
        return lines + [indent + edge for edge in edges]

    def var(self, name: str, block: Any, lines: list[str], indent: str) -> str:
        """Return the node of a variable; draw it when it is met for the first time."""
        desc = block.var(name)
        if desc not in self.names:
            self.names[desc] = f"v{len(self.names)}"
            style = ", style=filled" if desc.persistable else ""
            label = _escape(f"{name}\n{desc.type_text}")
            lines.append(f'{indent}{self.names[desc]} [label="{label}", shape=ellipse{style}]')
        return self.names[desc]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
