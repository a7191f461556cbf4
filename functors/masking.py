"""Choosing elements by a boolean mask: what users call."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.indexing import select
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.shape import cast, expand
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.tensor import Tensor

MASKED_FILL = op_expr("masked_fill")
MASKED_SELECT = op_expr("masked_select")
MASKED_SCATTER = op_expr("masked_scatter")
NONZERO = op_expr("nonzero")


@register_functor("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return `input` with `value` where `mask` is True.

    Parameters
    ----------
    input : Tensor
        Of any dtype, which the result keeps.
    mask : Tensor
        Of bools; it and `input` are broadcast together.
    value : number or 0-d Tensor
        A tensor gets the sum of the gradients where it was written.

    Raises
    ------
    DTypeError
        When `mask` is not of bools, or a number does not fit the dtype of `input`.
    ShapeError
        When shapes do not broadcast, or `value` has dimensions.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1., 2., 3.])
    >>> flow.masked_fill(x, x > 1.5, -1.)
    tensor([ 1., -1., -1.])
    """
    _check_mask("masked_fill", input, mask)
    return filled("masked_fill", input, mask, value)


def filled(op: str, input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write a number or a 0-d tensor where `mask` is True; `op` is the functor that was called."""
    if not isinstance(value, Tensor):
        value = fill_value(op, "value", value, input._data.dtype)
        return dispatch(MASKED_FILL, (input, mask), {"value": value})
    if value._data.ndim:
        raise bad_argument(
            ShapeError,
            op,
            "value",
            expected="a number or a 0-d tensor",
            got=f"shape {value.shape}",
            mend="use where() or masked_scatter() for several values",
        )
    if value.is_complex() and not input.is_complex():
        raise bad_argument(
            DTypeError,
            op,
            "value",
            expected=f"a real number for a tensor of {input.dtype}",
            got=value.dtype,
            mend="take its .real, or convert the tensor to a complex dtype",
        )
    return FUNCTORS.get("where")(mask, cast(value, input.dtype), input)


@register_functor("masked_select")
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements of `input` where `mask` is True, as a vector.

    `input` and `mask` are broadcast together. The length depends on the values of `mask`: on CUDA
    this waits for the device.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1, 2], [3, 4]])
    >>> flow.masked_select(x, x % 2 == 0)
    tensor([2, 4])
    """
    if out is not None:
        return write_out("masked_select", out, masked_select, input, mask)
    input, mask = _together("masked_select", input, mask)
    return dispatch(MASKED_SELECT, (input, mask))


@register_functor("masked_scatter")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return `input` with the elements of `source`, in order, where `mask` is True.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    mask : Tensor
        Of bools; it and `input` are broadcast together.
    source : Tensor
        Of the dtype of `input`, with at least as many elements as `mask` has True ones (on CUDA
        this is not looked at, and the last element fills what is missing).

    Raises
    ------
    ShapeError, DTypeError
        When `source` is too short, shapes do not broadcast, or dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> mask = flow.tensor([True, False, True])
    >>> flow.masked_scatter(flow.zeros(3), mask, flow.tensor([1., 2., 3.]))
    tensor([1., 0., 2.])
    """
    input, mask = _together("masked_scatter", input, mask)
    if check_tensor("masked_scatter", "source", source)._data.dtype != input._data.dtype:
        raise bad_argument(
            DTypeError,
            "masked_scatter",
            "source",
            expected=f"the dtype of input, {input.dtype}",
            got=source.dtype,
            mend="convert it with .to(input.dtype)",
        )
    return dispatch(MASKED_SCATTER, (input, mask, source))


@register_functor("nonzero")
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Return the indices of the elements that are not zero.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.
    as_tuple : bool
        Return one vector per dimension, which together index `input`.
    out : Tensor, optional
        Receives the result.

    Returns
    -------
    Tensor of int64, shape (number of elements, input.ndim), or a tuple of vectors

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nonzero(flow.tensor([[1, 0], [0, 2]]))
    tensor([[0, 0],
            [1, 1]])
    """
    if out is not None:
        return write_out("nonzero", out, nonzero, input, as_tuple=as_tuple)
    check_tensor("nonzero", "input", input)
    if not as_tuple:
        return dispatch1(NONZERO, input)
    if not input.ndim:
        input = expand(input, 1)
    indices = dispatch1(NONZERO, input)
    return tuple(select(indices, 1, k) for k in range(input.ndim))


def _check_mask(op: str, input: Tensor, mask: Tensor) -> None:
    check_tensor(op, "input", input)
    if check_tensor(op, "mask", mask)._data.dtype.kind != "b":
        raise bad_argument(
            DTypeError,
            op,
            "mask",
            expected="a mask of bools",
            got=mask.dtype,
            mend="convert it with .bool()",
        )


def _together(op: str, input: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return both broadcast to their common shape."""
    _check_mask(op, input, mask)
    if input.shape == mask.shape:
        return input, mask
    try:
        shape = np.broadcast_shapes(input.shape, mask.shape)
    except ValueError:
        raise bad_argument(
            ShapeError,
            op,
            "mask",
            expected=f"a shape that broadcasts with {input.shape}",
            got=mask.shape,
            mend="make the sizes equal or 1",
        ) from None
    return expand(input, shape), expand(mask, shape)
