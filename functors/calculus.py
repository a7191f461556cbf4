"""Differences, derivatives and integrals of sampled functions, products of vectors."""

from __future__ import annotations

import functools
from typing import Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DimError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import dimension_error
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Count,
    Dim,
    Dims,
    Numeric,
    TensorOrNumber,
    Vector,
)
from oneflow_lite.tensors.tensor import Tensor

Samples = Tensor | None

_DIFFERENCES = "x(5); x(2, 4), 2, 0; x(2, 4), 2, -1; x(2, 3), 1, 1, x(2, 1), x(2, 2); b(4); x(3), 0"
_SAMPLED = """x(5); x(3, 4); x(3, 4), spacing=0.5, dim=1; x(3, 4), spacing=[0.5, 2.0], dim=(1, 0)
    x(4), edge_order=2; x(4), spacing=(fixed(np.array([0.5, 1.0, 2.5, 3.0])),), edge_order=2
    x(5), spacing=(fixed(np.array([0.5, 1.0, 2.5, 3.0, 7.0])),); i(2, 3), dim=1"""
_TRAPEZOIDS = "x(5); x(2, 4), dx=0.5, dim=0; x(2, 4), x(4); x(2, 3), x(2, 3), dim=-2"


def _neighbours(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return all entries but the first, and all but the last."""
    size = x._data.shape[dim]
    count = max(size - 1, 0)
    return x.narrow(dim, size - count, count), x.narrow(dim, 0, count)


@functor("flow Tensor", out=True, samples=_DIFFERENCES)
def diff(
    input: AnyTensor, n: Count = 1, dim: Dim = -1, prepend: Samples = None, append: Samples = None
) -> Tensor:
    """Return the differences of neighbours, n times over; of truth values, whether they differ.

    prepend, append: entries to put in front of the input and behind it, first of all.

    >>> flow.diff(flow.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    if not input._data.ndim:
        raise dimension_error("diff", "input", DimError)
    if not n:
        return input.clone()
    parts = [x for x in (prepend, input, append) if x is not None]
    y = F.cat(parts, dim) if len(parts) > 1 else input
    minus = F.logical_xor if y.dtype.kind == "b" else F.sub
    for _ in range(min(n, y._data.shape[dim])):
        y = minus(*_neighbours(y, dim))
    return y


@functor("flow", samples=_SAMPLED)
def gradient(
    input: Numeric, *, spacing: Any = None, dim: Dims = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Return the derivatives of a sampled function, one along each dimension.

    Inside, differences are central, and of second order even where the samples lie unevenly.

    spacing: one number, by default 1, or for each dimension a number or a vector of coordinates.
    dim: all of them by default.
    edge_order: the order of the differences at both ends, 1 or 2.
    DTypeError: when `input` is of bools or unsigned integers.
    ArgumentError: when `spacing` does not fit the dimensions, or `edge_order` is another.
    ShapeError: when a dimension has not more than `edge_order` entries.

    >>> flow.gradient(flow.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    op, shape = "gradient", input._data.shape
    dims: Any = dim  # all of them by now, counted from 0
    if input.dtype.kind == "u":
        expected, hint = "a dtype with negative numbers", "convert it with .float()"
        raise arg_error(op, "input", expected, input.dtype, hint, DTypeError)
    several = isinstance(spacing, (list, tuple))
    steps = list(spacing) if several else [1 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims):
        expected = f"one for each of {len(dims)} dimensions"
        raise arg_error(op, "spacing", expected, len(steps), "give as many", ArgumentError)
    if edge_order not in (1, 2):
        raise arg_error(op, "edge_order", "1 or 2", edge_order, "leave it out", ArgumentError)
    for d in dims:
        if shape[d] <= edge_order:
            expected = f"more than {edge_order} entries along dimension {d}"
            raise arg_error(op, "input", expected, input, "leave it out")
    return tuple(_derivative(input, *pair, edge_order) for pair in zip(dims, steps, strict=True))


def _derivative(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    """Return the derivative along a dimension, sampled evenly or at coordinates."""
    n, gaps = x._data.shape[dim], None
    if isinstance(step, Tensor) and step._data.ndim:
        later, earlier = _neighbours(step, 0)
        gaps = (later - earlier).reshape((n - 1,) + (1,) * (x._data.ndim - 1 - dim))
    after, before = _neighbours(x, dim)
    slopes = (after - before) / (step if gaps is None else gaps)

    def gap(start: int, length: int = 1) -> Any:
        return step if gaps is None else gaps.narrow(0, start, length)

    slope = functools.partial(slopes.narrow, dim)
    first, last = slope(0, 1), slope(-1, 1)
    if n == 2:
        return F.cat([first, last], dim)
    if gaps is None:
        inner = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / (2 * step)
    else:
        h, k = gap(0, n - 2), gap(1, n - 2)
        inner = (slope(0, n - 2) * k + slope(1, n - 2) * h) / (h + k)
    if edge_order == 2:  # a parabola through three samples: the change of slope is carried on
        first = first + (first - slope(1, 1)) * gap(0) / (gap(0) + gap(1))
        last = last + (last - slope(-2, 1)) * gap(-1) / (gap(-2) + gap(-1))
    return F.cat([first, inner, last], dim)


def _areas(op: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """Return the areas of the trapezoids between neighbours."""
    if not y._data.ndim:
        raise dimension_error(op, "y", DimError)
    after, before = _neighbours(y, dim)
    if x is None:
        return (after + before) * (dx / 2)
    if x._data.ndim == 1:
        x = x.reshape((-1,) + (1,) * (y._data.ndim - 1 - dim))
    place, count = dim - y._data.ndim + x._data.ndim, y._data.shape[dim]
    if place < 0 or x._data.shape[place] != count:
        expected = f"{count} coordinates along dimension {dim}"
        raise arg_error(op, "x", expected, x, "give one for each entry")
    later, earlier = _neighbours(x, place)
    return (later - earlier) * (after + before) / 2


@functor("flow", alias="trapz", samples=_TRAPEZOIDS)
def trapezoid(y: Numeric, x: Samples = None, *, dx: TensorOrNumber = 1, dim: Dim = -1) -> Tensor:
    """Return the integral of a sampled function along a dimension, by trapezoids.

    x: the coordinates of the samples, a vector or one for each; by default they lie dx apart.
    ShapeError: when the coordinates are more or fewer than the samples.

    >>> flow.trapezoid(flow.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return _areas("trapezoid", y, x, dx, dim).sum(dim)


@functor("flow", samples=_TRAPEZOIDS)
def cumulative_trapezoid(
    y: Numeric, x: Samples = None, *, dx: TensorOrNumber = 1, dim: Dim = -1
) -> Tensor:
    """Return the integrals up to each sample but the first, by trapezoids; see `trapezoid`."""
    return _areas("cumulative_trapezoid", y, x, dx, dim).cumsum(dim)


@functor("flow Tensor", out=True, samples="x(2, 2), x(1, 3); x(2), x(2, 2); x(), x(2)")
def kron(input: AnyTensor, other: AnyTensor) -> Tensor:
    """Return the Kronecker product: each element of `input` times all of `other`, as blocks.

    >>> flow.kron(flow.tensor([1, 10]), flow.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    rank = max(input._data.ndim, other._data.ndim)
    a, b = ((1,) * (rank - x._data.ndim) + x._data.shape for x in (input, other))
    # Sizes n, 1 meet sizes 1, m: a broadcast product of elements and blocks.
    blocks = input.reshape([size for n in a for size in (n, 1)])
    y = blocks * other.reshape([size for n in b for size in (1, n)])
    return y.reshape([n * m for n, m in zip(a, b, strict=True)])


@functor("flow", samples="x(3); x(3), 2; x(3), 4, True; i(3, n=4), 1")
def vander(x: Vector, N: Count | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of a vector's elements as rows of N, the highest first.

    N: the number of powers; by default that of the elements.
    increasing: the lowest first.

    >>> flow.vander(flow.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    size = x._data.shape[0]
    count = size if N is None else N
    if count == 0:
        return x.narrow(0, 0, 0).reshape(size, 0)
    x = x.reshape(size, 1)
    powers = F.cat([F.ones_like(x), x.expand(size, count - 1)], 1).cumprod(1)
    return powers if increasing else powers.flip(1)
