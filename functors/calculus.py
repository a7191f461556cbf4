"""Differences, derivatives and integrals of sampled functions, products of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.errors import ArgumentError, DimError, DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_dims, check_int, no_dimension
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Count, Int, Numeric, Vector
from oneflow_lite.functors.indexing import NARROW
from oneflow_lite.functors.joining import cat
from oneflow_lite.functors.rearranging import flip
from oneflow_lite.functors.shape import clone, expand, reshape
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor


def _part(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return entries of a dimension; a negative start counts from the end."""
    start += x._data.shape[dim] if start < 0 else 0
    return dispatch1(NARROW, x, {"dim": dim, "start": start, "length": length})


def _neighbours(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return all entries but the first, and all but the last."""
    count = max(x._data.shape[dim] - 1, 0)
    return _part(x, dim, min(1, x._data.shape[dim]), count), _part(x, dim, 0, count)


def _dim_of(op: str, input: Tensor, dim: int, argument: str = "input") -> int:
    if not input._data.ndim:
        raise no_dimension(op, argument, DimError)
    return check_dim(op, dim, input._data.ndim)


@functor(
    "flow Tensor",
    out=True,
    samples="x(5); x(2, 4), 2, 0; x(2, 4), 2, -1; x(2, 3), 1, 1, x(2, 1), x(2, 2); b(4); x(3), 0",
)
def diff(
    input: AnyTensor,
    n: Count = 1,
    dim: Int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours, n times over; of truth values where they differ.

    prepend, append: entries to put in front and behind first.
    DimError: when there is no such dimension.

    >>> flow.diff(flow.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    dim = _dim_of("diff", input, dim)
    if not n:
        return clone(input)
    parts = [x for x in (prepend, input, append) if x is not None]
    y = cat(parts, dim) if len(parts) > 1 else input
    minus = FUNCTORS.get("logical_xor" if y.dtype.kind == "b" else "sub")
    for _ in range(min(n, y._data.shape[dim])):
        y = minus(*_neighbours(y, dim))
    return y


@functor(
    "flow",
    samples="""x(5); x(3, 4); x(3, 4), spacing=0.5, dim=1; x(3, 4), spacing=[0.5, 2.0], dim=(1, 0)
        x(4), edge_order=2; x(4), spacing=(fixed(np.array([0.5, 1.0, 2.5, 3.0])),), edge_order=2
        x(5), spacing=(fixed(np.array([0.5, 1.0, 2.5, 3.0, 7.0])),); i(2, 3), dim=1""",
)
def gradient(
    input: Numeric,
    *,
    spacing: Any = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Return the derivatives of a sampled function, one along each dimension.

    Central differences inside, of second order also where the samples lie unevenly.

    spacing: the distance of the samples, 1 otherwise: one number, one for each dimension, or
        vectors of coordinates.
    dim: the dimensions; all of them otherwise.
    edge_order: 1 or 2, of the differences at both ends.
    ArgumentError: when `spacing` does not fit the dimensions, or `edge_order` is another.
    ShapeError: when a dimension has not more than `edge_order` entries.

    >>> flow.gradient(flow.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    op, shape = "gradient", input._data.shape
    dims = check_dims(op, dim, len(shape))
    if input.dtype.kind == "u":
        expected, mend = "a dtype with negative numbers", "convert it with .float()"
        raise bad_argument(DTypeError, op, "input", expected, input.dtype, mend)
    several = isinstance(spacing, (list, tuple))
    steps = list(spacing) if several else [1 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims):
        expected, mend = f"one for each of {len(dims)} dimensions", "give as many"
        raise bad_argument(ArgumentError, op, "spacing", expected, len(steps), mend)
    if edge_order not in (1, 2):
        raise bad_argument(ArgumentError, op, "edge_order", "1 or 2", edge_order, "leave it out")
    for d in dims:
        if shape[d] <= edge_order:
            expected, mend = f"more than {edge_order} entries along dimension {d}", "leave it out"
            raise bad_argument(ShapeError, op, "input", expected, f"shape {shape}", mend)
    return tuple(
        _derivative(input, d, step, edge_order) for d, step in zip(dims, steps, strict=True)
    )


def _derivative(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    """Return the derivative along a dimension, sampled evenly or at coordinates."""
    n = x._data.shape[dim]
    if isinstance(step, Tensor) and step._data.ndim:
        after, before = _neighbours(step, 0)
        gaps = reshape(after - before, (n - 1,) + (1,) * (x._data.ndim - 1 - dim))
        place = gaps._data.ndim - x._data.ndim + dim

        def gap(start: int, length: int = 1) -> Any:
            return _part(gaps, place, start, length)
    else:

        def gap(start: int, length: int = 1) -> Any:
            return step

    def slope(start: int, length: int = 1) -> Tensor:
        first = start if start >= 0 else n - 1 + start
        later = _part(x, dim, first + 1, length)
        return (later - _part(x, dim, first, length)) / gap(start, length)

    first, last = slope(0), slope(-1)
    if n == 2:
        return cat([first, last], dim)
    h, k = gap(0, n - 2), gap(1, n - 2)
    if h is k:
        inner = (_part(x, dim, 2, n - 2) - _part(x, dim, 0, n - 2)) / (2 * step)
    else:
        inner = (slope(0, n - 2) * k + slope(1, n - 2) * h) / (h + k)
    if edge_order == 2:  # by how much the slope changes on the way to the neighbour
        first = first + (first - slope(1)) * gap(0) / (gap(0) + gap(1))
        last = last + (last - slope(-2)) * gap(-1) / (gap(-2) + gap(-1))
    return cat([first, inner, last], dim)


def _areas(op: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """Return the areas of the trapezoids between neighbours."""
    after, before = _neighbours(y, dim)
    if x is None:
        return (after + before) * (dx / 2)
    if x._data.ndim == 1:
        x = reshape(x, (-1,) + (1,) * (y._data.ndim - 1 - dim))
    place = dim - y._data.ndim + x._data.ndim
    if place < 0 or x._data.shape[place] != y._data.shape[dim]:
        expected = f"{y._data.shape[dim]} coordinates along dimension {dim}"
        raise bad_argument(
            ShapeError, op, "x", expected, f"shape {x.shape}", "give one for each entry"
        )
    later, earlier = _neighbours(x, place)
    return (later - earlier) * (after + before) / 2


_TRAPEZOIDS = "x(5); x(2, 4), dx=0.5, dim=0; x(2, 4), x(4); x(2, 3), x(2, 3), dim=-2"


@functor("flow", alias="trapz", samples=_TRAPEZOIDS)
def trapezoid(y: Numeric, x: Tensor | None = None, *, dx: Any = 1, dim: Int = -1) -> Tensor:
    """Return the integral of a sampled function along a dimension, by trapezoids.

    x: the coordinates of the samples, a vector or one for each; dx apart otherwise.
    DimError: when there is no such dimension.
    ShapeError: when there is not one coordinate for each sample.

    >>> flow.trapezoid(flow.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    dim = _dim_of("trapezoid", y, dim, "y")
    return FUNCTORS.get("sum")(_areas("trapezoid", y, x, dx, dim), dim)


trapz = trapezoid


@functor("flow", samples=_TRAPEZOIDS)
def cumulative_trapezoid(
    y: Numeric, x: Tensor | None = None, *, dx: Any = 1, dim: Int = -1
) -> Tensor:
    """Return the integrals of a sampled function up to each sample but the first, by trapezoids.

    x: the coordinates of the samples, a vector or one for each; dx apart otherwise.
    DimError: when there is no such dimension.
    ShapeError: when there is not one coordinate for each sample.
    """
    dim = _dim_of("cumulative_trapezoid", y, dim, "y")
    return FUNCTORS.get("cumsum")(_areas("cumulative_trapezoid", y, x, dx, dim), dim)


# --- Products -------------------------------------------------------------------------------------


@functor("flow Tensor", out=True, samples="x(2, 2), x(1, 3); x(2), x(2, 2); x(), x(2)")
def kron(input: AnyTensor, other: AnyTensor) -> Tensor:
    """Return the Kronecker product: each element of `input` times all of `other`, as blocks.

    >>> flow.kron(flow.tensor([1, 10]), flow.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    rank = max(input._data.ndim, other._data.ndim)
    a, b = ((1,) * (rank - x._data.ndim) + x._data.shape for x in (input, other))
    outer = [size for n in a for size in (n, 1)], [size for n in b for size in (1, n)]
    y = FUNCTORS.get("mul")(reshape(input, outer[0]), reshape(other, outer[1]))
    return reshape(y, [n * m for n, m in zip(a, b, strict=True)])


@functor("flow", samples="x(3); x(3), 2; x(3), 4, True; i(3, n=4), 1")
def vander(x: Vector, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of a vector's elements as rows of N, the highest first.

    N: how many; as many as there are elements otherwise.
    increasing: the lowest first.

    >>> flow.vander(flow.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    size = x._data.shape[0]
    count = size if N is None else check_int("vander", "N", N, 0)
    if count == 0:
        return reshape(_part(x, 0, 0, 0), size, 0)
    x = reshape(x, size, 1)
    powers = cat([FUNCTORS.get("ones_like")(x), expand(x, size, count - 1)], 1)
    powers = FUNCTORS.get("cumprod")(powers, 1)
    return powers if increasing else flip(powers, 1)
