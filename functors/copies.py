"""Views, copied; and copies of a tensor with something written where a view leads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, IndexRangeError, arg_error
from oneflow_lite.functors.declaring.checks import cast, check_int
from oneflow_lite.functors.declaring.declare import copy_of, functor
from oneflow_lite.functors.declaring.domains import AnyTensor, Dim, Int
from oneflow_lite.functors.unfolding import strided_geometry
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.views import memory_order

At = int | None  # where a slice, or memory, begins or ends
Numbers = Sequence[int]
_VIEWS = "as_strided diagonal split_with_sizes squeeze t transpose unbind unfold unsqueeze"
for _view in _VIEWS.split():
    copy_of(_view)
copy_of("expand", "x(2, 1), (-1, 3)")
copy_of("permute", "x(2, 3, 2), (2, 0, 1)")
copy_of("select", "x(2, 3), 1, -1; x(3), 0, 1")
copy_of("view", "x(2, 3), (3, -1)")
copy_of("view_as_complex", "x(3, 2)")
copy_of("view_as_real", "z(2, 2)")


@functor("flow", op="clone", out="same", alias="detach_copy")
def alias_copy(input: AnyTensor) -> Tensor:
    """Return a copy; gradients flow through it, as in PyTorch."""


@functor("flow Tensor", out="same", samples="x(2, 4), 1, 0, 2; x(4), -1, 2, 1")
def narrow_copy(input: AnyTensor, dim: int, start: int, length: int) -> Tensor:
    """Return what `narrow` returns, copied."""
    return input.narrow(dim, start, length).clone()


@functor("flow", out="same", samples="x(5), 2")
def split_copy(input: AnyTensor, split_size: Int, dim: Int = 0) -> tuple[Tensor, ...]:
    """Return what `split` returns, copied."""
    return tuple([part.clone() for part in input.split(split_size, dim)])


@functor("flow", out="same", samples="x(2, 4), 1, 1, 3; x(5), 0, -4, None, 2; x(5)")
def slice_copy(
    input: AnyTensor, dim: Dim = 0, start: At = None, end: At = None, step: Int = 1
) -> Tensor:
    """Return the entries from `start` to before `end` of a dimension, every step-th, copied.

    ArgumentError: when `step` is below 1, or `input` is 0-d.
    """
    return input[_sliced("slice_copy", input, dim, start, end, step)].clone()


_scatter = functools.partial(functor, "flow Tensor", out="same")


@_scatter(samples="x(2, 3), x(2), 1, 0; x(2, 3), x(3), 0, -1")
def select_scatter(input: AnyTensor, src: AnyTensor, dim: Dim, index: Int) -> Tensor:
    """Return a copy with `src` as one entry of a dimension.

    ShapeError: when `src` has another shape.
    IndexRangeError: when the index is out of range.
    """
    shape, op = input._data.shape, "select_scatter"
    if not shape or not -shape[dim] <= index < shape[dim]:
        expected = f"an index into dimension {dim} of shape {shape}"
        raise arg_error(
            op, "index", expected, index, "name an entry that is there", IndexRangeError
        )
    attrs = {"dim": dim, "index": index % shape[dim]}
    return _written(op, input, src, "select", attrs, shape[:dim] + shape[dim + 1 :])


@_scatter(samples="x(2, 4), x(2, 2), 1, 1, 3; x(5), x(2), 0, -4, None, 2; x(2, 3), x(2, 3)")
def slice_scatter(
    input: AnyTensor, src: AnyTensor, dim: Dim = 0, start: At = None, end: At = None, step: Int = 1
) -> Tensor:
    """Return a copy with `src` as the entries from `start` to before `end`, every step-th.

    ArgumentError: when `step` is below 1, or `input` is 0-d.
    ShapeError: when `src` has another shape.
    """
    shape = input._data.shape
    index = _sliced("slice_scatter", input, dim, start, end, step)
    count = len(range(*index[dim].indices(shape[dim])))
    want = (*shape[:dim], count, *shape[dim + 1 :])
    return _written("slice_scatter", input, src, "getitem", {"index": index}, want)


def _sliced(op: str, input: Tensor, dim: int, start: At, end: At, step: int) -> tuple[slice, ...]:
    if not input._data.ndim or step < 1:
        argument, got = ("step", step) if step < 1 else ("input", "a 0-d tensor")
        expected = "at least 1" if step < 1 else "at least one dimension"
        raise arg_error(op, argument, expected, got, "pass such a one", ArgumentError)
    first, last = (n if n is None else check_int(op, "start", n) for n in (start, end))
    return (*(slice(None),) * dim, slice(first, last, step))


@_scatter(samples="x(3, 3), x(3); x(3, 2), x(2), -1; x(2, 3, 2), x(3, 2), 0, -1, 0")
def diagonal_scatter(
    input: AnyTensor, src: AnyTensor, offset: Int = 0, dim1: Dim = 0, dim2: Dim = 1
) -> Tensor:
    """Return a copy with `src` as the diagonals of two dimensions.

    ShapeError: when `src` has another shape.
    """
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    want = input.detach().diagonal(**attrs).shape
    return _written("diagonal_scatter", input, src, "diagonal", attrs, want)


@_scatter(samples="x(2, 4), x(2, 2), (2, 2), (1, 4), 1")
def as_strided_scatter(
    input: AnyTensor, src: AnyTensor, size: Numbers, stride: Numbers, storage_offset: At = None
) -> Tensor:
    """Return a copy with `src` where `as_strided` leads.

    ShapeError: when `src` has another shape.
    ArgumentError: when `input` has gaps in memory, which a copy has not.
    """
    op, data = "as_strided_scatter", input._data
    reach = sum((n - 1) * abs(s) for n, s in zip(data.shape, input.stride(), strict=True))
    if data.size and reach + 1 != data.size:
        got = f"strides {input.stride()} of shape {data.shape}"
        raise arg_error(op, "input", "memory without gaps", got, "use contiguous()", ArgumentError)
    attrs = strided_geometry(op, input, size, stride, storage_offset)
    return _written(op, input, src, "as_strided", attrs, attrs["size"])


def _written(
    op: str, input: Tensor, src: Tensor, view: str, attrs: dict[str, Any], want: Any
) -> Tensor:
    if src._data.shape != want:
        raise arg_error(op, "src", f"shape {want}, that of the view", src, "reshape or expand it")
    chain, order = ((op_expr(view), attrs),), memory_order(input._data)
    return F.copy_slices(input, cast(src, input.dtype), chain=chain, order=order)
