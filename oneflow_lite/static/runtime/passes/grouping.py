"""The pass that makes machine code of groups of pointwise ops and the reductions at their ends."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.arrays.device import CPU, on_device
from oneflow_lite.ops.array_places import Place, divide, scaled
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.fusion import cuda_machine
from oneflow_lite.static.fusion.cuda_source import CUDA_DTYPES, cuda_source_of
from oneflow_lite.static.fusion.group import (
    DEAR,
    DTYPES,
    MANY,
    MOST,
    Call,
    Group,
    View,
    call_of,
    describe_group,
)
from oneflow_lite.static.fusion.loops import source_of
from oneflow_lite.static.ir.memory import is_in_c_order, strides_of
from oneflow_lite.static.ir.program import Block, OpDesc
from oneflow_lite.static.runtime.passes.dead_code import remove_dead_code
from oneflow_lite.static.runtime.passes.epilogues import bring_together
from oneflow_lite.static.runtime.passes.memory import is_library, is_pure
from oneflow_lite.static.runtime.plan import ExecutionPlan, FusedOps, PassReport

_FILLED = {"ones_like": 1, "zeros_like": 0}  # from the shape of an input
# Views whose first element is that of their input.
_VIEWS = ("reshape", "transpose", "permute", "squeeze", "unsqueeze", "expand")


@register_kernel("fused")
def fused(xp: Any, *arrays: Any, run: Callable[..., None]) -> None:
    """Run a group: inputs, then outputs, which are written."""
    run(*arrays)


@attrs.define(eq=False)
class _Open:
    """A group that may still grow.

    Attributes
    ----------
    calls : list of (int, Call)
        With their positions.
    size : int
        The number of elements that it goes over.
    line : Place or None
        What its ops reduce.
    made : dict of str to Place
        Where its results lie; those that are there at the end only are in `ends`.
    reads : set of str
        The memory.
    whole : set of str
        The operands of its size.
    cuts : set of int
        The ends of the dimensions in which all places are apart.
    dear : int
        How often it calls functions that take long to build.
    """

    calls: list[tuple[int, Call]]
    size: int
    line: Place | None = None
    made: dict[str, Place] = attrs.field(factory=dict)
    ends: set[str] = attrs.field(factory=set)
    reads: set[str] = attrs.field(factory=set)
    whole: set[str] = attrs.field(factory=set)
    cuts: set[int] = attrs.field(factory=set)
    dear: int = 0

    def grow(self, by: int) -> None:
        """Let it go over `by` times as many elements: each element belongs to a line of so many."""
        self.size *= by
        self.made = {name: scaled(place, by) for name, place in self.made.items()}
        self.cuts = {cut * by for cut in self.cuts}
        for _, call in self.calls:
            call.scale *= by


class Grouping:
    """Goes through the ops of a plan, and puts those that may run together into groups.

    A group runs at the place of its last op. So an op in between that needs a result of the group,
    or writes memory that the group reads, closes it.

    Attributes
    ----------
    views : dict of str to View
        The variables that are views of others, as long as their first elements are the same.
    numbers : dict of str to number
        The variables that are one known number at all places.
    """

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan, self.block = plan, plan.block
        self.roots = plan.roots
        self.dtypes = DTYPES if plan.place == CPU else CUDA_DTYPES
        # Memory that is handed out or written is made at every run.
        self.held = {self.root(name) for name in plan.fetches}
        self.held.update(self.root(name) for op in plan.block.ops for name in op.written)
        self.open: list[_Open] = []
        self.closed: list[_Open] = []
        self.views: dict[str, View] = {}
        self.folded: dict[int, str] = {}  # the view ops, by position
        self.numbers = {
            name: desc.value.item()
            for name, desc in plan.block.vars.items()
            if desc.value is not None and desc.value.size == 1
        }

    def root(self, name: str) -> str:
        return self.roots.get(name, name)

    def groups(self) -> list[_Open]:
        """Go through the ops in order."""
        self.block.ops = [op for op in self.block.ops if not self._is_constant(op)]
        for position, op in enumerate(self.block.ops):
            if self._fold(position, op):
                continue
            call = self._eligible(op)
            joined = self._join(position, call) if call is not None else None
            self._close(op, joined)
        return [g for g in (*self.closed, *self.open) if _pays(g)]

    def _is_constant(self, op: OpDesc) -> bool:
        """Make a constant of a single number that follows from shapes and constants alone."""
        output = self.block.var(op.outputs[0]) if len(op.outputs) == 1 else None
        if (
            output is None
            or output.nbytes != output.dtype.itemsize
            or not output.is_temporary
            or output.name in self.held
            or not is_pure(op, self.block)
        ):
            return False
        if op.type in _FILLED:
            value = self.filled(op)
        else:
            values = [None if n is None else self.block.var(n).value for n in op.inputs]
            scalar = scalar_of(op.type, op.attrs)
            if scalar is None or scalar.reduces or any([v is None for v in values]):
                return False
            with np.errstate(all="ignore"), on_device(self.plan.place) as xp:
                number = op_expr(op.type).kernel(xp)(*values, **op.attrs)
                value = xp.asarray(number, output.dtype).reshape(output.shape)
        output.value = value
        self.numbers[output.name] = value.item()
        return True

    def filled(self, op: OpDesc) -> Any:
        """Return the array that an op makes from a shape."""
        output = self.block.var(op.outputs[0])
        with on_device(self.plan.place) as xp:
            return xp.full(output.shape, _FILLED[op.type], output.dtype)

    def _fold(self, position: int, op: OpDesc) -> bool:
        """Note an op that loops do without: a view or a fill; return whether it is one."""
        if not op.outputs:
            return False
        name, source = op.outputs[0], op.inputs[0] if op.inputs else None
        if op.type in _FILLED and self.root(name) not in self.held:
            self.numbers[name] = _FILLED[op.type]
            self.folded[position] = name
            return True
        if op.type not in _VIEWS or source is None or op.blocks:
            return False
        seen, desc = self.view(source), self.block.var(source)
        itemsize = desc.dtype.itemsize
        if op.type == "reshape":
            if not seen.is_dense:
                return False
            made = self.block.var(name).shape
            self.views[name] = View.in_c_order(seen.root, made)
        else:
            strides = tuple([n * itemsize for n in seen.strides])
            phantom = ArraySpec(seen.shape, desc.dtype, strides).phantom()
            viewed = op_expr(op.type).kernel(np)(phantom, **op.attrs)
            steps = tuple(
                [
                    0 if n == 1 else s // itemsize
                    for n, s in zip(viewed.shape, viewed.strides, strict=True)
                ]
            )
            self.views[name] = View(seen.root, viewed.shape, steps)
        self.folded[position] = name
        return True

    def view(self, name: str) -> View:
        """Return of which variable this one is a view, and how."""
        view = self.views.get(name)
        if view is None:
            desc = self.block.var(name)
            view = View(
                name, desc.shape, tuple([s // desc.dtype.itemsize for s in strides_of(desc)])
            )
        return view

    def users(self, groups: list[_Open]) -> dict[str, set[int]]:
        """Return by variable the positions of the ops that need its array; a fetch counts as -1."""
        users: dict[str, set[int]] = {name: {-1} for name in self.plan.fetches}
        grouped = {position: call for group in groups for position, call in group.calls}
        for position, op in reversed(list(enumerate(self.block.ops))):
            names = op.reads
            if position in grouped:
                roots = [view.root for view in grouped[position].views.values()]
                names = tuple([n for n in roots if n not in self.numbers])
            elif position in self.folded:
                names = op.reads if op.outputs[0] in users else ()
            for name in names:
                users.setdefault(name, set()).add(position)
        return users

    def group(self, each: _Open, users: dict[str, set[int]]) -> Group:
        """Return a description of a group: what goes in and out, and how each array lies."""
        positions = {position for position, _ in each.calls}
        outputs = [
            name
            for _, call in each.calls
            for name in call.op.outputs
            if users.get(name, positions) - positions
        ]
        calls: list[Call] = []
        needed = set(outputs)
        for _, call in reversed(each.calls):
            if needed.intersection(call.op.outputs):
                calls.insert(0, call)
                roots = [view.root for view in call.views.values()]
                needed.update(n for n in roots if n not in self.numbers)
        return describe_group(calls, each.size, each.line, outputs, self.block, self.numbers)

    def _eligible(self, op: OpDesc) -> Call | None:
        """Return how the arrays of an op lie; None where it cannot be in a group."""
        block = self.block
        until = self.plan.fuses_until
        if until is not None and op.number >= until:
            return None
        if op.written or op.schema.random or op.viewed or not op.outputs or not is_library(op):
            return None
        if scalar_of(op.type, op.attrs) is None:
            return None
        views = {p: self.view(n) for p, n in zip(op.schema.inputs, op.inputs, strict=True) if n}
        for view in views.values():
            desc = block.var(view.root)
            if desc.dtype not in self.dtypes or desc.device != self.plan.place:
                return None
            if not self._is_readable(view.root):
                return None
        for desc in [block.var(name) for name in op.outputs]:
            if (
                desc.dtype not in self.dtypes
                or desc.device != self.plan.place
                or not is_in_c_order(desc)
            ):
                return None
            if not desc.is_temporary or not desc.nbytes:
                return None
        call = call_of(op, views, block)
        if call is not None and call.raises:
            lines = call.scalar.lines
            if lines is not None and self._is_made(views[lines.checked].root):
                return None
        return call

    def _is_readable(self, name: str) -> bool:
        """Return whether loops find the elements of an array: a part of one will do on the CPU."""
        desc = self.block.var(name)
        if is_in_c_order(desc) or name in self.numbers:
            return True
        itemsize = desc.dtype.itemsize
        steps = strides_of(desc)
        is_part = self.plan.place == CPU and self.root(name) != name
        return is_part and all([s > 0 and s % itemsize == 0 for s in steps if s])

    def alone(self, op: OpDesc) -> Group | None:
        """Return a group of one op; None where it cannot be in one."""
        call = self._eligible(op)
        if call is None or call.raises or len(op.outputs) > 1:
            return None
        line = call.line if call.scalar.reduces else None
        return describe_group(
            [call], call.frame.size, line, [*op.outputs], self.block, self.numbers
        )

    def _is_made(self, name: str) -> bool:
        return any([name in group.made for group in self.open])

    def _join(self, position: int, call: Call) -> _Open:
        """Put an op into a group, and join the groups of its operands where they fit."""
        new = _Open([(position, call)], call.frame.size, dear=call.scalar.calls(DEAR))
        is_sum = call.scalar.is_sum
        if call.scalar.reduces and not is_sum:
            new.line = call.line
        new.cuts = _cuts(call)
        reads = {view.root for view in call.views.values()}
        makers = [g for g in self.open if not g.made.keys().isdisjoint(reads)]
        whole = {n for n in reads if math.prod(self.block.var(n).shape) == new.size}
        others = [g for g in self.open if g not in makers and not whole.isdisjoint(g.whole)]
        for group in [*makers, *others]:  # groups that read the same arrays save a pass over memory
            if self._merge(new, group, call):
                self.open.remove(group)
        new.whole |= whole
        if is_sum and new.line is None and call.scale == 1:
            size = math.prod([high // low for low, high, _ in call.line])
            if call.line[:1] and call.line[0][0] == 1 and size < new.size:
                new.line = call.line
        for i, name in enumerate(call.op.outputs):
            place = call.output(i)
            new.made[name] = place
            if (is_sum and call.line != new.line) or call.scalar.is_total(i, bool(place)):
                new.ends.add(name)
        new.calls.sort(key=lambda pair: pair[0])
        new.reads |= {self.root(name) for name in (*reads, *call.op.reads)}
        self.open.append(new)
        return new

    def _merge(self, new: _Open, group: _Open, call: Call) -> bool:
        """Let a group of a new op take in one that makes its operands; tell whether they fit."""
        shared = [(p, view.root) for p, view in call.views.items() if view.root in group.made]
        if group.ends.intersection([name for _, name in shared]):
            return False
        pairs = [(call.input(p), group.made[name]) for p, name in shared]
        grows = shrinks = 1
        if new.size != group.size:  # one element of the smaller for each line of the larger
            (place, made), *_ = pairs or [((), ())]
            if not place or not made:
                return False
            grows, shrinks = place[0][0] // made[0][0], made[0][0] // place[0][0]
            if grows > 1:
                if group.line is not None or group.ends or new.size % (group.size * grows):
                    return False
                shrinks = 1
            elif shrinks > 1:
                reduces = call.scalar.reduces and not call.scalar.is_sum
                if reduces or new.calls[1:] or group.size % (new.size * shrinks):
                    return False
                grows = 1
            else:
                return False
        if len(new.calls) + len(group.calls) > MOST:
            return False
        dear = new.dear + group.dear
        if dear > MANY:
            return False
        for place, made in pairs:
            if scaled(place or (), shrinks) != scaled(made, grows):
                return False
        if None not in (new.line, group.line) and new.line != group.line:
            return False
        size = max(new.size, group.size)
        cuts = {n * shrinks for n in new.cuts} | {n * grows for n in group.cuts} | {1, size}
        if not divide(cuts):
            return False
        call.scale *= shrinks
        if grows > 1:
            group.grow(grows)
        new.size, new.cuts, new.dear = size, cuts, dear
        new.line = group.line if new.line is None else new.line
        new.calls = [*group.calls, *new.calls]
        new.made.update(group.made)
        new.ends |= group.ends
        new.reads |= group.reads
        new.whole |= group.whole
        return True

    def _close(self, op: OpDesc, joined: _Open | None) -> None:
        """Close the groups with a result that an op uses, or an operand that it writes.

        A group that may raise is not put off beyond an op that changes memory or draws numbers.
        """
        reads = {*op.reads, *[self.view(name).root for name in op.reads]}
        writes = set(map(self.root, op.written))
        is_barrier = bool(op.blocks)
        changes = bool(op.written or op.schema.random or not is_library(op))
        for group in list(self.open):
            if group is not joined and (
                is_barrier
                or not reads.isdisjoint(group.made)
                or group.reads & writes
                or (changes and any([call.raises for _, call in group.calls]))
            ):
                self.open.remove(group)
                self.closed.append(group)


def _compiler(plan: ExecutionPlan) -> Callable[[Group, Block], tuple[Any, str]]:
    """Return the function that makes machine code for a plan's device, or its source alone."""
    if plan.place != CPU:
        at_once = functools.partial(cuda_machine.compiled, place=plan.place)
        return _written_for_cuda if plan.compiles == "never" else at_once
    if plan.compiles != "at once":
        return _written if plan.compiles == "never" else _later
    from oneflow_lite.static.fusion import machine  # which imports numba

    return machine.compiled


