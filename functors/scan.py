"""Running sums, products and extremes: what users call."""

from __future__ import annotations

from collections import namedtuple

from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, CastTo, Dim, Floating, Real
from oneflow_lite.tensor import Tensor

_SCANNED = "x(2, 3), 1; x(3, 2), -2; x(), 0"

CummaxResult = namedtuple("CummaxResult", ["values", "indices"])
CumminResult = namedtuple("CumminResult", ["values", "indices"])


@functor("flow Tensor", out=True, twin=True, samples=_SCANNED)
def cumsum(input: AnyTensor, dim: Dim, *, dtype: CastTo = None) -> Tensor:
    """Return the running sum y_i = x_0 + … + x_i along a dimension; of integers as int64.

    >>> flow.cumsum(flow.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """


@functor("flow Tensor", out=True, twin=True, samples=_SCANNED)
def cumprod(input: AnyTensor, dim: Dim, *, dtype: CastTo = None) -> Tensor:
    """Return the running product y_i = x_0 · … · x_i along a dimension; of integers as int64.

    The gradient holds where elements are zero too.
    """


@functor("flow Tensor", out=True, samples=_SCANNED)
def cummax(input: Real, dim: Dim) -> CummaxResult:
    """Return the greatest element so far along a dimension, and where it was last seen.

    Once there is a NaN, the result is NaN. The gradient goes to the element at the index.

    >>> flow.cummax(flow.tensor([1.0, 3.0, 2.0, 3.0]), 0)
    CummaxResult(values=tensor([1., 3., 3., 3.]), indices=tensor([0, 1, 1, 3]))
    """


@functor("flow Tensor", out=True, samples=_SCANNED)
def cummin(input: Real, dim: Dim) -> CumminResult:
    """Return the least element so far along a dimension, and where it was last seen."""


@functor("flow Tensor", out=True, samples=_SCANNED)
def logcumsumexp(input: Floating, dim: Dim) -> Tensor:
    """Return log(exp(x_0) + … + exp(x_i)) along a dimension, without overflow or underflow.

    >>> flow.logcumsumexp(flow.tensor([100.0, 100.0]), 0)
    tensor([100.0000, 100.6931])
    """
