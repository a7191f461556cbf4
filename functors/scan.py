"""Running sums and products: what users call."""

from __future__ import annotations

from typing import Any

from oneflow_lite.functors.checks import check_dim
from oneflow_lite.functors.out import out_dtype, write_out
from oneflow_lite.functors.reduce import to_dtype
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

CUMSUM = op_expr("cumsum")
CUMPROD = op_expr("cumprod")


def _scan(op: OpExpr, input: Tensor, dim: int, dtype: Any) -> Tensor:
    input = to_dtype(op.op_type_name, input, dtype)
    return dispatch1(op, input, {"dim": check_dim(op.op_type_name, dim, input.ndim)})


@register_functor("cumsum")
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Return the running sum y_i = x_0 + … + x_i along a dimension.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are summed as int64.
    dim : int
        The dimension to run along.
    dtype : dtype, optional
        Cast the input to it first.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DimError
        When the dimension is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.cumsum(flow.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    if out is not None:
        return write_out("cumsum", out, cumsum, input, dim, dtype=out_dtype("cumsum", out, dtype))
    return _scan(CUMSUM, input, dim, dtype)


@register_functor("cumprod")
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Return the running product y_i = x_0 · … · x_i along a dimension.

    The gradient holds where elements are zero too. Parameters and errors are those of `cumsum`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.cumprod(flow.tensor([2., 3., 4.]), dim=0)
    tensor([ 2.,  6., 24.])
    """
    if out is not None:
        return write_out(
            "cumprod", out, cumprod, input, dim, dtype=out_dtype("cumprod", out, dtype)
        )
    return _scan(CUMPROD, input, dim, dtype)
