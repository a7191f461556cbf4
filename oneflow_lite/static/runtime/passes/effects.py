"""The side effects of ops, which each pass checks before it changes anything."""

from __future__ import annotations

from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.program import Block, OpDesc


def is_library(op: OpDesc) -> bool:
    """Return whether the op is one of the package's, whose schemas are tested.

    The kernel of a user's op may return its input, draw numbers or print without saying so in its
    schema: such an op stays as it is, and its output is taken to share memory with its inputs.
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