def _written(group: Group, block: Block) -> tuple[None, str]:
    return None, source_of(group, block)[0]


class Later:
    """A group whose machine code is made when somebody asks, or calls."""

    def __init__(self, group: Group, block: Block) -> None:
        self.group, self.block = group, block
        self._run: Callable[..., None] | None = None

    def compiled(self) -> Callable[..., None]:
        """Return the function that runs the group; Numba may raise."""
        if self._run is None:
            from oneflow_lite.static.fusion import machine  # which imports numba

            self._run, _ = machine.compiled(self.group, self.block)
        return self._run

    def __call__(self, *arrays: Any) -> None:
        self.compiled()(*arrays)


def _later(group: Group, block: Block) -> tuple[Later, str]:
    return Later(group, block), source_of(group, block)[0]


def _written_for_cuda(group: Group, block: Block) -> tuple[None, str]:
    return None, cuda_source_of(group, block).text


def _cuts(call: Call) -> set[int]:
    return {n for place in call.places() for low, high, _ in place for n in (low, high)}


def _pays(group: _Open) -> bool:
    """Return whether a loop saves a pass over memory."""
    return len(group.calls) > 1 or group.calls[0][1].scalar.operations > 2


def fuse_groups(plan: ExecutionPlan) -> PassReport:
    """Replace groups of ops by one each; the bytes saved are those of results not stored."""
    compiled = _compiler(plan)
    bring_together(plan)
    grouping = Grouping(plan)
    groups = grouping.groups()
    made: list[Group] = []
    machines: list[tuple[Callable[..., None], str]] = []
    is_settled = False
    while not is_settled:  # the results that a group stores depend on the other groups
        users = grouping.users(groups)
        made, machines, count = [], [], len(groups)
        for each in list(groups):
            try:
                group = grouping.group(each, users)
                if not group.outputs:  # all of it is known numbers
                    groups.remove(each)
                    break
                machines.append(compiled(group, plan.block))
                made.append(group)
            except (
                Exception
            ) as error:  # Numba's or CuPy's, of many kinds: these ops stay as they are
                types = [call.op.type for _, call in each.calls]
                plan.refused.append(f"{types[0]} ... {types[-1]}: {error!r}")
                groups.remove(each)
                break
        is_settled = len(groups) == count
    ready: dict[str, int] = {}  # the positions from which results of groups exist
    fused: dict[int, OpDesc] = {}
    for each, group, (machine, source) in zip(groups, made, machines, strict=True):
        last, call = each.calls[-1]
        op = next((c.op for _, c in each.calls if c.raises), call.op)
        fused[last] = OpDesc(
            "fused",
            tuple(group.inputs),
            tuple(group.outputs),
            {"run": machine},
            location=op.location,
            returns_tuple=True,
            role=op.role,
            number=op.number,
        )
        ready.update(dict.fromkeys(group.outputs, last))
        inner = [n for op in group.ops for n in op.outputs if n not in group.outputs]
        not_stored = sum(plan.block.var(name).nbytes for name in inner)
        loop = FusedOps(
            tuple([op.type for op in group.ops]), source, not_stored, tuple(group.outputs)
        )
        plan.loops.append(loop)
        plan.groups[group.outputs[0]] = group, loop
    plan.block.ops = _ordered(grouping, groups, fused, ready, users)
    remove_dead_code(plan)  # what was folded into the loops
    ops = sum(len(loop.ops) - 1 for loop in plan.loops)
    saved = {"ops": ops, "bytes": sum(loop.bytes_saved for loop in plan.loops)}
    return PassReport("fusion", len(made), saved)


