"""Group: ops that run as one piece of machine code, described for the writers of that code.

A group goes over the elements of one shape. Some dimensions are its *line*: those that softmax and
norms reduce. The others are its rows. Ops of a group may use the result of its own reductions: then
they pass over the line again. The *level* of a value is the pass that can make it; a value with an
element for each row is ready before the pass of its level begins.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.array_spec import c_strides
from oneflow_lite.arrays.dtype import DType
from oneflow_lite.ops.array_places import (
    Frame,
    Place,
    ends_of,
    frame_of,
    place_of,
    scaled,
    strides_in,
)
from oneflow_lite.ops.scalar_expression import Scalar, Step, scalar_of
from oneflow_lite.static.ir.program import Block, OpDesc

DTYPES = frozenset(map(np.dtype, "float32 float64 int32 int64 int16 int8 uint8 bool".split()))
END = 1_000_000  # the level of what only the end of the group knows
PASSES = ("sum", "amax", "amin")  # what takes a pass over the line
# Functions of which LLVM takes 40 ms for a copy: groups of more than `MANY` are not made.
DEAR = ("exp", "expm1", "log", "log1p", "tanh", "erf", "sigmoid", "pow", "sin", "cos", "tan")
MANY = 24
MOST = 256  # ops of a group, for LLVM takes longer than twice as long for twice as many
SCATTERED = 16384  # elements up to which a line may lie scattered in memory
TOTALS = ("total", "total_lines")
_NAME = re.compile(r"[A-Za-z_]\w*")
Strides = tuple[int, ...]


class Named:
    """A number that code calls by a name, so that the text serves any number."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        return self.text


class NamedSize(Named, int):
    """A size or stride with a name.

    >>> from oneflow_lite.static.fusion.group import NamedSize
    >>> rows, columns = NamedSize(3, "n0"), NamedSize(4, "n1")
    >>> print(rows * columns, rows * columns == 12, columns - 1)
    (n0 * n1) True (n1 - 1)
    """

    def __new__(cls, value: int, text: str) -> NamedSize:
        made = super().__new__(cls, value)
        made.text = text
        return made

    def __mul__(self, other: int) -> NamedSize:
        return NamedSize(int(self) * int(other), f"({self} * {other})") if other != 1 else self

    def __rmul__(self, other: int) -> NamedSize:
        return self * other

    def __sub__(self, other: int) -> NamedSize:
        return NamedSize(int(self) - int(other), f"({self} - {other})")


class NamedNumber(Named, float):
    """An attribute with a name."""

    def __new__(cls, value: float, text: str) -> NamedNumber:
        made = super().__new__(cls, value)
        made.text = text
        return made


@attrs.frozen
class View:
    """A variable, or a view of one that shares its memory from the first element on.

    Attributes
    ----------
    root : str
    shape : tuple of int
    strides : tuple of int
        In elements of the root's memory.
    """

    root: str
    shape: tuple[int, ...]
    strides: Strides

    @classmethod
    def in_c_order(cls, root: str, shape: tuple[int, ...]) -> View:
        """Return the view of all elements, with strides of 0 along dimensions of size 1."""
        strides = zip(shape, c_strides(shape, 1), strict=True)
        return cls(root, shape, tuple([0 if n == 1 else stride for n, stride in strides]))

    @property
    def is_dense(self) -> bool:
        """Whether the elements stand in memory as in C order."""
        return place_of(self.shape, self.shape, self.strides) == place_of(self.shape, self.shape)


