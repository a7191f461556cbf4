"""Entries of one dimension named by a vector of indices: what users call to read or write them."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import DimError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_tensor, require_integer
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.masking import filled
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.scatter import check_same_dtype
from oneflow_lite.functors.shape import reshape
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

INDEX_SELECT = op_expr("index_select")
INDEX_ADD = op_expr("index_add")
INDEX_MASK = op_expr("index_mask")


@register_functor("index_select")
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the entries of one dimension that a vector of indices names.

    Raises
    ------
    IndexRangeError
        When an index is negative or too large (on CUDA the values are not looked at).
    DimError
        When `index` is no vector, or there is no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.index_select(flow.tensor([[1, 2, 3], [4, 5, 6]]), 1, flow.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    if out is not None:
        return write_out("index_select", out, index_select, input, dim, index)
    dim = check_dim("index_select", dim, check_tensor("index_select", "input", input).ndim)
    index = _vector("index_select", index)
    if input.ndim:
        return dispatch(INDEX_SELECT, (input, index), {"dim": dim})
    if index.shape != (1,):
        raise bad_argument(
            ShapeError,
            "index_select",
            "index",
            expected="one index for a 0-d tensor",
            got=f"shape {index.shape}",
            mend="unsqueeze the input",
        )
    return reshape(dispatch(INDEX_SELECT, (reshape(input, 1), index), {"dim": 0}), ())


@register_functor("index_add")
def index_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return `input` with alpha · source added to the entries that a vector of indices names.

    Entries that are named twice get both.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension that the indices count along.
    index : Tensor
        A vector of integers.
    source : Tensor
        Of the dtype and shape of `input`, except for len(index) entries along `dim`.
    alpha : number
        Factor of `source`.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    IndexRangeError
        When an index is negative or too large (on CUDA the values are not looked at).
    ShapeError, DTypeError, DimError
        When `source` does not fit, or there is no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.index_add(flow.zeros(3), 0, flow.tensor([0, 0]), flow.tensor([1., 2.]), alpha=10)
    tensor([30.,  0.,  0.])
    """
    if out is not None:
        return write_out("index_add", out, index_add, input, dim, index, source, alpha=alpha)
    op = "index_add"
    shape = check_tensor(op, "input", input).shape
    dim = check_dim(op, dim, len(shape))
    check_same_dtype(op, input, "source", check_tensor(op, "source", source))
    alpha = fill_value(op, "alpha", alpha, input.dtype)
    index = _vector(op, index)
    want = (*shape[:dim], *index.shape, *shape[dim + 1 :]) if shape else ()
    if source.shape != want or (not shape and index.shape != (1,)):
        raise bad_argument(
            ShapeError,
            op,
            "source",
            expected=f"shape {want}: that of input, with one entry per index in dim {dim}",
            got=f"shape {source.shape}",
            mend="give one entry for each index",
        )
    attrs = {"dim": dim, "alpha": alpha}
    if shape:
        return dispatch(INDEX_ADD, (input, index, source), attrs)
    return reshape(dispatch(INDEX_ADD, (reshape(input, 1), index, reshape(source, 1)), attrs), ())


@register_functor("index_fill")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return `input` with a number written to the entries that a vector of indices names.

    `value` is a number or a 0-d tensor; indices count from the end when negative.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.index_fill(flow.zeros(2, 3), 1, flow.tensor([0, -1]), 7)
    tensor([[7., 0., 7.],
            [7., 0., 7.]])
    """
    shape = check_tensor("index_fill", "input", input).shape
    dim = check_dim("index_fill", dim, len(shape))
    index = _vector("index_fill", index)
    mask = dispatch1(INDEX_MASK, index, {"dim": dim, "shape": shape or (1,)})
    return filled("index_fill", input, mask if shape else reshape(mask, ()), value)


def _vector(op: str, index: Tensor) -> Tensor:
    """Return an index of at most one dimension as a vector."""
    rank = require_integer(op, index)._data.ndim
    if rank == 1:
        return index
    if rank == 0:
        return reshape(index, 1)
    raise bad_argument(
        DimError,
        op,
        "index",
        expected="a vector",
        got=f"shape {index.shape}",
        mend="flatten it",
    )
