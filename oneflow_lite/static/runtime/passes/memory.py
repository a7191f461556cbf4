"""The questions that each pass asks before it changes anything: effects of ops, and memory.

MemoryGroups tells which variables may lie in one piece of memory, and when each is used last.
`plannable` finds the temporaries that a plan may place: their ops write to a given `out`.
"""

from __future__ import annotations

import itertools

from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.memory import is_dense
from oneflow_lite.static.ir.program import Block, OpDesc
from oneflow_lite.static.runtime.plan import ExecutionPlan


def is_library(op: OpDesc) -> bool:
    """Return whether the op is the package's own, for their schemas are tested.

    The kernel of a user's op may draw numbers or print without saying so in its schema: such an op
    stays as it is. Writes and shared memory are watched (`ops/kernel_watch.py`).
    """
    return KERNELS.get(op.type).is_library


def is_control_flow(op: OpDesc) -> bool:
    """Return whether the op runs sub-blocks: it counts as random, but names no generator."""
    return op.schema.random and "generator" not in op.attrs


def writes(op: OpDesc) -> tuple[str, ...]:
    """Return the inputs that the op may write."""
    return op.reads if is_control_flow(op) else op.written


def is_pure(op: OpDesc, block: Block) -> bool:
    """Return whether the op does nothing but make temporaries, the same ones from the same inputs.

    Only such an op may be removed, evaluated before the run, or computed once instead of twice.
    """
    return (
        is_library(op)
        and not op.schema.random
        and not op.has_effect
        and not op.written
        and not any([n in op.reads or not block.var(n).is_temporary for n in op.outputs])
    )


_GIVEN = "<given>"  # stands for all memory that a run is given; no variable has this name


class MemoryGroups:
    """Groups variables by the memory in which they may lie; in doubt, two variables are one group.

    All variables that a run is given (feeds and persistable ones) are taken to share memory, as a
    parameter and a view of it do when both are captured.

    Parameters
    ----------
    plan : ExecutionPlan

    Attributes
    ----------
    made_at : dict of str to int
        Position of the op that makes a variable; no entry for what is given.
    """

    def __init__(self, plan: ExecutionPlan) -> None:
        self.made_at: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._last_use: dict[str, int] = {}
        self._held: set[str] = set()
        held = [*plan.fetches]
        used: dict[str, int] = {}
        for position, op in enumerate(plan.block.ops):
            reads, outputs = op.reads, op.outputs
            used.update(dict.fromkeys((*reads, *outputs), position))
            for name in outputs:
                if name not in reads:
                    self.made_at[name] = position
            for name in (sharing := _sharing(op))[1:]:
                self._join(sharing[0], name)
            if is_control_flow(op):  # it may keep arrays for its backward pass
                held += reads
        for name, desc in plan.block.vars.items():
            if desc.value is None and (name not in self.made_at or not desc.is_temporary):
                self._join(_GIVEN, name)
        self._held.update(map(self.of, (*held, _GIVEN)))
        for name, position in used.items():
            root = self.of(name)
            self._last_use[root] = max(position, self._last_use.get(root, 0))
        self._taken_over = 0
        self._take_over(plan)

    @classmethod
    def of_plan(cls, plan: ExecutionPlan) -> MemoryGroups:
        """Return the groups of a plan as it is now; they are found anew once its ops change."""
        groups: MemoryGroups = plan.noted("memory groups", cls)
        groups._take_over(plan)
        return groups

    def _take_over(self, plan: ExecutionPlan) -> None:
        """Join the outputs that got the memory of another variable since the last time."""
        for output, source in itertools.islice(plan.in_place.items(), self._taken_over, None):
            roots = self.of(output), self.of(source)
            self._join(output, source)
            if not self._held.isdisjoint(roots):
                self._held.add(self.of(output))
            self._last_use[self.of(output)] = max([self._last_use.get(r, 0) for r in roots])
        self._taken_over = len(plan.in_place)

    def of(self, name: str) -> str:
        """Return the variable that stands for a group: its members may share memory."""
        root = name
        while (parent := self._parents.get(root, root)) != root:
            root = parent
        while (parent := self._parents.get(name, name)) != root:
            self._parents[name] = root
            name = parent
        return root

    def _join(self, a: str, b: str) -> None:
        self._parents[self.of(b)] = self.of(a)

    def is_held(self, name: str) -> bool:
        """Return whether the memory is in use after the run, or was before it."""
        return self.of(name) in self._held

    def last_use(self, name: str) -> int:
        """Return the position of the last op that uses the memory under any name."""
        return self._last_use[self.of(name)]

    def dies_at(self, name: str, position: int) -> bool:
        """Return whether nobody uses the memory after the op at a position."""
        return not self.is_held(name) and self.last_use(name) == position


def _sharing(op: OpDesc) -> list[str]:
    """Return the variables of an op that may share memory."""
    if is_control_flow(op):
        return [*op.reads, *op.outputs]
    if op.viewed is not None:
        return [op.viewed, *op.outputs]
    return []


def plannable(plan: ExecutionPlan) -> set[str]:
    """Return the temporaries whose memory later ops, and later runs, may use again.

    Each is the only output of an op that takes `out`, is dense and on the plan's device, and is
    neither fetched nor kept by a control-flow op under any name.
    """
    memory = MemoryGroups.of_plan(plan)
    return {name for name in owned(plan) if not memory.is_held(name)}


def owned(plan: ExecutionPlan) -> set[str]:
    """Return the temporaries whose memory the plan may choose, the fetched included."""
    names: set[str] = plan.noted("owned", _find_owned)
    return names


def _find_owned(plan: ExecutionPlan) -> set[str]:
    var = plan.block.var
    return {
        name
        for op in plan.block.ops
        for name in (op.outputs if op.type == "fused" else op.outputs[:1])
        if (op.type == "fused" or makes_into_out(op))
        and (desc := var(name)).nbytes
        # NumPy rounds a single complex product differently in place.
        and not (desc.dtype.kind == "c" and desc.nbytes == desc.dtype.itemsize)
        and desc.device == plan.place
        and is_dense(desc)
    }


def makes_into_out(op: OpDesc) -> bool:
    """Return whether an op makes one array, and takes `out` for it."""
    schema = op.schema
    return (
        schema.out
        and not op.returns_tuple
        and len(op.outputs) == 1
        and op.outputs[0] not in op.inputs
        and not (op.written or op.viewed or (schema.random and is_control_flow(op)))
        and is_library(op)
    )
