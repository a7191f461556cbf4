"""Sums, products, truth and extremes for users: over dimensions, along them, over segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentTypeError, DimError, arg_error
from oneflow_lite.functors.declaring import domains
from oneflow_lite.functors.declaring.checks import (
    cast,
    check_dim,
    check_dims,
    real,
    require_integer,
)
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    CastTo,
    Dim,
    Dims,
    KeepDim,
    Real,
    TensorOrInt,
    attribute,
)
from oneflow_lite.interpreter.dispatch import dispatch1, dispatch2
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

PROD = op_expr("prod")
# Of all elements, along a dimension, of two tensors.
MAX = op_expr("amax"), op_expr("max"), op_expr("maximum")
MIN = op_expr("amin"), op_expr("min"), op_expr("minimum")
Inexact = domains.FloatingOrComplex
Other = Tensor | None
Joined = Annotated[str, domains.choice("sum", "mean", "prod", "max", "min")]

MaxResult = NamedTuple("MaxResult", [("values", Tensor), ("indices", Tensor)])
MinResult = NamedTuple("MinResult", [("values", Tensor), ("indices", Tensor)])
AminmaxResult = NamedTuple("AminmaxResult", [("min", Tensor), ("max", Tensor)])
CummaxResult = NamedTuple("CummaxResult", [("values", Tensor), ("indices", Tensor)])
CumminResult = NamedTuple("CumminResult", [("values", Tensor), ("indices", Tensor)])

_TRUTH = "b(2, 3); b(2, 3), 0; x(2, 3), -1, True; b(2, 3), (0, 1)"
_ALONG = "x(2, 3); x(2, 3), 0; x(2, 3), -1, True; x()"
_REDUCED = f"{_ALONG}; x(2, 3, 2), (0, 2)"
_EXTREMUM = "dim: None = ... -> Tensor; dim: int -> {}; dim: Tensor -> Tensor"
_THREE = "x(2, 3); x(2, 3), 1; x(2, 3), -2, True; x(2, 3), x(2, 3); x(2, 3), other=x(3); x(), 0"
_SCANNED = "x(2, 3), 1; x(3, 2), -2; x(), 0"
_SEGMENTS = """x(5), "sum", lengths=fixed([2, 0, 3]); x(5, 2), "max", lengths=fixed([2, 3])
    x(5), "prod", lengths=fixed([2, 0, 3]); x(5), "min", offsets=fixed([0, 2, 2, 5]), initial=9.0
    x(2, 4), "mean", lengths=fixed([[1, 3], [2, 2]]), axis=1"""


@functor("flow Tensor", out=True, samples=_REDUCED)
def sum(
    input: AnyTensor, dim: Dims = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the sum over the given dimensions, all by default; of integers and bools as int64.

    >>> x = flow.tensor([[1., 2.], [3., 4.]])
    >>> flow.sum(x), flow.sum(x, 0), flow.sum(x, dim=1, keepdim=True).shape
    (tensor(10.), tensor([4., 6.]), (2, 1))
    """


