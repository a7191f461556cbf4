"""The kernels of a group: CUDA C++ written from its description.

A group whose elements are independent goes over all of them; a thread takes 16 bytes at a time. In
other groups a row belongs to a team of threads: a single thread, up to 32 side by side, or a block.
The team goes over the line once for each pass, and its threads make the result together. When a
pass needs a value of an earlier pass, the thread that stored the value reads it, or computes it
again.

A sum over rows leaves parts, and a second kernel adds the parts up in their order: results are the
same at every run. Numbers that are summed before all rows have a kernel of their own, too.

Sizes are written out, so the compiler knows them. Nothing here needs CuPy or a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from oneflow_lite.static.fusion.cuda_text import (
    PRELUDE,
    STORED,
    Types,
    computed,
    cuda_literal,
    function,
)
from oneflow_lite.static.fusion.group import DTYPES, END, PASSES, Group, Made, Strides, dims_of
from oneflow_lite.static.fusion.writer import GroupWriter, indented, size_of
from oneflow_lite.static.ir.program import Block

CUDA_DTYPES = DTYPES | {np.dtype("float16")}
OPTIONS = ("-std=c++17",)
THREADS = 256  # of a block
VECTOR = 16  # bytes that a thread loads at once
_MOST_ARRAYS = 500  # of a kernel, whose parameters take 4 KiB
_MOST_BLOCKS, _MOST_PARTS = 4096, 512  # of a grid; of one that leaves sums
_FEW = 4  # packs of a line that each of 32 threads takes before all threads of a block do
_MOST_SUMS = 64  # sums of columns in the registers of a thread
_EXTREME = {"amax": ("maximum", "Highest", -1), "amin": ("minimum", "Lowest", 1)}


@attrs.frozen
class CudaSource:
    """The source of a group, and the launches of its kernels, in order.

    Attributes
    ----------
    text : str
    launches : list of (str, tuple of int)
        The name of each kernel, and its grid in blocks of `THREADS` threads. All of them take the
        inputs, the outputs, and the parts of sums.
    parts : list of int
        How many doubles each array of parts of sums holds.
    packed : tuple of int
        Numbers of the arrays that must begin at a multiple of 16 bytes.
    """

    text: str
    launches: list[tuple[str, tuple[int, ...]]]
    parts: list[int]
    packed: tuple[int, ...]


def cuda_source_of(group: Group, block: Block, *, packed: bool = True) -> CudaSource:
    """Return the source of a group.

    Parameters
    ----------
    group : Group
    block : Block
        Has its variables.
    packed : bool
        Whether threads load and store several elements at once; arrays are aligned then.

    Raises
    ------
    ValueError
        For a value from within a line of several dimensions, more arrays than a kernel takes, and
        ends that need more than sums.
    """
    return _CudaWriter(group, block, packed).written()


@attrs.define
class _RowSum:
    """The way in which a sum over rows is made.

    Attributes
    ----------
    number : int
        Of its array of parts.
    dims : tuple of int
        The dimensions of the group that the parts follow, each of them written once. Empty where
        there is one part, or one for each block.
    in_registers : bool
        Whether a thread adds up what belongs to a column, for all rows that it sees.
    """

    number: int
    dims: tuple[int, ...] = ()
    in_registers: bool = False


class _CudaWriter(GroupWriter):
    def __init__(self, group: Group, block: Block, packed: bool) -> None:
        super().__init__(group, block)
        self.types = Types(index=np.dtype("int64"))
        for name, operand in group.operands.items():
            self.types[name] = computed(block.var(operand.variable).dtype)
        for step in group.steps:
            dtype = step.dtype or self.types.of(step.value)[1]
            self.types[step.name] = computed(dtype)
        self.plan()
        self.size = math.prod(group.shape)
        self.last = group.line[-1]
        self.stores_numbers = False  # whether the kernel being written stores
        self.packed: set[str] = set()  # the arrays that are read or written in packs
        self._shape_threads(packed)

    def _shape_threads(self, packed: bool) -> None:
        """Decide how threads share the work, and how sums over rows are made."""
        group, last = self.group, self.last
        is_inner = last == len(group.shape) - 1
        outputs = [s for s in group.steps if s.output is not None and s.level < END]
        combines = [
            s for s in group.steps if s.combine and s.level < END and s.name not in self.early
        ]
        totals = [s for s in group.ends if not s.inside or dims_of(s.strides)]
        self.is_flat = not (combines or totals) and all([s.output_strides[last] for s in outputs])
        # A line divided among blocks: nothing is made of a whole one.
        divides = not combines and all([s.inside and s.strides[last] for s in group.ends])
        kept = [self.line & dims_of(s.strides) for s in group.ends]
        self.is_merged = all([not dims or last in dims for dims in kept])
        self.width = self._width() if packed and is_inner else 1
        self.count = group.line_count if self.is_merged else group.shape[last]
        packs = self.count // self.width
        if divides:
            packs = min(packs, _FEW * THREADS)
        self.team = THREADS if packs > 32 * _FEW else min(1 << (packs - 1).bit_length(), 32)
        if not is_inner:  # side by side in memory are rows
            self.team = 1
        self.packs, self.turns = packs, -(-packs // self.team)
        columns = [s for s in group.ends if s.inside and dims_of(s.strides) == {last}]
        few = self.turns * self.width * len(columns) <= _MOST_SUMS and len(group.line) == 1
        self.sums: dict[str, _RowSum] = {}
        for step in [each for each in group.steps if each.combine == "total"]:
            row_sum = self.sums[step.name] = _RowSum(len(self.sums))
            dims = dims_of(step.strides)
            if few and step in columns and group.rows:
                row_sum.in_registers = True
            elif dims:
                deepest = max(dims & self.line, default=-1)
                row_sum.dims = tuple(sorted({*group.rows, *[d for d in self.line if d <= deepest]}))

    def _width(self) -> int:
        """Return how many elements a thread takes at once: 16 bytes of the largest."""
        group, last = self.group, self.last
        lies = [(o.variable, o.strides) for o in group.operands.values()]
        lies += [(s.output, s.output_strides) for s in group.steps if s.output and s.level < END]
        sizes = [self.block.var(n).dtype.itemsize for n, strides in lies if strides[last] == 1]
        width = VECTOR // max(sizes, default=VECTOR)
        while group.shape[last] % width and not (self.is_flat and len(group.shape) == 1):
            width //= 2
        return width

    def written(self) -> CudaSource:
        """Return the source."""
        group = self.group
        arrays = [f"const {self._stored_as(n)}* __restrict__ {a}" for n, a in self.arrays.items()]
        arrays += [f"{self._stored_as(n)}* __restrict__ {y}" for n, y in self.targets.items()]
        arrays += [f"double* __restrict__ s{each.number}" for each in self.sums.values()]
        if len(arrays) > _MOST_ARRAYS:
            raise ValueError(f"a kernel of {len(arrays)} arrays; it takes {_MOST_ARRAYS}")
        kernels: list[tuple[str, list[str], tuple[int, ...]]] = [
            (f"begin{self.sums[s.name].number}", self._begin(s), (1,))
            for s in group.steps
            if s.combine and s.name in self.early
        ]
        self.stores_numbers = True
        main, grid = self._flat() if self.is_flat else self._rows()
        kernels.append(("group", [*self._numbers(), *main], grid))
        self.stores_numbers = False
        for n, (strides, steps) in enumerate(self.at_ends().items()):
            size = size_of(group, strides)
            kernels.append((f"end{n}", self._end(size, steps, grid), (-(-size // _side(size)),)))
        head = f'extern "C" __global__ void __launch_bounds__({THREADS}) '
        texts = [function(head + name, arrays, lines) for name, lines, _ in kernels]
        names = [*self.arrays.values(), *self.targets.values()]
        return CudaSource(
            "\n".join([PRELUDE, *texts]),
            [(name, size) for name, _, size in kernels],
            [self._parts(step, grid) for step in group.steps if step.name in self.sums],
            tuple([i for i, name in enumerate(names) if name in self.packed]),
        )

    # How this writer spells names, reads and stores

    def let(self, name: str, text: str) -> str:
        """Return the line that names a value."""
        return f"const auto {name} = {text.replace('//', '/')};"

    def element(self, variable: str, index: str) -> str:
        """Return the expression that reads an element of an input."""
        return f"value({self.arrays[variable]}[{index}])"

    def cast(self, step: Made, value: str) -> str:
        """Return a value as the step rounds it."""
        text, _ = self.types.of(value)
        if step.dtype == np.float16:
            return f"value(to_half((float)({text})))"
        return text if step.dtype is None else f"({STORED[str(step.dtype)]})({text})"

    def stored(self, step: Made) -> list[str]:
        """Return the line that stores what is made once for a row, or once."""
        if step.output is None or not self.stores_numbers:
            return []
        place = f"{self.targets[step.output]}[{self.index(step.output_strides)}]"
        who = "alive && lane == 0"
        if step.name in self.early:
            who = "blockIdx.x + blockIdx.y + threadIdx.x == 0"
        return [f"if ({who}) store({place}, {step.name});"]

    def clipped(self, at: str, last: int) -> str:
        """Return a place that is one of the line."""
        return f"minimum(maximum((long long)({self.types.of(at)[0]}), 0ll), {last}ll)"

    def _stored_as(self, name: str) -> str:
        return STORED[str(self.block.var(name).dtype)]

    # The elements of one pass

    def _elements(self, number: int, width: int) -> list[str]:
        """Return the lines that load, compute and store `width` elements that lie side by side."""
        before: list[str] = []
        inner: list[str] = [self.let("index", self.line_index() + (" + v" if width > 1 else ""))]
        after: list[str] = []
        loaded: set[str] = set()
        needed, roots = self.needed(number), self.roots[number]

        def load(names: Sequence[str]) -> None:
            for name in names:
                if name not in loaded and self.is_loaded(name):
                    operand = self.group.operands[name]
                    read(name, self.arrays[operand.variable], operand.variable, operand.strides)

        def read(name: str, array: str, variable: str, strides: Strides) -> None:
            loaded.add(name)
            if self._is_packed(strides, width):
                self.packed.add(array)
                pack = f"const Pack<{self._stored_as(variable)}, {width}>"
                before.append(f"{pack} {name}_ = *({pack}*)({array} + {self.index(strides)});")
                inner.append(self.let(name, f"value({name}_.at[v])"))
            else:
                place = self._index_of_one(strides, width)
                lines = inner if strides[self.last] else before
                lines.append(self.let(name, f"value({array}[{place}])"))

        def store(step: Made) -> None:
            assert step.output is not None
            strides, y = step.output_strides, self.targets[step.output]
            if self._is_packed(strides, width):
                self.packed.add(y)
                pack = f"Pack<{self._stored_as(step.output)}, {width}>"
                before.append(f"{pack} {y}_;")
                inner.append(f"store({y}_.at[v], {step.name});")
                after.append(f"*({pack}*)({y} + {self.index(strides)}) = {y}_;")
            else:
                place = self._index_of_one(strides, width)
                inner.append(f"store({y}[{place}], {step.name});")

        op = None
        for step in needed:
            if step.name in self.kept and step.level < number:
                assert step.output is not None
                read(step.name, self.targets[step.output], step.output, step.output_strides)
                continue
            load(step.needs)
            if step.call.op is not op:
                op = step.call.op
                inner.append(f"// {self.heading(step)}")
            inner.append(self.let(step.name, self.cast(step, step.value)))
            if step.level == number and step.output is not None and self.is_stored_inside(step):
                store(step)
        for step in roots:
            load(step.needs)
            if step.combine:
                inner.append(self._combined(step, width))
            elif not self.is_inside(step):  # one value for each row, stored everywhere
                store(step)
        if width > 1:
            inner = [
                "#pragma unroll",
                f"for (int v = 0; v < {width}; ++v) {{",
                *indented(inner),
                "}",
            ]
        return [*before, *inner, *after]

    def _combined(self, step: Made, width: int) -> str:
        """Return the line that adds a value to its sum or extreme."""
        value, total = self.types.of(step.value)[0], f"r{step.name}"
        if step.combine in _EXTREME:
            function, _, _ = _EXTREME[step.combine]
            return f"{total} = {function}({total}, (decltype({total}))({value}));"
        each = self.sums.get(step.name)
        if each is not None and each.in_registers:
            total += f"[k * {width} + v]" if width > 1 else "[k]"
        elif each is not None and self.last in each.dims:
            place = self._index_of_one(self._dense(each.dims), width)
            return f"s{each.number}[{place}] = {value};"
        return f"{total} += {value};"

    def _is_packed(self, strides: Strides, width: int) -> bool:
        others = [n for d, n in enumerate(strides) if d != self.last]
        return width > 1 and strides[self.last] == 1 and not any([n % width for n in others])

    def _index_of_one(self, strides: Strides, width: int) -> str:
        return self.index(strides, {self.last: f"({self.j(self.last)} + v)"} if width > 1 else None)

    def _dense(self, dims: Sequence[int]) -> Strides:
        """Return the strides of an array that follows these dimensions, in C order."""
        strides, step = [0] * len(self.group.shape), 1
        for d in reversed(dims):
            strides[d] = step
            step *= self.group.shape[d]
        return tuple(strides)

    # Kernels

    def _index_type(self) -> str:
        lies = [o.strides for o in self.group.operands.values()]
        shape = self.group.shape
        most = [sum([(n - 1) * abs(by) for n, by in zip(shape, s, strict=True)]) for s in lies]
        return "int" if max([self.size, *most]) < 1 << 30 else "long long"

    def _numbers(self, until: Made | None = None) -> list[str]:
        """Return the lines for values that are the same for all rows."""
        lines = [
            self.let(name, self.element(operand.variable, "0"))
            for name, operand in self.group.operands.items()
            if not dims_of(operand.strides)
        ]
        for step in self.group.steps:
            if step is until:
                break
            if step.combine and step.name in self.early:
                lines.append(self.let(f"r{step.name}", f"s{self.sums[step.name].number}[0]"))
                lines += [self.let(step.name, self.cast(step, f"r{step.name}"))]
                lines += self.stored(step)
            elif step.name in self.early:
                lines += self.assigned(step)
        return lines

    def _begin(self, step: Made) -> list[str]:
        """Return the kernel that sums a number up before all rows, in one block."""
        rows, index = self.group.row_count, self._index_type()
        body = self.row_steps(step.needs, lambda s: s.level == 0)
        body.append(f"total += {self.types.of(step.value)[0]};")
        return [
            *self._numbers(step),
            "double total = 0;",
            f"for ({index} row = threadIdx.x; row < {rows}; row += {THREADS}) {{",
            *indented([*self.row_head(), *body]),
            "}",
            f"total = team<{THREADS}>(total);",
            f"if (threadIdx.x == 0) s{self.sums[step.name].number}[0] = total;",
        ]

    def _in_line(self) -> list[str]:
        """Return the indices in a line of several dimensions."""
        line, shape = self.group.line, self.group.shape
        if len(line) == 1:
            return []
        lines, step = [], 1
        for d in reversed(line):
            around = "" if d == line[0] else f" % {shape[d]}"
            lines.append(self.let(f"j{d}", f"j / {step}{around}"))
            step *= shape[d]
        return lines

    def _flat(self) -> tuple[list[str], tuple[int, ...]]:
        group, size, width, index = self.group, self.size, self.width, self._index_type()
        most = _MOST_PARTS if group.ends else _MOST_BLOCKS
        blocks = min(-(-(size // width) // THREADS) or 1, most)

        def some(width: int) -> list[str]:
            body = self._row_code(0)
            body += self._elements(0, width)
            rows = [self.let("row", f"i / {group.line_count}")] if group.rows else []
            around = f"i % {group.line_count}" if group.rows else "i"
            head = [*rows, self.let("j", around), *self._in_line()]
            return indented([*head, *self.row_head(), *body])

        lines = [
            f"const {index} first = ({index})blockIdx.x * {THREADS} + threadIdx.x;",
            f"const {index} step = ({index})gridDim.x * {THREADS};",
            *[f"double r{step.name} = 0;" for step in group.ends],
            f"for ({index} i = first * {width}; i + {width} <= {size}; i += step * {width}) {{",
            *some(width),
            "}",
        ]
        if size % width:
            start = size - size % width
            lines += [
                f"for ({index} i = {start} + first; i < {size}; i += step) {{",
                *some(1),
                "}",
            ]
        return [*lines, *self._left()], (blocks,)

    def _row_code(self, number: int) -> list[str]:
        """Return the lines that run once for each row before a pass."""
        lines = []
        for step in self.of_rows(number):
            if step.combine == "total":
                value, each = self.types.of(step.value)[0], self.sums[step.name]
                place = f"s{each.number}[{self.index(self._dense(each.dims))}] ="
                target = place if each.dims else f"r{step.name} +="
                lines.append(f"if (alive && lane == 0) {target} {value};")
            elif step.combine in PASSES:
                lines += self.stored(step)
            else:
                lines += self.assigned(step)
        return lines

    def _rows(self) -> tuple[list[str], tuple[int, ...]]:
        group, team, width, index = self.group, self.team, self.width, self._index_type()
        rows, teams, chunk = group.row_count, THREADS // self.team, self.packs * self.width
        chunks = -(-self.count // chunk)
        of_blocks = [s for s in group.ends if not self.sums[s.name].dims]
        most = max((_MOST_PARTS if of_blocks else _MOST_BLOCKS) // chunks, 1)
        grid = (chunks, min(-(-rows // teams), most))
        body = []
        for number in range(group.passes):
            body += [*self._row_code(number), *self._pass(number)]
        lines = [
            f"const int lane = threadIdx.x % {team};",
            self.let("left", f"({index})blockIdx.x * {chunk}" if chunks > 1 else f"({index})0"),
        ]
        for step in of_blocks:
            size = f"[{self.turns * width}] = {{}}" if self.sums[step.name].in_registers else " = 0"
            lines.append(f"double r{step.name}{size};")
        lines += [
            f"for ({index} base = ({index})blockIdx.y * {teams}; base < {rows}; "
            f"base += ({index})gridDim.y * {teams}) {{",
            f"    const bool alive = base + threadIdx.x / {team} < {rows};",
            f"    const {index} row = alive ? base + threadIdx.x / {team} : {rows - 1};",
            *indented([*self.row_head(), *body]),
            "}",
        ]
        return [*lines, *self._left()], grid

    def _pass(self, number: int) -> list[str]:
        """Return the code of one pass over the line."""
        group, team, width, roots = self.group, self.team, self.width, self.roots[number]
        if not roots:
            return []
        before: dict[int, list[str]] = {d: [] for d in (-1, *group.line)}  # by dimension
        after: dict[int, list[str]] = {d: [] for d in (-1, *group.line)}
        for step in roots:
            total, each = f"r{step.name}", self.sums.get(step.name)
            if step.combine in PASSES:
                least, how = "0", "Sum"
                dtype = "double"
                if step.combine in _EXTREME:
                    _, how, sign = _EXTREME[step.combine]
                    dtype = STORED[str(self.types[step.name])]
                    least = f"({dtype}){cuda_literal(sign * np.inf, np.dtype('float64'))}"
                before[-1].append(f"{dtype} {total} = {least};")
                made = f"team<{team}, {how}>({total})"
                after[-1].append(self.let(f"{total}_", made))
                after[-1].append(self.let(step.name, self.cast(step, f"{total}_")))
            elif each is not None and each.dims and self.last not in each.dims:
                depth = max(self.line.intersection(each.dims), default=-1)
                place = f"s{each.number}[{self.index(self._dense(each.dims))}]"
                before[depth].append(f"double {total} = 0;")
                after[depth] += [
                    f"{total} = team<{team}>({total});",
                    f"if (alive && lane == 0) {place} = {total};",
                ]
        j = "j" if self.is_merged else self.j(self.last)
        inner = [
            f"const {self._index_type()} {j} = left + (k * {team} + lane) * {width};",
            f"if (alive && {j} < {self.count}) {{",
            *indented(
                [*(self._in_line() if self.is_merged else []), *self._elements(number, width)]
            ),
            "}",
        ]
        lines = [
            "#pragma unroll" + ("" if self.turns <= 2 * _FEW or self._has_columns() else " 1"),
            f"for ({self._index_type()} k = 0; k < {self.turns}; ++k) {{",
            *indented(inner),
            "}",
        ]
        for d in reversed(() if self.is_merged else group.line[:-1]):
            name = self.j(d)
            lines = [
                f"for (int {name} = 0; {name} < {group.shape[d]}; ++{name}) {{",
                *indented([*before[d], *lines, *after[d]]),
                "}",
            ]
        return [*before[-1], *lines, *after[-1]]

    def _has_columns(self) -> bool:
        return any([each.in_registers for each in self.sums.values()])

    def _left(self) -> list[str]:
        """Return the lines that leave the sums of a block."""
        lines = []
        team, width = self.team, self.width
        for step in self.group.ends:
            each, total = self.sums[step.name], f"r{step.name}"
            if each.in_registers:
                lines += [
                    f"for (int k = 0; k < {self.turns}; ++k) for (int v = 0; v < {width}; ++v) {{",
                    f"    const auto j = left + (k * {team} + lane) * {width} + v;",
                    f"    const double sum = sum_of_teams<{team}>({total}[k * {width} + v]);",
                    f"    if (threadIdx.x < {team} && j < {self.count}) "
                    f"s{each.number}[blockIdx.y * (long long){self.count} + j] = sum;",
                    "}",
                ]
            elif not each.dims:
                lines += [
                    f"{total} = team<{THREADS}>({total});",
                    "if (threadIdx.x == 0) "
                    f"s{each.number}[blockIdx.y * gridDim.x + blockIdx.x] = {total};",
                ]
        return lines

    def _parts(self, step: Made, grid: Sequence[int]) -> int:
        each = self.sums[step.name]
        if step.name in self.early:
            return 1
        if each.in_registers:
            return grid[1] * self.count
        return math.prod([self.group.shape[d] for d in each.dims]) if each.dims else math.prod(grid)

    def _end(self, size: int, steps: list[Made], grid: Sequence[int]) -> list[str]:
        """Return the kernel that adds up the parts of some sums."""
        side, shape = _side(size), self.group.shape
        lines = [
            f"const int lane = threadIdx.x / {side};",
            f"const long long k = (long long)blockIdx.x * {side} + threadIdx.x % {side};",
        ]
        known = {s.name for s in steps} | self.early
        known |= {n for n, o in self.group.operands.items() if not dims_of(o.strides)}
        for step in steps:
            value, each = step.value, self.sums.get(step.name)
            if each is not None:
                count, terms = self._parts(step, grid) // size, [f"p * {size}ll", "k"]
                if each.dims:
                    dense = self._dense(each.dims)
                    own = [d for d in each.dims if step.strides[d]]
                    terms = [f"k / {step.strides[d]} % {shape[d]} * {dense[d]}" for d in own]
                    others = [d for d in each.dims if not step.strides[d]]
                    by = 1
                    for d in reversed(others):
                        terms.append(f"p / {by} % {shape[d]} * {dense[d]}")
                        by *= shape[d]
                value = f"r{step.name}_"
                lines += [
                    f"double r{step.name} = 0;",
                    f"if (k < {size})",
                    f"    for (long long p = lane; p < {count}; p += {THREADS // side})",
                    f"        r{step.name} += s{each.number}[{' + '.join(terms)}];",
                    self.let(value, f"sum_of_teams<{side}>(r{step.name})"),
                ]
            elif not known.issuperset([n for n in step.needs if n[0] in "tx" and n in self.types]):
                raise ValueError(f"the end of {step.call.op.type} needs more than sums")
            lines.append(self.let(step.name, self.cast(step, value)))
            if step.output is not None:
                y = self.targets[step.output]
                lines.append(f"if (lane == 0 && k < {size}) store({y}[k], {step.name});")
        return [*self._numbers(), *lines]


def _side(size: int) -> int:
    """Return how many sums a block adds up: a whole warp's, or one."""
    return 32 if size >= 32 else 1
