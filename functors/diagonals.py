"""Diagonals and triangles of matrices: what users call."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ShapeError
from oneflow_lite.functors.checks import check_dim, check_ndim, no_dimension, wrong
from oneflow_lite.functors.creation import from_host
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Count, Dim, Int, Matrices
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

_triangle = functools.partial(
    functor, "flow Tensor", out=True, twin=True, samples="x(3, 3); x(2, 2, 3), -1; x(3, 2), 1"
)


@_triangle()
def tril(input: Matrices, diagonal: Int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    diagonal: the last diagonal to keep: 0 the main one, 1 the one above it.

    >>> flow.tril(flow.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """


@_triangle()
def triu(input: Matrices, diagonal: Int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    diagonal: the first diagonal to keep, counted as by `tril`.
    """


@functor("flow Tensor", samples="x(3, 3); x(3, 2), -1; x(2, 3, 2), 0, -1, 1")
def diagonal(input: AnyTensor, offset: Int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Tensor:
    """Return a view of the diagonals of two dimensions, as a new last dimension.

    offset: 0 the main diagonal, positive above it, negative below.
    ShapeError: when both dimensions are the same.

    >>> flow.diagonal(flow.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return dispatch1(op_expr("diagonal"), input, _place("diagonal", offset, dim1, dim2))


@functor("flow Tensor", samples="x(3); x(2, 2), 1; x(2, 2), -1, 0, -1")
def diag_embed(input: AnyTensor, offset: Int = 0, dim1: Int = -2, dim2: Int = -1) -> Tensor:
    """Return matrices whose diagonal is the last dimension of `input`, and 0 elsewhere.

    dim1, dim2: the dimensions of the result that hold the matrices.
    ShapeError: when `input` is 0-d, or both dimensions are the same.
    DimError: when a dimension is out of range.

    >>> flow.diag_embed(flow.tensor([3]), 1)
    tensor([[0, 3],
            [0, 0]])
    """
    op, rank = "diag_embed", input._data.ndim + 1
    if rank == 1:
        raise no_dimension(op, "input", ShapeError)
    dim1, dim2 = check_dim(op, dim1, rank, "dim1"), check_dim(op, dim2, rank, "dim2")
    return dispatch1(op_expr("diag_embed"), input, _place(op, offset, dim1, dim2))


def _place(op: str, offset: int, dim1: int, dim2: int) -> dict[str, int]:
    if dim1 != dim2:
        return {"offset": offset, "dim1": dim1, "dim2": dim2}
    raise wrong(op, "dim2", "another dimension than dim1", dim2, "name two different dimensions")


@functor("flow Tensor", out=True, samples="x(3); x(2), -1; x(3, 2); x(3, 3), 1")
def diag(input: AnyTensor, diagonal: Int = 0) -> Tensor:
    """Return a vector as a diagonal matrix, or the diagonal of a matrix as a vector, copied.

    ShapeError: when `input` is neither.
    """
    if check_ndim("diag", input, (1, 2))._data.ndim == 1:
        return diag_embed(input, diagonal)
    return input.diagonal(diagonal).clone()


@functor("flow Tensor", samples="x(2, 2); x(3), -1")
def diagflat(input: AnyTensor, offset: Int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal, and 0 elsewhere."""
    return diag_embed(F.reshape(input, -1), offset)


@functor("flow Tensor", samples="x(3, 2); z(2, 2)")
def trace(input: AnyTensor) -> Tensor:
    """Return the sum of the main diagonal of a matrix.

    ShapeError: when `input` is no matrix.
    """
    return diagonal(check_ndim("trace", input, (2,))).sum()


def _indices(name: str, places: Any, which: str, rows: str, columns: str) -> Any:
    """Declare what returns the places of a triangle."""

    def author(
        row: Count, col: Count, offset: Int = 0, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        found = np.stack(places(row, offset, col))
        return from_host(name, found, {"dtype": dtype or "int64", "device": device}, "iu")

    author.__name__ = author.__qualname__ = name
    author.__doc__ = f"""Return the places of the {which} triangle of a matrix: rows, then columns.

    offset: the diagonal that bounds it, as in `{name[:4]}`.
    dtype, device: of the result; int64 on the CPU otherwise.
    DTypeError: when the dtype is not an integer one.

    >>> flow.{name}(2, 2)
    tensor([{rows},
            {columns}])
    """
    return functor("flow", samples="2, 3; 3, 3, offset=-1; 2, 3, 1, dtype=int32")(author)


tril_indices = _indices("tril_indices", np.tril_indices, "lower", "[0, 1, 1]", "[0, 0, 1]")
triu_indices = _indices("triu_indices", np.triu_indices, "upper", "[0, 0, 1]", "[0, 1, 1]")