@attrs.define(eq=False)
class Call:
    """An op of a group, and where its arrays lie in the row of all elements of the group.

    Attributes
    ----------
    op : OpDesc
    scalar : Scalar
    frame : Frame
    views : dict of str to View
        By parameter.
    scale : int
        How many elements of the group stand behind one of the op.
    names_count : bool
        Whether `count` is a number that the code is given.
    """

    op: OpDesc
    scalar: Scalar
    frame: Frame
    views: dict[str, View]
    scale: int = 1
    names_count: bool = False

    @property
    def line(self) -> Place:
        """The dimensions that the op reduces."""
        return scaled(self.frame.line, self.scale)

    @property
    def count(self) -> int:
        """The number of elements that it reduces to one."""
        return NamedSize(self.frame.count, "count") if self.names_count else self.frame.count

    def input(self, parameter: str) -> Place | None:
        """Return where an operand lies; None where it does not fit."""
        whole, own = self.frame.inputs[parameter]
        view = self.views[parameter]
        strides: Strides | None = view.strides
        if own != view.shape:
            if not view.is_dense or math.prod(own) != math.prod(view.shape):
                return None
            strides = None
        place = place_of(whole, own, strides)
        return None if place is None else scaled(place, self.scale)

    @property
    def raises(self) -> bool:
        """Whether it looks at an operand, and may raise."""
        return self.scalar.lines is not None and self.scalar.lines.check is not None

    def places(self) -> list[Place]:
        """Return where all its arrays lie, and its line."""
        inputs = [self.input(parameter) or () for parameter in self.views]
        outputs = [self.output(i) for i in range(len(self.op.outputs))]
        return [*inputs, *outputs, self.line]

    def output(self, position: int) -> Place:
        """Return where a result lies."""
        place = place_of(*self.frame.outputs[position])
        assert place is not None
        return scaled(place, self.scale)


@attrs.frozen
class Operand:
    """A read from memory: `variable[sum of index times stride]`, by dimension."""

    name: str
    variable: str
    strides: Strides


@attrs.define(eq=False)
class Made:
    """A step of a group.

    Attributes
    ----------
    name : str
    value : str
        The expression, in names of operands and of steps before it, and `index`.
    call : Call
    combine : str
        "": the value itself. "sum", "amax", "amin": what is made of it along the line. "take": it,
        at the place `at` of the line. "total": its sum over all but the dimensions of `strides`; at
        the end, or at level 0, where it is made from one element of each row before all else.
    at : str
    needs : tuple of str
        The names in `value` and `at`.
    dtype : numpy.dtype or None
        What the value is rounded to.
    dims : frozenset of int
        The dimensions along which it differs.
    level : int
        The pass over the line that makes it, or before which it is made; `END`: after all.
    inside : bool
        Of "total": whether every element of the line is added, not one for each row.
    strides : tuple of int
        Of "total": where in the array of sums a value is added.
    output, output_strides
        The variable to be stored, and where.
    """

    name: str
    value: str
    call: Call
    combine: str = ""
    at: str = ""
    needs: tuple[str, ...] = ()
    dtype: DType | None = None
    dims: frozenset[int] = frozenset()
    level: int = 0
    inside: bool = False
    strides: Strides = ()
    output: str | None = None
    output_strides: Strides = ()


