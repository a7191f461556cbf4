"""Distinct values, and values in bins: functions that users call. Results carry no gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError, arg_error
from oneflow_lite.functors.declaring import domains
from oneflow_lite.functors.declaring.checks import check_int, check_number
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    Count,
    Dim,
    Flag,
    Number,
    Positive,
    Real,
    RealFloating,
)
from oneflow_lite.functors.scatter import check_vector
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

HistogramResult = NamedTuple("HistogramResult", [("hist", Tensor), ("bin_edges", Tensor)])
HistogramddResult = NamedTuple(
    "HistogramddResult", [("hist", Tensor), ("bin_edges", tuple[Tensor, ...])]
)

Span = Sequence[float] | None
Weight = Tensor | None
Numbers = Annotated[
    Tensor, domains.tensor(check_vector, "", "A vector of integers of at least 0.", "i(5)")
]
Sorted = Annotated[bool, domains.Domain("As PyTorch takes it; the result always is.", early=True)]

_DISTINCT = """i(7); i(3, 4), return_inverse=True, return_counts=True
    i(4, 2, n=2), dim=0, return_inverse=True; fixed(x(3)), return_counts=True; b(5)"""
_RUNS = """i(7, n=2); i(3, 4, n=2), return_inverse=True, return_counts=True
    i(4, 2, n=2), return_inverse=True, dim=0"""
_COUNTS = """
    return_inverse: Literal[False] = ..., return_counts: Literal[False] = ... -> Tensor
    return_inverse: Literal[True] -> tuple[Tensor, ...]
    return_counts: Literal[True] -> tuple[Tensor, ...]
