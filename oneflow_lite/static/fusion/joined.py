"""Joined functions: neighbouring ops of a plan as one compiled function.

A part is a fused group, a product of matrices, a copy, or all updates of one kind. Each is an inner
function of addresses, written once for all parts that are alike. A table lists the calls in order,
each by its number and its addresses. It is filled once for memory that stays where it is. So
neither the code nor the call grows with the number of parts that are alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from oneflow_lite.static.fusion.group import Group
from oneflow_lite.static.fusion.loops import source_of
from oneflow_lite.static.fusion.products import Product, product_lines, reach, turning_lines
from oneflow_lite.static.fusion.updates import Update
from oneflow_lite.static.ir.program import Block, OpDesc


@attrs.frozen
class Scratch:
    """A place in memory that a joined function has for itself, in bytes from its begin."""

    begin: int


@attrs.frozen
class Piece:
    """A piece of an array that is written piece by piece: strides and `begin` are in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    begin: int
    made_strides: tuple[int, ...]


@attrs.frozen
class Placed:
    """An array of `size` elements of pieces, which leave nothing out if it is `whole`."""

    pieces: tuple[Piece, ...]
    size: int
    whole: bool


@attrs.frozen
class JoinedPart:
    """One step of a joined function, and how it is written; a copy where nothing says so.

    A group may write an output over the input that `in_place` names.
    """

    ops: tuple[OpDesc, ...]
    made_of: Group | Update | Product | Placed | None = None
    in_place: Mapping[str, str] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Joined:
    """A joined function, before and after it is compiled.

    Attributes
    ----------
    ops : list of OpDesc
        What it stands for, views and copies that cost nothing included.
    given : list of str
        The variables whose array is another one at every run; they are its arguments.
    made : list of str
        Those among them that a run makes.
    table : list of str, int or Scratch
        What stands in the table: the address of a variable, a number, or a place in `scratch`.
    written : set of str
        Variables from outside that updates and copies write: nothing else in them may overlap.
    kept : int
        Numbers that lie between the two stages of updates.
    scratch : int
        Bytes that it needs for itself.
    elements : int
        Elements of all updates; where that is large, threads divide them.
    source : str
    threads : int
        How many divide the elements.
    kernel : callable or None
        What was compiled, of the table, the numbers and the arguments.
    """

    ops: list[OpDesc]
    given: list[str]
    made: list[str]
    table: list[str | int | Scratch]
    written: set[str]
    touched: set[str]
    kept: int
    elements: int
    source: str
    scratch: int = 0
    kernel: Callable[..., None] | None = None
    threads: int = 1

    @property
    def named(self) -> OpDesc:
        """The op that an exception comes from: nothing but updates raises."""
        return next((op for op in self.ops if op.written), self.ops[0])

    def bound(self, arrays: dict[str, Any]) -> Callable[..., None] | None:
        """Return the function around arrays that stay; None where it must not run on them."""
        given = set(self.given)
        names = {x for x in self.table if isinstance(x, str)} - given
        if not names <= arrays.keys():
            return None
        if any([n in names and not arrays[n].flags.writeable for n in self.written]):
            return None
        ranges = []
        for name in self.touched:
            array = arrays.get(name)
            if array is None:
                continue
            if not (array.flags.c_contiguous and array.flags.aligned):
                return None
            begin = array.ctypes.data
            ranges.append((begin, begin + array.nbytes, name in self.written))
        ranges.sort()
        end, was_written = 0, False
        for begin, after, is_written in ranges:
            if begin < end and (is_written or was_written):
                return None
            was_written = is_written or (was_written and end > after)
            end = max(end, after)
        scratch = np.empty(self.scratch, np.uint8)

        def entry(x: str | int | Scratch) -> int:
            if isinstance(x, Scratch):
                return int(scratch.ctypes.data) + x.begin
            return x if isinstance(x, int) else 0 if x in given else arrays[x].ctypes.data

        assert self.kernel is not None
        table, kept = np.array([*map(entry, self.table)], np.int64), np.zeros(self.kept)
        run = partial(self.kernel, table, kept)
        run.arrays = [scratch, *[arrays[name] for name in names]]  # type: ignore[attr-defined]
        return run


