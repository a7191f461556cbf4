"""Brings pointwise ops and sums next to the ops of their operands, before they are grouped.

The bias of a convolution becomes an addition behind it, to which an activation may join. An op
moves up to the ops of its operands when ops of another kind stand in between. An example is the sum
of a bias's gradient, which is recorded behind the products.
"""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.fusion.group import DTYPES
from oneflow_lite.static.ir.program import OpDesc, VarDesc
from oneflow_lite.static.runtime.passes.memory import (
    MemoryGroups,
    is_control_flow,
    is_library,
    is_pure,
    writes,
)
from oneflow_lite.static.runtime.plan import ExecutionPlan

_SMALL = 8  # an array that is so many times smaller than another one may live longer


def bring_together(plan: ExecutionPlan) -> None:
    """Divide biases from convolutions, and move ops up."""
    _divide_biases(plan)
    _move_up(plan)


def _is_fusible(op: OpDesc, plan: ExecutionPlan) -> bool:
    until = plan.fuses_until
    if (until is not None and op.number >= until) or not is_pure(op, plan.block):
        return False
    scalar = scalar_of(op.type, op.attrs)
    return scalar is not None and (scalar.lines is None or scalar.lines.check is None)


def _divide_biases(plan: ExecutionPlan) -> None:
    """Make additions of the biases of convolutions whose results a loop would read."""
    block = plan.block
    if not any([op.type == "conv" for op in block.ops]):
        return
    read = {name for op in block.ops if _is_fusible(op, plan) for name in op.reads}
    ops: list[OpDesc] = []
    for op in block.ops:
        if (
            op.type != "conv"
            or op.inputs[2] is None
            or op.outputs[0] not in read
            or block.var(op.outputs[0]).dtype not in DTYPES
            or not is_pure(op, block)
        ):
            ops.append(op)
            continue
        x, weight, bias = op.inputs
        (output,) = op.outputs
        whole, filters = block.var(output), block.var(str(bias)).shape
        shape = (*filters, *[1] * (len(whole.shape) - 2))
        product, column = f"{output}@product", f"{output}@bias"
        block.create_var(
            VarDesc(product, whole.shape, whole.dtype, strides=whole.strides, device=whole.device)
        )
        block.create_var(VarDesc(column, shape, whole.dtype, device=whole.device))
        said: dict[str, Any] = {"location": op.location, "role": op.role, "number": op.number}
        ops += [
            OpDesc("conv", (x, weight, None), (product,), {**op.attrs}, **said),
            OpDesc("reshape", (bias,), (column,), {"shape": shape}, **said),
            OpDesc("add", (product, column), (output,), **said),
        ]
    if len(ops) > len(block.ops):
        block.ops = ops


def _move_up(plan: ExecutionPlan) -> None:
    """Put ops that loops can do right behind what makes their operands.

    An op stays where it is when memory would be in use for longer: what it makes must be small, or
    take the place of operands that nobody needs after it.
    """
    block, memory = plan.block, MemoryGroups.of_plan(plan)
    keys: list[tuple[int, int]] = []  # where ops go: behind which one, and in which order
    made_at: dict[str, int] = {}
    written_at: dict[str, int] = {}  # by memory, where it was written last
    last_barrier = -1
    others = [0]  # how many ops up to each are not for loops
    fusible: list[bool] = []
    for position, op in enumerate(block.ops):
        is_fusible = _is_fusible(op, plan)
        key = position, position
        if is_fusible:
            after = [last_barrier]
            after += [made_at[name] for name in op.reads if name in made_at]
            after += [written_at.get(memory.of(name), -1) for name in op.reads]
            last = max(after, key=lambda i: keys[i] if i >= 0 else (-1, -1))
            if (
                last >= 0
                and fusible[last]
                and others[position] > others[keys[last][0] + 1]
                and _is_no_burden(op, position, plan, memory)
            ):
                key = keys[last][0], position
        keys.append(key)
        made_at.update(dict.fromkeys(op.new_outputs, position))
        if is_control_flow(op) or not is_library(op):
            last_barrier = position
        written_at.update(dict.fromkeys(map(memory.of, writes(op)), position))
        is_view = op.viewed in made_at and fusible[made_at[op.viewed]]
        fusible.append(is_fusible or is_view)
        others.append(others[-1] + (not (is_fusible or op.viewed is not None)))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if order != list(range(len(keys))):
        block.ops = [block.ops[i] for i in order]


def _is_no_burden(op: OpDesc, position: int, plan: ExecutionPlan, memory: MemoryGroups) -> bool:
    var = plan.block.var
    made = sum(var(name).nbytes for name in op.outputs)
    ends = {memory.of(n): var(n).nbytes for n in op.reads if memory.dies_at(n, position)}
    largest = max([math.prod(var(name).shape) for name in op.reads], default=0)
    is_small = sum(math.prod(var(name).shape) for name in op.outputs) * _SMALL <= largest
    return is_small or made <= sum(ends.values())
