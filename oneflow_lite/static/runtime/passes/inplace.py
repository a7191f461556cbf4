"""In-place: an elementwise op writes over an operand that nobody uses after it."""

from __future__ import annotations

from oneflow_lite.static.runtime.passes.take_over import TakeOver
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport


def run(plan: ExecutionPlan) -> PassReport:
    """Let outputs take over dying operands; the bytes saved are those of the buffers left out."""
    rule = TakeOver(plan)
    fired = nbytes = 0
    for position, op in enumerate(plan.block.ops):
        operand = next(rule.operands(op, position), None)
        if operand is not None:
            plan.in_place[op.outputs[0]] = operand
            fired += 1
            nbytes += plan.block.var(operand).nbytes
    return PassReport("inplace", fired, {"bytes": nbytes})
