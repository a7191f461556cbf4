"""Logic on truth values and bits: what users call. The results carry no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import DTypeError, bad_argument
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch1, dispatch2
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

LOGICAL_AND = op_expr("logical_and")
LOGICAL_OR = op_expr("logical_or")
LOGICAL_XOR = op_expr("logical_xor")
LOGICAL_NOT = op_expr("logical_not")
BITWISE_AND = op_expr("bitwise_and")
BITWISE_OR = op_expr("bitwise_or")
BITWISE_XOR = op_expr("bitwise_xor")
BITWISE_NOT = op_expr("bitwise_not")


@register_functor("logical_and")
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return where both are not 0, as bools.

    Parameters
    ----------
    input, other : Tensor
        Of any dtype, and of shapes that broadcast together.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentTypeError
        When an argument is no Tensor.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.logical_and(flow.tensor([0, 0, 1, 1]), flow.tensor([0, 1, 0, 1]))
    tensor([False, False, False,  True])
    """
    if out is not None:
        return write_out("logical_and", out, logical_and, input, other)
    check_tensor("logical_and", "input", input)
    check_tensor("logical_and", "other", other)
    return dispatch2(LOGICAL_AND, input, other)


@register_functor("logical_or")
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return where one or both are not 0, as bools.

    Parameters
    ----------
    input, other : Tensor
        Of any dtype, and of shapes that broadcast together.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentTypeError
        When an argument is no Tensor.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.logical_or(flow.tensor([0, 0, 1, 1]), flow.tensor([0, 1, 0, 1]))
    tensor([False,  True,  True,  True])
    """
    if out is not None:
        return write_out("logical_or", out, logical_or, input, other)
    check_tensor("logical_or", "input", input)
    check_tensor("logical_or", "other", other)
    return dispatch2(LOGICAL_OR, input, other)


@register_functor("logical_xor")
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return where exactly one is not 0, as bools.

    Parameters
    ----------
    input, other : Tensor
        Of any dtype, and of shapes that broadcast together.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentTypeError
        When an argument is no Tensor.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.logical_xor(flow.tensor([0, 0, 1, 1]), flow.tensor([0, 1, 0, 1]))
    tensor([False,  True,  True, False])
    """
    if out is not None:
        return write_out("logical_xor", out, logical_xor, input, other)
    check_tensor("logical_xor", "input", input)
    check_tensor("logical_xor", "other", other)
    return dispatch2(LOGICAL_XOR, input, other)


@register_functor("logical_not")
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return where an element is 0, as bools.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.logical_not(flow.tensor([0, 2]))
    tensor([ True, False])
    """
    if out is not None:
        return write_out("logical_not", out, logical_not, input)
    return dispatch1(LOGICAL_NOT, input)


def _bits(op: str, argument: str, value: Any) -> Any:
    """Return `value` when it is an integer or bool, or a tensor of them."""
    dtype = value._data.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
    if dtype.kind in "iub":
        return value
    raise bad_argument(
        DTypeError,
        op,
        argument,
        expected="an integer or bool dtype",
        got=dtype,
        mend="convert it with .long() or .bool()",
    )


@register_functor("bitwise_and")
def bitwise_and(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the bits that are set in both of two integers; for bools logical and.

    Parameters
    ----------
    input, other : Tensor or int or bool
        Of an integer or bool dtype, and of shapes that broadcast together.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When an argument is neither an integer nor a bool.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.bitwise_and(flow.tensor([12]), flow.tensor([10]))
    tensor([8])
    """
    if out is not None:
        return write_out("bitwise_and", out, bitwise_and, input, other)
    name = "bitwise_and"
    return dispatch2(BITWISE_AND, _bits(name, "input", input), _bits(name, "other", other))


@register_functor("bitwise_or")
def bitwise_or(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the bits that are set in one or both of two integers; for bools logical or.

    Parameters
    ----------
    input, other : Tensor or int or bool
        Of an integer or bool dtype, and of shapes that broadcast together.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When an argument is neither an integer nor a bool.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.bitwise_or(flow.tensor([12]), flow.tensor([10]))
    tensor([14])
    """
    if out is not None:
        return write_out("bitwise_or", out, bitwise_or, input, other)
    name = "bitwise_or"
    return dispatch2(BITWISE_OR, _bits(name, "input", input), _bits(name, "other", other))


@register_functor("bitwise_xor")
def bitwise_xor(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return the bits that are set in exactly one of two integers; for bools logical xor.

    Parameters
    ----------
    input, other : Tensor or int or bool
        Of an integer or bool dtype, and of shapes that broadcast together.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When an argument is neither an integer nor a bool.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.bitwise_xor(flow.tensor([12]), flow.tensor([10]))
    tensor([6])
    """
    if out is not None:
        return write_out("bitwise_xor", out, bitwise_xor, input, other)
    name = "bitwise_xor"
    return dispatch2(BITWISE_XOR, _bits(name, "input", input), _bits(name, "other", other))


@register_functor("bitwise_not")
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return every bit of an integer inverted; for bools logical not.

    Parameters
    ----------
    input : Tensor
        Of an integer or bool dtype.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When `input` is neither an integer nor a bool tensor.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.bitwise_not(flow.tensor([0, 1])), flow.bitwise_not(flow.tensor([True]))
    (tensor([-1, -2]), tensor([False]))
    """
    if out is not None:
        return write_out("bitwise_not", out, bitwise_not, input)
    check_tensor("bitwise_not", "input", input)
    return dispatch1(BITWISE_NOT, _bits("bitwise_not", "input", input))
