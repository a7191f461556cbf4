"""Dispatch: a functor hands an op over at a door of the default stack.

Where another interpreter is on top, the door of the default stack hands the op on to its door.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.errors import InplaceError
from oneflow_lite.interpreter import promotion
from oneflow_lite.interpreter.stack import DEFAULT_STACK
from oneflow_lite.tensors.mode import local, with_grad_mode
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.views import out_of_date_error, same_memory

# The doors themselves: a function around each would cost a frame for every op.
dispatch = DEFAULT_STACK.enter
dispatch1 = DEFAULT_STACK.enter1
dispatch2 = DEFAULT_STACK.enter2


def promote(op: str, *operands: Any) -> list[Tensor]:
    """Make tensors of operands and cast them to their common dtype; see `promotion.promote`."""
    return promotion.promote(dispatch1, op, *operands)


def rounded_once(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Call a function with halves as float32, and round its result."""
    return promotion.rounded_once(dispatch1, function, *operands, **options)


def replay_view(x: Tensor) -> None:
    """Take a view from its base once more, for the history that this gives."""
    view = x._view
    assert view is not None
    if view.origin is not None:
        raise out_of_date_error(x, view.origin)
    before = local.state
    local.state = with_grad_mode(True)
    try:
        y = view.base
        for op, attrs in view.chain():
            y = dispatch1(op, y, attrs)
    finally:
        local.state = before
    if not same_memory(x._data, y._data):
        raise InplaceError(
            f"a view of shape {x.shape} cannot be taken anew from its base of shape "
            f"{view.base.shape}, which was written in place; clone() the view first"
        )
    x.set_history(y._edge)
    view.version = x.memory.version
