"""The loops of a group: Python source that Numba compiles, written from its description.

One loop goes over the rows. In it stands a loop for each pass over the line, and before each pass
the steps that are made once for each row. Without rows, one loop goes over all elements. When a
pass needs a value of an earlier pass, it computes the value again where that is cheap; else the
value waits in a buffer of one line, which stays in the cache, or is read again where it was stored.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from oneflow_lite.static.fusion.group import PASSES, Group, Made, dims_of, name_of
from oneflow_lite.static.fusion.writer import GroupWriter, indented, size_of
from oneflow_lite.static.ir.program import Block

BLOCK = 4096  # elements that are added up before their sum goes to the compensated total
# The cost of computing a value again, in additions, from which it is rather kept.
_TO_KEEP = 8


@attrs.frozen
class LoopBuffer:
    """Memory that each thread needs for itself: sums of the end in float64, or values of a line."""

    dtype: str
    size: int


def source_of(
    group: Group, block: Block, in_place: Mapping[str, str] | None = None
) -> tuple[str, list[LoopBuffer]]:
    """Return the source of `group(part, begin, end, *inputs, *outputs, *names, *buffers)`.

    And the buffers. An output that is written over an input, as `in_place` says, is the same array
    in the code, so that LLVM knows it.

    The function goes over the rows, or elements, from `begin` to `end`, as number `part` of the
    threads that share the work. A buffer has a row for each thread. Where several threads share the
    work, a last call with -1 for `part` adds up their sums.
    """
    if in_place or group.written is None:
        writer = _LoopWriter(group, block, in_place or {})
        source = writer.written(), writer.buffers
        if in_place:
            return source
        group.written = source
    return group.written  # type: ignore[no-any-return]


class _LoopWriter(GroupWriter):
    def __init__(self, group: Group, block: Block, in_place: Mapping[str, str]) -> None:
        super().__init__(group, block)
        self.in_place = in_place
        self.buffers: list[LoopBuffer] = []
        self.sums = {
            step.name: self._buffer("float64", size_of(group, step.strides)) for step in group.ends
        }
        self.plan()

    def _buffer(self, dtype: str, size: int) -> int:
        self.buffers.append(LoopBuffer(dtype, size))
        return len(self.buffers) - 1

    def keep(self, step: Made, cost: int) -> None:
        """Say where a value waits: where it is stored, or in a buffer of a line."""
        super().keep(step, cost)
        if step.name not in self.kept and cost > _TO_KEEP:
            step.dtype = step.dtype or self.block.var(step.call.op.outputs[0]).dtype
            buffer = self._buffer(str(step.dtype), self.group.line_count)
            self.kept[step.name] = f"v{buffer}[{self.line_index()}]"
            self.roots[step.level].append(step)

    # Lines of code

    def written(self) -> str:
        """Return the source."""
        group = self.group
        body = self._rows()
        before = [f"{array} = start({array})" for array in self.arrays.values()]
        for name, target in self.targets.items():
            taken = self.arrays.get(self.in_place.get(name, ""))
            before.append(f"{target} = {taken or f'start({target})'}")
        for name, operand in group.operands.items():
            if not dims_of(operand.strides):
                before.append(f"{name} = {self.element(operand.variable, '0')}")
        before += self._early()
        before += [line for step in group.ends for line in self._begin_total(step)]
        lines = [*before, *body, *self._finished()]
        arrays = [*self.arrays.values(), *self.targets.values()]
        arrays += [*group.names, *[f"w{i}" for i in range(len(self.buffers))]]
        kept = {int(place[1 : place.index("[")]) for place in self.kept.values() if place[0] == "v"}
        first = [f"v{i} = start(w{i}[part])" for i in sorted(kept)]
        head = f"def group(part, begin, end, {', '.join(arrays)}):"
        return "\n    ".join([head, *first, *lines]) + "\n"

    def element(self, variable: str, index: str) -> str:
        """Return the expression that reads an element of an input."""
        array = self.arrays[variable]
        text = f"{array}[{index}]"
        return f"bool({text})" if self.block.var(variable).dtype.kind == "b" else text

    def _early(self) -> list[str]:
        """Return the lines before all rows: they make totals over rows, and numbers of totals."""
        lines: list[str] = []
        for step in self.group.steps:
            if step.name not in self.early:
                continue
            if not step.combine:
                lines += self.assigned(step)
                continue
            body = self.row_steps(step.needs, lambda s: s.level == 0)
            body = [*self.row_head(), *body]
            total = f"r{step.name}"
            lines += [
                f"{total} = 0.0",
                f"for row in range({self.group.row_count}):",
                *indented([*body, f"{total} += {step.value}"]),
                f"{step.name} = {self.cast(step, total)}",
            ]
        return lines

    def cast(self, step: Made, value: str) -> str:
        """Return a value as the step rounds it."""
        return value if step.dtype is None else f"{name_of(step.dtype)}({value})"

    def stored(self, step: Made) -> list[str]:
        """Return the line that stores what a step makes."""
        if step.output is None:
            return []
        index = self.index(step.output_strides)
        is_bool = self.block.var(step.output).dtype.kind == "b"
        value = f"uint8({step.name})" if is_bool else step.name
        return [f"{self.targets[step.output]}[{index}] = {value}"]

    def clipped(self, at: str, last: int) -> str:
        """Return a place that is one of the line."""
        return f"min(max({at}, 0), {last})"

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
        """Return the lines that add up the sums of all parts, and the steps on those sums."""
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
        for strides, steps in self.at_ends().items():
            inner: list[str] = []
            for each in steps:
                if each.combine:
                    n = self.sums[each.name]
                    inner += [
                        "total = 0.0",
                        f"for other in range(w{n}.shape[0]):",
                        f"    total += w{n}[other, k]",
                        f"{each.name} = {self.cast(each, 'total')}",
                    ]
                else:
                    inner.append(f"{each.name} = {self.cast(each, each.value)}")
                if each.output is not None:
                    inner.append(f"{self.targets[each.output]}[k] = {each.name}")
            last += [f"for k in range({size_of(self.group, strides)}):", *indented(inner)]
        return [*lines, f"if part < 0 or w{first}.shape[0] == 1:", *indented(last)]

    # Loops

    def _rows(self) -> list[str]:
        group = self.group
        passes = [self._pass(number) for number in range(group.passes)]
        body: list[str] = []
        for number in range(group.passes):
            for step in self.of_rows(number):
                if step.combine == "total":
                    body += self._add_row(step)
                elif step.combine in PASSES:
                    body += self.stored(step)
                else:
                    body += self.assigned(step)
            body += passes[number]
        if group.is_flat:
            return body
        body = [*self.row_head(), *body]
        return ["for row in range(begin, end):", *indented(body)]

    def _add_row(self, step: Made) -> list[str]:
        n = self.sums[step.name]
        if dims_of(step.strides):
            return [f"c{n}[{self.index(step.strides)}] += {step.value}"]
        return [f"c{n}, d{n} = compensated(c{n}, d{n}, float64({step.value}))"]

    def _pass(self, number: int) -> list[str]:
        """Return the code of one pass over the line."""
        group = self.group
        roots = self.roots[number]
        if not roots:
            return []
        needed = self.needed(number)
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
            loads.update(dict.fromkeys([n for n in step.needs if self.is_loaded(n)]))
            if step.call.op is not op:
                op = step.call.op
                inner.append(f"# {self.heading(step)}")
            inner.append(f"{step.name} = {self.cast(step, step.value)}")
            if step.level == number:
                if step.output is not None and self.is_stored_inside(step):
                    inner += self.stored(step)
                elif step.name in self.kept:
                    inner.append(f"{self.kept[step.name]} = {step.name}")
        for step in roots:
            loads.update(dict.fromkeys([n for n in step.needs if self.is_loaded(n)]))
            if step.combine in ("amax", "amin"):
                least = "-inf" if step.combine == "amax" else "inf"
                value = f"r{step.name}, {step.dtype}({step.value})"
                before.append(f"r{step.name} = {step.dtype}({least})")
                inner.append(f"r{step.name} = {_EXTREME[step.combine]}({value})")
                after.append(f"{step.name} = {self.cast(step, f'r{step.name}')}")
            elif step.combine == "sum":
                name = f"r{step.name}"
                inner.append(f"{name} = add({name}, {step.value})")
                if is_long and self._is_exact(step):
                    before.append(f"c{name} = d{name} = 0.0")
                    begin.append(f"{name} = 0.0")
                    end.append(f"c{name}, d{name} = compensated(c{name}, d{name}, {name})")
                    after.append(f"{step.name} = {self.cast(step, f'c{name} + d{name}')}")
                else:
                    before.append(f"{name} = 0.0")
                    after.append(f"{step.name} = {self.cast(step, name)}")
            elif step.combine == "total":
                n, where = self.sums[step.name], self.index(step.strides)
                if group.line[-1] in dims_of(step.strides):
                    inner.append(f"c{n}[{where}] += {step.value}")
                    continue
                begin.append(f"b{n} = 0.0")
                inner.append(f"b{n} = add(b{n}, {step.value})")
                if dims_of(step.strides):
                    end.append(f"c{n}[{where}] += b{n}")
                else:
                    end.append(f"c{n}, d{n} = compensated(c{n}, d{n}, b{n})")
            elif not self.is_inside(step):  # one value for each row, stored everywhere
                inner += self.stored(step)
        if any(["index" in step.needs for step in (*needed, *roots)]):
            inner.insert(0, f"index = {self.line_index()}")
        loop = self._nested(loads, begin, inner, end, bool(begin) and is_long)
        return [*before, *loop, *after]

    def _is_exact(self, step: Made) -> bool:
        return str(step.dtype) == "float64"

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
            index = self.index(operand.strides)
            levels[depth].append(f"{name} = {self.element(operand.variable, index)}")
        body = [*levels[last], *inner]
        j, size = self.j(last), group.shape[last]
        if group.is_flat:
            if begin:
                lines = [
                    f"for block in range(begin, end, {BLOCK}):",
                    *indented(begin),
                    f"    for {j} in range(block, min(block + {BLOCK}, end)):",
                    *indented(indented(body)),
                    *indented(end),
                ]
            else:
                lines = [f"for {j} in range(begin, end):", *indented(body)]
        elif in_blocks and size > BLOCK:
            lines = [
                f"for block in range(0, {size}, {BLOCK}):",
                *indented(begin),
                f"    for {j} in range(block, min(block + {BLOCK}, {size})):",
                *indented(indented(body)),
                *indented(end),
            ]
        else:
            lines = [*begin, f"for {j} in range({size}):", *indented(body), *end]
        for d in reversed(group.line[:-1]):
            lines = [
                f"for {self.j(d)} in range({group.shape[d]}):",
                *indented([*levels[d], *lines]),
            ]
        return lines


_EXTREME = {"amax": "highest", "amin": "lowest"}
