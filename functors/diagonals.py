"""Diagonals and triangles of matrices: what users call."""

from __future__ import annotations

from oneflow_lite.errors import ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_int, check_ndim, check_tensor
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.tensor import Tensor

TRIL = op_expr("tril")
TRIU = op_expr("triu")
DIAGONAL = op_expr("diagonal")
DIAG_EMBED = op_expr("diag_embed")
CLONE = op_expr("clone")


@register_functor("tril")
def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return matrices with zeros above a diagonal.

    Parameters
    ----------
    input : Tensor
        Shape (…, rows, columns).
    diagonal : int
        The last diagonal to keep: 0 the main one, 1 the one above it.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tril(flow.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    if out is not None:
        return write_out("tril", out, tril, input, diagonal)
    _check_matrices("tril", input)
    return dispatch1(TRIL, input, {"diagonal": check_int("tril", "diagonal", diagonal)})


@register_functor("triu")
def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return matrices with zeros below a diagonal.

    Parameters
    ----------
    input : Tensor
        Shape (…, rows, columns).
    diagonal : int
        The first diagonal to keep: 0 the main one, 1 the one above it.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.triu(flow.ones(2, 3), 1)
    tensor([[0., 1., 1.],
            [0., 0., 1.]])
    """
    if out is not None:
        return write_out("triu", out, triu, input, diagonal)
    _check_matrices("triu", input)
    return dispatch1(TRIU, input, {"diagonal": check_int("triu", "diagonal", diagonal)})


@register_functor("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of two dimensions, as a new last dimension.

    Parameters
    ----------
    input : Tensor
        With at least two dimensions.
    offset : int
        0 the main diagonal, positive above it, negative below.
    dim1, dim2 : int
        The dimensions whose indices grow together.

    Raises
    ------
    DimError, ShapeError
        When a dimension is out of range, or both are the same.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.diagonal(flow.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    ndim = check_tensor("diagonal", "input", input)._data.ndim
    first, second = _two_dims("diagonal", dim1, dim2, ndim)
    attrs = {"offset": check_int("diagonal", "offset", offset), "dim1": first, "dim2": second}
    return dispatch1(DIAGONAL, input, attrs)


@register_functor("diag_embed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices whose diagonal is the last dimension of `input`, and 0 elsewhere.

    `dim1` and `dim2` are the dimensions of the result that hold the matrices.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.diag_embed(flow.tensor([1, 2]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    ndim = check_tensor("diag_embed", "input", input)._data.ndim
    if not ndim:
        raise _wrong_ndim("diag_embed", input, "at least one dimension")
    first, second = _two_dims("diag_embed", dim1, dim2, ndim + 1)
    attrs = {"offset": check_int("diag_embed", "offset", offset), "dim1": first, "dim2": second}
    return dispatch1(DIAG_EMBED, input, attrs)


@register_functor("diag")
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return a vector as a diagonal matrix, or the diagonal of a matrix as a vector, copied.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.diag(flow.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if out is not None:
        return write_out("diag", out, diag, input, diagonal)
    offset = check_int("diag", "diagonal", diagonal)
    if check_ndim("diag", input, (1, 2))._data.ndim == 1:
        return dispatch1(DIAG_EMBED, input, {"offset": offset, "dim1": 0, "dim2": 1})
    view = dispatch1(DIAGONAL, input, {"offset": offset, "dim1": 0, "dim2": 1})
    return dispatch1(CLONE, view)


@register_functor("trace")
def trace(input: Tensor) -> Tensor:
    """Return the sum of the main diagonal of a matrix.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.trace(flow.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    check_ndim("trace", input, (2,))
    return FUNCTORS.get("sum")(diagonal(input))


def _check_matrices(op: str, input: Tensor) -> None:
    if check_tensor(op, "input", input)._data.ndim < 2:
        raise _wrong_ndim(op, input, "at least 2 dimensions")


def _wrong_ndim(op: str, input: Tensor, expected: str) -> Exception:
    return bad_argument(
        ShapeError,
        op,
        "input",
        expected=expected,
        got=f"shape {input.shape}",
        mend="reshape or unsqueeze it",
    )


def _two_dims(op: str, dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    first, second = check_dim(op, dim1, ndim, "dim1"), check_dim(op, dim2, ndim, "dim2")
    if first != second:
        return first, second
    raise bad_argument(
        ShapeError,
        op,
        "dim2",
        expected="another dimension than dim1",
        got=dim2,
        mend="name two different dimensions",
    )
