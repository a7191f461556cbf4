"""Largest and smallest elements and where they stand: what users call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from oneflow_lite.errors import DimError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim
from oneflow_lite.functors.elementwise_checks import real
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.reduce import Dims, reduced
from oneflow_lite.interpreter import dispatch, dispatch1, dispatch2
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

# `values` and `indices`, as the named tuples that PyTorch's max and min return.
MaxResult = namedtuple("MaxResult", ["values", "indices"])
MinResult = namedtuple("MinResult", ["values", "indices"])

AMAX = op_expr("amax")
AMIN = op_expr("amin")
MAX = op_expr("max")
MIN = op_expr("min")
MAXIMUM = op_expr("maximum")
MINIMUM = op_expr("minimum")
ARGMAX = op_expr("argmax")
ARGMIN = op_expr("argmin")


def _refuse_empty(op: str, input: Tensor, dims: Sequence[int], argument_given: bool) -> None:
    """Raise when a dimension without elements is reduced by an op that has no neutral element."""
    shape = input._data.shape
    if not argument_given and 0 in shape:
        raise bad_argument(
            ShapeError,
            op,
            "input",
            expected="at least one element",
            got=f"shape {shape}",
            mend="name a dimension that is not empty with dim=",
        )
    for dim in dims:
        if shape and shape[dim] == 0:
            raise bad_argument(
                DimError,
                op,
                "dim",
                expected="a dimension that is not empty",
                got=f"{dim} of shape {shape}",
                mend="reduce another dimension",
            )


def _extremum(op: OpExpr, input: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    attrs = reduced(op.op_type_name, real(op.op_type_name, input), dim, keepdim)
    _refuse_empty(op.op_type_name, input, attrs["dim"], not (dim is None or dim == ()))
    return dispatch1(op, input, attrs)


@register_functor("amax")
def amax(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the maximum over the given dimensions, all of them by default.

    The gradient is shared evenly among the elements that equal the maximum.

    Parameters
    ----------
    input : Tensor
        Real. A NaN is larger than every number.
    dim : int or sequence of int, optional
        The dimensions to reduce; None and () mean all.
    keepdim : bool
        Keep the reduced dimensions, with size 1.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When `input` is complex.
    DimError
        When a dimension is out of range, given twice or empty.
    ShapeError
        When all dimensions are reduced and there is no element.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.amax(flow.tensor([[1., 5.], [7., 2.]]), dim=(0, 1))
    tensor(7.)
    """
    if out is not None:
        return write_out("amax", out, amax, input, dim, keepdim)
    return _extremum(AMAX, input, dim, keepdim)


@register_functor("amin")
def amin(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the minimum over the given dimensions, all of them by default; see `amax`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.amin(flow.tensor([[1., 5.], [7., 2.]]), dim=0)
    tensor([1., 2.])
    """
    if out is not None:
        return write_out("amin", out, amin, input, dim, keepdim)
    return _extremum(AMIN, input, dim, keepdim)


def _extremum_along(op: OpExpr, input: Tensor, dim: int, keepdim: bool) -> Any:
    name = op.op_type_name
    real(name, input)
    dim = check_dim(name, dim, input.ndim)
    _refuse_empty(name, input, (dim,), True)
    return dispatch(op, (input,), {"dim": dim, "keepdim": bool(keepdim)})


@register_functor("max")
def max(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Any = None,
) -> Any:
    """Return the largest element, the largest along a dimension, or the larger of two tensors.

    - `max(input)`: a 0-d tensor. The gradient is shared evenly among the elements that equal it.
    - `max(input, dim, keepdim=False)`: a named tuple `(values, indices)`; the gradient goes to the
      element at the index.
    - `max(input, other)`: `maximum(input, other)`.

    Parameters
    ----------
    input : Tensor
        Real. A NaN is larger than every number.
    dim : int or Tensor, optional
        The dimension to reduce, or the second tensor.
    keepdim : bool
        Keep the reduced dimension, with size 1.
    other : Tensor, optional
        The second tensor.
    out : Tensor or tuple of two Tensors, optional
        Receives the result, or the values and the indices.

    Raises
    ------
    DTypeError
        When a tensor is complex.
    DimError
        When the dimension is out of range or empty.
    ShapeError
        When there is no element at all, or `input` and `other` do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1., 5.], [7., 2.]])
    >>> values, indices = flow.max(x, 1)
    >>> flow.max(x), values, indices
    (tensor(7.), tensor([5., 7.]), tensor([1, 0]))
    """
    if out is not None:
        return write_out("max", out, max, input, dim, keepdim, other=other)
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return dispatch2(MAXIMUM, real("max", input), real("max", other, "other"))
    if dim is not None:
        return MaxResult(*_extremum_along(MAX, input, dim, keepdim))
    attrs = reduced("max", real("max", input), None, False)
    _refuse_empty("max", input, (), False)
    return dispatch1(AMAX, input, attrs)


@register_functor("min")
def min(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Any = None,
) -> Any:
    """Return the smallest element, the smallest along a dimension, or the smaller of two tensors.

    The three forms are those of `max`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.min(flow.tensor([[1., 5.], [7., 2.]]), dim=0).indices
    tensor([0, 1])
    """
    if out is not None:
        return write_out("min", out, min, input, dim, keepdim, other=other)
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return dispatch2(MINIMUM, real("min", input), real("min", other, "other"))
    if dim is not None:
        return MinResult(*_extremum_along(MIN, input, dim, keepdim))
    attrs = reduced("min", real("min", input), None, False)
    _refuse_empty("min", input, (), False)
    return dispatch1(AMIN, input, attrs)


def _arg_extremum(op: OpExpr, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    name = op.op_type_name
    real(name, input)
    if dim is not None:
        dim = check_dim(name, dim, input.ndim)
    if dim is None and 0 in input._data.shape:
        raise bad_argument(
            DimError,  # an IndexError in PyTorch, unlike that of max
            name,
            "input",
            expected="at least one element",
            got=f"shape {input.shape}",
            mend="name a dimension that is not empty with dim=",
        )
    _refuse_empty(name, input, () if dim is None else (dim,), True)
    return dispatch1(op, input, {"dim": dim, "keepdim": bool(keepdim)})


@register_functor("argmax")
def argmax(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the int64 index of the first maximum, along a dimension or in the flattened tensor.

    Raises
    ------
    DTypeError
        When `input` is complex.
    DimError
        When the dimension is out of range or there is no element.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1., 5.], [7., 2.]])
    >>> flow.argmax(x), flow.argmax(x, dim=1)
    (tensor(2), tensor([1, 0]))
    """
    if out is not None:
        return write_out("argmax", out, argmax, input, dim, keepdim)
    return _arg_extremum(ARGMAX, input, dim, keepdim)


@register_functor("argmin")
def argmin(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Return the int64 index of the first minimum, along a dimension or in the flattened tensor.

    Raises
    ------
    DTypeError
        When `input` is complex.
    DimError
        When the dimension is out of range or there is no element.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.argmin(flow.tensor([[1., 5.], [7., 2.]]), dim=1, keepdim=True)
    tensor([[0],
            [1]])
    """
    if out is not None:
        return write_out("argmin", out, argmin, input, dim, keepdim)
    return _arg_extremum(ARGMIN, input, dim, keepdim)
