"""The loops of a group: Python source that Numba compiles, written from the ops' expressions.

A group goes over elements in rows and columns. An operand is `full`, or the same in all rows (one
number for each `column`), or the same in all columns (one for each `row`), or a `number`. Where
there are no rows to tell apart, one flat loop goes over all elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from oneflow_lite.dtype import DType
from oneflow_lite.scalar_expression import scalar_of
from oneflow_lite.static.ir.program import Block, OpDesc

REDUCTIONS = ("sum", "mean", "sum_to")
DTYPES = frozenset(map(np.dtype, "float32 float64 int32 int64 int16 int8 uint8 bool".split()))
_BLOCK = 4096  # elements that are added up before their sum goes to the compensated total


@attrs.define(eq=False)
class Group:
    """Ops that run as one loop.

    Attributes
    ----------
    ops : list of OpDesc
        In order; nothing in the group reads what a reduction among them makes.
    rows, columns : int
        The elements that it goes over.
    inputs, outputs : list of str
        Variables from outside, and those that are used outside.
    kinds : dict of str to str
        How each operand lies: "full", "column", "row" or "number".
    stands_for : dict of str to str
        The variable of which another one is an expanded view.
    numbers : dict of str to number
        The variables that are one known number at all places.
    """

    ops: list[OpDesc]
    rows: int
    columns: int
    inputs: list[str]
    outputs: list[str]
    kinds: dict[str, str]
    stands_for: dict[str, str]
    numbers: dict[str, float]

    @property
    def is_flat(self) -> bool:
        """Whether one loop over all elements will do."""
        return not {"row", "column"}.intersection(self.kinds.values())

    @property
    def steps(self) -> int:
        """How many steps the outer loop has, which may be divided among threads."""
        return self.rows * self.columns if self.is_flat else self.rows

    @property
    def partial_sums(self) -> list[tuple[tuple[int, ...], int, int]]:
        """The sums that each thread makes on its own: shape, number of the output, divisor."""
        found: list[tuple[tuple[int, ...], int, int]] = []
        for op in self.ops:
            kind = self.kinds[op.outputs[0]]
            if op.type in REDUCTIONS and kind != "row":
                shape = (self.columns,) if kind == "column" else ()
                count = self.rows if kind == "column" else self.rows * self.columns
                position = self.outputs.index(op.outputs[0])
                found.append((shape, position, count if op.type == "mean" else 1))
        return found


def kind_of(shape: Sequence[int], whole: Sequence[int], columns: int) -> str | None:
    """Return how an operand of one shape lies in a larger one; None where it is none of these.

    >>> from oneflow_lite.static.fusion.loops import kind_of
    >>> [kind_of(shape, (4, 2, 3), 6) for shape in ((4, 2, 3), (2, 3), (4, 1, 1), (1,), (4, 1, 3))]
    ['full', 'column', 'row', 'number', None]
    """
    size, count = math.prod(shape), math.prod(whole)
    if size == 1:
        return "number"
    if size == count and [n for n in shape if n != 1] == [n for n in whole if n != 1]:
        return "full"
    split = len(whole)
    while split and math.prod(whole[split:]) < columns:
        split -= 1
    if math.prod(whole[split:]) == columns and len(shape) <= len(whole):
        padded = (1,) * (len(whole) - len(shape)) + tuple(shape)
        if padded == (1,) * split + tuple(whole[split:]):
            return "column"
        if padded == tuple(whole[:split]) + (1,) * (len(whole) - split):
            return "row"
    return None


def kept_shape(op: OpDesc, block: Block, whole: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of an op's output, with the dimensions that it has reduced kept as 1."""
    if op.type not in REDUCTIONS or "dim" not in op.attrs:
        return block.var(op.outputs[0]).shape
    return tuple(1 if i in op.attrs["dim"] else n for i, n in enumerate(whole))


def source_of(group: Group, block: Block) -> str:
    """Return the source of `group(part, begin, end, *inputs, *outputs, *sums)`.

    It goes over the rows, or elements, from `begin` to `end`, and leaves its sums at `part`. What
    counts is without a sign: an index that might be negative would count from the end, which LLVM
    reads element by element.
    """
    return _Writer(group, block).written()


