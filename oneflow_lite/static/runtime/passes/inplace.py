"""In-place: an elementwise op writes over an operand that no op after it uses."""

from __future__ import annotations

from collections.abc import Iterator

from oneflow_lite.static.ir.memory import same_layout
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, makes_into_out, owned
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport


class DyingOperands:
    """The operands whose memory an output may take over, in a plan as decided so far."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.memory = MemoryGroups.of_plan(plan)
        self._owned = owned(plan)

    def of(self, op: OpDesc, position: int) -> Iterator[str]:
        """Yield the operands of an op whose memory its output may take over."""
        block, memory, schema = self.plan.block, self.memory, op.schema
        if not schema.reuses or not makes_into_out(op) or op.outputs[0] in self.plan.in_place:
            return
        output = block.var(op.outputs[0])
        if not (output.is_temporary and output.shape):  # a scalar: there is nothing to gain
            return
        for name in op.reads:
            if (
                name in self._owned
                and memory.dies_at(name, position)
                and takes_as_out(op, name)
                and same_layout(block.var(name), output)
                and not any([n != name and memory.of(n) == memory.of(name) for n in op.reads])
            ):
                yield name


def takes_as_out(op: OpDesc, name: str) -> bool:
    """Return whether the kernel may get this very input as `out`, at whatever position it is."""
    schema = op.schema
    count = len(schema.inputs)
    named = zip(schema.inputs, op.inputs, strict=False)
    return name not in op.inputs[count:] and all(
        [p in schema.reuses for p, n in named if n == name]
    )


def write_in_place(plan: ExecutionPlan) -> PassReport:
    """Let outputs take over dying operands; the bytes saved are those of the buffers left out."""
    dying = DyingOperands(plan)
    fired = nbytes = 0
    for position, op in enumerate(plan.block.ops):
        operand = next(dying.of(op, position), None)
        if operand is not None:
            plan.in_place[op.outputs[0]] = operand
            fired += 1
            nbytes += plan.block.var(operand).nbytes
    return PassReport("inplace", fired, {"bytes": nbytes})
