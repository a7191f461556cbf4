"""When an op may write its output over an operand that nobody needs any more."""

from __future__ import annotations

from collections.abc import Iterator

from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.plannable import makes_into_out, owned, same_layout
from oneflow_lite.static.runtime.passes.storage import Storage
from oneflow_lite.static.runtime.plan import ExecutionPlan


class TakeOver:
    """The operands that outputs can take over, in a plan as far as it is decided."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.storage = Storage(plan)
        self._owned = owned(plan)

    def operands(self, op: OpDesc, position: int) -> Iterator[str]:
        """Go through the operands whose memory the output of an op may take over."""
        if not makes_into_out(op) or op.outputs[0] in self.plan.in_place:
            return
        block, storage = self.plan.block, self.storage
        output = block.var(op.outputs[0])
        if not (output.is_temporary and output.shape):  # without dimensions: nothing to gain
            return
        for name in op.reads:
            if (
                name in self._owned
                and storage.dies_at(name, position)
                and takes_as_out(op, name)
                and same_layout(block.var(name), output)
                and not any([n != name and storage.of(n) == storage.of(name) for n in op.reads])
            ):
                yield name


def takes_as_out(op: OpDesc, name: str) -> bool:
    """Return whether the kernel may be given this very input as `out`, wherever it stands."""
    schema = op.schema
    count = len(schema.inputs)
    named = zip(schema.inputs, op.inputs, strict=False)
    return name not in op.inputs[count:] and all(
        [p in schema.reuses for p, n in named if n == name]
    )
