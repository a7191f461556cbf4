"""Repeating elements and moving them around: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.errors import DimError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_dims, check_shape, check_tensor
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

REPEAT = op_expr("repeat")
FLIP = op_expr("flip")
ROLL = op_expr("roll")

Ints = int | Sequence[int]


@register_functor("repeat")
def repeat(input: Tensor, repeats: Ints, *more: int) -> Tensor:
    """Return copies of a tensor side by side.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    repeats : ints or a sequence of them
        How many copies along each dimension, at least one number per dimension of `input`; further
        ones in front make new dimensions.

    Raises
    ------
    ShapeError
        When there are too few numbers or one is negative.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tensor([1, 2]).repeat(2, 3)
    tensor([[1, 2, 1, 2, 1, 2],
            [1, 2, 1, 2, 1, 2]])
    """
    ndim = check_tensor("repeat", "input", input)._data.ndim
    sizes = check_shape("repeat", (repeats, *more), "repeats")
    if len(sizes) < ndim or any(n < 0 for n in sizes):
        raise bad_argument(
            ShapeError,
            "repeat",
            "repeats",
            expected=f"at least {ndim} numbers, none negative, for shape {input.shape}",
            got=sizes,
            mend="name every dimension, or use tile()",
        )
    return dispatch1(REPEAT, input, {"sizes": sizes})


@register_functor("tile")
def tile(input: Tensor, dims: Ints, *more: int) -> Tensor:
    """Return copies of a tensor side by side; missing numbers, in front, are 1.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tile(flow.tensor([[1, 2], [3, 4]]), (2,))
    tensor([[1, 2, 1, 2],
            [3, 4, 3, 4]])
    """
    ndim = check_tensor("tile", "input", input)._data.ndim
    sizes = check_shape("tile", (dims, *more), "dims")
    if any(n < 0 for n in sizes):
        raise bad_argument(
            ShapeError,
            "tile",
            "dims",
            expected="no negative number",
            got=sizes,
            mend="pass how many copies are wanted",
        )
    return dispatch1(REPEAT, input, {"sizes": (1,) * (ndim - len(sizes)) + sizes})


@register_functor("flip")
def flip(input: Tensor, dims: Ints, *more: int) -> Tensor:
    """Return a copy with the order of entries reversed along the given dimensions.

    Raises
    ------
    DimError
        When a dimension is out of range or given twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.flip(flow.tensor([[1, 2], [3, 4]]), (0, 1))
    tensor([[4, 3],
            [2, 1]])
    """
    ndim = check_tensor("flip", "input", input)._data.ndim
    given = check_shape("flip", (dims, *more), "dims")
    # check_dims takes () as all dimensions, flip as none.
    places = check_dims("flip", given, ndim, "dims") if given else ()
    return dispatch1(FLIP, input, {"dims": places})


@register_functor("roll")
def roll(input: Tensor, shifts: Ints, dims: Any = None) -> Tensor:
    """Return a copy with entries moved along dimensions; what falls off comes back in front.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    shifts : int or sequence of int
        By how many places.
    dims : int or sequence of int, optional
        The dimension of each shift. Without it the tensor is shifted as if flattened.

    Raises
    ------
    ShapeError
        When there is not one shift for each dimension.
    DimError
        When a dimension is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.roll(flow.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    ndim = check_tensor("roll", "input", input)._data.ndim
    steps = check_shape("roll", (shifts,), "shifts")
    given = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not steps or (len(steps) != len(given) and (given or len(steps) != 1)):
        raise bad_argument(
            ShapeError,
            "roll",
            "shifts",
            expected=f"one shift for each of {len(given)} dims" if given else "one shift",
            got=shifts,
            mend="make shifts and dims equally long",
        )
    if not given:
        return dispatch1(ROLL, input, {"shifts": steps, "dims": None})
    if not ndim:
        raise bad_argument(
            DimError,
            "roll",
            "dims",
            expected="no dims for a 0-d tensor",
            got=dims,
            mend="leave them out",
        )
    places = [check_dim("roll", dim, ndim, "dims") for dim in given]
    # A dimension named twice is shifted by the sum.
    total: dict[int, int] = {}
    for place, step in zip(places, steps, strict=True):
        total[place] = total.get(place, 0) + step
    return dispatch1(ROLL, input, {"shifts": tuple(total.values()), "dims": tuple(total)})
