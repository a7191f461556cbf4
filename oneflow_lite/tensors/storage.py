"""Storage: the identity of a piece of memory and the number of times it was written in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np

from oneflow_lite.arrays.array_spec import address, owner
from oneflow_lite.arrays.device import META, device_of, on_device


class Storage:
    """Shared by a tensor, its views and its detached aliases.

    `version` grows with every in-place write that goes through the library. A tensor gets its
    Storage when it is first saved, viewed or written.
    """

    version = 0  # an instance gets its own with the first write


class Origin(NamedTuple):
    """The way in which a view was made, where that keeps autograd from following its writes."""

    how: str
    hint: str


NO_GRAD = Origin(
    "under no_grad()",
    "make the view and write both under no_grad(), or both outside of it",
)
SPLIT = Origin(
    "as one of several outputs of one op",
    "take the part alone, by indexing or narrow(), or clone() it",
)
FUNCTION = Origin(
    "inside the forward of a custom Function",
    "clone() it, or return no view from forward",
)
SEVERAL_INPUTS = Origin("by an op of several inputs", "clone() it")

# The changes in place of a base's shape, as a linked list with the newest first: (the changes
# before, the op that undoes this change, its attributes).
Layout = tuple[Any, Any, dict[str, Any]]
ViewStep = tuple[Any, dict[str, Any]]  # a view op and its attributes


@attrs.define(eq=False)
class ViewInfo:
    """The way from a base to its view, and the version of the base that the view's history knows.

    Attributes
    ----------
    base : Tensor
        No view itself.
    version : int
        Of the storage when the view's history was made; another version makes it out of date.
    layout : Layout or None
        The base's layout when the first view of the chain was taken.
    parent : ViewInfo or None
        Of the view from which this view was taken; None when it was taken from the base.
    op_expr, attrs
        The view op that was applied last.
    origin : Origin or None
        None for an ordinary view.
    """

    base: Any
    version: int
    layout: Layout | None
    parent: ViewInfo | None
    op_expr: Any
    attrs: dict[str, Any]
    origin: Origin | None

    def chain(self) -> tuple[ViewStep, ...]:
        """Return the view ops that lead from the base, in its present shape, to the view."""
        undone: list[ViewStep] = []
        layout = self.base._layout
        while layout is not self.layout:
            layout, op, attrs = layout
            undone.append((op, attrs))
        steps: list[ViewStep] = []
        link: ViewInfo | None = self
        while link is not None:
            steps.append((link.op_expr, link.attrs))
            link = link.parent
        return (*undone, *reversed(steps))


def copied_together(array: Any, memo: dict[int, Any]) -> Any:
    """Return a copy; copies with one memo, that of `copy.deepcopy`, share memory as before.

    The memory is copied as a whole, if its owner lies in C order.

    >>> import numpy as np
    >>> from oneflow_lite.tensors.storage import copied_together
    >>> x, memo = np.zeros(3), {}
    >>> twin, part = copied_together(x, memo), copied_together(x[1:], memo)
    >>> part[:] = 1
    >>> x, twin
    (array([0., 0., 0.]), array([0., 1., 1.]))
    """
    whole = owner(array)
    if not (array.size and whole.flags.c_contiguous) or device_of(array) is META:
        return array.copy()
    if id(whole) not in memo:
        memo[id(whole)] = whole.copy()
    if array is whole:
        return memo[id(whole)]
    start = address(array) - address(whole)
    memory = memo[id(whole)].reshape(-1).view(np.uint8)
    first = memory[start : start + array.itemsize].view(array.dtype)
    with on_device(device_of(array)) as xp:
        return xp.lib.stride_tricks.as_strided(first, array.shape, array.strides)
