"""The pass that makes machine code of groups of pointwise ops and the reductions at their ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from oneflow_lite.device import CPU
from oneflow_lite.registry import register_kernel
from oneflow_lite.scalar_expression import scalar_of
from oneflow_lite.static.fusion.loops import DTYPES, REDUCTIONS, Group, kept_shape, kind_of
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes import dead_code
from oneflow_lite.static.runtime.passes.effects import is_library
from oneflow_lite.static.runtime.passes.plannable import same_layout
from oneflow_lite.static.runtime.plan import ExecutionPlan, Loop, PassReport

_FILLED = {"ones_like": 1, "zeros_like": 0}  # from the shape of an input


@register_kernel("fused")
def fused(xp: Any, *arrays: Any, run: Callable[..., None]) -> None:
    """Run a group: inputs, then outputs, which are written."""
    run(*arrays)


@attrs.define(eq=False)
class _Open:
    """A group that may still grow."""

    ops: list[tuple[int, OpDesc]]
    shape: tuple[int, ...]
    columns: int | None
    reduced: bool = False
    reads: set[str] = attrs.field(factory=set)  # the memory
    outputs: set[str] = attrs.field(factory=set)


class _Grouping:
    """Goes through the ops of a plan, and puts those that may run together into groups.

    A group runs at the place of its last op. So nothing in between may need what it makes, or write
    what it reads: whatever does closes it.

    Attributes
    ----------
    stands_for : dict of str to str
        The variable of one number of which another one is an expanded view.
    numbers : dict of str to number
        The variables that are one known number at all places.
    """

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan, self.block = plan, plan.block
        self.roots = plan.roots
        # What is handed out or written is made at every run.
        self.held = {self.root(name) for name in plan.fetches}
        self.held.update(self.root(name) for op in plan.block.ops for name in op.written)
        self.open: list[_Open] = []
        self.closed: list[_Open] = []
        self.stands_for: dict[str, str] = {}
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
            self._fold(op)
            found = self._eligible(op)
            joined = self._join(position, op, found) if found is not None else None
            self._close(op, joined)
        return [g for g in (*self.closed, *self.open) if len(g.ops) > 1]

    def _is_constant(self, op: OpDesc) -> bool:
        """Make a constant of a single number that an op takes from a shape alone."""
        output = self.block.var(op.outputs[0]) if op.type in _FILLED else None
        if (
            output is None
            or output.nbytes != output.dtype.itemsize
            or not output.is_temporary
            or output.name in self.held
        ):
            return False
        output.value = np.full(output.shape, _FILLED[op.type], output.dtype)
        self.numbers[output.name] = _FILLED[op.type]
        return True

    def _fold(self, op: OpDesc) -> None:
        """Take note of what is one number at all places: loops need no array of it."""
        if op.type in _FILLED and self.root(op.outputs[0]) not in self.held:
            self.numbers[op.outputs[0]] = _FILLED[op.type]
        if op.type == "expand" and math.prod(self.block.var(op.inputs[0] or "").shape) == 1:
            source = op.inputs[0] or ""
            self.stands_for[op.outputs[0]] = self.stands_for.get(source, source)

    def users(self, groups: list[_Open]) -> dict[str, set[int]]:
        """Return by variable the positions of the ops that need its array; a fetch counts as -1."""
        found: dict[str, set[int]] = {name: {-1} for name in self.plan.fetches}
        grouped = {position for group in groups for position, _ in group.ops}
        for position, op in reversed(list(enumerate(self.block.ops))):
            names = op.reads
            if position in grouped:
                names = tuple([n for n in self._read(op) if n not in self.numbers])
            elif op.outputs[:1] and op.outputs[0] in (*self.stands_for, *self.numbers):
                names = op.reads if op.outputs[0] in found else ()
            for name in names:
                found.setdefault(name, set()).add(position)
        return found

    def group(self, each: _Open, users: dict[str, set[int]]) -> Group:
        """Return the loops of a group: what goes in and out, and how each operand lies."""
        var, size = self.block.var, math.prod(each.shape)
        columns = each.columns or size
        positions = {position for position, _ in each.ops}
        outputs = [
            op.outputs[0] for _, op in each.ops if users.get(op.outputs[0], positions) - positions
        ]
        ops: list[OpDesc] = []
        needed = set(outputs)
        for _, op in reversed(each.ops):
            if op.outputs[0] in needed:
                ops.insert(0, op)
                needed.update(n for n in self._read(op) if n not in self.numbers)
        made = {op.outputs[0] for op in ops}
        read = dict.fromkeys(n for op in ops for n in self._read(op))
        inputs = [n for n in read if n not in made and n not in self.numbers]
        shapes = {n: var(n).shape for n in inputs}
        shapes.update({op.outputs[0]: kept_shape(op, self.block, each.shape) for op in ops})
        found = {n: kind_of(shape, each.shape, columns) for n, shape in shapes.items()}
        kinds = {name: kind for name, kind in found.items() if kind is not None}
        return Group(
            ops, size // columns, columns, inputs, outputs, kinds, self.stands_for, self.numbers
        )

    def _read(self, op: OpDesc) -> list[str]:
        return [self.stands_for.get(name, name) for name in op.reads]

    def _eligible(self, op: OpDesc) -> _Open | None:
        """Return a group of this op alone; None where it cannot be in one."""
        block = self.block
        until = self.plan.fuses_until
        if until is not None and op.number >= until:
            return None
        if op.written or len(op.outputs) != 1 or op.returns_tuple or op.schema.random:
            return None
        output = block.var(op.outputs[0])
        is_reduction = op.type in REDUCTIONS
        if not is_reduction and (op.viewed or scalar_of(op.type, op.attrs) is None):
            return None
        if not is_library(op) or not output.is_temporary:
            return None
        names = [*self._read(op), op.outputs[0]]
        for name in names:
            desc = block.var(name)
            in_c_order = same_layout(desc, attrs.evolve(desc, strides=None))
            if desc.dtype not in DTYPES or desc.device != CPU or not in_c_order:
                return None
        shape = block.var(names[0]).shape if is_reduction else output.shape
        size = math.prod(shape)
        if not size:
            return None
        if (is_reduction or op.type == "pow") and output.dtype.kind != "f":
            return None
        if is_reduction and block.var(names[0]).dtype.kind != "f":
            return None
        if is_reduction and 1 < output.nbytes // output.dtype.itemsize == size:
            return None  # it adds nothing up
        columns = None
        shapes = [block.var(name).shape for name in names[:-1]]
        for each in (*shapes, kept_shape(op, block, shape)):
            n = math.prod(each)
            if n not in (1, size):
                fit = next((c for c in (n, size // n) if kind_of(each, shape, c)), None)
                if fit is None or columns not in (None, fit):
                    return None
                columns = fit
        return _Open([], shape, columns, is_reduction)

    def _join(self, position: int, op: OpDesc, new: _Open) -> _Open | None:
        reads = set(self._read(op))
        producers = [g for g in self.open if g.outputs & reads]
        size = math.prod(new.shape)
        merged = []
        for group in producers:
            columns = {group.columns, new.columns} - {None}
            if (
                math.prod(group.shape) == size
                and len(columns) <= 1
                and not any(o.type in REDUCTIONS and o.outputs[0] in reads for _, o in group.ops)
            ):
                merged.append(group)
                new.columns = next(iter(columns), None)
        if new.reduced and not merged:
            return None
        joined = new
        for group in merged:
            joined.ops += group.ops
            joined.reads |= group.reads
            joined.outputs |= group.outputs
            self.open.remove(group)
        joined.ops.append((position, op))
        joined.ops.sort(key=lambda pair: pair[0])
        joined.reads |= {self.root(name) for name in reads}
        joined.outputs.add(op.outputs[0])
        self.open.append(joined)
        return joined

    def _close(self, op: OpDesc, joined: _Open | None) -> None:
        """Close the groups whose results an op uses, or whose operands it writes."""
        reads = {*self._read(op), *map(self.root, op.reads)}
        writes = set(map(self.root, op.written))
        barrier = bool(op.blocks)
        for group in list(self.open):
            if group is joined:
                continue
            if barrier or group.outputs & reads or group.reads & writes:
                self.open.remove(group)
                self.closed.append(group)


def run(plan: ExecutionPlan) -> PassReport:
    """Replace groups of ops by one each; the bytes saved are those of results not stored."""
    from oneflow_lite.static.fusion.machine import compiled  # which imports numba

    grouping = _Grouping(plan)
    found = grouping.groups()
    made: list[Group] = []
    machines: list[tuple[Callable[..., None], str]] = []
    is_settled = False
    while not is_settled:  # what one group stores depends on which others there are
        users = grouping.users(found)
        made = [grouping.group(each, users) for each in found]
        machines, count = [], len(found)
        for each, group in zip(list(found), made, strict=True):
            if not group.outputs:  # all of it is known numbers
                found.remove(each)
                break
            try:
                machines.append(compiled(group, plan.block))
            except Exception as error:  # Numba's, of many kinds: these ops stay as they are
                plan.refused.append(f"{group.ops[0].type} ... {group.ops[-1].type}: {error!r}")
                found.remove(each)
                break
        is_settled = len(found) == count
    replaced: dict[int, OpDesc | None] = {}
    for each, group, (machine, source) in zip(found, made, machines, strict=True):
        last, op = each.ops[-1]
        replaced.update({position: None for position, _ in each.ops})
        replaced[last] = OpDesc(
            "fused",
            tuple(group.inputs),
            tuple(group.outputs),
            {"run": machine},
            location=op.location,
            returns_tuple=True,
            role=op.role,
            number=op.number,
        )
        inner = [op.outputs[0] for op in group.ops if op.outputs[0] not in group.outputs]
        not_stored = sum(plan.block.var(name).nbytes for name in inner)
        types = tuple([op.type for op in group.ops])
        plan.loops.append(Loop(types, source, not_stored))
        plan.groups[group.outputs[0]] = group, plan.loops[-1]
    plan.block.ops = [
        new for i, op in enumerate(plan.block.ops) if (new := replaced.get(i, op)) is not None
    ]
    dead_code.run(plan)  # what was folded into the loops
    ops = sum(len(loop.ops) - 1 for loop in plan.loops)
    saved = {"ops": ops, "bytes": sum(loop.bytes_saved for loop in plan.loops)}
    return PassReport("fusion", len(made), saved)
