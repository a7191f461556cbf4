"""Sums, products, truth and the like over dimensions, along one, and of the segments of one."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Annotated

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentTypeError
from oneflow_lite.functors import domains
from oneflow_lite.functors.checks import cast, require_integer, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, CastTo, Dim, Dims, Floating, KeepDim, Real
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

PROD = op_expr("prod")
Inexact = domains.FloatingOrComplex
Joined = Annotated[str, domains.choice("sum", "mean", "prod", "max", "min")]

CummaxResult = namedtuple("CummaxResult", ["values", "indices"])
CumminResult = namedtuple("CumminResult", ["values", "indices"])

_REDUCED = "x(2, 3); x(2, 3), 0; x(2, 3), -1, True; x(2, 3, 2), (0, 2)"
_TRUTH = "b(2, 3); b(2, 3), 0; x(2, 3), -1, True; b(2, 3), (0, 1)"
_ALONG = "x(2, 3); x(2, 3), 0; x(2, 3), -1, True; x()"
_SCANNED = "x(2, 3), 1; x(3, 2), -2; x(), 0"
_SEGMENTS = """x(5), "sum", lengths=fixed([2, 0, 3]); x(5, 2), "max", lengths=fixed([2, 3])
    x(5), "prod", lengths=fixed([2, 0, 3]); x(5), "min", offsets=fixed([0, 2, 2, 5]), initial=9.0
    x(2, 4), "mean", lengths=fixed([[1, 3], [2, 2]]), axis=1"""


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


@functor("flow Tensor", out=True, samples=_ALONG)
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


@functor("flow", samples=_SEGMENTS)
def segment_reduce(
    data: domains.RealFloating,
    reduce: Joined,
    *,
    lengths: Tensor | None = None,
    indices: None = None,
    offsets: Tensor | None = None,
    axis: Dim = 0,
    unsafe: domains.Flag = False,
    initial: float | None = None,
) -> Tensor:
    """Return the reduction of each segment of a dimension.

    The gradient is that of `scatter_reduce`.

    lengths: of the segments one after the other, integers, (*data.shape[:axis], segments).
    offsets: instead of lengths: where segments begin, and where the last one ends.
    unsafe: do not check that the segments cover `data`.
    initial: what reductions begin with; by default an empty segment gives 0, NaN, 1, -inf or inf.
    ArgumentTypeError, ShapeError, DTypeError: when lengths or offsets do not fit.

    >>> flow.segment_reduce(flow.tensor([1.0, 2.0, 5.0]), "max", lengths=flow.tensor([2, 1]))
    tensor([2., 5.])
    """
    op = "segment_reduce"
    if (lengths is None) == (offsets is None) or indices is not None:
        expected, got = "either lengths or offsets, and no indices", "both or neither"
        raise wrong(op, "lengths", expected, got, "pass one of them", ArgumentTypeError)
    if lengths is None:
        ends = require_integer(op, offsets, "offsets")  # type: ignore[arg-type]
        lengths = ends.narrow(-1, 1, ends.shape[-1] - 1) - ends.narrow(-1, 0, ends.shape[-1] - 1)
    shape, segments = data.shape, require_integer(op, lengths, "lengths").shape
    if segments[:-1] != shape[:axis] or not segments:
        expected = f"shape {(*shape[:axis], 'segments')} for axis {axis}"
        mend = "give the lengths of the segments for each line"
        raise wrong(op, "lengths", expected, segments, mend)
    rest = (1,) * (len(shape) - 1 - axis)
    attrs = {"size": shape[axis], "op": op, "checked": not unsafe}
    ids = dispatch1(op_expr("segment_ids"), lengths, attrs)
    ids = ids.reshape(*ids.shape, *rest).expand(shape)
    # What lies beyond the last segment goes to one more, which is dropped.
    joined = {"mean": "sum", "max": "amax", "min": "amin"}.get(reduce, reduce)
    target = (*shape[:axis], segments[-1] + 1, *shape[axis + 1 :])
    neutral = {"prod": 1, "amax": -math.inf, "amin": math.inf}.get(joined, 0)
    y = F.scatter_reduce(data.new_full(target, neutral), axis, ids, data, joined)
    y = y.narrow(axis, 0, segments[-1])
    if initial is not None:
        if joined in ("amax", "amin"):
            y = y.masked_fill(y < initial if joined == "amax" else y > initial, initial)
        else:
            y = y * initial if reduce == "prod" else y + initial
    if reduce == "mean":
        count = lengths if initial is None else lengths.clamp_min(1)
        y = y / cast(count.reshape(*segments, *rest), data.dtype)
    return y
