"""The pass that joins neighbours: small loops, products and copies, and all updates of a step.

It comes last, when memory is planned. Joined ops put each result at its planned place, and run in
the same order. Where arrays turn out to overlap, the ops run one by one after all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import CPU
from oneflow_lite.arrays.threads import parts_of
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.static.fusion.group import DTYPES, Group
from oneflow_lite.static.fusion.joined import (
    Joined,
    JoinedPart,
    Piece,
    Placed,
    update_time,
    write_joined,
)
from oneflow_lite.static.fusion.products import PRODUCTS, Product
from oneflow_lite.static.fusion.updates import Update, update_of
from oneflow_lite.static.ir.memory import is_in_c_order, same_layout, strides_of
from oneflow_lite.static.ir.program import Block, OpDesc, VarDesc
from oneflow_lite.static.runtime.passes.grouping import Grouping
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, is_library
from oneflow_lite.static.runtime.plan import ExecutionPlan, FusedOps, PassReport


@register_kernel("joined")
def joined_ops(xp: Any, *arrays: Any, run: Joined) -> None:
    """Stand in a plan for ops that run as one; a `StraightLine` binds them to their memory."""
    raise AssertionError("what is joined runs on a straight line")


Run = list[tuple[OpDesc, list[JoinedPart]]]
# Ops of groups that are joined: LLVM goes through all of them once more, and twice as many ops take
# it more than twice as long. Beyond this number large groups stay apart: joining saves them little.
_MOST, _LARGE_GROUP = 1024, 64
_MANY_PIECES = 16  # of an array that is written piece by piece: each is a loop


class _Joining:
    """Finds the ops to join in a plan with planned memory."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan, self.block = plan, plan.block
        self.memory = MemoryGroups.of_plan(plan)
        self.grouping = Grouping(plan)
        ops = sum([len(group.calls) for group, _ in plan.groups.values()])
        self.largest = ops if ops <= _MOST else _LARGE_GROUP  # ops of a group that is joined
        self.homes: dict[str, str | None] = {}  # the array that is given in which one lies
        # The memory that a run is given; a parameter in it may be known by several names.
        self.given = {self.memory.of(name) for name in (*plan.feeds, *plan.external_names)}
        for name, desc in self.block.vars.items():
            if desc.persistable or desc.value is not None:
                self.homes[name] = None
        self.homes.update({name: name for name in plan.feeds})

    def runs(self) -> Iterator[Run]:
        """Yield runs of neighbouring ops that may be joined, each op with its parts."""
        until = self.plan.fuses_until
        run: Run = []
        for op in self.block.ops:
            parts = self._parts(op)
            if until is not None and op.number >= until:
                yield run
                run, until = [], None
            if parts is None:
                yield run
                run = []
            else:
                run.append((op, parts))
        yield run

    def updated(self, part: JoinedPart) -> int:
        """Return how many elements a part updates."""
        is_update = isinstance(part.made_of, Update)
        return math.prod(self.block.var(part.ops[0].inputs[0] or "").shape) if is_update else 0

    def time(self, part: JoinedPart) -> float:
        """Return how many nanoseconds a part takes if it is an update."""
        update = part.made_of
        arrays = len(update.arrays) if isinstance(update, Update) else 0
        return update_time(self.updated(part), arrays)

    def divided(self, run: Run) -> Iterator[Run]:
        """Keep large updates apart, for threads divide them."""
        elements = [sum(map(self.updated, parts)) for _, parts in run]
        if not _is_small(1 + sum(elements)):
            keys = itertools.accumulate(
                zip(elements, run, strict=True),
                lambda last, pair: bool(pair[0]) if pair[1][1] else last,
                initial=False,
            )
            for _, pieces in itertools.groupby(
                zip(list(keys)[1:], run, strict=True), itemgetter(0)
            ):
                yield [piece for _, piece in pieces]
        else:
            yield run

    def _parts(self, op: OpDesc) -> list[JoinedPart] | None:
        """Return the parts of a joined function that an op is; None where it cannot be joined."""
        block, plan = self.block, self.plan
        for name in op.new_outputs:
            self._settle(op, name)
        if op.blocks or not is_library(op) or op.schema.random:
            return None
        if op.viewed is not None:  # its array is made beforehand, or it is no part
            may_copy = op.type == "reshape" and not self._in_c_order(op.reads)
            return [] if self.homes[op.outputs[0]] is None and not may_copy else None
        if op.type == "copy_" and plan.in_place.get(op.inputs[1] or "") == op.inputs[0]:
            return []
        if op.type == "clone" and plan.in_place.get(op.outputs[0]) == op.inputs[0]:
            return []
        names = (*op.reads, *op.outputs)
        if any([block.var(n).device != CPU or block.var(n).dtype not in DTYPES for n in names]):
            return None
        if op.type in PRODUCTS:
            if any([self.homes[n] is not None and not self._in_c_order((n,)) for n in op.reads]):
                return None  # what is given is an array in C order
            product = _product(op, block)
            return (
                [JoinedPart((op,), product)] if product and self._in_c_order(op.outputs) else None
            )
        if op.type == "fused":
            group, _ = plan.groups[op.outputs[0]]
            joins = _is_part(group) and len(group.calls) <= self.largest
            return [JoinedPart((op,), group)] if joins else None
        if op.type == "placed":
            placed = _placed(op, block)
            return [JoinedPart((op,), placed)] if placed is not None else None
        if not (op.written or op.type == "clone"):
            return self._alone(op)
        if not self._in_c_order(names):
            return None
        if op.written and (
            any([self.homes[n] is not None and self.memory.of(n) in self.given for n in op.reads])
            or len(set(op.reads)) < len([n for n in op.inputs if n is not None])
        ):
            return None  # what is given may overlap
        update = update_of(op, block)
        if update is not None:
            return [JoinedPart((op,), update)]
        if op.type not in ("clone", "copy_"):
            return None
        x, y = map(block.var, op.reads if op.written else (*op.reads, *op.outputs))
        alike = same_layout(x, y) and _is_small(math.prod(x.shape))
        return [JoinedPart((op,))] if alike else None

    def _alone(self, op: OpDesc) -> list[JoinedPart] | None:
        """Return the part that a pointwise op outside of groups makes; None where it makes none."""
        group, plan = self.grouping.alone(op), self.plan
        if group is None or not _is_part(group):
            return None
        in_place = {n: plan.in_place[n] for n in op.outputs if n in plan.in_place}
        others = [n for n in group.inputs if n not in in_place.values()]
        if {self.memory.of(n) for n in op.outputs}.intersection(map(self.memory.of, others)):
            return None  # one that is read elsewhere than it is written
        return [JoinedPart((op,), group, in_place)]

    def _settle(self, op: OpDesc, name: str) -> None:
        """Find out where a variable lies."""
        plan = self.plan
        source = plan.in_place.get(name, op.viewed)
        if source is not None:
            self.homes[name] = None if self.homes.get(source, source) is None else name
        else:
            self.homes[name] = None if name in plan.memory_plan.places else name

    def _in_c_order(self, names: tuple[str, ...]) -> bool:
        descs = map(self.block.var, names)
        return all(map(is_in_c_order, descs))


