"""Sums, products and truth over dimensions: what users call, checked and handed to dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.functors.checks import (
    check_dim,
    check_dims,
    check_tensor,
    floating,
    require_floating,
    to_dtype as to_dtype,
)
from oneflow_lite.functors.out import out_dtype, write_out
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

Dims = int | Sequence[int] | None

SUM = op_expr("sum")
MEAN = op_expr("mean")
PROD = op_expr("prod")
LOGSUMEXP = op_expr("logsumexp")
ANY = op_expr("any")
ALL = op_expr("all")
COUNT_NONZERO = op_expr("count_nonzero")


def reduced(op: str, input: Tensor, dim: Dims, keepdim: bool) -> dict[str, Any]:
    """Return the attributes `dim` (a tuple counted from 0) and `keepdim`."""
    ndim = check_tensor(op, "input", input)._data.ndim
    dims = tuple(range(ndim)) if dim is None else check_dims(op, dim, ndim)
    return {"dim": dims, "keepdim": bool(keepdim)}


@register_functor("sum")
def sum(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the sum over the given dimensions, all of them by default.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are summed as int64.
    dim : int or sequence of int, optional
        The dimensions to reduce; None and () mean all.
    keepdim : bool
        Keep the reduced dimensions, with size 1.
    dtype : dtype, optional
        Cast the input to it first.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DimError
        When a dimension is out of range or given twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1., 2.], [3., 4.]])
    >>> flow.sum(x), flow.sum(x, 0), flow.sum(x, dim=1, keepdim=True).shape
    (tensor(10.), tensor([4., 6.]), (2, 1))
    """
    if out is not None:
        return write_out("sum", out, sum, input, dim, keepdim, dtype=out_dtype("sum", out, dtype))
    if dtype is not None:
        input = to_dtype("sum", input, dtype)
    return dispatch1(SUM, input, reduced("sum", input, dim, keepdim))


@register_functor("mean")
def mean(
    input: Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean over the given dimensions, all of them by default.

    Parameters
    ----------
    input : Tensor
        Floating or complex, unless `dtype` is.
    dim, keepdim, dtype
        As in `sum`.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When the mean of integers or bools is asked for without a floating `dtype`.
    DimError
        When a dimension is out of range or given twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.mean(flow.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([2., 3.])
    """
    if out is not None:
        return write_out(
            "mean", out, mean, input, dim, keepdim, dtype=out_dtype("mean", out, dtype)
        )
    input = require_floating("mean", to_dtype("mean", input, dtype))
    return dispatch1(MEAN, input, reduced("mean", input, dim, keepdim))


@register_functor("prod")
def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the product of all elements, or along one dimension.

    The gradient holds where elements are zero too: it multiplies the other elements and does not
    divide.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are multiplied as int64.
    dim : int, optional
        The dimension to reduce.
    keepdim, dtype
        As in `sum`.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DimError
        When the dimension is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([0., 3., 4.], requires_grad=True)
    >>> flow.autograd.grad(flow.prod(x), x)
    (tensor([12.,  0.,  0.]),)
    """
    if out is not None:
        return write_out(
            "prod", out, prod, input, dim, keepdim, dtype=out_dtype("prod", out, dtype)
        )
    input = to_dtype("prod", input, dtype)
    if dim is not None:
        dim = check_dim("prod", dim, input.ndim)
    return dispatch1(PROD, input, reduced("prod", input, dim, keepdim))


@register_functor("any")
def any(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return whether any element is true (not zero): bool, or uint8 for a uint8 input.

    Raises
    ------
    DimError
        When a dimension is out of range or given twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.any(flow.tensor([[0, 1], [0, 0]]), dim=1)
    tensor([ True, False])
    """
    if out is not None:
        return write_out("any", out, any, input, dim, keepdim)
    return dispatch1(ANY, input, reduced("any", input, dim, keepdim))


@register_functor("all")
def all(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return whether all elements are true (not zero): bool, or uint8 for a uint8 input.

    Raises
    ------
    DimError
        When a dimension is out of range or given twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.all(flow.tensor([[1, 1], [0, 1]]), dim=1)
    tensor([ True, False])
    """
    if out is not None:
        return write_out("all", out, all, input, dim, keepdim)
    return dispatch1(ALL, input, reduced("all", input, dim, keepdim))


@register_functor("count_nonzero")
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the number of elements that are not zero, as int64.

    Raises
    ------
    DimError
        When a dimension is out of range or given twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.count_nonzero(flow.tensor([[0., 1.], [2., 3.]]), dim=0)
    tensor([1, 2])
    """
    dims = reduced("count_nonzero", input, dim, False)["dim"]
    return dispatch1(COUNT_NONZERO, input, {"dim": dims})


@register_functor("logsumexp")
def logsumexp(
    input: Tensor, dim: int | Sequence[int], keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return log Σ exp(input) over the given dimensions, computed without overflow.

    Parameters
    ----------
    input : Tensor
        Real; integers become the default dtype.
    dim : int or sequence of int
        The dimensions to reduce.
    keepdim : bool
        Keep the reduced dimensions, with size 1.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DimError
        When a dimension is out of range or given twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.logsumexp(flow.tensor([[100., 100.]]), dim=1)
    tensor([100.6931])
    """
    if out is not None:
        return write_out("logsumexp", out, logsumexp, input, dim, keepdim)
    input = floating("logsumexp", input)
    return dispatch1(LOGSUMEXP, input, reduced("logsumexp", input, dim, keepdim))
