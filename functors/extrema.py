"""Largest and smallest elements and where they stand: what users call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Annotated, Any

from oneflow_lite.errors import DimError
from oneflow_lite.functors.checks import check_dim, check_dims, real, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import KeepDim, Real, attribute
from oneflow_lite.interpreter import dispatch1, dispatch2
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

# Of all elements, along a dimension, of two tensors.
MAX = op_expr("amax"), op_expr("max"), op_expr("maximum")
MIN = op_expr("amin"), op_expr("min"), op_expr("minimum")

MaxResult = namedtuple("MaxResult", ["values", "indices"])
MinResult = namedtuple("MinResult", ["values", "indices"])
AminmaxResult = namedtuple("AminmaxResult", ["min", "max"])
Other = Tensor | None

_NAME_ONE = "name a dimension that is not empty with dim="


def filled_dims(op: str, argument: str, dim: Any, input: Tensor) -> tuple[int, ...]:
    """Return dimensions that are not empty; without any named, no element is an error of shape."""
    shape = input._data.shape
    dims = check_dims(op, dim, len(shape))
    if 0 in shape:
        if dim is None or dim == ():
            raise wrong(op, "input", "at least one element", input, _NAME_ONE)
        for each in dims:
            filled_dim(op, argument, each, input)
    return dims


def filled_dim(op: str, argument: str, dim: Any, input: Tensor) -> int:
    """Return a dimension that is not empty."""
    shape = input._data.shape
    dim = check_dim(op, dim, len(shape))
    if shape and shape[dim] == 0:
        expected, got = "a dimension that is not empty", f"{dim} of shape {shape}"
        raise wrong(op, argument, expected, got, "reduce another dimension", DimError)
    return dim


def argument_dim(op: str, argument: str, dim: Any, input: Tensor) -> int | None:
    """Return the dimension of argmax, None for all: that no element is left is a DimError here."""
    if dim is not None:
        return filled_dim(op, argument, dim, input)
    if 0 in input._data.shape:  # an IndexError in PyTorch, unlike that of max
        raise wrong(op, "input", "at least one element", input, _NAME_ONE, DimError)
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

_ALONG = "x(2, 3); x(2, 3), 0; x(2, 3), -1, True; x()"
_REDUCED = f"{_ALONG}; x(2, 3, 2), (0, 2)"
_THREE = "x(2, 3); x(2, 3), 1; x(2, 3), -2, True; x(2, 3), x(2, 3); x(2, 3), other=x(3); x(), 0"


@functor("flow Tensor", out=True, samples=_REDUCED)
def amax(input: Real, dim: FilledDims = None, keepdim: KeepDim = False) -> Tensor:
    """Return the maximum over the given dimensions, all of them by default.

    A NaN is larger than every number. The gradient is shared evenly among what equals the maximum.

    >>> flow.amax(flow.tensor([[1., 5.], [7., 2.]]))
    tensor(7.)
    """


@functor("flow Tensor", out=True, samples=_REDUCED)
def amin(input: Real, dim: FilledDims = None, keepdim: KeepDim = False) -> Tensor:
    """Return the minimum over the given dimensions, all of them by default; see `amax`."""


@functor("flow Tensor", out=True, samples="x(2, 3); x(2, 3), dim=-1; x(2, 3), dim=0, keepdim=True")
def aminmax(input: Real, *, dim: Filled | None = None, keepdim: KeepDim = False) -> AminmaxResult:
    """Return the minimum and the maximum, along a dimension or of all elements.

    >>> flow.aminmax(flow.tensor([3.0, 1.0, 2.0]))
    AminmaxResult(min=tensor(1.), max=tensor(3.))
    """
    return AminmaxResult(amin(input, dim, keepdim), amax(input, dim, keepdim))


def _extremum(
    name: str, ops: Any, result: Any, input: Any, dim: Any, keep: bool, other: Any
) -> Any:
    """Dispatch what the arguments of max or min ask for."""
    of_all, along, of_two = ops
    real(name, input)
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return dispatch2(of_two, input, real(name, other, "other"))
    if dim is None:
        dims = filled_dims(name, "dim", None, input)
        return dispatch1(of_all, input, {"dim": dims, "keepdim": False})
    attrs = {"dim": filled_dim(name, "dim", dim, input), "keepdim": keep}
    return result(*dispatch1(along, input, attrs))


@functor("flow Tensor", out=True, samples=_THREE)
def max(input: Any, dim: Any = None, keepdim: KeepDim = False, *, other: Other = None) -> Any:
    """Return the largest element, the largest along a dimension, or the larger of two tensors.

    - `max(input)`: `amax(input)`.
    - `max(input, dim, keepdim=False)`: a named tuple `(values, indices)`; the gradient goes to the
      element at the index.
    - `max(input, other)`: `maximum(input, other)`.

    input: a real Tensor. A NaN is larger than every number.
    dim: the dimension to reduce, or the second tensor.
    DTypeError: when a tensor is complex.
    DimError: when the dimension is out of range or empty.
    ShapeError: when there is no element at all, or `input` and `other` do not broadcast.

    >>> x = flow.tensor([[1., 5.], [7., 2.]])
    >>> flow.max(x), *flow.max(x, dim=0)
    (tensor(7.), tensor([7., 5.]), tensor([1, 0]))
    """
    return _extremum("max", MAX, MaxResult, input, dim, keepdim, other)


@functor("flow Tensor", out=True, samples=_THREE)
def min(input: Any, dim: Any = None, keepdim: KeepDim = False, *, other: Other = None) -> Any:
    """Return the smallest element, along a dimension too, or the smaller of two, as `max`."""
    return _extremum("min", MIN, MinResult, input, dim, keepdim, other)


@functor("flow Tensor", out=True, samples=_ALONG)
def argmax(input: Real, dim: ArgumentDim = None, keepdim: KeepDim = False) -> Tensor:
    """Return the int64 index of the first maximum, along a dimension or in the flattened tensor.

    >>> x = flow.tensor([[1., 5.], [7., 2.]])
    >>> flow.argmax(x), flow.argmax(x, dim=1)
    (tensor(2), tensor([1, 0]))
    """


@functor("flow Tensor", out=True, samples=_ALONG)
def argmin(input: Real, dim: ArgumentDim = None, keepdim: KeepDim = False) -> Tensor:
    """Return the int64 index of the first minimum, along a dimension or in the flattened tensor."""
