"""sort, argsort and topk: what users call."""

from __future__ import annotations

from collections import namedtuple

from oneflow_lite.errors import DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_int, check_tensor
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

# `values` and `indices`, as the named tuples that PyTorch's sort and topk return.
SortResult = namedtuple("SortResult", ["values", "indices"])
TopkResult = namedtuple("TopkResult", ["values", "indices"])

SORT = op_expr("sort")
ARGSORT = op_expr("argsort")
TOPK = op_expr("topk")


@register_functor("sort")
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> SortResult:
    """Sort along a dimension; return the values and where they stood.

    NaN counts as the greatest value. Equal elements always keep their order, with `stable` or not.

    Parameters
    ----------
    input : Tensor
        Of any real dtype.
    dim : int
        The dimension to sort along.
    descending : bool
        Begin with the greatest.
    stable : bool
        Accepted as PyTorch does.
    out : tuple of two Tensors, optional
        Receive the values and the indices.

    Returns
    -------
    named tuple of values and indices (int64), both of the input's shape

    Raises
    ------
    DTypeError, DimError
        For complex tensors, which have no order, and for a dimension that is not there.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> values, indices = flow.sort(flow.tensor([3., 1., 2.]))
    >>> values, indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    if out is not None:
        return write_out("sort", out, sort, input, dim, descending, stable=stable)
    dim = check_dim("sort", dim, _ordered("sort", input)._data.ndim)
    attrs = {"dim": dim, "descending": bool(descending)}
    return SortResult(*dispatch(SORT, (input,), attrs))


@register_functor("argsort")
def argsort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the indices that sort a tensor along a dimension; see `sort`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.argsort(flow.tensor([3., 1., 2.]), descending=True)
    tensor([0, 2, 1])
    """
    if out is not None:
        return write_out("argsort", out, argsort, input, dim, descending, stable=stable)
    dim = check_dim("argsort", dim, _ordered("argsort", input)._data.ndim)
    attrs = {"dim": dim, "descending": bool(descending)}
    return dispatch1(ARGSORT, input, attrs)


@register_functor("topk")
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> TopkResult:
    """Return the k largest, or smallest, elements along a dimension and where they stood.

    NaN counts as the greatest value. Which of equal elements is taken is not said.

    Parameters
    ----------
    input : Tensor
        Of any real dtype.
    k : int
        0 to the size of the dimension.
    dim : int
        The dimension to search along.
    largest : bool
        Whether to return the largest or the smallest.
    sorted : bool
        Whether they come in order.
    out : tuple of two Tensors, optional
        Receive the values and the indices.

    Returns
    -------
    named tuple of values and indices (int64)

    Raises
    ------
    ShapeError
        When there are fewer than k elements.
    DTypeError, DimError
        For complex tensors, which have no order, and for a dimension that is not there.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.topk(flow.tensor([3., 1., 4., 2.]), 2).indices
    tensor([2, 0])
    """
    if out is not None:
        return write_out("topk", out, topk, input, k, dim, largest, sorted)
    shape = _ordered("topk", input)._data.shape
    dim = check_dim("topk", dim, len(shape))
    size = shape[dim] if shape else 1
    count = check_int("topk", "k", k)
    if not 0 <= count <= size:
        raise bad_argument(
            ShapeError,
            "topk",
            "k",
            expected=f"0 to {size} for dimension {dim} of shape {shape}",
            got=k,
            mend="ask for fewer elements",
        )
    attrs = {"k": count, "dim": dim, "largest": bool(largest), "sorted": bool(sorted)}
    return TopkResult(*dispatch(TOPK, (input,), attrs))


def _ordered(op: str, input: Tensor) -> Tensor:
    if check_tensor(op, "input", input)._data.dtype.kind != "c":
        return input
    raise bad_argument(
        DTypeError,
        op,
        "input",
        expected="a real dtype",
        got=input.dtype,
        mend="complex numbers have no order; sort abs() or real",
    )
