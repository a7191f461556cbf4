"""The picture of a Program: Graphviz text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oneflow_lite.static.ir.listing import attrs_text, type_text

if TYPE_CHECKING:
    from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc

_HEAD = """digraph {
  rankdir=TB
  node [shape=box, fontname="monospace", fontsize=10]
  edge [fontname="monospace", fontsize=9]"""
_COLOURS = {"backward": "lightyellow", "optimize": "mistyrose"}


def program_to_dot(program: Program) -> str:
    """Return the DOT text; see `Program.to_dot`."""
    return "\n".join([_HEAD, *_Picture(program).block(program.global_block(), "  "), "}"])


class _Picture:
    """Numbers the nodes in the order in which they are met, so that the text is reproducible."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[VarDesc, str] = {}

    def block(self, block: Block, indent: str) -> list[str]:
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

    def op(self, op: OpDesc, node: str, block: Block, indent: str) -> list[str]:
        """Return the lines of an op: new variables, the op itself, its edges."""
        text = _escape("\n".join(part for part in (op.type, attrs_text(op).strip()) if part))
        colour = _COLOURS.get(op.role)
        style = f', style=filled, fillcolor="{colour}"' if colour else ""
        lines: list[str] = []
        edges = [f"{self.var(name, block, lines, indent)} -> {node}" for name in op.reads]
        for name in dict.fromkeys((*op.outputs, *op.written)):
            written = " [style=dashed]" if name in op.written else ""
            edges.append(f"{node} -> {self.var(name, block, lines, indent)}{written}")
        lines.append(f'{indent}{node} [label="{text}"{style}]')
        return lines + [indent + edge for edge in edges]

    def var(self, name: str, block: Block, lines: list[str], indent: str) -> str:
        """Return the node of a variable; draw it when it is met for the first time."""
        desc = block.var(name)
        if desc not in self.names:
            self.names[desc] = f"v{len(self.names)}"
            style = ", style=filled" if desc.persistable else ""
            label = _escape(f"{name}\n{type_text(desc)}")
            lines.append(f'{indent}{self.names[desc]} [label="{label}", shape=ellipse{style}]')
        return self.names[desc]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
