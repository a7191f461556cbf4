"""The loops of a group: Python source that Numba compiles, written from its description.

One loop goes over the rows; in it, one for each pass over the line, and between those what is made
once for each row. Where there are no rows, one loop goes over all elements. What a pass needs of an
earlier one is computed again where that is cheap; else it waits in a buffer of one line, which
stays in the cache, or is read again where it was stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import attrs

from oneflow_lite.static.fusion.group import DEAR, END, PASSES, Group, Made, dims_of
from oneflow_lite.static.ir.program import Block

BLOCK = 4096  # elements that are added up before their sum goes to the compensated total
# What computing a value again may cost, in additions, before it is rather kept for a later pass,
# and before it is read where it was stored.
_TO_KEEP, _TO_READ = 8, 2
_DEAR = re.compile(rf"\b({'|'.join(DEAR)})\(")
_SLOW = re.compile(r"/|\bsqrt\(")
_NAME = re.compile(r"[A-Za-z_]\w*")


@attrs.frozen
class Buffer:
    """Memory that each thread needs for itself: sums of the end in float64, or values of a line."""

    dtype: str
    size: int


def source_of(group: Group, block: Block) -> tuple[str, list[Buffer]]:
    """Return the source of `group(part, begin, end, *inputs, *outputs, *buffers)`, and its buffers.

    It goes over the rows, or elements, from `begin` to `end`, as number `part` of those that share
    the work. A buffer has a row for each of them. Where they are more than one, a last call with
    -1 for `part` adds up their sums.
    """
    writer = _Writer(group, block)
    return writer.written(), writer.buffers


class _Writer:
    def __init__(self, group: Group, block: Block) -> None:
        self.group, self.block = group, block
        self.steps = {step.name: step for step in group.steps}
        self.line = frozenset(group.line)
        self.targets = {name: f"y{i}" for i, name in enumerate(group.outputs)}
        self.arrays = {name: f"a{i}" for i, name in enumerate(group.inputs)}
        self.buffers: list[Buffer] = []
        self.kept: dict[str, str] = {}  # where a value of an earlier pass is read, by step
        self.roots: list[list[Made]] = []  # what each pass is for
        self.sums: dict[str, int] = {}  # the buffers of the totals
        self.early: set[str] = set()  # the numbers that are made before all rows
        self.bases: dict[tuple[int, ...], str] = {}
        self.row_lines: list[str] = []

    # What each pass makes

    def _plan(self) -> None:
        group = self.group
        self.roots = [[] for _ in range(group.passes)]
        for step in group.steps:
            if step.level == END and step.combine:
                if step.inside:
                    self.roots[self._level(step)].append(step)
            elif step.combine in PASSES:
                self.roots[step.level - 1].append(step)
            elif step.output is not None and step.level < END and self._is_stored_inside(step):
                self.roots[step.level].append(step)
        for step in group.ends:
            self.sums[step.name] = self._buffer("float64", _size(group, step.strides))
        for number in reversed(range(group.passes)):
            self._needed(number)
        for step in group.steps:
            known = self.early.issuperset([n for n in step.needs if n in self.steps])
            is_number = not step.combine and not step.dims and not step.level and known
            if is_number or (step.combine == "total" and step.level != END):
                self.early.add(step.name)

    def _buffer(self, dtype: str, size: int) -> int:
        self.buffers.append(Buffer(dtype, size))
        return len(self.buffers) - 1

    def _level(self, step: Made) -> int:
        """Return the pass in which the value that a step combines is there."""
        return max([self.steps[n].level for n in step.needs if n in self.steps], default=0)

    def _is_inside(self, step: Made) -> bool:
        return bool(step.dims & self.line) and step.level < END and not step.combine

    def _is_stored_inside(self, step: Made) -> bool:
        return bool(dims_of(step.output_strides) & self.line)

    def _needed(self, number: int) -> list[Made]:
        """Return the steps that a pass computes, in order; others it finds in `kept`."""
        found: set[str] = set()

        def visit(name: str) -> None:
            step = self.steps.get(name)
            if step is None or name in found or not self._is_inside(step):
                return
            if step.level < number and name not in self.kept:
                cost = self._cost(step, set())
                if step.output is not None and self._is_stored_inside(step) and cost > _TO_READ:
                    place = self._index(step.output_strides)
                    self.kept[name] = f"{self.targets[step.output]}[{place}]"
                elif cost > _TO_KEEP:
                    size = self.group.line_count
                    buffer = self._buffer(self._dtype(step), size)
                    self.kept[name] = f"v{buffer}[{self._line_index()}]"
                    step.dtype = step.dtype or self.block.var(step.call.op.outputs[0]).dtype
                    self.roots[step.level].append(step)
            found.add(name)
            if step.level == number or name not in self.kept:
                for each in step.needs:
                    visit(each)

        for root in self.roots[number]:
            if self._is_inside(root):
                visit(root.name)
            else:
                for each in root.needs:
                    visit(each)
        return [step for step in self.group.steps if step.name in found]

    def _dtype(self, step: Made) -> str:
        return str(step.dtype or self.block.var(step.call.op.outputs[0]).dtype)

    def _cost(self, step: Made, seen: set[str]) -> int:
        """Return what it costs to compute a value again from what is in memory."""
        if step.name in seen or not self._is_inside(step):
            return 0
        seen.add(step.name)
        own = 20 * len(_DEAR.findall(step.value)) + 4 * len(_SLOW.findall(step.value)) + 1
        if step.name in self.kept:
            return 1
        for name in step.needs:
            if name in self.steps:
                own += self._cost(self.steps[name], seen)
            elif name in self.group.operands and name not in seen:
                seen.add(name)
                own += 1
        return own

    # Where things lie

    def _row_base(self, strides: Sequence[int]) -> str:
        """Return the expression for where a row begins."""
        terms = [_times(self._row(d), strides[d]) for d in self.group.rows if strides[d]]
        return " + ".join(terms)

    def _row(self, dim: int) -> str:
        return "row" if len(self.group.rows) == 1 else f"i{dim}"

    def _base(self, strides: tuple[int, ...]) -> str:
        """Return the name of where a row begins, written once for each row."""
        key = tuple([strides[d] for d in self.group.rows])
        text = self._row_base(strides)
        if text in ("", "row"):
            return text
        if key not in self.bases:
            self.bases[key] = f"p{len(self.bases)}"
            self.row_lines.append(f"{self.bases[key]} = {text}")
        return self.bases[key]

    def _index(self, strides: tuple[int, ...], j: dict[int, str] | None = None) -> str:
        along = [d for d in self.group.line if strides[d]]
        terms = [_times(self._j(d) if j is None else j[d], strides[d]) for d in along]
        return " + ".join(filter(None, [self._base(strides), *terms])) or "0"

    def _j(self, dim: int) -> str:
        return "j" if len(self.group.line) == 1 else f"j{dim}"

    def _line_index(self) -> str:
        """Return where in its line an element stands."""
        terms, step = [], 1
        for d in reversed(self.group.line):
            terms.append(_times(self._j(d), step))
            step *= self.group.shape[d]
        return " + ".join(reversed(terms))

    # Lines of code

    def written(self) -> str:
        """Return the source."""
        group = self.group
        self._plan()
        body = self._rows()
        before = [
            f"{array} = start({array})" for array in (*self.arrays.values(), *self.targets.values())
        ]
        for name, operand in group.operands.items():
            if not dims_of(operand.strides):
                before.append(f"{name} = {self._element(operand.variable, '0')}")
        before += self._early()
        before += [line for step in group.ends for line in self._begin_total(step)]
        lines = [*before, *body, *self._finished()]
        arrays = [*self.arrays.values(), *self.targets.values()]
        arrays += [f"w{i}" for i in range(len(self.buffers))]
        kept = {int(place[1 : place.index("[")]) for place in self.kept.values() if place[0] == "v"}
        first = [f"v{i} = start(w{i}[part])" for i in sorted(kept)]
        if group.calls_functions:
            lines = [_DEAR.sub(r"\1_called(", line) for line in lines]
        head = f"def group(part, begin, end, {', '.join(arrays)}):"
        return "\n    ".join([head, *first, *lines]) + "\n"

    def _element(self, variable: str, index: str) -> str:
        array = self.arrays[variable]
        found = f"{array}[{index}]"
        return f"bool({found})" if self.block.var(variable).dtype.kind == "b" else found

    def _early(self) -> list[str]:
        """Return what makes numbers before all rows: totals over rows, and what comes of them."""
        lines: list[str] = []
        for step in self.group.steps:
            if step.name not in self.early:
                continue
            if not step.combine:
                lines += self._assigned(step)
                continue
            self.bases, before = {}, self.bases
            self.row_lines, rest = [], self.row_lines
            body = self._row_steps(step.needs, lambda s: s.level == 0)
            loads = self._row_loads()
            body = [*self._row_indices(), *self.row_lines, *loads, *body]
            self.bases, self.row_lines = before, rest
            total = f"r{step.name}"
            lines += [
                f"{total} = 0.0",
                f"for row in range({self.group.row_count}):",
                *_indented([*body, f"{total} += {step.value}"]),
                f"{step.name} = {self._cast(step, total)}",
            ]
        return lines

    def _row_steps(self, needs: Sequence[str], wanted: Callable[[Made], bool]) -> list[str]:
        """Return the code of what is made once for a row, and all that it needs."""
        found: set[str] = set()

        def visit(name: str) -> None:
            step = self.steps.get(name)
            if step is not None and name not in found and wanted(step):
                found.add(name)
                if step.combine != "take":
                    for each in step.needs:
                        visit(each)

        for name in needs:
            visit(name)
        return [
            line
            for step in self.group.steps
            if step.name in found - self.early and not self._is_inside(step)
            for line in self._assigned(step)
        ]

    def _row_indices(self) -> list[str]:
        rows = self.group.rows
        if len(rows) < 2:
            return []
        lines, rest = [], "row"
        for d in reversed(rows[1:]):
            lines.append(f"i{d} = {rest} % {self.group.shape[d]}")
            lines.append(f"rest = {rest} // {self.group.shape[d]}")
            rest = "rest"
        return [*lines, f"i{rows[0]} = rest"]

    def _row_loads(self) -> list[str]:
        lines = []
        for name, operand in self.group.operands.items():
            dims = dims_of(operand.strides)
            if dims and not dims & self.line:
                lines.append(
                    f"{name} = {self._element(operand.variable, self._index(operand.strides))}"
                )
        return lines

    def _cast(self, step: Made, value: str) -> str:
        return value if step.dtype is None else f"{step.dtype}({value})"

    def _assigned(self, step: Made) -> list[str]:
        """Return the code of a step, and of storing what it makes."""
        if step.combine == "take":
            return self._taken(step)
        lines = [f"{step.name} = {self._cast(step, step.value)}"]
        return lines if self._is_stored_inside(step) else [*lines, *self._stored(step)]

    def _stored(self, step: Made) -> list[str]:
        if step.output is None:
            return []
        index = self._index(step.output_strides)
        is_bool = self.block.var(step.output).dtype.kind == "b"
        value = f"uint8({step.name})" if is_bool else step.name
        return [f"{self.targets[step.output]}[{index}] = {value}"]

    def _taken(self, step: Made) -> list[str]:
        """Return the code of a value at one place of the line."""
        place = f"k{step.name}"
        last = self.group.line_count - 1
        lines = [f"{place} = min(max({step.at}, 0), {last})"]
        (dim,) = self.group.line
        renamed: dict[str, str] = {}

        def visit(name: str) -> None:
            operand, made = self.group.operands.get(name), self.steps.get(name)
            if name in renamed:
                return
            if operand is not None and dims_of(operand.strides) & self.line:
                renamed[name] = f"{name}_{step.name}"
                index = self._index(operand.strides, {dim: place})
                lines.append(f"{renamed[name]} = {self._element(operand.variable, index)}")
            elif made is not None and self._is_inside(made):
                for each in made.needs:
                    visit(each)
                renamed[name] = f"{name}_{step.name}"
                lines.append(f"{renamed[name]} = {self._cast(made, _renamed(made.value, renamed))}")
            elif name == "index":
                renamed[name] = place

        for name in _NAME.findall(step.value):
            visit(name)
        lines.append(f"{step.name} = {self._cast(step, _renamed(step.value, renamed))}")
        return [*lines, *self._stored(step)]

    # Totals

    def _begin_total(self, step: Made) -> list[str]:
        n = self.sums[step.name]
        if not dims_of(step.strides):
            return [f"c{n} = d{n} = 0.0"]
        return [
            "if part >= 0:",
            f"    c{n} = start(w{n}[part])",
            f"    for k in range({self.buffers[n].size}):",
            f"        c{n}[k] = 0.0",
        ]

    def _finished(self) -> list[str]:
        """Return what adds up the sums of all parts, and all that is made of them."""
        ends = self.group.ends
        if not ends:
            return []
        lines = []
        for step in ends:
            n = self.sums[step.name]
            if not dims_of(step.strides):
                lines += ["if part >= 0:", f"    w{n}[part, 0] = c{n} + d{n}"]
        first = self.sums[ends[0].name]
        last: list[str] = []
        done: set[tuple[int, ...]] = set()
        for step in ends:
            if step.strides in done:
                continue
            done.add(step.strides)
            inner: list[str] = []
            for each in self.group.steps:
                if each.level != END or self._end_strides(each) != step.strides:
                    continue
                if each.combine:
                    n = self.sums[each.name]
                    inner += [
                        "total = 0.0",
                        f"for other in range(w{n}.shape[0]):",
                        f"    total += w{n}[other, k]",
                        f"{each.name} = {self._cast(each, 'total')}",
                    ]
                else:
                    inner.append(f"{each.name} = {self._cast(each, each.value)}")
                if each.output is not None:
                    inner.append(f"{self.targets[each.output]}[k] = {each.name}")
            size = _size(self.group, step.strides)
            last += [f"for k in range({size}):", *_indented(inner)]
        return [*lines, f"if part < 0 or w{first}.shape[0] == 1:", *_indented(last)]

    def _end_strides(self, step: Made) -> tuple[int, ...]:
        while not step.combine:
            step = next(
                self.steps[n] for n in step.needs if n in self.steps and self.steps[n].level == END
            )
        return step.strides

    # Loops

    def _rows(self) -> list[str]:
        group = self.group
        passes = [self._pass(number) for number in range(group.passes)]
        body: list[str] = []
        for number in range(group.passes):
            for step in group.steps:
                if step.combine == "total" and step.level == END:
                    if not step.inside and self._level(step) == number:
                        body += self._add_row(step)
                elif step.level != number or self._is_inside(step):
                    continue
                elif step.combine in PASSES:
                    body += self._stored(step)
                elif step.name not in self.early:
                    body += self._assigned(step)
            body += passes[number]
        if group.is_flat:
            return body
        loads = self._row_loads()
        body = [*self._row_indices(), *self.row_lines, *loads, *body]
        return ["for row in range(begin, end):", *_indented(body)]

    def _add_row(self, step: Made) -> list[str]:
        n = self.sums[step.name]
        if dims_of(step.strides):
            return [f"c{n}[{self._index(step.strides)}] += {step.value}"]
        return [f"c{n}, d{n} = compensated(c{n}, d{n}, float64({step.value}))"]

    def _pass(self, number: int) -> list[str]:
        """Return the code of one pass over the line."""
        group = self.group
        roots = self.roots[number]
        if not roots:
            return []
        needed = self._needed(number)
        begin: list[str] = []  # before the innermost loop
        end: list[str] = []
        before: list[str] = []
        after: list[str] = []
        inner: list[str] = []
        loads: dict[str, None] = {}
        op = None
        is_long = group.is_flat or group.shape[group.line[-1]] > BLOCK or len(group.line) > 1
        for step in needed:
            if step.name in self.kept and step.level < number:
                inner.append(f"{step.name} = {self.kept[step.name]}")
                continue
            loads.update(dict.fromkeys([n for n in step.needs if self._is_loaded(n)]))
            if step.call.op is not op:
                op = step.call.op
                line = "" if op.location is None else f", line {op.location.line}"
                inner.append(f"# {op.type}{line}")
            inner.append(f"{step.name} = {self._cast(step, step.value)}")
            if step.level == number:
                if step.output is not None and self._is_stored_inside(step):
                    inner += self._stored(step)
                elif step.name in self.kept:
                    inner.append(f"{self.kept[step.name]} = {step.name}")
        for step in roots:
            loads.update(dict.fromkeys([n for n in step.needs if self._is_loaded(n)]))
            if step.combine in ("amax", "amin"):
                least = "-inf" if step.combine == "amax" else "inf"
                value = f"r{step.name}, {step.dtype}({step.value})"
                before.append(f"r{step.name} = {step.dtype}({least})")
                inner.append(f"r{step.name} = {_EXTREME[step.combine]}({value})")
                after.append(f"{step.name} = {self._cast(step, f'r{step.name}')}")
            elif step.combine == "sum":
                name = f"r{step.name}"
                inner.append(f"{name} = add({name}, {step.value})")
                if is_long and self._is_exact(step):
                    before.append(f"c{name} = d{name} = 0.0")
                    begin.append(f"{name} = 0.0")
                    end.append(f"c{name}, d{name} = compensated(c{name}, d{name}, {name})")
                    after.append(f"{step.name} = {self._cast(step, f'c{name} + d{name}')}")
                else:
                    before.append(f"{name} = 0.0")
                    after.append(f"{step.name} = {self._cast(step, name)}")
            elif step.combine == "total":
                n, where = self.sums[step.name], self._index(step.strides)
                if group.line[-1] in dims_of(step.strides):
                    inner.append(f"c{n}[{where}] += {step.value}")
                    continue
                begin.append(f"b{n} = 0.0")
                inner.append(f"b{n} = add(b{n}, {step.value})")
                if dims_of(step.strides):
                    end.append(f"c{n}[{where}] += b{n}")
                else:
                    end.append(f"c{n}, d{n} = compensated(c{n}, d{n}, b{n})")
            elif not self._is_inside(step):  # one value for each row, stored everywhere
                inner += self._stored(step)
        if any(["index" in step.needs for step in (*needed, *roots)]):
            inner.insert(0, f"index = {self._line_index()}")
        found = self._nested(loads, begin, inner, end, bool(begin) and is_long)
        return [*before, *found, *after]

    def _is_exact(self, step: Made) -> bool:
        return str(step.dtype) == "float64"

    def _is_loaded(self, name: str) -> bool:
        operand = self.group.operands.get(name)
        return operand is not None and bool(dims_of(operand.strides) & self.line)

    def _nested(
        self,
        loads: dict[str, None],
        begin: list[str],
        inner: list[str],
        end: list[str],
        in_blocks: bool,
    ) -> list[str]:
        group = self.group
        last = group.line[-1]
        levels: dict[int, list[str]] = {d: [] for d in group.line}
        for name in loads:
            operand = group.operands[name]
            depth = max(dims_of(operand.strides) & self.line)
            index = self._index(operand.strides)
            levels[depth].append(f"{name} = {self._element(operand.variable, index)}")
        body = [*levels[last], *inner]
        j, size = self._j(last), group.shape[last]
        if group.is_flat:
            if begin:
                lines = [
                    f"for block in range(begin, end, {BLOCK}):",
                    *_indented(begin),
                    f"    for {j} in range(block, min(block + {BLOCK}, end)):",
                    *_indented(_indented(body)),
                    *_indented(end),
                ]
            else:
                lines = [f"for {j} in range(begin, end):", *_indented(body)]
        elif in_blocks and size > BLOCK:
            lines = [
                f"for block in range(0, {size}, {BLOCK}):",
                *_indented(begin),
                f"    for {j} in range(block, min(block + {BLOCK}, {size})):",
                *_indented(_indented(body)),
                *_indented(end),
            ]
        else:
            lines = [*begin, f"for {j} in range({size}):", *_indented(body), *end]
        for d in reversed(group.line[:-1]):
            lines = [
                f"for {self._j(d)} in range({group.shape[d]}):",
                *_indented([*levels[d], *lines]),
            ]
        return lines


_EXTREME = {"amax": "highest", "amin": "lowest"}


def _times(name: str, by: int) -> str:
    return name if by == 1 else f"{name} * {by}"


def _renamed(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda m: names.get(m.group(), m.group()), text)


def _size(group: Group, strides: Sequence[int]) -> int:
    size = 1
    for d in dims_of(strides):
        size *= group.shape[d]
    return size


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
