"""Argument checks that functors share: each raises an error naming op, argument and mend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.dtype import default_float
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

_CAST = op_expr("cast")


def check_tensor(op: str, argument: str, value: Any) -> Tensor:
    """Return `value` when it is a Tensor; raise `ArgumentTypeError` otherwise."""
    if isinstance(value, Tensor):
        return value
    raise bad_argument(
        ArgumentTypeError,
        op,
        argument,
        expected="a Tensor",
        got=type(value).__name__,
        mend="wrap the value with flow.tensor(...)",
    )


def floating(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` as a floating or complex tensor; integers become the default dtype."""
    try:
        if value._data.dtype.kind in "fc":
            return value
    except AttributeError:
        check_tensor(op, argument, value)
    cast: Tensor = dispatch1(_CAST, value, {"dtype": default_float()})
    return cast


def require_floating(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it is floating or complex; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind in "fc":
        return value
    raise bad_argument(
        DTypeError,
        op,
        argument,
        expected="a floating point dtype",
        got=value.dtype,
        mend="convert it with .float()",
    )


def require_integer(op: str, value: Tensor, argument: str = "index") -> Tensor:
    """Return `value` when it holds integers; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind in "iu":
        return value
    raise bad_argument(
        DTypeError,
        op,
        argument,
        expected="an integer dtype",
        got=value.dtype,
        mend="convert it with .long()",
    )


def check_ndim(op: str, value: Tensor, ndims: Sequence[int], argument: str = "input") -> Tensor:
    """Return `value` when its number of dimensions is among `ndims`."""
    if check_tensor(op, argument, value)._data.ndim in ndims:
        return value
    raise bad_argument(
        ShapeError,
        op,
        argument,
        expected=f"{' or '.join(map(str, ndims))} dimensions",
        got=f"shape {value.shape}",
        mend="reshape or unsqueeze it",
    )


def check_broadcast(op: str, argument: str, value: Tensor, other: Tensor) -> tuple[int, ...]:
    """Return the shape in which two tensors meet; raise `ShapeError` when there is none."""
    shape: tuple[int, ...] = value._data.shape
    if shape == other._data.shape:
        return shape
    try:
        return np.broadcast_shapes(shape, other._data.shape)
    except ValueError:
        raise bad_argument(
            ShapeError,
            op,
            argument,
            expected="shapes that broadcast together",
            got=f"{other.shape} and {shape}",
            mend="make the sizes equal or 1, counted from the last dimension",
        ) from None


def check_int(op: str, argument: str, value: Any, minimum: int | None = None) -> int:
    """Return `value` as a Python int of at least `minimum`."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if minimum is None or value >= minimum:
            return int(value)
        raise bad_argument(
            ArgumentError,
            op,
            argument,
            expected=f"an int of at least {minimum}",
            got=value,
            mend="pass a larger one",
        )
    raise bad_argument(
        ArgumentTypeError,
        op,
        argument,
        expected="an int",
        got=repr(value),
        mend="pass a whole number",
    )


def check_dim(op: str, dim: Any, ndim: int, argument: str = "dim") -> int:
    """Return `dim` counted from 0; a 0-d tensor has one dimension, as in PyTorch."""
    rank = max(ndim, 1)
    number = check_int(op, argument, dim)
    if -rank <= number < rank:
        return number + rank if number < 0 else number
    raise bad_argument(
        DimError,
        op,
        argument,
        expected=f"{-rank} to {rank - 1} for a tensor of {ndim} dimensions",
        got=dim,
        mend="name a dimension the tensor has",
    )


def check_dims(op: str, dims: Any, ndim: int, argument: str = "dim") -> tuple[int, ...]:
    """Return the dimensions as a tuple counted from 0; None and () mean all of them."""
    if dims is None or (isinstance(dims, (tuple, list)) and len(dims) == 0):
        return tuple(range(ndim))
    given = dims if isinstance(dims, (tuple, list)) else (dims,)
    result = tuple(check_dim(op, dim, ndim, argument) for dim in given)
    if len(set(result)) != len(result):
        raise bad_argument(
            DimError,
            op,
            argument,
            expected="each dimension once",
            got=dims,
            mend="drop the repeated one",
        )
    return result if ndim else ()


def check_shape(op: str, shape: Any, argument: str = "size") -> tuple[int, ...]:
    """Return sizes, given as ints or as one sequence (`f(2, 3)`, `f((2, 3))`), as a tuple."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return tuple(check_int(op, argument, size) for size in shape)
