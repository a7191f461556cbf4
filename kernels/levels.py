"""Ops on the border of a transform; `transforms/` does them, on tensors instead of arrays."""

from __future__ import annotations

from oneflow_lite.errors import TransformError
from oneflow_lite.kernels.infer_rules import like_first
from oneflow_lite.ops.registry import register_kernel


def _outside(op):
    return TransformError(f"{op}(): there is no transform; call it through flow.func")


@register_kernel("enter_batch", linear="x", batch="new dimension")
def enter_batch(xp, x, *, level, dim):
    """One entry of x along a dimension, for all entries at once."""
    raise _outside("enter_batch")


@register_kernel("leave_batch", linear="x", batch="new dimension")
def leave_batch(xp, x, *, level, dim, crossing=None):
    """All entries, along a dimension."""
    raise _outside("leave_batch")


@register_kernel("sum_batch", linear="x", infer=like_first, batch="new dimension")
def sum_batch(xp, x, *, level, crossing=None):
    """The sum over the entries."""
    raise _outside("sum_batch")


@register_kernel("enter_jet", linear="coefficients", batch="new dimension")
def enter_jet(xp, *coefficients, level, orders):
    """Σ cₖ tᵏ over the orders k that are given."""
    raise _outside("enter_jet")


@register_kernel("leave_jet", linear="x", infer=like_first, batch="new dimension")
def leave_jet(xp, x, *, level, order, crossing=None):
    """The coefficient of tᵏ."""
    raise _outside("leave_jet")
