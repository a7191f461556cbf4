"""The part that all writers of a group's code share: the work of each pass, and places in memory.

The texts of indices are Python and C++ alike. A writer says how it assigns, reads and rounds.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from oneflow_lite.static.fusion.group import DEAR, END, PASSES, Group, Made, dims_of
from oneflow_lite.static.ir.program import Block

TO_READ = 2  # what computing a value again may cost, in additions, before it is read where it lies
DEAR_CALL = re.compile(rf"\b({'|'.join(DEAR)})\(")
NAME = re.compile(r"[A-Za-z_]\w*")
_SLOW = re.compile(r"/|\bsqrt\(")


class GroupWriter(ABC):
    """Writes the code of a group.

    Attributes
    ----------
    roots : list of list of Made
        What each pass is for.
    kept : dict of str to str
        Where a value of an earlier pass is read, by step.
    early : set of str
        The numbers that are made before all rows.
    """

    def __init__(self, group: Group, block: Block) -> None:
        self.group, self.block, self.rows = group, block, group.rows
        self.steps = {step.name: step for step in group.steps}
        self.line = frozenset(group.line)
        self.targets = {name: f"y{i}" for i, name in enumerate(group.outputs)}
        self.arrays = {name: f"a{i}" for i, name in enumerate(group.inputs)}
        self.kept: dict[str, str] = {}
        self.roots: list[list[Made]] = [[] for _ in range(group.passes)]
        self.early: set[str] = set()
        self._bases: dict[tuple[int, ...], str] = {}

    # How a writer spells names, reads and stores

    def let(self, name: str, text: str) -> str:
        """Return the line that names a value."""
        return f"{name} = {text}"

    @abstractmethod
    def element(self, variable: str, index: str) -> str:
        """Return the expression that reads an element of an input."""

    @abstractmethod
    def cast(self, step: Made, value: str) -> str:
        """Return a value, given in Python, as the step rounds it."""

    @abstractmethod
    def stored(self, step: Made) -> list[str]:
        """Return the lines that store what a step makes, if that is asked for."""

    @abstractmethod
    def clipped(self, at: str, last: int) -> str:
        """Return a place, given in Python, that is at least 0 and at most the last one."""

    def keep(self, step: Made, cost: int) -> None:
        """Say in `kept` where a value of an earlier pass waits, if it does."""
        if step.output is not None and self.is_stored_inside(step) and cost > TO_READ:
            place = self.index(step.output_strides)
            self.kept[step.name] = f"{self.targets[step.output]}[{place}]"

    # Steps of each pass

    def plan(self) -> None:
        """Find the roots of each pass, and the values that are kept for later passes."""
        group = self.group
        for step in group.steps:
            if step.level == END and step.combine:
                if step.inside:
                    self.roots[self.level(step)].append(step)
            elif step.combine in PASSES:
                self.roots[step.level - 1].append(step)
            elif step.output is not None and step.level < END and self.is_stored_inside(step):
                self.roots[step.level].append(step)
        for number in reversed(range(group.passes)):
            self.needed(number)
        for step in group.steps:
            known = self.early.issuperset([n for n in step.needs if n in self.steps])
            is_number = not step.combine and not step.dims and not step.level and known
            if is_number or (step.combine == "total" and step.level != END):
                self.early.add(step.name)

    def level(self, step: Made) -> int:
        """Return the pass in which the value that a step combines is there."""
        return max([self.steps[n].level for n in step.needs if n in self.steps], default=0)

    def is_inside(self, step: Made) -> bool:
        """Return whether it differs along the line."""
        return bool(step.dims & self.line) and step.level < END and not step.combine

    def is_stored_inside(self, step: Made) -> bool:
        """Return whether what it stores differs along the line."""
        return bool(dims_of(step.output_strides) & self.line)

    def is_loaded(self, name: str) -> bool:
        """Return whether it is an operand that differs along the line."""
        operand = self.group.operands.get(name)
        return operand is not None and bool(dims_of(operand.strides) & self.line)

    def needed(self, number: int) -> list[Made]:
        """Return the steps that a pass computes, in order; others it finds in `kept`."""
        names: set[str] = set()

        def visit(name: str) -> None:
            step = self.steps.get(name)
            if step is None or name in names or not self.is_inside(step):
                return
            if step.level < number and name not in self.kept:
                self.keep(step, self._cost(step, set()))
            names.add(name)
            if step.level == number or name not in self.kept:
                for each in step.needs:
                    visit(each)

        for root in self.roots[number]:
            if self.is_inside(root):
                visit(root.name)
            else:
                for each in root.needs:
                    visit(each)
        return [step for step in self.group.steps if step.name in names]

    def _cost(self, step: Made, seen: set[str]) -> int:
        """Return the cost of computing a value again from memory."""
        if step.name in seen or not self.is_inside(step):
            return 0
        seen.add(step.name)
        own = 20 * len(DEAR_CALL.findall(step.value)) + 4 * len(_SLOW.findall(step.value)) + 1
        if step.name in self.kept:
            return 1
        for name in step.needs:
            if name in self.steps:
                own += self._cost(self.steps[name], seen)
            elif name in self.group.operands and name not in seen:
                seen.add(name)
                own += 1
        return own

    def of_rows(self, number: int) -> list[Made]:
        """Return the steps that are made once for each row, or known by then, before a pass."""
        return [
            step
            for step in self.group.steps
            if (
                not step.inside and self.level(step) == number
                if step.combine == "total" and step.level == END
                else step.level == number
                and not self.is_inside(step)
                and step.name not in self.early
            )
        ]

    def at_ends(self) -> dict[tuple[int, ...], list[Made]]:
        """Return the steps after all sums, by the strides of their elements."""
        steps: dict[tuple[int, ...], list[Made]] = {}
        for step in self.group.steps:
            if step.level == END:
                first = step
                while not first.combine:
                    needed = [self.steps[n] for n in first.needs if n in self.steps]
                    first = next(each for each in needed if each.level == END)
                steps.setdefault(first.strides, []).append(step)
        return steps

    # Where things lie

    def row_head(self) -> list[str]:
        """Return the lines that each row begins with: its indices, and loads of one element a row.

        To be called last, when it is known what is needed.
        """
        rows, operands = self.rows, self.group.operands
        lines, step = [], 1
        for d in reversed(rows):
            if len(rows) > 1:
                place = "row" if step == 1 else f"row // {step}"
                around = "" if d == rows[0] else f" % {self.group.shape[d]}"
                lines.append(self.let(f"i{d}", place + around))
            step *= self.group.shape[d]
        loads = [
            self.let(name, self.element(operand.variable, self.index(operand.strides)))
            for name, operand in operands.items()
            if dims_of(operand.strides) and not self.is_loaded(name)
        ]
        bases = [self.let(name, self._base_text(key)) for key, name in self._bases.items()]
        return [*lines, *bases, *loads]

    def _row(self, dim: int) -> str:
        return "row" if len(self.rows) == 1 else f"i{dim}"

    def _base(self, strides: tuple[int, ...]) -> str:
        """Return the name of where a row begins, written once for each row."""
        key = tuple([strides[d] for d in self.rows])
        text = self._base_text(key)
        if text in ("", "row"):
            return text
        return self._bases.setdefault(key, f"p{len(self._bases)}")

    def _base_text(self, key: tuple[int, ...]) -> str:
        steps = zip(self.rows, key, strict=True)
        return " + ".join([_times(self._row(d), by) for d, by in steps if by])

    def index(self, strides: tuple[int, ...], j: dict[int, str] | None = None) -> str:
        """Return where in its array an element lies; `j` has other indices along the line."""
        along = [d for d in self.group.line if strides[d]]
        terms = [_times((j or {}).get(d, self.j(d)), strides[d]) for d in along]
        return " + ".join(filter(None, [self._base(strides), *terms])) or "0"

    def j(self, dim: int) -> str:
        """Return the index along a dimension of the line."""
        return "j" if len(self.group.line) == 1 else f"j{dim}"

    def line_index(self) -> str:
        """Return where in its line an element stands."""
        terms, step = [], 1
        for d in reversed(self.group.line):
            terms.append(_times(self.j(d), step))
            step *= self.group.shape[d]
        return " + ".join(reversed(terms))

    # Lines of code

    def row_steps(self, needs: Sequence[str], wanted: Callable[[Made], bool]) -> list[str]:
        """Return the code of what is made once for a row, and all that it needs."""
        names: set[str] = set()

        def visit(name: str) -> None:
            step = self.steps.get(name)
            if step is not None and name not in names and wanted(step):
                names.add(name)
                if step.combine != "take":
                    for each in step.needs:
                        visit(each)

        for name in needs:
            visit(name)
        return [
            line
            for step in self.group.steps
            if step.name in names - self.early and not self.is_inside(step)
            for line in self.assigned(step)
        ]

    def assigned(self, step: Made) -> list[str]:
        """Return the code of a step, and of storing what it makes."""
        if step.combine == "take":
            return self._taken(step)
        lines = [self.let(step.name, self.cast(step, step.value))]
        return lines if self.is_stored_inside(step) else [*lines, *self.stored(step)]

    def _taken(self, step: Made) -> list[str]:
        """Return the code of a value at one place of the line."""
        place = f"k{step.name}"
        lines = [self.let(place, self.clipped(step.at, self.group.line_count - 1))]
        (dim,) = self.group.line
        renamed: dict[str, str] = {}

        def visit(name: str) -> None:
            operand, made = self.group.operands.get(name), self.steps.get(name)
            if name in renamed:
                return
            if operand is not None and self.is_loaded(name):
                renamed[name] = f"{name}_at_{step.name}"
                index = self.index(operand.strides, {dim: place})
                lines.append(self.let(renamed[name], self.element(operand.variable, index)))
            elif made is not None and self.is_inside(made):
                for each in made.needs:
                    visit(each)
                renamed[name] = f"{name}_at_{step.name}"
                lines.append(
                    self.let(renamed[name], self.cast(made, _renamed(made.value, renamed)))
                )
            elif name == "index":
                renamed[name] = place

        for name in NAME.findall(step.value):
            visit(name)
        lines.append(self.let(step.name, self.cast(step, _renamed(step.value, renamed))))
        return [*lines, *self.stored(step)]

    def heading(self, step: Made) -> str:
        """Return the comment that says which op a step is of."""
        op = step.call.op
        return op.type if op.location is None else f"{op.type}, line {op.location.line}"


def _times(name: str, by: int) -> str:
    return name if by == 1 else f"{name} * {by}"


def _renamed(text: str, names: dict[str, str]) -> str:
    return NAME.sub(lambda m: names.get(m.group(), m.group()), text)


def size_of(group: Group, strides: Sequence[int]) -> int:
    """Return how many elements an array with these strides has."""
    size = 1
    for d in dims_of(strides):
        size *= group.shape[d]
    return size


def indented(lines: Sequence[str]) -> list[str]:
    """Return lines one level further in."""
    return [f"    {line}" for line in lines]
