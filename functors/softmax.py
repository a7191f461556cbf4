"""Softmax and its logarithm along one dimension: functions that users call."""

from __future__ import annotations

from typing import Annotated

from oneflow_lite.functors.declaring.checks import check_dim
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import CastTo, Domain, RealFloating
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

SOFTMAX, LOG_SOFTMAX, RESHAPE = op_expr("softmax"), op_expr("log_softmax"), op_expr("reshape")
_ALONG = "x(2, 3), 1; x(2, 3, 2), -2; x(), 0"
_dim = Domain(
    "The dimension along which probabilities sum to 1. Leaving it out is deprecated, as in "
    "PyTorch: 0 for tensors of 0, 1 or 3 dimensions, else 1.",
    raises={"DimError": "When {x} is out of range."},
)
Along = Annotated[int, _dim] | None  # checked in the body


@functor("flow Tensor functional special", out=True, samples=_ALONG)
def softmax(input: RealFloating, dim: Along = None, dtype: CastTo = None) -> Tensor:
    """Return exp(x) divided by its sum along a dimension.

    >>> flow.softmax(flow.tensor([[1.0, 1.0], [0.0, 1000.0]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    return _along("softmax", SOFTMAX, input, dim)


@functor("functional", samples=_ALONG)
def softmin(input: RealFloating, dim: Along = None, dtype: CastTo = None) -> Tensor:
    """Return softmax(-x) along a dimension."""
    return _along("softmin", SOFTMAX, -input, dim)


@functor("flow Tensor functional special", out=True, samples=_ALONG)
def log_softmax(input: RealFloating, dim: Along = None, dtype: CastTo = None) -> Tensor:
    """Return the logarithm of softmax(x) along a dimension, without underflow."""
    return _along("log_softmax", LOG_SOFTMAX, input, dim)


def _along(name: str, op: OpExpr, input: Tensor, dim: int | None) -> Tensor:
    ndim = input._data.ndim
    if dim is None:
        advice = f"{name}(): leaving out 'dim' is deprecated; pass dim="
        warn_caller(advice)
        dim = 0 if ndim in (0, 1, 3) else 1
    dim = check_dim(name, dim, ndim)
    if ndim:
        return dispatch1(op, input, {"dim": dim})
    # NumPy has no axis of a 0-d array, PyTorch has one of size 1.
    vector = dispatch1(RESHAPE, input, {"shape": (1,)})
    return dispatch1(RESHAPE, dispatch1(op, vector, {"dim": 0}), {"shape": ()})
