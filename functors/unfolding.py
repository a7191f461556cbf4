"""Windows laid side by side, and memory read by sizes and strides, for users."""

from __future__ import annotations

import math
from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.declaring.checks import check_int, check_ndim, check_shape
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Dim,
    FloatingOrComplex,
    Int,
    IntOrInts,
)
from oneflow_lite.functors.spatial import sizes
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

_UNFOLD, AS_STRIDED = op_expr("unfold"), op_expr("as_strided")

Two = Annotated[Any, sizes("One for both dimensions, or two, as in `conv2d`.", ", 1, 2")]
Pad = Annotated[Any, sizes("How much is added on both sides.", ", 0, 2")]


@functor("Tensor", samples="x(5), 0, 3, 2; x(2, 4), -1, 2, 1; x(2, 4), 0, 1, 5")
def unfold(input: AnyTensor, dimension: Dim, size: Int, step: Int) -> Tensor:
    """Return a view of all windows of `size` entries of one dimension, `step` entries apart.

    returns: the dimension counts the (n - size) // step + 1 windows, a new last dimension the
        entries of each. Where windows overlap, it cannot be written in place.
    ArgumentError: when `size` is negative or larger than the dimension, or `step` not positive.

    >>> flow.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    shape = input._data.shape
    entries = shape[dimension] if shape else 1
    if not 0 <= size <= entries:
        expected = f"0 to {entries} for dimension {dimension} of shape {shape}"
        raise arg_error("unfold", "size", expected, size, "take smaller windows", ArgumentError)
    if step < 1:
        raise arg_error("unfold", "step", "at least 1", step, "use 1", ArgumentError)
    return dispatch1(_UNFOLD, input, {"dimension": dimension, "size": size, "step": step})


@functor(
    "flow Tensor",
    reshapes="flow Tensor",
    samples="x(2, 4), (2, 2), (1, 3), 1; x(6), (2, 3), (1, 2); x(3), (), (), 2",
)
def as_strided(
    input: AnyTensor, size: IntOrInts, stride: IntOrInts, storage_offset: int | None = None
) -> Tensor:
    """Return a view of the memory of a tensor by sizes and strides of its own.

    Where elements share a place, it cannot be written in place. Its elements have to belong to
    `input` if a gradient is taken; PyTorch drops the gradient of the rest.

    size, stride: one number a dimension; strides count elements, and are not negative.
    storage_offset: counted from the start of the memory; by default that of the tensor.
    ArgumentError: when the view does not lie in that memory, or the numbers do not fit.

    >>> flow.as_strided(flow.arange(7), (2, 3), (1, 2), 1)
    tensor([[1, 3, 5],
            [2, 4, 6]])
    """
    geometry = strided_geometry("as_strided", input, size, stride, storage_offset)
    return dispatch1(AS_STRIDED, input, geometry)


def strided_geometry(op: str, input: Tensor, size: Any, stride: Any, storage_offset: Any) -> Any:
    """Check a geometry, and return it as the op takes it."""
    lengths, steps = check_shape(op, (size,), "size"), check_shape(op, (stride,), "stride")
    if len(lengths) != len(steps) or min((*lengths, *steps), default=0) < 0:
        expected = "one number for each size, none of them negative"
        raise arg_error(op, "stride", expected, steps, "name a stride for each size", ArgumentError)
    start = 0  # counted from the first element of the tensor
    if storage_offset is not None:
        start = check_int(op, "storage_offset", storage_offset, 0) - input.storage_offset()
    return {"size": lengths, "stride": steps, "storage_offset": start}


@functor("functional", samples="x(1, 2, 3, 4), 2; x(2, 3, 4), (2, 1), (1, 2), (1, 0), (2, 1)")
def functional_unfold(
    input: FloatingOrComplex, kernel_size: Two, dilation: Two = 1, padding: Pad = 0, stride: Two = 1
) -> Tensor:
    """Return the windows of images as columns.

    input: of shape (N, C, H, W) or (C, H, W).
    returns: (N, C·kernel, number of windows), or the same without N.

    >>> flow.nn.functional.unfold(flow.arange(4.).reshape(1, 1, 4), (1, 2))
    tensor([[0., 1., 2.],
            [1., 2., 3.]])
    """
    geometry = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding}
    blocks = _blocks(check_ndim("functional.unfold", input, (3, 4)).shape, stride, **geometry)
    if min(blocks) < 1:
        expected = f"windows that fit into the input, shape {input.shape}"
        got, hint = f"{kernel_size} with padding {padding}", "use a smaller window or more padding"
        raise arg_error("functional.unfold", "kernel_size", expected, got, hint)
    return F.im2col(input, **geometry, stride=stride)


@functor("functional", samples="x(1, 8, 6), (3, 4), 2; x(2, 3), (2, 4), (1, 2), (2, 1), 0, (2, 1)")
def fold(
    input: FloatingOrComplex,
    output_size: Two,
    kernel_size: Two,
    dilation: Two = 1,
    padding: Pad = 0,
    stride: Two = 1,
) -> Tensor:
    """Add columns back to the windows of images: the transposed map of `nn.functional.unfold`.

    input: of shape (N, C·kernel, number of windows), or without N.
    returns: (N, C, *output_size), or the same without N.

    >>> flow.nn.functional.fold(flow.ones(2, 3), (1, 4), (1, 2))
    tensor([[[1., 2., 2., 1.]]])
    """
    geometry = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding}
    kernel, blocks = math.prod(kernel_size), _blocks(output_size, stride, **geometry)
    rows, columns = check_ndim("fold", input, (2, 3)).shape[-2:]
    if rows % kernel or min(blocks) < 1 or columns != math.prod(blocks):
        expected = f"a multiple of {kernel} rows, and a column for each of {blocks} windows"
        raise arg_error(
            "fold", "input", expected, input, "pass the sizes that unfold was called with"
        )
    return F.col2im(input, output_size=output_size, **geometry, stride=stride)


def _blocks(shape: Any, stride: Any, kernel_size: Any, dilation: Any, padding: Any) -> list[int]:
    """Return how many windows each dimension has."""
    each = zip(shape[-2:], stride, kernel_size, dilation, padding, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, s, k, d, p in each]
