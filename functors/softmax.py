"""Softmax and its logarithm along one dimension: what users call."""

from __future__ import annotations

import warnings
from typing import Any

from oneflow_lite.functors.checks import check_dim
from oneflow_lite.functors.elementwise_checks import real_floating
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.reduce import to_dtype
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

SOFTMAX = op_expr("softmax")
LOG_SOFTMAX = op_expr("log_softmax")
NEG = op_expr("neg")
RESHAPE = op_expr("reshape")


@register_functor("softmax")
def softmax(
    input: Tensor, dim: int | None = None, dtype: Any = None, *, out: Tensor | None = None
) -> Tensor:
    """Return exp(x) divided by its sum along a dimension.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    dim : int
        The dimension along which the result sums to 1. Leaving it out is deprecated, as in
        PyTorch: 0 for tensors of 0, 1 or 3 dimensions, else 1.
    dtype : dtype, optional
        Cast the input to it first.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When `input`, cast to `dtype`, is not real floating.
    DimError
        When `dim` is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.softmax(flow.tensor([[1.0, 1.0], [0.0, 1000.0]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    if out is not None:
        return write_out("softmax", out, softmax, input, dim, dtype)
    return _along("softmax", SOFTMAX, to_dtype("softmax", input, dtype), dim)


@register_functor("softmin")
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return softmax(-x) along a dimension.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    dim : int
        The dimension along which the result sums to 1; see `softmax`.
    dtype : dtype, optional
        Cast the input to it first.

    Raises
    ------
    DTypeError
        When `input`, cast to `dtype`, is not real floating.
    DimError
        When `dim` is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.softmin(flow.tensor([0.0, 1000.0]), dim=0)
    tensor([1., 0.])
    """
    input = real_floating("softmin", to_dtype("softmin", input, dtype))
    return _along("softmin", SOFTMAX, dispatch1(NEG, input), dim)


@register_functor("log_softmax")
def log_softmax(
    input: Tensor, dim: int | None = None, dtype: Any = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the logarithm of softmax(x) along a dimension, without underflow.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    dim : int
        The dimension along which the exponentials sum to 1; see `softmax`.
    dtype : dtype, optional
        Cast the input to it first.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When `input`, cast to `dtype`, is not real floating.
    DimError
        When `dim` is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.log_softmax(flow.tensor([[1.0, 1.0], [0.0, 1000.0]]), dim=1)
    tensor([[-6.9315e-01, -6.9315e-01],
            [-1.0000e+03,  0.0000e+00]])
    """
    if out is not None:
        return write_out("log_softmax", out, log_softmax, input, dim, dtype)
    return _along("log_softmax", LOG_SOFTMAX, to_dtype("log_softmax", input, dtype), dim)


def _along(name: str, op: OpExpr, input: Tensor, dim: int | None) -> Tensor:
    ndim = real_floating(name, input)._data.ndim
    if dim is None:
        warnings.warn(
            f"{name}(): leaving out 'dim' is deprecated; pass dim=", UserWarning, stacklevel=3
        )
        dim = 0 if ndim in (0, 1, 3) else 1
    dim = check_dim(name, dim, ndim)
    if ndim:
        return dispatch1(op, input, {"dim": dim})
    vector = dispatch1(RESHAPE, input, {"shape": (1,)})
    return dispatch1(RESHAPE, dispatch1(op, vector, {"dim": 0}), {"shape": ()})