def _placed(op: OpDesc, block: Block) -> Placed | None:
    """Return how a small array is written piece by piece; None where that is for NumPy."""
    made = block.var(op.outputs[0])
    size = math.prod(made.shape)
    if not _is_small(size) or len(op.reads) > _MANY_PIECES or made.dtype.kind == "b":
        return None
    array, pieces = np.empty(made.shape, made.dtype), []
    for name, index in zip(op.reads, op.attrs["indices"], strict=True):
        desc, part = block.var(name), array[index]
        if desc.shape != part.shape or min((0, *strides_of(desc), *part.strides)) < 0:
            return None
        begin = (part.ctypes.data - array.ctypes.data) // made.dtype.itemsize
        strides = [
            tuple([s // made.dtype.itemsize for s in each])
            for each in (strides_of(desc), part.strides)
        ]
        pieces.append(Piece(part.shape, strides[0], begin, strides[1]))
    return Placed(tuple(pieces), size, op.attrs["whole"])


def _product(op: OpDesc, block: Block) -> Product | None:
    """Return how a product of matrices is written; None where that is for BLAS."""
    x, y, z = (block.var(name or "") for name in (*op.inputs, op.outputs[0]))
    if not (x.dtype == y.dtype == z.dtype and z.dtype.kind == "f"):
        return None
    factors = [_matrices(desc, bool(op.attrs.get("merge"))) for desc in (x, y)]
    if factors[0] is None or factors[1] is None:
        return None
    (x_shape, x_strides), (y_shape, y_strides) = factors[0], factors[1]
    if op.type == "matmul_tn":
        x_shape, x_strides = _turned(x_shape), _turned(x_strides)
    if op.type == "matmul_nt":
        y_shape, y_strides = _turned(y_shape), _turned(y_strides)
    has_rows = len(y_shape) == 2 < len(x_shape) and op.type != "matmul_tn"
    if has_rows and x.strides is None:  # all matrices in one product
        x_shape, x_strides = (math.prod(x_shape[:-1]), x_shape[-1]), (x_shape[-1], 1)
    counts = z.shape[:-2] if len(x_shape) > 2 or len(y_shape) > 2 else ()
    product = Product(
        x_shape[-2],
        x_shape[-1],
        y_shape[-1],
        (x_strides[-2], x_strides[-1]),
        (y_strides[-2], y_strides[-1]),
        counts,
        _steps(x_strides, counts),
        _steps(y_strides, counts),
    )
    return product if product.is_for_us else None


Strides = tuple[int, ...]


def _turned(pair: Strides) -> Strides:
    return (*pair[:-2], pair[-1], pair[-2])


def _steps(strides: Strides, counts: Strides) -> Strides:
    """Return strides along dimensions to which an array is broadcast; 0 where it has one matrix."""
    return (*[0] * (len(counts) - len(strides[:-2])), *strides[:-2])


def _matrices(desc: VarDesc, merges: bool) -> tuple[Strides, Strides] | None:
    """Return shape and strides, in elements, of an array of matrices, or of one of all its rows."""
    strides = tuple([s // desc.dtype.itemsize for s in strides_of(desc)])
    if len(strides) < 2 or min(strides) < 0:
        return None
    if not merges or len(strides) == 2:
        return desc.shape, strides
    columns = desc.shape[-1]
    return ((math.prod(desc.shape[:-1]), columns), (columns, 1)) if desc.strides is None else None


def _is_small(elements: int) -> bool:
    from oneflow_lite.static.fusion.machine import LARGE

    return 0 < elements < LARGE


def _is_part(group: Group) -> bool:
    """Return whether a group is small, and looks at nothing before it runs."""
    return _is_small(math.prod(group.shape)) and not group.checks()


def join_neighbours(plan: ExecutionPlan) -> PassReport:
    """Replace neighbouring ops by one op; `saved` counts the calls."""
    if plan.place != CPU:
        return PassReport("joining", 0, {"ops": 0})
    from oneflow_lite.static.fusion import machine  # which imports numba

    joining = _Joining(plan)
    replaced: dict[int, OpDesc | None] = {}
    fired = calls = 0
    for each in [piece for run in joining.runs() for piece in joining.divided(run)]:
        ops = [op for op, _ in each]
        parts = [part for _, parts in each for part in parts]
        elements = sum(joining.updated(part) for part in parts)
        if len(parts) < 2 and not elements:
            continue
        threads = parts_of(sum(map(joining.time, parts)), elements)
        made = write_joined(parts, ops, plan.block, joining.homes.__getitem__, threads > 1)
        made.threads = threads
        try:
            if plan.compiles != "never":
                machine.compile_joined(made, plan.block)
        except Exception as error:  # Numba's, of many kinds: these ops stay as they are
            plan.refused.append(f"{ops[0].type} ... {ops[-1].type}: {error!r}")
            continue
        replaced.update(dict.fromkeys(map(id, ops)))
        op = replaced[id(ops[0])] = _op_of(made)
        within = [plan.groups[op.outputs[0]] for op in ops if op.type == "fused"]
        types = [
            inner.type
            for part in parts
            for inner in (part.made_of.ops if isinstance(part.made_of, Group) else part.ops)
        ]
        loops = [loop for _, loop in within]
        plan.loops = [x for x in plan.loops if not any([x is y for y in loops])]
        saved = sum(loop.bytes_saved for loop in loops)
        plan.loops.append(FusedOps(tuple(types), made.source, saved, op.outputs, "call"))
        fired += 1
        calls += len(parts) - 1
    plan.block.ops = [new for op in plan.block.ops if (new := replaced.get(id(op), op)) is not None]
    return PassReport("joining", fired, {"ops": calls})


def _op_of(made: Joined) -> OpDesc:
    """Return the op that takes the place of the joined ops."""
    ops = made.ops
    reads = dict.fromkeys(name for op in ops for name in op.reads)
    outputs = dict.fromkeys(name for op in ops for name in op.new_outputs)
    return OpDesc(
        "joined",
        tuple([name for name in reads if name not in outputs]),
        tuple(outputs),
        {"run": made},
        location=ops[-1].location,
        returns_tuple=True,
        role=ops[-1].role,
        number=ops[0].number,
    )
