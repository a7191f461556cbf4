"""The loops of a group: Python source that Numba compiles, written from the ops' expressions.

A group goes over elements in rows and columns. An operand is `full`, or the same in all rows (a
`column` for each), or the same in all columns (a `row` for each), or one `number`. The loops take
the rows from `begin` to `end`, or the elements where all operands are full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from oneflow_lite.fusion.scalar import scalar_of
from oneflow_lite.static.ir.program import Block, OpDesc

REDUCTIONS = ("sum", "mean", "sum_to")
_BLOCK = 4096  # elements that are added up before the sum goes to the compensated total


@attrs.define(eq=False)
class Group:
    """Ops that run as one loop.

    Attributes
    ----------
    ops : list of OpDesc
        In order; reductions among them stand at the end of what they reduce.
    rows, columns : int
        The elements that it goes over.
    inputs, outputs : list of str
        Variables from outside, and those that are used outside.
    kinds : dict of str to str
        "full", "column", "row" or "number" for each of them.
    stands_for : dict of str to str
        The variable of which another one is an expanded view.
    numbers : dict of str to number
        The variables that are one known number at all places.
    """

    ops: list[OpDesc]
    rows: int
    columns: int
    inputs: list[str] = attrs.field(factory=list)
    outputs: list[str] = attrs.field(factory=list)
    kinds: dict[str, str] = attrs.field(factory=dict)
    stands_for: dict[str, str] = attrs.field(factory=dict)
    numbers: dict[str, float] = attrs.field(factory=dict)

    @property
    def is_flat(self) -> bool:
        """Whether one loop over all elements will do."""
        return not {"row", "column"}.intersection(self.kinds.values())

    @property
    def steps(self) -> int:
        """How many steps the outer loop has."""
        return self.rows * self.columns if self.is_flat else self.rows

    def partial_sums(self, block: Block) -> list[tuple[int, ...]]:
        """Return the shapes of the sums that each part of the work makes on its own."""
        sums = [op for op in self.ops if op.type in REDUCTIONS]
        shapes = {"number": (), "column": (self.columns,)}
        return [shapes[k] for op in sums if (k := self.kinds[op.outputs[0]]) in shapes]


def kind_of(shape: Sequence[int], whole: Sequence[int], columns: int) -> str | None:
    """Return how an operand of one shape lies in a larger one; None where it is none of these."""
    size = math.prod(shape)
    if size == 1:
        return "number"
    if size == math.prod(whole) and _stripped(shape) == _stripped(whole):
        return "full"
    padded = (1,) * (len(whole) - len(shape)) + tuple(shape)
    split = len(whole)
    while split and math.prod(whole[split:]) < columns:
        split -= 1
    if padded == (1,) * split + tuple(whole[split:]):
        return "column"
    if padded == tuple(whole[:split]) + (1,) * (len(whole) - split):
        return "row"
    return None


def _stripped(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def source_of(group: Group, block: Block) -> str:
    """Return the source of a function `group(part, begin, end, inputs..., outputs..., sums...)`."""
    return _Writer(group, block).written()


class _Writer:
    def __init__(self, group: Group, block: Block) -> None:
        self.group, self.block = group, block
        self.names: dict[str, str] = {}
        self.before: list[str] = []  # by the place in the loops
        self.in_row: list[str] = []
        self.inside: list[str] = []
        self.after_row: list[str] = []
        self.after: list[str] = []
        self.sums: list[str] = []

    def written(self) -> str:
        """Return the source."""
        group = self.group
        for i, name in enumerate(group.inputs):
            self._load(name, f"a{i}")
        targets = {name: f"y{i}" for i, name in enumerate(group.outputs)}
        for name, array in targets.items():
            if self.block.var(name).shape:
                self.before.append(f"{array} = {array}.reshape({self.block.var(name).nbytes // self.block.var(name).dtype.itemsize})")
        for i, op in enumerate(group.ops):
            if op.location is not None:
                self.inside.append(f"# {op.type}, line {op.location.line}")
            if op.type in REDUCTIONS:
                self._reduce(op, targets[op.outputs[0]])
            else:
                self._compute(op, f"t{i}")
                if op.outputs[0] in targets:
                    where = "i" if group.is_flat else "at + j"
                    self.inside.append(f"{targets[op.outputs[0]]}[{where}] = t{i}")
        parameters = ", ".join(
            [*[f"a{i}" for i in range(len(group.inputs))], *targets.values(), *self.sums]
        )
        return "\n".join(
            [f"def group(part, begin, end, {parameters}):", *_indented(self.before, 1), *self._loops(), *_indented(self.after, 1)]
        ) + "\n"

    def _loops(self) -> list[str]:
        if self.group.is_flat:
            if self.sums:
                return [
                    f"    for block in range(begin, end, {_BLOCK}):",
                    *_indented(self.in_row, 2),
                    f"        for i in range(block, min(block + {_BLOCK}, end)):",
                    *_indented(self.inside, 3),
                    *_indented(self.after_row, 2),
                ]
            return ["    for i in range(begin, end):", *_indented(self.inside, 2)]
        columns = self.group.columns
        return [
            "    for row in range(begin, end):",
            f"        at = row * {columns}",
            *_indented(self.in_row, 2),
            f"        for j in range({columns}):",
            *_indented(self.inside, 3),
            *_indented(self.after_row, 2),
        ]

    def _load(self, name: str, array: str) -> None:
        desc, local = self.block.var(name), array.replace("a", "x")
        self.names[name] = local
        kind = self.group.kinds[name]
        if desc.shape:
            count = math.prod(desc.shape)
            self.before.append(f"{array} = {array}.reshape({count})")
        if kind == "number":
            self.before.append(f"{local} = {array}[{'0' if desc.shape else '()'}]")
        elif kind == "full":
            where = "i" if self.group.is_flat else "at + j"
            self.inside.append(f"{local} = {array}[{where}]")
        elif kind == "column":
            self.inside.append(f"{local} = {array}[j]")
        else:
            self.in_row.append(f"{local} = {array}[row]")

    def _operand(self, name: str) -> str:
        name = self.group.stands_for.get(name, name)
        if name in self.names:
            return self.names[name]
        return _literal(self.group.numbers[name], self.block.var(name).dtype)

    def _compute(self, op: OpDesc, result: str) -> None:
        output = self.block.var(op.outputs[0])
        given = dict(zip(op.schema.inputs, op.inputs, strict=True))
        dtype = output.dtype
        if dtype.kind == "b":  # numbers stand beside those that are compared
            kinds = [self.block.var(n).dtype for n in op.reads]
            dtype = next((d for d in kinds if d.kind != "b"), dtype)
        names = {p: self._operand(n) for p, n in given.items() if n is not None}
        scalar = scalar_of(op.type, op.attrs)
        assert scalar is not None
        literal = lambda value: _literal(value, dtype)  # noqa: E731
        power = _small_power(op, self.group)
        if power is not None:
            lines = [f"{result} = {' * '.join([names['x']] * power)}"]
        else:
            lines = scalar.steps(names, result, literal, op.attrs)
        if output.dtype.kind != "b":
            target, _, value = lines[-1].partition(" = ")
            lines[-1] = f"{target} = {_CASTS[output.dtype]}({value})"
        self.inside += lines
        self.names[op.outputs[0]] = result

    def _reduce(self, op: OpDesc, target: str) -> None:
        output, kind = self.block.var(op.outputs[0]), self.group.kinds[op.outputs[0]]
        value = self.names[self.group.stands_for.get(op.inputs[0] or "", op.inputs[0] or "")]
        n = len(self.sums)
        cast = _CASTS[output.dtype]
        count = self.group.rows * self.group.columns / max(math.prod(output.shape), 1)
        share = f" / {count!r}" if op.type == "mean" else ""
        if kind == "row":
            self.in_row.append(f"r{target} = 0.0")
            self.inside.append(f"r{target} = add(r{target}, {value})")
            self.after_row.append(f"{target}[row] = {cast}(r{target}{share})")
            return
        self.sums.append(f"s{n}")
        if kind == "column":
            self.before.append(f"c{n} = s{n}[part]")
            self.inside.append(f"c{n}[j] += {value}")
            return
        self.before.append(f"c{n} = d{n} = 0.0")
        self.in_row.append(f"b{n} = 0.0")
        self.inside.append(f"b{n} = add(b{n}, {value})")
        self.after_row.append(f"c{n}, d{n} = compensated(c{n}, d{n}, b{n})")
        self.after.append(f"s{n}[part] = c{n} + d{n}")


_CASTS: Mapping[np.dtype, str] = {
    np.dtype(name): name for name in ("float32", "float64", "int32", "int64", "int16", "int8", "uint8")
}


def _literal(value: object, dtype: np.dtype) -> str:
    if isinstance(value, bool) or dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind == "f":
        number = float(value)  # type: ignore[arg-type]
        text = repr(number) if math.isfinite(number) else f"float('{number}')"
        if not math.isfinite(number):
            text = {"inf": "inf", "-inf": "-inf", "nan": "nan"}[repr(number)]
        return f"{_CASTS[dtype]}({text})"
    return f"{_CASTS[dtype]}({int(value)})"  # type: ignore[call-overload]


def _small_power(op: OpDesc, group: Group) -> int | None:
    """Return a constant exponent that is a few multiplications."""
    name = op.inputs[1] or "" if op.type == "pow" else ""
    number = group.numbers.get(group.stands_for.get(name, name))
    return int(number) if number in (1, 2, 3, 4) else None


def _indented(lines: Sequence[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]
