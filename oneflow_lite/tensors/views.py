"""Views: their links to their bases, and the writes to memory that autograd can follow.

The interpreter calls `link_view` for the output of a view op, and `check_writable` before a write.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import address, overlaps
from oneflow_lite.errors import InplaceError
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.storage import SEVERAL_INPUTS, Origin, ViewInfo
from oneflow_lite.tensors.tensor import Tensor

ndarray = np.ndarray


def link_view(
    op: OpExpr, x: Tensor, y: Tensor, attrs: dict[str, Any], origin: Origin | None
) -> None:
    """Make `y` a view of `x` when the kernel returned memory of `x` (reshape may have copied)."""
    data, owner = x._data, y._data.base
    if (
        owner is not data
        and (owner is None or owner is not data.base)
        and not _shares(y._data, data)
    ):
        return
    link(op, x, y, attrs, origin)


def link(op: OpExpr, x: Tensor, y: Tensor, attrs: dict[str, Any], origin: Origin | None) -> None:
    """Make `y`, whose memory lies in that of `x`, a view of it."""
    storage = y._storage = x._storage or x.memory
    parent = x._view
    if parent is None:
        base, layout = x, x._layout
    else:
        base, layout, origin = parent.base, parent.layout, origin or parent.origin
    if len(op.schema.inputs) > 1:
        origin = origin or SEVERAL_INPUTS
    y._view = ViewInfo(base, storage.version, layout, parent, op, attrs, origin)
    if x._inference:
        y._inference = True


def _shares(a: Any, b: Any) -> bool:
    """Return whether `a`, which does not name `b` as the owner of its memory, shares it."""
    if a is b:
        return True
    if isinstance(a, ndarray):  # as_strided puts objects of its own in between
        base = a.base
        while base is not None and base is not b:
            base = getattr(base, "base", None)
        return base is b
    return a.data.mem is b.data.mem  # an array of CuPy does not name its owner


def check_writable(op: str, x: Tensor, needs_grad: bool = False) -> None:
    """Raise `InplaceError` when `x` cannot be written in place while operations are recorded.

    `needs_grad` says that the written values require a gradient.
    """
    check_history(op, x, needs_grad)
    check_memory(op, x)


def check_history(op: str, x: Tensor, needs_grad: bool = False) -> None:
    """Raise `InplaceError` when autograd could not follow an in-place write to `x`."""
    x.refresh_view()  # an older write may have given the view a history
    view = x._view
    base: Tensor = x if view is None else view.base
    if not needs_grad and x._edge is None and base._edge is None:
        return
    if view is not None and view.origin is not None:
        raise InplaceError(
            f"{op}(): a view that was made {view.origin.how} was to be written in place, which "
            f"autograd does not follow; {view.origin.hint}"
        )
    if base.is_leaf and (x._edge is not None or base._edge is not None):
        what = "a leaf that requires a gradient" if view is None else "a view of such a leaf"
        raise InplaceError(
            f"{op}(): {what} was to be written in place; do it under no_grad(), or use the "
            "out-of-place op"
        )
    if base._data.dtype.kind not in "fc":
        raise InplaceError(
            f"{op}(): a view of a tensor of {base.dtype} was to be written in place, and what is "
            "written requires a gradient; write to a copy of the view"
        )


def check_memory(op: str, x: Tensor) -> None:
    """Raise `InplaceError` when the memory of `x` cannot be written, recorded or not."""
    array = x._data
    if array.flags.writeable if isinstance(array, ndarray) else not overlaps(array):
        return
    raise InplaceError(
        f"{op}(): the memory of the tensor (shape {x.shape}) is read-only or shared between "
        "its own elements, as after expand(); clone() it first"
    )


def out_of_date_error(x: Tensor, origin: Origin) -> InplaceError:
    """Build the error for the use of a view after a write that autograd did not follow."""
    return InplaceError(
        f"a view (shape {x.shape}) that was made {origin.how} is out of date: its base or another "
        f"view of it was written in place; {origin.hint}"
    )


def memory_order(array: Any) -> tuple[int, ...] | None:
    """Return the dimensions by falling stride; None for C order."""
    if array.flags.c_contiguous:
        return None
    return tuple(sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim])))


def same_memory(a: Any, b: Any) -> bool:
    """Return whether two arrays have the same elements at the same places."""
    a, b = getattr(a, "local", a), getattr(b, "local", b)  # a rank's part of a global tensor
    if a is b or a.size == 0:
        return bool(a.shape == b.shape)
    return bool(_place(a) == _place(b) and a.dtype == b.dtype)


def _place(array: Any) -> tuple[Any, ...]:
    # The stride of a dimension of size 1 means nothing.
    strides = [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    return address(array), array.shape, strides