def update_time(elements: int, arrays: int) -> float:
    """Return how many nanoseconds an update takes one core, about."""
    return 0.1 * elements * arrays


def write_joined(
    parts: Sequence[JoinedPart],
    ops: list[OpDesc],
    block: Block,
    home: Callable[[str], str | None],
    shared: bool,
) -> Joined:
    """Write the function of some parts.

    Parameters
    ----------
    parts : sequence of JoinedPart
    ops : list of OpDesc
        All that it stands for.
    block : Block
    home : callable
        Returns the variable whose array, given at each run, a variable lies in; None where it has
        an address that stays.
    shared : bool
        Whether threads divide the elements of updates.
    """
    return _JoinedWriter(block, home, shared).written(parts, ops)


class _JoinedWriter:
    def __init__(self, block: Block, home: Callable[[str], str | None], shared: bool) -> None:
        self.block, self.home, self.shared = block, home, shared
        self.inner: dict[str, str] = {}  # sources of inner functions, and their names
        self.texts: list[str] = []
        self.calls: dict[str, int] = {}  # the code of each kind of call, and its number
        self.said: list[str] = []  # of each step, in a comment
        self.table: list[str | int | Scratch] = []
        self.places: dict[str, Scratch] = {}
        self.turned: dict[Any, str] = {}  # what stands for matrices in C order
        self.scratch = 0
        self.given: dict[str, list[int]] = {}
        self.kept = self.elements = 0
        self.written_names: set[str] = set()
        self.touched: set[str] = set()

    def written(self, parts: Sequence[JoinedPart], ops: list[OpDesc]) -> Joined:
        """Return the joined function of some parts."""
        waiting: list[JoinedPart] = []
        for part in parts:
            if waiting and part.made_of is not waiting[0].made_of:
                self._updates(waiting)
                waiting = []
            if isinstance(part.made_of, Update):
                waiting.append(part)
            elif isinstance(part.made_of, Group):
                self._group(part)
            elif isinstance(part.made_of, Product):
                self._product(part.ops[0], part.made_of)
            elif isinstance(part.made_of, Placed):
                self._placed(part.ops[0], part.made_of)
            else:
                self._copy(part.ops[0])
        if waiting:
            self._updates(waiting)
        arguments = [f"v{i}" for i in range(len(self.given))]
        taken = [
            f"{' = '.join(f'at[{slot}]' for slot in slots)} = v{i}.ctypes.data"
            for i, slots in enumerate(self.given.values())
        ]
        head = f"def group({', '.join(['stage', 'begin', 'end', 'at', 'kept', *arguments])}):"
        steps = [f"# {i}. {said}" for i, said in enumerate(self.said)]
        entry = "\n    ".join([head, *steps, *taken, *self._loop()]) + "\n"
        made = {name for op in ops for name in op.new_outputs}
        return Joined(
            ops,
            list(self.given),
            [name for name in self.given if name in made],
            self.table,
            self.written_names,
            self.touched,
            self.kept,
            self.elements,
            "\n".join([*self.texts, entry]),
            self.scratch,
        )

    def _loop(self) -> list[str]:
        """Return the lines that go through the table."""
        lines = ["row = 0", f"for step in range({len(self.said)}):", "    kind = at[row]"]
        for number, code in enumerate(self.calls):
            lines += [f"    {'elif' if number else 'if'} kind == {number}:"]
            lines += [f"        {line}" for line in code.splitlines()]
        return lines

    def _step(self, code: str, said: str) -> None:
        """Add a call, whose addresses follow in the table."""
        self.table.append(self.calls.setdefault(code, len(self.calls)))
        self.said.append(said)

    def _put(self, name: str) -> None:
        """Put a variable's address into the table."""
        place = self.places.get(name)
        home = None if place is not None else self.home(name)
        if home is not None:
            self.given.setdefault(home, []).append(len(self.table))
        self.table.append(place or home or name)

    def _function(self, name: str, text: str) -> str:
        """Return the name of an inner function; TEXT calls it NAME."""
        key = re.sub(r" *#.*", "", text)
        if key not in self.inner:
            self.inner[key] = f"{name}_{len(self.inner)}"
            self.texts.append(text.replace("NAME", self.inner[key]))
        return self.inner[key]

    def _call(self, name: str, text: str, variables: Sequence[str], ops: Sequence[OpDesc]) -> None:
        function = self._function(name, text)
        at = ops[-1].location
        where = "" if at is None else f", line {at.line}"
        types = [op.type for op in ops]
        said = ", ".join(types[:4]) + (", ..." if len(types) > 4 else "")
        addresses = ", ".join([f"at[row + {i + 1}]" for i in range(len(variables))])
        code = f"{function}({addresses})\nrow += {len(variables) + 1}"
        self._step(code, f"{function}: {said}{where}")
        for name in variables:
            self._put(name)

    def _array(self, name: str, address: str, flat: bool = False) -> str:
        desc = self.block.var(name)
        shape = (math.prod(desc.shape),) if flat else desc.shape
        if desc.strides is not None:
            shape = (reach(shape, [s // desc.dtype.itemsize for s in desc.strides]),)
        dtype = "bool_" if desc.dtype.kind == "b" else desc.dtype
        return f"carray(pointer({address}), {shape}, {dtype})"

    def _group(self, part: JoinedPart) -> None:
        group = part.made_of
        assert isinstance(group, Group)
        names = [*group.inputs, *group.outputs]
        source, buffers = source_of(group, self.block, part.in_place)
        loops = self._function("loops", "@loops\n" + source.replace("def group(", "def NAME(", 1))
        addresses = [f"p{i}" for i in range(len(names))]
        arrays = [self._array(n, a) for n, a in zip(names, addresses, strict=True)]
        scratch = [f"zeros((1, {b.size}), {b.dtype})" for b in buffers]
        arguments = ",\n        ".join([*arrays, *scratch])
        lines = [f"{loops}(\n        0, 0, {group.steps_of_outer_loop}, {arguments})"]
        text = "\n    ".join([f"@part\ndef NAME({', '.join(addresses)}):", "stay()", *lines]) + "\n"
        self._call("run", text, names, group.ops)

    def _copy(self, op: OpDesc) -> None:
        source = op.inputs[0] if op.type == "clone" else op.inputs[1]
        target = op.outputs[0] if op.type == "clone" else op.inputs[0]
        assert source is not None and target is not None
        if op.written:
            self.turned.clear()
            self.written_names.add(target)
            self.touched.update((source, target))
        size = math.prod(self.block.var(target).shape)
        text = (
            "@part\ndef NAME(p0, p1):\n"
            "    stay()\n"
            f"    x, y = {self._array(source, 'p0', True)}, {self._array(target, 'p1', True)}\n"
            f"    for i in range(uint64({size})):\n"
            "        y[i] = x[i]\n"
        )
        self._call("copy", text, (source, target), [op])

    def _placed(self, op: OpDesc, placed: Placed) -> None:
        (made,) = op.outputs
        dtype = self.block.var(made).dtype
        lines = [f"for i in range(uint64({placed.size})):", f"    z[i] = {dtype}(0)"]
        sizes = []
        for n, piece in enumerate(placed.pieces):
            places = ["0", str(piece.begin)]
            for d, count in enumerate(piece.shape):
                lines.append("    " * d + f"for i{d} in range(uint64({count})):")
                strides = piece.strides[d], piece.made_strides[d]
                places = [f"{p} + i{d} * uint64({s})" for p, s in zip(places, strides, strict=True)]
            x, z = places
            lines.append("    " * len(piece.shape) + f"z[{z}] = x{n}[{x}] + {dtype}(0)")
            sizes.append(reach(piece.shape, piece.strides))
        letters = [*[f"x{n}" for n in range(len(sizes))], "z"]
        lines = lines[2:] if placed.whole else lines
        self._made_of(op, "placed", (*op.reads, made), letters, (*sizes, placed.size), lines)

    def _product(self, op: OpDesc, product: Product) -> None:
        x, y = (name or "" for name in op.inputs[:2])
        if product.must_turn:
            y, product = self._turned(op, y, product), product.turned()
        names, lines = product_lines(product, self.block.var(op.outputs[0]).dtype)
        self.texts += [name for name in names if name not in self.texts]
        self._made_of(op, "product", (x, y, op.outputs[0]), "xyz", product.sizes, lines)

    def _turned(self, op: OpDesc, name: str, product: Product) -> str:
        """Return the name of the right matrices of a product in C order."""
        key = name, product.y_strides, product.counts, product.y_steps, product.columns
        if key not in self.turned:
            made, dtype = f"turned {len(self.places)}", self.block.var(name).dtype
            self.places[made] = Scratch(self.scratch)
            sizes = [product.sizes[1], product.turned().sizes[1]]
            self.scratch += -(-sizes[1] * dtype.itemsize // 64) * 64
            self._made_of(op, "turned", (name, made), "yz", sizes, turning_lines(product))
            self.turned[key] = made
        return self.turned[key]

    def _made_of(
        self,
        op: OpDesc,
        name: str,
        variables: Sequence[str],
        letters: Sequence[str],
        sizes: Sequence[int],
        lines: Sequence[str],
    ) -> None:
        """Call an inner function of arrays, by letters, which are of one dtype."""
        dtype = self.block.var(op.outputs[0]).dtype
        starts = [
            f"{letter} = start(carray(pointer(p{i}), ({size},), {dtype}))"
            for i, (letter, size) in enumerate(zip(letters, sizes, strict=True))
        ]
        arguments = ", ".join([f"p{i}" for i in range(len(variables))])
        text = "\n    ".join([f"@part\ndef NAME({arguments}):", "stay()", *starts, *lines]) + "\n"
        self._call(name, text, variables, [op])

    def _updates(self, parts: Sequence[JoinedPart]) -> None:
        """Add all updates of one kind: a row of the table for each."""
        self.turned.clear()
        update = parts[0].made_of
        assert isinstance(update, Update)
        text = f"{update.source}\n{_both_stages(update)}".replace(f"{update.name}_", "NAME_")
        function = self._function(update.name, text)
        base, before = self.kept, self.elements
        positions = [*update.arrays, *update.numbers]
        sizes = [math.prod(self.block.var(part.ops[0].inputs[0] or "").shape) for part in parts]
        elements = sum(sizes)
        stages = (
            [f"stage, begin - {before}, end - {before}"]
            if self.shared
            else ["0, 0, 0", f"1, 0, {elements}"]
        )
        code = [f"{function}(at, row + 1, {len(parts)}, kept, {base}, {each})" for each in stages]
        code.append(f"row += {1 + len(parts) * (1 + len(positions))}")
        at = parts[0].ops[0].location
        where = "" if at is None else f", line {at.line}"
        self._step("\n".join(code), f"{update.name}, {len(parts)} times{where}")
        for part, size in zip(parts, sizes, strict=True):
            (op,) = part.ops
            names = [op.inputs[i] or "" for i in positions]
            self.table.append(size)
            for name in names:
                self._put(name)
            self.touched.update(names)
            self.written_names.update(op.written)
        self.elements += elements
        self.kept += update.kept * len(parts)


def _both_stages(update: Update) -> str:
    """Return a function that goes through updates: their numbers first, then their elements."""
    count, width = update.kept, 1 + len(update.arrays) + len(update.numbers)
    found = [f"t{i}" for i in range(count)]
    addresses = [f"at[row + {i}]" for i in range(1, width)]
    kept = [f"kept[k + {i}]" for i in range(count)]
    arrays, numbers = addresses[: len(update.arrays)], addresses[len(update.arrays) :]
    again = ", ".join([f"{update.dtype}({x})" for x in kept])
    return f"""@part
def NAME(at, first, count, kept, base, stage, begin, end):
    for n in range(count):
        row = first + n * {width}
        k = base + n * {count}
        if stage == 0:
            {", ".join(found)}, = NAME_numbers({", ".join(numbers)})
            {", ".join(kept)}, = {", ".join(found)},
        else:
            size = at[row]
            if begin < size and end > 0:
                found = {again},
                NAME_elements(max(begin, 0), min(end, size), found, {", ".join(arrays)})
            begin -= size
            end -= size
"""