def compiled_last(plan: ExecutionPlan) -> bool:
    """Make the machine code of the groups that are left; return whether all have some.

    A joined group gets its code only if the ops of its function run one by one after all.
    """
    for op in plan.block.ops:
        if op.type == "fused" and isinstance(op.attrs["run"], Later):
            try:
                op.attrs["run"] = op.attrs["run"].compiled()
            except Exception:  # Numba's, of many kinds
                return False
    return True


def _ordered(
    grouping: Grouping,
    groups: list[_Open],
    fused: dict[int, OpDesc],
    ready: dict[str, int],
    users: dict[str, set[int]],
) -> list[OpDesc]:
    """Return the ops with groups in their places, and each view after its base.

    An array of ones may be needed before the group that makes its model: then it is a constant.
    """
    grouped = {position for each in groups for position, _ in each.calls}
    ops: list[tuple[int, int, OpDesc]] = []
    for position, op in enumerate(grouping.block.ops):
        at = position
        if position in grouping.folded:
            at = max([position, *[ready[name] for name in op.reads if name in ready]])
            name = op.outputs[0]
            if op.type in _FILLED and at > min(users.get(name, [at])):
                grouping.block.var(name).value = grouping.filled(op)
                continue
            ready[name] = at
        if position in fused:
            ops.append((at, -1, fused[position]))
        elif position not in grouped:
            ops.append((at, position, op))
    return [op for _, _, op in sorted(ops, key=lambda each: each[:2])]
