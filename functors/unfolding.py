"""Windows along one dimension, and memory read by sizes and strides: what users call."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.checks import check_int, check_shape, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Dim, Int
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

_UNFOLD, AS_STRIDED = op_expr("unfold"), op_expr("as_strided")


@functor("Tensor", samples="x(5), 0, 3, 2; x(2, 4), -1, 2, 1; x(2, 4), 0, 1, 5")
def unfold(input: AnyTensor, dimension: Dim, size: Int, step: Int) -> Tensor:
    """Return a view of all windows of `size` entries of one dimension, `step` entries apart.

    returns: the dimension counts the windows, (n - size) // step + 1 of them, and a new last
        dimension the entries of each. Where windows overlap it cannot be written in place.
    ArgumentError: when `size` is negative or larger than the dimension, or `step` not positive.

    >>> flow.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    shape = input._data.shape
    entries = shape[dimension] if shape else 1
    if not 0 <= size <= entries:
        expected = f"0 to {entries} for dimension {dimension} of shape {shape}"
        raise wrong("unfold", "size", expected, size, "take smaller windows", ArgumentError)
    if step < 1:
        raise wrong("unfold", "step", "at least 1", step, "use 1", ArgumentError)
    return dispatch1(_UNFOLD, input, {"dimension": dimension, "size": size, "step": step})


@functor(
    "flow Tensor",
    reshapes="flow Tensor",
    samples="x(2, 4), (2, 2), (1, 3), 1; x(6), (2, 3), (1, 2); x(3), (), (), 2",
)
def as_strided(input: AnyTensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    """Return a view of the memory of a tensor by sizes and strides of its own.

    Where elements share a place it cannot be written in place. What it reads has to belong to
    `input` if a gradient is taken; PyTorch drops the gradient of the rest.

    size, stride: one number a dimension; strides count elements, and are not negative.
    storage_offset: elements from the start of the memory that the tensor shares with its base;
        by default the view begins where the tensor does.
    ArgumentError: when the view does not lie in that memory, or the numbers do not fit.

    >>> flow.as_strided(flow.arange(7), (2, 3), (1, 2), 1)
    tensor([[1, 3, 5],
            [2, 4, 6]])
    """
    geometry = strided_geometry("as_strided", input, size, stride, storage_offset)
    return dispatch1(AS_STRIDED, input, geometry)


def strided_geometry(op: str, input: Tensor, size: Any, stride: Any, storage_offset: Any) -> Any:
    """Check a geometry, and return it as the op takes it."""
    sizes, steps = check_shape(op, (size,), "size"), check_shape(op, (stride,), "stride")
    if len(sizes) != len(steps) or min((*sizes, *steps), default=0) < 0:
        expected = "one number for each size, none of them negative"
        raise wrong(op, "stride", expected, steps, "name a stride for each size", ArgumentError)
    start = 0  # counted from the first element of the tensor
    if storage_offset is not None:
        start = check_int(op, "storage_offset", storage_offset, 0) - input.storage_offset()
    return {"size": sizes, "stride": steps, "storage_offset": start}
