"""Diagonals and triangles of matrices: what users call."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_ndim, no_dimension
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Count, Dim, Int, Matrices
from oneflow_lite.functors.formulas import from_host
from oneflow_lite.functors.shape import reshape
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor

DIAGONAL = op_expr("diagonal")
DIAG_EMBED = op_expr("diag_embed")
CLONE = op_expr("clone")


@functor("flow Tensor", out=True, twin=True, samples="x(3, 3); x(2, 2, 3), -1; x(3, 2), 1")
def tril(input: Matrices, diagonal: Int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    diagonal: the last diagonal to keep: 0 the main one, 1 the one above it.

    >>> flow.tril(flow.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """


@functor("flow Tensor", out=True, twin=True, samples="x(3, 3); x(2, 2, 3), -1; x(3, 2), 1")
def triu(input: Matrices, diagonal: Int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal.

    diagonal: the first diagonal to keep: 0 the main one, 1 the one above it.

    >>> flow.triu(flow.ones(2, 3), 1)
    tensor([[0., 1., 1.],
            [0., 0., 1.]])
    """


@functor("flow Tensor", samples="x(3, 3); x(3, 2), -1; x(2, 3, 2), 0, -1, 1")
def diagonal(input: AnyTensor, offset: Int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Tensor:
    """Return a view of the diagonals of two dimensions, as a new last dimension.

    offset: 0 the main diagonal, positive above it, negative below.
    dim1, dim2: the dimensions whose indices grow together.
    ShapeError: when both dimensions are the same.

    >>> flow.diagonal(flow.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    _check_different("diagonal", dim1, dim2)
    return dispatch1(DIAGONAL, input, {"offset": offset, "dim1": dim1, "dim2": dim2})


@functor("flow Tensor", samples="x(3); x(2, 2), 1; x(2, 2), -1, 0, -1")
def diag_embed(input: AnyTensor, offset: Int = 0, dim1: Int = -2, dim2: Int = -1) -> Tensor:
    """Return matrices whose diagonal is the last dimension of `input`, and 0 elsewhere.

    dim1, dim2: the dimensions of the result that hold the matrices.
    ShapeError: when `input` is 0-d, or both dimensions are the same.
    DimError: when a dimension is out of range.

    >>> flow.diag_embed(flow.tensor([1, 2]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    ndim = input._data.ndim
    if not ndim:
        raise no_dimension("diag_embed", "input", ShapeError)
    dim1 = check_dim("diag_embed", dim1, ndim + 1, "dim1")
    dim2 = check_dim("diag_embed", dim2, ndim + 1, "dim2")
    _check_different("diag_embed", dim1, dim2)
    return dispatch1(DIAG_EMBED, input, {"offset": offset, "dim1": dim1, "dim2": dim2})


def _check_different(op: str, dim1: int, dim2: int) -> None:
    if dim1 == dim2:
        expected, mend = "another dimension than dim1", "name two different dimensions"
        raise bad_argument(ShapeError, op, "dim2", expected, dim2, mend)


@functor("flow Tensor", out=True, samples="x(3); x(2), -1; x(3, 2); x(3, 3), 1")
def diag(input: AnyTensor, diagonal: Int = 0) -> Tensor:
    """Return a vector as a diagonal matrix, or the diagonal of a matrix as a vector, copied.

    ShapeError: when `input` is neither.

    >>> flow.diag(flow.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    place = {"offset": diagonal, "dim1": 0, "dim2": 1}
    if check_ndim("diag", input, (1, 2))._data.ndim == 1:
        return dispatch1(DIAG_EMBED, input, place)
    return dispatch1(CLONE, dispatch1(DIAGONAL, input, place))


@functor("flow Tensor", samples="x(2, 2); x(3), -1")
def diagflat(input: AnyTensor, offset: Int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal, and 0 elsewhere."""
    return diag(reshape(input, -1), offset)


@functor("flow Tensor", samples="x(3, 2); z(2, 2)")
def trace(input: AnyTensor) -> Tensor:
    """Return the sum of the main diagonal of a matrix.

    ShapeError: when `input` is no matrix.

    >>> flow.trace(flow.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    return FUNCTORS.get("sum")(diagonal(check_ndim("trace", input, (2,))))


@functor("flow", samples="2, 3; 3, 3, offset=-1; 2, 3, 1, dtype=int32")
def tril_indices(
    row: Count, col: Count, offset: Int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return the places of the lower triangle of a matrix: its rows, then its columns.

    offset: the last diagonal to take, as in `tril`.
    dtype, device: of the result; int64 on the CPU otherwise.
    DTypeError: when the dtype is not an integer one.

    >>> flow.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    places = np.stack(np.tril_indices(row, offset, col))
    return from_host("tril_indices", places, dtype or "int64", device, kinds="iu")


@functor("flow", samples="2, 3; 3, 3, offset=-1; 2, 3, 1, dtype=int32")
def triu_indices(
    row: Count, col: Count, offset: Int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return the places of the upper triangle of a matrix: its rows, then its columns.

    offset: the first diagonal to take, as in `triu`.
    dtype, device: of the result; int64 on the CPU otherwise.
    DTypeError: when the dtype is not an integer one.
    """
    places = np.stack(np.triu_indices(row, offset, col))
    return from_host("triu_indices", places, dtype or "int64", device, kinds="iu")
