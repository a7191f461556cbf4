"""sort, argsort, topk and msort: what users call."""

from __future__ import annotations

from collections import namedtuple
from typing import Annotated

from oneflow_lite.errors import DTypeError
from oneflow_lite.functors.checks import check_tensor, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Dim, Domain, Flag, Int, tensor
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

TOPK = op_expr("topk")

SortResult = namedtuple("SortResult", ["values", "indices"])
TopkResult = namedtuple("TopkResult", ["values", "indices"])


def ordered(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when its elements have an order; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind != "c":
        return value
    mend = "complex numbers have no order; sort abs() or real"
    raise wrong(op, argument, "a real dtype", value.dtype, mend, DTypeError)


Ordered = Annotated[
    Tensor, tensor(ordered, "fiub", "Of any real dtype.", DTypeError="When {x} is complex.")
]
Stable = Annotated[bool, Domain("Accepted as PyTorch does: sorting is always stable.", early=True)]

_SORTED = "x(2, 3); x(3, 2), 0, True; x(2, 3), dim=-1, stable=True; x()"
_TOP = "x(2, 5), 2; x(3, 2), 2, 0, False; x(4), 3, -1, True, True"


@functor("flow Tensor", out=True, samples=_SORTED)
def sort(
    input: Ordered, dim: Dim = -1, descending: Flag = False, *, stable: Stable = False
) -> SortResult:
    """Sort along a dimension, the greatest first if `descending`; return where they stood, too.

    NaN counts as the greatest value. Equal elements always keep their order.

    >>> flow.sort(flow.tensor([3., 1., 2.]))
    SortResult(values=tensor([1., 2., 3.]), indices=tensor([1, 2, 0]))
    """


@functor("flow Tensor", out=True, samples=_SORTED)
def argsort(
    input: Ordered, dim: Dim = -1, descending: Flag = False, *, stable: Stable = False
) -> Tensor:
    """Return the indices that sort a tensor along a dimension; see `sort`."""


@functor("flow Tensor", out=True, samples="x(3, 2); x(4)")
def msort(input: Ordered) -> Tensor:
    """Return the tensor sorted along its first dimension."""
    return sort(input, 0).values


@functor("flow Tensor", out=True, samples=_TOP)
def topk(
    input: Ordered, k: Int, dim: Dim = -1, largest: Flag = True, sorted: Flag = True
) -> TopkResult:
    """Return the k largest, or smallest, elements along a dimension and where they stood.

    NaN counts as the greatest value. Which of equal elements is taken is not said.

    sorted: whether they come in order.
    ShapeError: when k is not from 0 to the size of the dimension.

    >>> flow.topk(flow.tensor([3., 1., 4., 2.]), 2).indices
    tensor([2, 0])
    """
    check_rank("topk", k, 0, input, dim)
    attrs = {"k": k, "dim": dim, "largest": largest, "sorted": sorted}
    return TopkResult(*dispatch1(TOPK, input, attrs))


def check_rank(op: str, k: int, least: int, input: Tensor, dim: int) -> None:
    """Raise `ShapeError` unless a dimension has so many elements."""
    shape = input._data.shape
    size = shape[dim] if shape else 1
    if not least <= k <= size:
        expected = f"{least} to {size} for dimension {dim} of shape {shape}"
        raise wrong(op, "k", expected, k, "ask for fewer elements")