class _Writer:
    """Collects lines by where they stand: around all loops, in the outer one, in the inner one."""

    def __init__(self, group: Group, block: Block) -> None:
        self.group, self.block = group, block
        self.names: dict[str, str] = {}
        self.targets = {name: f"y{i}" for i, name in enumerate(group.outputs)}
        self.at = "i" if group.is_flat else "at + j"
        self.sums = 0
        self.before: list[str] = []
        self.outer: list[str] = []
        self.inner: list[str] = []
        self.outer_end: list[str] = []
        self.after: list[str] = []

    def written(self) -> str:
        """Return the source."""
        group = self.group
        for i, name in enumerate(group.inputs):
            self._load(name, str(i))
        for name, target in self.targets.items():
            self._flatten(name, target)
        for i, op in enumerate(group.ops):
            line = "" if op.location is None else f", line {op.location.line}"
            self.inner.append(f"# {op.type}{line}")
            if op.type in REDUCTIONS:
                self._reduce(op)
            else:
                self._compute(op, f"t{i}")
        arrays = [f"a{i}" for i in range(len(group.inputs))]
        arrays += [*self.targets.values(), *[f"s{i}" for i in range(self.sums)]]
        lines = [*self.before, *self._loops(), *self.after]
        return "\n    ".join([f"def group(part, begin, end, {', '.join(arrays)}):", *lines]) + "\n"

    def _loops(self) -> list[str]:
        columns = self.group.columns
        if self.group.is_flat and not self.outer:
            return ["for i in range(begin, end):", *_indented(self.inner)]
        if self.group.is_flat:
            head = f"for block in range(begin, end, uint64({_BLOCK})):"
            loop = f"for i in range(block, min(block + uint64({_BLOCK}), end)):"
        else:
            head = "for row in range(begin, end):"
            self.outer.append(f"at = row * uint64({columns})")
            loop = f"for j in range(uint64({columns})):"
        body = [*self.outer, loop, *_indented(self.inner), *self.outer_end]
        return [head, *_indented(body)]

    def _flatten(self, name: str, array: str) -> None:
        shape = self.block.var(name).shape
        if shape:
            self.before.append(f"{array} = {array}.reshape({math.prod(shape)})")

    def _load(self, name: str, number: str) -> None:
        array, local = f"a{number}", f"x{number}"
        self._flatten(name, array)
        self.names[name] = local
        first = "0" if self.block.var(name).shape else "()"
        lines, at = {
            "full": (self.inner, self.at),
            "column": (self.inner, "j"),
            "row": (self.outer, "row"),
            "number": (self.before, first),
        }[self.group.kinds[name]]
        lines.append(f"{local} = {array}[{at}]")

    def _operand(self, name: str) -> str:
        name = self.group.stands_for.get(name, name)
        if name in self.names:
            return self.names[name]
        return _literal(self.group.numbers[name], self.block.var(name).dtype)

    def _compute(self, op: OpDesc, result: str) -> None:
        name = op.outputs[0]
        output = self.block.var(name)
        dtype = output.dtype
        if dtype.kind == "b":  # numbers are of the dtype of what they are compared with
            dtypes = [self.block.var(n).dtype for n in op.reads]
            dtype = next((d for d in dtypes if d.kind != "b"), dtype)
        given = zip(op.schema.inputs, op.inputs, strict=True)
        names = {p: self._operand(n) for p, n in given if n is not None}
        power = self._small_power(op)
        if power:
            lines = [f"{result} = {' * '.join([names['x']] * power)}"]
        else:
            scalar = scalar_of(op.type, op.attrs)
            assert scalar is not None
            lines = scalar.steps(names, result, lambda x: _literal(x, dtype), op.attrs)
        target, _, value = lines[-1].partition(" = ")
        lines[-1] = f"{target} = {output.dtype}({value})"
        self.inner += lines
        self.names[name] = result
        if name in self.targets:
            self.inner.append(
                f"{self.targets[name]}[{self.at if output.shape else '()'}] = {result}"
            )

    def _small_power(self, op: OpDesc) -> int:
        """Return a constant exponent that is a few multiplications; 0 where there is none."""
        name = (op.inputs[1] or "") if op.type == "pow" else ""
        number = self.group.numbers.get(self.group.stands_for.get(name, name))
        return int(number) if number in (1, 2, 3, 4) else 0

    def _reduce(self, op: OpDesc) -> None:
        name = op.outputs[0]
        target, kind = self.targets[name], self.group.kinds[name]
        value = self._operand(op.inputs[0] or "")
        if kind == "row":
            share = f" / {self.group.columns}" if op.type == "mean" else ""
            self.outer.append(f"r{target} = 0.0")
            self.inner.append(f"r{target} = add(r{target}, {value})")
            cast = self.block.var(name).dtype
            self.outer_end.append(f"{target}[row] = {cast}(r{target}{share})")
            return
        n = self.sums
        self.sums += 1
        if kind == "column":
            self.before.append(f"c{n} = s{n}[part]")
            self.inner.append(f"c{n}[j] += {value}")
            return
        self.before.append(f"c{n} = d{n} = 0.0")
        self.outer.append(f"b{n} = 0.0")
        self.inner.append(f"b{n} = add(b{n}, {value})")
        self.outer_end.append(f"c{n}, d{n} = compensated(c{n}, d{n}, b{n})")
        self.after.append(f"s{n}[part] = c{n} + d{n}")


def _literal(value: object, dtype: DType) -> str:
    number = np.asarray(value)
    if dtype.kind == "b" or number.dtype.kind == "b":
        return repr(bool(number))
    if dtype.kind == "f":
        return f"{dtype}({float(number)!r})"  # `inf` and `nan` are names there
    return f"{dtype}({int(number)})"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