"""
_COUNTED = "fixed(x(9)), 4; fixed(x(3, 4)), 5, -1.0, 2.0; fixed(x(4))"
_BINS = """fixed(x(9)), 4; fixed(x(3, 4)), 3, range=(-1.0, 2.0), density=True
    fixed(x(6)), fixed(np.array([-2.0, 0.0, 0.5, 2.0])), weight=fixed(pos(6))"""


@functor("flow Tensor", samples=_DISTINCT, results=_COUNTS)
def unique(
    input: Real,
    sorted: Sorted = True,
    return_inverse: Flag = False,
    return_counts: Flag = False,
    dim: Dim | None = None,
) -> Any:
    """Return the distinct elements in rising order, or the distinct slices along a dimension.

    NaN equals nothing, not even itself. There is no gradient: asking for one raises.

    return_inverse, return_counts: return the place of each element in the result, and counts, too.
    returns: the elements, or a tuple of the elements, the inverse and the counts, as requested.

    >>> flow.unique(flow.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """


@functor("flow Tensor", samples=_RUNS, results=_COUNTS)
def unique_consecutive(
    input: Real, return_inverse: Flag = False, return_counts: Flag = False, dim: Dim | None = None
) -> Any:
    """Return the first element, or slice along a dimension, of each run of equals; see `unique`."""


@functor("flow Tensor", samples="i(7); i(7), fixed(x(7)), 9; i(5), i(5)")
def bincount(input: Numbers, weights: Weight = None, minlength: Count = 0) -> Tensor:
    """Return how often each number occurs: y[n] counts n, or sums the weights of its places.

    weights: real, of the shape of `input`. Asking for their gradient raises.
    minlength: the least length of the result.
    ArgumentError: when a number is negative (on CUDA the values are not looked at).
    ShapeError: when `weights` has another shape.

    >>> flow.bincount(flow.tensor([0, 2, 2]), minlength=4)
    tensor([1, 0, 2, 0])
    """
    if weights is not None and weights.shape != input.shape:
        expected, hint = f"shape {input.shape}, that of input", "give one weight for each number"
        raise arg_error("bincount", "weights", expected, weights.shape, hint)
    return dispatch(op_expr("bincount"), (input, weights), {"minlength": minlength})


@functor("flow Tensor", out="same", samples=_COUNTED)
def histc(input: RealFloating, bins: Positive = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """Return how many elements lie in each of several bins of one width, in the dtype of `input`.

    Elements outside are not counted; the last bin holds its right edge. The result requires no
    gradient.

    min, max: the outer edges; equal numbers stand for the range of the data.
    ArgumentError: when `min` is above `max`, or the data have no finite range.

    >>> flow.histc(flow.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if min > max:
        raise arg_error("histc", "max", f"at least {min}", max, "swap them", ArgumentError)
    return dispatch1(op_expr("histc"), input.detach(), {"bins": bins, "min": min, "max": max})


@functor("flow Tensor", out="same", samples=_BINS)
def histogram(
    input: RealFloating,
    bins: int | Tensor = 100,
    *,
    range: Span = None,
    weight: Weight = None,
    density: Flag = False,
) -> HistogramResult:
    """Return how many elements lie in each bin, or the sum of their weights, and the edges.

    The last bin holds its right edge; elements outside are not counted. Asking for a gradient
    raises.

    bins: their number, or a vector of rising edges of the dtype of `input`.
    range: the outer edges, where `bins` is a number; those of the data by default.
    weight: of the shape and dtype of `input`.
    density: divide by the total and the widths, so that the integral is 1.
    ArgumentError, ShapeError, DTypeError: when arguments do not fit together.

    >>> flow.histogram(flow.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 3.0)).hist
    tensor([2., 1.])
    """
    hist, edges = _histogram("histogram", input.unsqueeze(-1), [bins], range, weight, density)
    return HistogramResult(hist, edges[0])


@functor("flow")
def histogramdd(
    input: RealFloating, bins: Any, range: Span = None, weight: Weight = None, density: Flag = False
) -> HistogramddResult:
    """Return how many points, the lines of `input`, lie in each cell of a grid, and its edges.

    bins: for each dimension of the points their number or a vector of edges, or one number for all.
    range: the outer edges of each dimension in one sequence, where `bins` are numbers.
    weight, density: as in `histogram`: one for each point; divide by the volumes of the cells.
    ArgumentError, ShapeError, DTypeError: when arguments do not fit together.

    >>> flow.histogramdd(flow.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[1, 2]).hist
    tensor([[1., 1.]])
    """
    if input.ndim < 2:
        raise arg_error("histogramdd", "input", "points as lines", input, "unsqueeze it")
    bins = list(bins) if isinstance(bins, (tuple, list)) else [bins] * input.shape[-1]
    return HistogramddResult(*_histogram("histogramdd", input, bins, range, weight, density))


def _histogram(
    op: str, points: Tensor, bins: list[Any], range: Any, weight: Tensor | None, density: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Count points, the lines of a tensor, and return the edges, too."""
    shape, count = points.shape[:-1], points.shape[-1]
    with_edges = isinstance(bins[0], Tensor)
    fits = range is None or (not with_edges and len(range) == 2 * len(bins))
    if len(bins) != count or not fits:
        hint = "give two numbers of range for each number of bins"
        expected = f"numbers or edges for {count} dimensions, range= with numbers"
        raise arg_error(op, "bins", expected, f"{len(bins)} and range={range}", hint, ArgumentError)
    if weight is not None and (weight.shape != shape or weight.dtype != points.dtype):
        expected = f"{points.dtype} of shape {shape}"
        got, hint = f"{weight.dtype} of shape {weight.shape}", "give one weight for each point"
        kind = DTypeError if weight.shape == shape else ShapeError
        raise arg_error(op, "weight", expected, got, hint, kind)
    points = points.reshape(-1, count)
    edges = [_edges(op, points, k, each, range) for k, each in enumerate(bins)]
    weights = None if weight is None else weight.reshape(-1)
    return F.histogram_of(points, weights, *edges, density=density), tuple(edges)


def _edges(op: str, points: Tensor, k: int, bins: Any, range: Any) -> Tensor:
    """Return the edges of one dimension."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.numel() < 2 or bins.dtype != points.dtype:
            expected = f"a vector of at least two edges of {points.dtype}"
            got = f"{bins.dtype} of shape {bins.shape}"
            raise arg_error(op, "bins", expected, got, "or give the number of bins")
        return bins
    low = high = None
    if range is not None:
        low, high = (check_number(op, "range", each) for each in range[2 * k : 2 * k + 2])
        if low > high:
            raise arg_error(op, "range", "rising edges", range, "swap them", ArgumentError)
    number = check_int(op, "bins", bins, 1)
    return F.histogram_edges(points.select(1, k).detach(), bins=number, low=low, high=high)
