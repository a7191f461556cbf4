"""Functions that users call to choose elements by a boolean mask."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import cast, dtype_check
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import AnyTensor, Count, Flag, tensor
from oneflow_lite.functors.declaring.fill_value import fill_value
from oneflow_lite.functors.joining import cat
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

_MASKED_FILL, _NONZERO = op_expr("masked_fill"), op_expr("nonzero")
_SAYS = "Of bools; it and `input` are broadcast together."
_WHEN = {"DTypeError": "When {x} is not of bools.", "ShapeError": "When shapes do not broadcast."}
_FILLED = "x(2, 3), b(2, 3), 0.5; x(2, 3), b(3), fixed(x()); x(2, 3), b(3), x()"

_bools = dtype_check("b", "a mask of bools", "convert it with .bool()", "mask")
Mask = Annotated[Tensor, tensor(_bools, "b", _SAYS, "b(2, 3)", **_WHEN)]


@functor("flow Tensor", twin=True, samples=_FILLED)
def masked_fill(input: AnyTensor, mask: Mask, value: float | Tensor) -> Tensor:
    """Return `input`, in its dtype, with `value` where `mask` is True.

    value: a 0-d tensor gets the sum of the gradients where it was written.
    DTypeError: when `mask` is not of bools, or a number does not fit the dtype of `input`.
    ShapeError: when shapes do not broadcast, or `value` has dimensions.

    >>> x = flow.tensor([1., 2., 3.])
    >>> flow.masked_fill(x, x > 1.5, -1.)
    tensor([ 1., -1., -1.])
    """
    return filled("masked_fill", input, mask, value)


def filled(op: str, input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write a number or a 0-d tensor where `mask` is True, on behalf of an op."""
    if not isinstance(value, Tensor):
        value = fill_value(op, "value", value, input._data.dtype)
        return dispatch(_MASKED_FILL, (input, mask), {"value": value})
    if value._data.ndim:
        hint = "use where() or masked_scatter() for several values"
        raise arg_error(op, "value", "a number or a 0-d tensor", value, hint)
    if value.is_complex() and not input.is_complex():
        expected = f"a real number for a tensor of {input.dtype}"
        hint = "take its .real, or convert the tensor to a complex dtype"
        raise arg_error(op, "value", expected, value.dtype, hint, DTypeError)
    return F.where(mask, cast(value, input.dtype), input)


@functor("flow Tensor", out="same", samples="x(2, 3), b(2, 3); x(2, 3), b(3); x(3), b(2, 1)")
def masked_select(input: AnyTensor, mask: Mask) -> Tensor:
    """Return the elements of `input` where `mask` is True, as a vector; waits for the device.

    >>> x = flow.tensor([[1, 2], [3, 4]])
    >>> flow.masked_select(x, x % 2 == 0)
    tensor([2, 4])
    """
    return dispatch(op_expr("masked_select"), _together("masked_select", input, mask))


@functor("flow Tensor", twin=True, samples="x(2, 3), b(2, 3), x(4); x(2, 3), b(3), x(2, 2)")
def masked_scatter(input: AnyTensor, mask: Mask, source: AnyTensor) -> Tensor:
    """Return `input` with the elements of `source`, in order, where `mask` is True.

    source: of the dtype of `input`, with at least as many elements as True in the mask. (CUDA does
        not check this: the last element stands for missing elements.)
    ShapeError, DTypeError: when `source` is too short, or of another dtype.

    >>> mask = flow.tensor([True, False, True])
    >>> flow.masked_scatter(flow.zeros(3), mask, flow.tensor([1., 2., 3.]))
    tensor([1., 0., 2.])
    """
    input, mask = _together("masked_scatter", input, mask)
    check_same_dtype("masked_scatter", input, "source", source)
    return dispatch(op_expr("masked_scatter"), (input, mask, source))


def check_same_dtype(op: str, input: Tensor, argument: str, source: Tensor) -> None:
    """Raise `DTypeError` unless `source` has the dtype of `input`."""
    if source._data.dtype != input._data.dtype:
        expected, hint = f"the dtype of input, {input.dtype}", "convert it with .to(input.dtype)"
        raise arg_error(op, argument, expected, source.dtype, hint, DTypeError)


@functor(
    "flow Tensor",
    out="same",
    samples="i(2, 3, n=2); x(2, 2), as_tuple=True; b(4)",
    results="""as_tuple: Literal[False] = ... -> Tensor
        as_tuple: Literal[True] -> tuple[Tensor, ...]""",
)
def nonzero(input: AnyTensor, *, as_tuple: Flag = False) -> Any:
    """Return the indices of the elements that are not zero, one row each.

    as_tuple: return one vector per dimension, which together index `input`.

    >>> flow.nonzero(flow.tensor([[0, 0], [0, 2]]))
    tensor([[1, 1]])
    """
    if not as_tuple:
        return dispatch1(_NONZERO, input)
    input = input if input.ndim else input.expand(1)
    indices = dispatch1(_NONZERO, input)
    return tuple(indices.select(1, k) for k in range(input.ndim))


@functor("flow Tensor", out="same", samples="i(2, 3, n=2), size=2; b(4), size=5, fill_value=7")
def nonzero_static(input: AnyTensor, *, size: Count, fill_value: int = -1) -> Tensor:
    """Return `size` rows: the indices of the first elements that are not 0, then `fill_value`.

    >>> flow.nonzero_static(flow.tensor([0, 5]), size=2).tolist()
    [[1], [-1]]
    """
    rows = dispatch1(_NONZERO, input)[:size]
    return cat([rows, rows.new_full((size - rows.shape[0], rows.shape[1]), fill_value)])


@functor("flow Tensor", op="nonzero", samples="i(2, 3, n=2); x(2)")
def argwhere(input: AnyTensor) -> Tensor:
    """Return the indices of the elements that are not zero, one row each."""


def _together(op: str, input: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return both broadcast to their common shape."""
    if input.shape == mask.shape:
        return input, mask
    try:
        shape = np.broadcast_shapes(input.shape, mask.shape)
    except ValueError:
        expected = f"a shape that broadcasts with {input.shape}"
        raise arg_error(op, "mask", expected, mask.shape, "make the sizes equal or 1") from None
    return input.expand(shape), mask.expand(shape)