@functor("flow Tensor", out=True, samples=_REDUCED)
def mean(
    input: Inexact, dim: Dims = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the mean over the given dimensions, all of them by default."""


@functor("flow Tensor", out=True, samples=_ALONG)
def prod(
    input: AnyTensor, dim: Dim | None = None, keepdim: KeepDim = False, *, dtype: CastTo = None
) -> Tensor:
    """Return the product of all elements, or along one dimension; of integers and bools as int64.

    The gradient is right where elements are zero, too.

    >>> x = flow.tensor([0., 3., 4.], requires_grad=True)
    >>> flow.autograd.grad(flow.prod(x), x)
    (tensor([12.,  0.,  0.]),)
    """
    dims = tuple(range(input.ndim)) if dim is None or not input.ndim else (dim,)
    return dispatch1(PROD, input, {"dim": dims, "keepdim": keepdim})


@functor("flow Tensor", out=True, samples=_REDUCED)
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


@functor("flow Tensor", out="same", samples=_TRUTH)
def any(input: AnyTensor, dim: Dims = None, keepdim: KeepDim = False) -> Tensor:
    """Return whether any element is true (not zero): bool, or uint8 for a uint8 input.

    >>> flow.any(flow.tensor([[0, 1], [0, 0]]), dim=1)
    tensor([ True, False])
    """


@functor("flow Tensor", out="same", samples=_TRUTH)
def all(input: AnyTensor, dim: Dims = None, keepdim: KeepDim = False) -> Tensor:
    """Return whether all elements are true (not zero): bool, or uint8 for a uint8 input."""


@functor("flow Tensor", listed=True, samples="i(2, 3); x(2, 3), 1; b(2, 3), (0, 1)")
def count_nonzero(input: AnyTensor, dim: Dims = None) -> Tensor:
    """Return the number of elements that are not zero, as int64."""


@functor("flow Tensor special", out=True, samples="x(2, 3), 0; x(2, 3), (0, -1), True; x(), 0")
def logsumexp(input: domains.Floating, dim: Dims, keepdim: KeepDim = False) -> Tensor:
    """Return log Σ exp(input) over the given dimensions, computed without overflow.

    >>> flow.logsumexp(flow.tensor([[100., 100.]]), dim=1)
    tensor([100.6931])
    """


# --- Largest and smallest elements, and where they stand ------------------------------------------

_NAME_ONE = "name a dimension that is not empty with dim="


def filled_dims(op: str, argument: str, dim: Any, input: Tensor) -> tuple[int, ...]:
    """Return dimensions that are not empty; without any named, an empty tensor is a ShapeError."""
    shape = input._data.shape
    dims = check_dims(op, dim, len(shape))
    if 0 in shape:
        if dim is None or (isinstance(dim, tuple) and not dim):
            raise arg_error(op, "input", "at least one element", input, _NAME_ONE)
        for each in dims:
            filled_dim(op, argument, each, input)
    return dims


def filled_dim(op: str, argument: str, dim: Any, input: Tensor) -> int:
    """Return a dimension that is not empty."""
    shape = input._data.shape
    dim = check_dim(op, dim, len(shape))
    if shape and shape[dim] == 0:
        expected, got = "a dimension that is not empty", f"{dim} of shape {shape}"
        raise arg_error(op, argument, expected, got, "reduce another dimension", DimError)
    return dim


def argument_dim(op: str, argument: str, dim: Any, input: Tensor) -> int | None:
    """Return the dimension of argmax, or None for all; without an element raise `DimError`."""
    if dim is not None:
        return filled_dim(op, argument, dim, input)
    if 0 in input._data.shape:  # an IndexError in PyTorch, unlike that of max
        raise arg_error(op, "input", "at least one element", input, _NAME_ONE, DimError)
    return None


_NONE_LEFT = {
    "DimError": "When a dimension is out of range, given twice or empty.",
    "ShapeError": "When all dimensions are reduced and there is no element.",
}
_EMPTY = {"DimError": "When the dimension is out of range or empty."}
_TYPE = "int or sequence of int, optional"
_SAYS = "The dimensions to reduce; None and () mean all."
_ONE, _FLAT = "The dimension to reduce.", "The dimension to reduce; None for the flattened tensor."
FilledDims = Annotated[
    int | Sequence[int] | None,
    attribute(filled_dims, ", {first}", says=_SAYS, raises=_NONE_LEFT, type=_TYPE),
]
Filled = Annotated[int, attribute(filled_dim, ", {first}", says=_ONE, raises=_EMPTY)]
ArgumentDim = Annotated[int | None, attribute(argument_dim, ", {first}", says=_FLAT, raises=_EMPTY)]


@functor("flow Tensor", out="same", samples=_REDUCED)
def amax(input: Real, dim: FilledDims = None, keepdim: KeepDim = False) -> Tensor:
    """Return the maximum over the given dimensions, all of them by default.

    A NaN is larger than every number. The gradient is shared evenly among the elements that equal
    the maximum.

    >>> flow.amax(flow.tensor([[1., 5.], [7., 2.]]))
    tensor(7.)
    """


@functor("flow Tensor", out="same", samples=_REDUCED)
def amin(input: Real, dim: FilledDims = None, keepdim: KeepDim = False) -> Tensor:
    """Return the minimum over the given dimensions, all of them by default; see `amax`."""


@functor(
    "flow Tensor", out="same", samples="x(2, 3); x(2, 3), dim=-1; x(2, 3), dim=0, keepdim=True"
)
def aminmax(input: Real, *, dim: Filled | None = None, keepdim: KeepDim = False) -> AminmaxResult:
    """Return the minimum and the maximum, along a dimension or of all elements.

    >>> flow.aminmax(flow.tensor([3.0, 1.0, 2.0]))
    AminmaxResult(min=tensor(1.), max=tensor(3.))
    """
    return AminmaxResult(amin(input, dim, keepdim), amax(input, dim, keepdim))


def _extremum(
    name: str, ops: Any, result: Any, input: Any, dim: Any, keep: bool, other: Any
) -> Any:
    """Dispatch the op that the arguments of max or min ask for."""
    of_all, along, of_two = ops
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return dispatch2(of_two, input, real(name, other, "other"))
    if dim is None:
        dims = filled_dims(name, "dim", None, input)
        return dispatch1(of_all, input, {"dim": dims, "keepdim": False})
    attrs = {"dim": filled_dim(name, "dim", dim, input), "keepdim": keep}
    return result(*dispatch1(along, input, attrs))


@functor("flow Tensor", out=True, samples=_THREE, results=_EXTREMUM.format("MaxResult"))
def max(
    input: Real, dim: TensorOrInt = None, keepdim: KeepDim = False, *, other: Other = None
) -> Any:
    """Return the largest element, the largest along a dimension, or the larger of two tensors.

    See `amax` and `maximum`. Along a dimension, the result is a named tuple `(values, indices)`,
    and the gradient goes to the element at the index.

    dim: the dimension to reduce, or the second tensor.
    DimError: when the dimension is out of range or empty.
    ShapeError: when `input` has no element, or does not broadcast with `other`.

    >>> x = flow.tensor([[1., 5.], [7., 2.]])
    >>> flow.max(x), *flow.max(x, dim=0)
    (tensor(7.), tensor([7., 5.]), tensor([1, 0]))
    """
    return _extremum("max", MAX, MaxResult, input, dim, keepdim, other)


@functor("flow Tensor", out=True, samples=_THREE, results=_EXTREMUM.format("MinResult"))
def min(
    input: Real, dim: TensorOrInt = None, keepdim: KeepDim = False, *, other: Other = None
) -> Any:
    """Return the smallest element, along a dimension too, or the smaller of two, as `max`."""
    return _extremum("min", MIN, MinResult, input, dim, keepdim, other)


@functor("flow Tensor", out="same", samples=_ALONG)
def argmax(input: Real, dim: ArgumentDim = None, keepdim: KeepDim = False) -> Tensor:
    """Return the int64 index of the first maximum, along a dimension or in the flattened tensor.

    >>> x = flow.tensor([[1., 5.], [7., 2.]])
    >>> flow.argmax(x), flow.argmax(x, dim=1)
    (tensor(2), tensor([1, 0]))
    """


@functor("flow Tensor", out="same", samples=_ALONG)
def argmin(input: Real, dim: ArgumentDim = None, keepdim: KeepDim = False) -> Tensor:
    """Return the int64 index of the first minimum, along a dimension or in the flattened tensor."""


# --- Running sums, products and extremes ----------------------------------------------------------


@functor("flow Tensor", out=True, twin=True, samples=_SCANNED)
def cumsum(input: AnyTensor, dim: Dim, *, dtype: CastTo = None) -> Tensor:
    """Return the running sum y_i = x_0 + … + x_i along a dimension; of integers as int64.

    >>> flow.cumsum(flow.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """


@functor("flow Tensor", out=True, twin=True, samples=_SCANNED)
def cumprod(input: AnyTensor, dim: Dim, *, dtype: CastTo = None) -> Tensor:
    """Return the running product y_i = x_0 · … · x_i along a dimension; of integers as int64.

    The gradient is right where elements are zero, too.
    """


@functor("flow Tensor", out="same", samples=_SCANNED)
def cummax(input: Real, dim: Dim) -> CummaxResult:
    """Return the greatest element so far along a dimension, and where it was last seen.

    Once there is a NaN, the result is NaN. The gradient goes to the element at the index.

    >>> flow.cummax(flow.tensor([1.0, 3.0, 2.0, 3.0]), 0)
    CummaxResult(values=tensor([1., 3., 3., 3.]), indices=tensor([0, 1, 1, 3]))
    """


@functor("flow Tensor", out="same", samples=_SCANNED)
def cummin(input: Real, dim: Dim) -> CumminResult:
    """Return the least element so far along a dimension, and where it was last seen."""


@functor("flow Tensor", out="same", samples=_SCANNED)
def logcumsumexp(input: domains.Floating, dim: Dim) -> Tensor:
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

    The gradient is as in `scatter_reduce`.

    lengths: of the segments in order, integers, (*data.shape[:axis], segments).
    offsets: instead of lengths: where segments begin, and where the last segment ends.
    unsafe: do not check that the segments cover `data`.
    initial: the number that reductions begin with. By default an empty segment gives 0 as a sum,
        NaN as a mean, 1 as a product, -inf as a maximum and inf as a minimum.
    ArgumentTypeError, ShapeError, DTypeError: when lengths or offsets do not fit.

    >>> flow.segment_reduce(flow.tensor([1.0, 2.0, 5.0]), "max", lengths=flow.tensor([2, 1]))
    tensor([2., 5.])
    """
    op = "segment_reduce"
    if (lengths is None) == (offsets is None) or indices is not None:
        expected, got = "either lengths or offsets, and no indices", "both or neither"
        raise arg_error(op, "lengths", expected, got, "pass one of them", ArgumentTypeError)
    if lengths is None:
        ends = require_integer(op, offsets, "offsets")
        lengths = ends.narrow(-1, 1, ends.shape[-1] - 1) - ends.narrow(-1, 0, ends.shape[-1] - 1)
    shape, segments = data.shape, require_integer(op, lengths, "lengths").shape
    if segments[:-1] != shape[:axis] or not segments:
        expected = f"shape {(*shape[:axis], 'segments')} for axis {axis}"
        hint = "give the lengths of the segments for each line"
        raise arg_error(op, "lengths", expected, segments, hint)
    rest = (1,) * (len(shape) - 1 - axis)
    attrs = {"size": shape[axis], "op": op, "checked": not unsafe}
    ids = dispatch1(op_expr("segment_ids"), lengths, attrs)
    ids = ids.reshape(*ids.shape, *rest).expand(shape)
    # Elements behind the last segment go to an extra segment, which is dropped.
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
