"""Vocabularies: a linear layer and the cross entropy of its logits become one op.

That op computes the logits in tiles, once more for the gradient, and never holds them whole. It
adds tile by tile, so that results may differ in their last bits.
"""

from __future__ import annotations

import math

import attrs

from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, writes
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport

_MANY = 1 << 23  # logits from which their memory outweighs that they are computed twice
# The ops that take the gradients of a linear layer's operands from that of the logits.
_OF_OPERANDS = {"matmul": "x", "matmul_tn": "w", "sum_to": "b"}


@attrs.define
class _Match:
    """A linear layer x wᵀ + b, the losses of its logits, and the ops of their backward pass."""

    loss: OpDesc
    operands: dict[str, str]  # the variables of x, w and b
    before: list[OpDesc]  # which make the logits
    gradient: OpDesc | None = None  # of the logits
    after: list[OpDesc] = attrs.field(factory=list)  # which take the gradients of the operands
    gradients: dict[str, str] = attrs.field(factory=dict)  # the variables of these
    logits: list[str] = attrs.field(factory=list)  # all variables of logits and their gradients


def drop_logits(plan: ExecutionPlan) -> PassReport:
    """Replace linear layers and the cross entropies behind them; the bytes saved are of logits."""
    block = plan.block
    losses = [op for op in block.ops if op.type == "cross_entropy_rows" and _is_large(plan, op)]
    fired = dropped = nbytes = 0
    for loss in losses:
        match = _linear_before(plan, loss)
        if match is None or not _ends_here(plan, match) or not _is_private(plan, match):
            continue
        _replace(plan, match)
        fired += 1
        dropped += len(match.before) + len(match.after)
        nbytes += sum(block.var(op.outputs[0]).nbytes for op in match.before if not op.viewed)
        nbytes += 0 if match.gradient is None else block.var(match.gradient.outputs[0]).nbytes
    return PassReport("vocabularies", fired, {"ops": dropped, "bytes": nbytes})


def _is_large(plan: ExecutionPlan, loss: OpDesc) -> bool:
    desc = plan.block.var(str(loss.inputs[0]))
    of_rows = len(desc.shape) == 2 and desc.device.type == "cpu"
    return of_rows and math.prod(desc.shape) >= _MANY


def _linear_before(plan: ExecutionPlan, loss: OpDesc) -> _Match | None:
    """Return the linear layer that makes the logits of a loss; None where they are made otherwise.

    Its result may be looked at in another shape, of the same rows.
    """
    block, made_by = plan.block, {name: op for op in plan.block.ops for name in op.outputs}
    name = str(loss.inputs[0])
    classes, before, operands = block.var(name).shape[-1], [], {}
    op = made_by.get(name)
    if op is not None and op.type == "reshape" and block.var(op.reads[0]).shape[-1] == classes:
        before.append(op)
        op = made_by.get(op.reads[0])
    if op is not None and op.type == "add" and not op.attrs:
        before.append(op)
        name, operands["b"] = map(str, op.inputs)
        op = made_by.get(name)
    if op is None or op.type != "matmul_nt":
        return None
    operands["x"], operands["w"] = map(str, op.inputs)
    descs = {of: block.var(name) for of, name in operands.items()}
    if len(descs["w"].shape) != 2 or ("b" in descs and descs["b"].shape != (classes,)):
        return None
    dtype = block.var(str(loss.inputs[0])).dtype
    if any([desc.dtype != dtype or desc.device.type != "cpu" for desc in descs.values()]):
        return None
    before.append(op)
    return _Match(loss, operands, before, logits=[each.outputs[0] for each in before])


def _ends_here(plan: ExecutionPlan, match: _Match) -> bool:
    """Return whether all uses of the logits are known, and note those of the backward pass."""
    block = plan.block
    users: dict[str, list[OpDesc]] = {}
    for op in block.ops:
        for name in op.reads:
            users.setdefault(name, []).append(op)
    last, *inner = match.logits
    if any([len(users[name]) != 1 for name in inner]):
        return False
    for op in users[last]:
        if op is match.loss:
            continue
        same = op.type == "cross_entropy_rows_grad" and op.inputs[2:4] == match.loss.outputs[1:]
        if not same or op.inputs[1] != last or match.gradient is not None:
            return False
        match.gradient = op
    if match.gradient is None:
        return True
    name = match.gradient.outputs[0]
    match.logits.append(name)
    ops = users.get(name, [])
    if len(ops) == 1 and ops[0].type == "reshape":
        match.after.append(ops[0])
        name = ops[0].outputs[0]
        match.logits.append(name)
        ops = users.get(name, [])
    others = {"x": "w", "w": "x"}  # by which the gradient is multiplied
    for op in ops:
        of = _OF_OPERANDS.get(op.type, "")
        expected = (name, match.operands[others[of]]) if of in others else (name,)
        if of not in match.operands or of in match.gradients or op.inputs != expected:
            return False
        made, operand = block.var(op.outputs[0]), block.var(match.operands[of])
        if made.shape != operand.shape or made.strides is not None:
            return False
        match.gradients[of] = op.outputs[0]
        match.after.append(op)
    return bool(ops)


def _is_private(plan: ExecutionPlan, match: _Match) -> bool:
    """Return whether nobody sees the logits, and no operand is written before its last use."""
    block, memory = plan.block, MemoryGroups.of_plan(plan)
    written = {memory.of(name) for op in block.ops for name in writes(op)}
    for name in match.logits:
        if not block.var(name).is_temporary or name in plan.fetches or memory.of(name) in written:
            return False
    places = [
        i for i, op in enumerate(block.ops) if op in (*match.before, match.loss, *match.after)
    ]
    between = block.ops[places[0] : places[-1]]
    operands = {memory.of(name) for name in (*match.operands.values(), *match.loss.reads[1:])}
    return operands.isdisjoint([memory.of(name) for op in between for name in writes(op)])


def _replace(plan: ExecutionPlan, match: _Match) -> None:
    block = plan.block
    operands = tuple([match.operands.get(of) for of in "xwb"])
    outputs = tuple([match.gradients[of] for of in "xwb" if of in match.gradients])
    ops = []
    for op in block.ops:
        if op is match.loss:
            op.type, op.inputs = "linear_cross_entropy_rows", (*operands, *op.inputs[1:])
        elif op is match.gradient:
            dy, _, *others = op.inputs
            needs = tuple([of in match.gradients for of in "xwb"])
            op = OpDesc(
                "linear_cross_entropy_rows_grad",
                (dy, *operands, *others),
                outputs,
                {**op.attrs, "needs": needs},
                op.location,
                op.role,
                returns_tuple=len(outputs) > 1,
                number=op.number,
            )
        elif op in match.before or op in match.after:
            continue
        ops.append(op)
    block.ops = ops
