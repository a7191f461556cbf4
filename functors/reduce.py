"""Sums, products and truth over dimensions: what users call."""

from __future__ import annotations

from oneflow_lite.functors import domains
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, CastTo, Dim, Dims, Floating, KeepDim, Real
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

PROD = op_expr("prod")
Inexact = domains.FloatingOrComplex

_REDUCED = "x(2, 3); x(2, 3), 0; x(2, 3), -1, True; x(2, 3, 2), (0, 2)"
_TRUTH = "b(2, 3); b(2, 3), 0; x(2, 3), -1, True; b(2, 3), (0, 1)"


@functor("flow Tensor", out=True, samples=f"{_REDUCED}; x()")
def sum(
    input: AnyTensor, dim: Dims = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the sum over the given dimensions, all by default; of integers and bools as int64.

    >>> x = flow.tensor([[1., 2.], [3., 4.]])
    >>> flow.sum(x), flow.sum(x, 0), flow.sum(x, dim=1, keepdim=True).shape
    (tensor(10.), tensor([4., 6.]), (2, 1))
    """


@functor("flow Tensor", out=True, samples=f"{_REDUCED}; x()")
def mean(
    input: Inexact, dim: Dims = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the mean over the given dimensions, all of them by default."""


@functor("flow Tensor", out=True, samples="x(2, 3); x(2, 3), 0; x(2, 3), -1, True; x()")
def prod(
    input: AnyTensor, dim: Dim | None = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the product of all elements, or along one dimension; of integers and bools as int64.

    The gradient holds where elements are zero too.

    >>> x = flow.tensor([0., 3., 4.], requires_grad=True)
    >>> flow.autograd.grad(flow.prod(x), x)
    (tensor([12.,  0.,  0.]),)
    """
    dims = tuple(range(input.ndim)) if dim is None or not input.ndim else (dim,)
    return dispatch1(PROD, input, {"dim": dims, "keepdim": keepdim})


@functor("flow Tensor", out=True, samples=f"{_REDUCED}; x()")
def nansum(
    input: Real, dim: Dims = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the sum of the elements that are not NaN.

    >>> flow.nansum(flow.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    if input.dtype.kind == "f":
        input = input.masked_fill(input.isnan(), 0)
    return sum(input, dim, keepdim)


@functor("flow Tensor", out=True, samples=_REDUCED)
def nanmean(
    input: Inexact, dim: Dims = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the mean of the elements that are not NaN."""
    missing = input.isnan()
    return sum(input.masked_fill(missing, 0), dim, keepdim) / sum(~missing, dim, keepdim)


@functor("flow Tensor", out=True, samples=_TRUTH)
def any(input: AnyTensor, dim: Dims = None, keepdim: KeepDim = False) -> Tensor:
    """Return whether any element is true (not zero): bool, or uint8 for a uint8 input.

    >>> flow.any(flow.tensor([[0, 1], [0, 0]]), dim=1)
    tensor([ True, False])
    """


@functor("flow Tensor", out=True, samples=_TRUTH)
def all(input: AnyTensor, dim: Dims = None, keepdim: KeepDim = False) -> Tensor:
    """Return whether all elements are true (not zero): bool, or uint8 for a uint8 input."""


@functor("flow Tensor", samples="i(2, 3); x(2, 3), 1; b(2, 3), (0, 1)")
def count_nonzero(input: AnyTensor, dim: Dims = None) -> Tensor:
    """Return the number of elements that are not zero, as int64."""


@functor("flow Tensor special", out=True, samples="x(2, 3), 0; x(2, 3), (0, -1), True; x(), 0")
def logsumexp(input: Floating, dim: Dims, keepdim: KeepDim = False) -> Tensor:
    """Return log Σ exp(input) over the given dimensions, computed without overflow.

    >>> flow.logsumexp(flow.tensor([[100., 100.]]), dim=1)
    tensor([100.6931])
    """