@attrs.define(eq=False)
class Group:
    """Ops that run as one.

    Attributes
    ----------
    calls : list of Call
        In order.
    shape : tuple of int
        The dimensions of what it goes over, in which all arrays lie apart; the innermost last.
    line : tuple of int
        The dimensions of a line; of a group without reductions along one, the innermost.
    inputs, outputs : list of str
        Variables from outside, and those that are used outside.
    operands : dict of str to Operand
        By the name that steps have for them.
    steps : list of Made
        In order.
    numbers : mapping of str to number
        The variables that are one known number at all places.
    names : list of str
        Numbers that its code is given at each run.
    written : object
        Its source and buffers, once they are written.
    """

    calls: list[Call]
    shape: tuple[int, ...]
    line: tuple[int, ...]
    inputs: list[str]
    outputs: list[str]
    operands: dict[str, Operand]
    steps: list[Made]
    numbers: Mapping[str, float]
    names: list[str] = attrs.field(factory=list)
    written: Any = None

    @property
    def ops(self) -> list[OpDesc]:
        """The ops, in order."""
        return [call.op for call in self.calls]

    @property
    def rows(self) -> tuple[int, ...]:
        """The dimensions that are not of the line."""
        return tuple([d for d in range(len(self.shape)) if d not in self.line])

    @property
    def is_flat(self) -> bool:
        """Whether one loop over all elements will do."""
        return not self.rows and len(self.line) == 1 and self.passes == 1

    @property
    def passes(self) -> int:
        """The number of passes over a line."""
        return 1 + max([step.level for step in self.steps if step.level < END], default=0)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return math.prod([self.shape[d] for d in self.rows])

    @property
    def steps_of_outer_loop(self) -> int:
        """The number of steps of the outer loop, which may be divided among threads."""
        return math.prod(self.shape) if self.is_flat else self.row_count

    @property
    def line_count(self) -> int:
        """The number of elements in a line."""
        return math.prod([self.shape[d] for d in self.line])

    @property
    def nanoseconds(self) -> float:
        """The time that it takes one core, about: memory is in the cache, and SIMD does most."""
        time = 0.15 * self.passes * math.prod(self.shape)
        for call in self.calls:
            each = 0.55 * call.scalar.calls(DEAR) + 0.02 * call.scalar.operations
            time += each * call.frame.size
        return time

    @property
    def ends(self) -> list[Made]:
        """The sums that are there at the end only, of which each thread makes its own."""
        return [step for step in self.steps if step.level == END and step.combine]

    def checks(self) -> list[tuple[int, Callable[[Any], None]]]:
        """Return the checks of inputs before a run, by number; each raises as a kernel does."""
        checks = []
        for call in self.calls:
            lines, op = call.scalar.lines, call.op
            if lines is not None and lines.check is not None:
                shapes = {name: view.shape for name, view in call.views.items()}
                root = call.views[lines.checked].root
                checks.append((self.inputs.index(root), _check(lines.check, shapes, op)))
        return checks


def _check(check: Callable[..., None], shapes: Any, op: OpDesc) -> Callable[[Any], None]:
    return lambda array: check(shapes, array, **op.attrs)


def call_of(op: OpDesc, views: dict[str, View], block: Block) -> Call | None:
    """Return how the arrays of an op lie; None where it is nothing that loops do.

    Parameters
    ----------
    op : OpDesc
    views : dict of str to View
        Its inputs, by parameter.
    block : Block
    """
    scalar = scalar_of(op.type, op.attrs)
    if scalar is None or scalar.results != len(op.outputs) or not views:
        return None
    absent = {} if scalar.lines is None else scalar.lines.absent
    if any([name not in views and name not in absent for name in op.schema.inputs]):
        return None
    results = [block.var(name) for name in op.outputs]
    if (scalar.reduces or op.type == "pow") and results[0].dtype.kind != "f":
        return None
    first = next(iter(views.values()))
    if scalar.reduces and block.var(first.root).dtype != results[0].dtype:
        return None
    shapes = {parameter: view.shape for parameter, view in views.items()}
    frame = frame_of(scalar, shapes, [desc.shape for desc in results], op.attrs)
    if not frame.size or (scalar.reduces and not frame.line):
        return None
    is_scattered = scalar.reduces and not scalar.is_sum and frame.line[0][0] > 1
    if is_scattered and frame.size > SCATTERED:
        return None
    call = Call(op, scalar, frame, views)
    return None if any([call.input(parameter) is None for parameter in views]) else call


def dims_of(strides: Sequence[int]) -> frozenset[int]:
    """Return the dimensions that an array follows."""
    return frozenset([d for d, stride in enumerate(strides) if stride])


def describe_group(
    calls: list[Call],
    size: int,
    line: Place | None,
    outputs: list[str],
    block: Block,
    numbers: Mapping[str, float],
) -> Group:
    """Describe ops as a group.

    Parameters
    ----------
    calls : list of Call
    size : int
        The number of elements that it goes over.
    line : Place or None
    outputs : list of str
        The variables that are used outside.
    block : Block
    numbers : mapping of str to number
        The variables that are one known number at all places.
    """
    return _Describer(calls, size, line, outputs, block, numbers).group


class _Describer:
    """Makes steps of calls."""

    def __init__(
        self,
        calls: list[Call],
        size: int,
        line: Place | None,
        outputs: list[str],
        block: Block,
        numbers: Mapping[str, float],
    ) -> None:
        self.block, self.numbers = block, numbers
        places = [line or (), *[place for call in calls for place in call.places()]]
        cuts = ends_of(places, size)
        self.cuts = cuts
        shape = tuple([b // a for a, b in itertools.pairwise(cuts)][::-1])
        if line is None:
            along: tuple[int, ...] = (len(shape) - 1,)
        else:
            along = tuple(sorted(dims_of(strides_in(line, cuts))))
        self.line = line
        self.group = Group(calls, shape, along, [], outputs, {}, [], numbers)
        self.made: dict[str, Made] = {}  # by name
        self.names: dict[str, str] = {}  # by variable
        for i, call in enumerate(calls):
            self._add(call, f"t{i}")
        self._levels()

    def _add(self, call: Call, result: str) -> None:
        op, block = call.op, self.block
        dtype = block.var(op.outputs[0]).dtype
        if dtype.kind == "b":  # numbers are of the dtype of the operands
            dtypes = [block.var(n).dtype for n in op.reads]
            dtype = next((d for d in dtypes if d.kind != "b"), dtype)
        names = {
            p: self._operand(call, p, n) for p, n in zip(op.schema.inputs, op.inputs, strict=True)
        }
        names["count"] = literal(call.count, dtype)
        power = self._power(call, names)
        if power:
            steps = [Step(result, power)]
        else:
            steps = call.scalar.steps(names, result, lambda x: literal(x, dtype), op.attrs)
        along_line = call.line == (self.line or ())
        made = []
        for step in self._split(steps):
            needs = tuple(dict.fromkeys(_NAME.findall(f"{step.value} {step.at}")))
            each = Made(step.name, step.value, call, step.combine, step.at, needs)
            if step.combine and dtype.kind == "f":
                each.dtype = dtype
            if step.combine in TOTALS or (step.combine == "sum" and not along_line):
                each.combine = "total"
                each.inside = step.combine != "total_lines" and call.scale == 1
                each.strides = (0,) * len(self.group.shape)
            made.append(each)
            self.made[each.name] = each
        first = len(made) - len(op.outputs)
        for i, (name, each) in enumerate(zip(op.outputs, made[first:], strict=True)):
            each.dtype = block.var(name).dtype
            self.names[name] = each.name
            strides = strides_in(call.output(i), self.cuts)
            if name in self.group.outputs:
                each.output, each.output_strides = name, strides
            for m in made if len(op.outputs) == 1 else [each]:
                if m.combine == "total" and (m is each or not along_line):
                    m.strides = strides
        for each in made:
            each.dims = self._dims(each)
        self.group.steps += made
        for each in made:
            if each.combine == "total" and not self._is_needed_by_elements(each, made):
                each.level = END

    def _split(self, steps: list[Step]) -> list[Step]:
        """Divide steps that differ along the line from their parts that do not."""
        parts: list[Step] = []
        inside: dict[str, bool] = {"index": True}  # by name, whether it differs along the line

        def is_inside(name: str) -> bool:
            if name in self.group.operands:
                dims = dims_of(self.group.operands[name].strides)
            elif name in self.made:
                dims = self.made[name].dims
            else:
                return inside.get(name, False)
            return not dims.isdisjoint(self.group.line)

        def is_known(name: str) -> bool:
            return name in self.group.operands or name in self.made or name in inside

        def split(node: ast.expr, name: str) -> ast.expr:
            names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
            if any(map(is_inside, names)):
                for field, value in ast.iter_fields(node):
                    if isinstance(value, ast.expr):
                        setattr(node, field, split(value, name))
                    elif isinstance(value, list) and field == "args":
                        node.args = [split(each, name) for each in value]  # type: ignore[attr-defined]
                return node
            if not any(map(is_known, names)) or isinstance(node, ast.Name):
                return node
            part = f"{name}_{len(parts)}of"
            parts.append(Step(part, ast.unparse(node)))
            inside[part] = False
            return ast.Name(part)

        for step in steps:
            names = [n for n in _NAME.findall(step.value) if is_known(n)]
            differ = [is_inside(name) for name in names]
            inside[step.name] = any(differ) and not step.combine
            if any(differ) and not all(differ):
                tree = ast.parse(step.value, mode="eval").body
                step = attrs.evolve(step, value=ast.unparse(split(tree, step.name)))
            parts.append(step)
        return parts

    def _operand(self, call: Call, parameter: str, name: str | None) -> str:
        if name is None:
            lines = call.scalar.lines
            assert lines is not None
            return literal(lines.absent[parameter], self.block.var(call.op.outputs[0]).dtype)
        view = call.views[parameter]
        if view.root in self.names:
            return self.names[view.root]
        if view.root in self.numbers:
            return literal(self.numbers[view.root], self.block.var(view.root).dtype)
        place = call.input(parameter)
        assert place is not None
        strides = strides_in(place, self.cuts)
        operands = self.group.operands
        for each in operands.values():
            if (each.variable, each.strides) == (view.root, strides):
                return each.name
        if view.root not in self.group.inputs:
            self.group.inputs.append(view.root)
        local = f"x{len(operands)}"
        operands[local] = Operand(local, view.root, strides)
        return local

    def _power(self, call: Call, names: dict[str, str]) -> str:
        """Return the code of a power that is not a call of `pow`; nothing where it is one."""
        if call.op.type != "pow":
            return ""
        x, y, view = names["x"], names["y"], call.views["y"]
        number = self.numbers.get(view.root)
        if number in (1, 2, 3, 4):
            return " * ".join([x] * int(number))
        # With a single exponent of 1/2, NumPy takes the root, which differs at -inf and -0.0.
        if view.shape or self.block.var(call.op.outputs[0]).device.type != "cpu":
            return ""
        if number is None:
            return f"where({y} == 0.5, sqrt({x}), pow({x}, {y}))"
        return f"sqrt({x})" if number == 0.5 else ""

    def _dims(self, step: Made) -> frozenset[int]:
        if step.combine == "total":
            return dims_of(step.strides)
        dims: set[int] = set()
        for name in step.needs:
            if name in self.made:
                dims |= self.made[name].dims
            elif name in self.group.operands:
                dims |= dims_of(self.group.operands[name].strides)
            elif name == "index":
                dims.update(self.group.line)
        return frozenset(dims.difference(self.group.line) if step.combine else dims)

    def _is_needed_by_elements(self, step: Made, made: list[Made]) -> bool:
        """Return whether the rest of an op needs a total at each element: so before all others."""
        needed = {step.name}
        for each in made:
            if needed.intersection(each.needs):
                if each.dims - step.dims:
                    return True
                needed.add(each.name)
        return False

    def _is_in_line(self, step: Made) -> bool:
        dims = frozenset().union(*[self.made[n].dims for n in step.needs if n in self.made])
        return step.combine == "total" and bool(dims.intersection(self.group.line))

    def _levels(self) -> None:
        for step in self.group.steps:
            needed = [self.made[name] for name in step.needs if name in self.made]
            level = max([m.level for m in needed], default=0)
            known = [m.dims for m in needed if m.level == END]
            covered = step.call.scale == 1 or not self._is_in_line(step)
            if (
                level == END and (step.combine or step.dims - frozenset().union(*known))
            ) or not covered:
                raise ValueError(f"{step.call.op.type} needs what only the end of the loops knows")
            if step.level != END:
                step.level = level + (step.combine in PASSES)


name_of = functools.cache(str)  # of a dtype: NumPy writes it anew each time


def literal(value: object, dtype: DType) -> str:
    """Return a number as it stands in code."""
    if isinstance(value, Named):
        return f"{name_of(dtype)}({value.text})"
    number = np.asarray(value)
    if dtype.kind == "b" or number.dtype.kind == "b":
        return repr(bool(number))
    if number.dtype.kind == "i" and abs(int(number)) > 1 << 24:
        return repr(int(number))  # which a float32 does not hold
    if dtype.kind == "f":
        return f"{name_of(dtype)}({float(number)!r})"  # `inf` and `nan` are names there
    return f"{name_of(dtype)}({int(number)})"
