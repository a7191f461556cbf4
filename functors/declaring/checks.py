"""Argument checks that functors share: each raises an error naming op, argument and hint."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype import as_dtype, default_float
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    FlowError,
    arg_error,
    brief,
    type_error,
)
from oneflow_lite.interpreter.dispatch import dispatch1, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.foreign import inside
from oneflow_lite.tensors.spellings import as_number
from oneflow_lite.tensors.tensor import Tensor

_CAST = op_expr("cast")


# --- Tensors: their dtypes ------------------------------------------------------------------------


def check_tensor(op: str, argument: str, value: Any) -> Tensor:
    """Return `value` when it is a Tensor; raise `ArgumentTypeError` otherwise."""
    if isinstance(value, Tensor):
        return value
    raise type_error(op, argument, "a Tensor", value, "wrap the value with flow.tensor(...)")


def check_any_tensor(op: str, argument: str, value: Any) -> None:
    """Raise for a value that is no Tensor, and for a tensor whose class is to be asked first."""
    if not isinstance(value, Tensor) or (value._asked and not getattr(inside, "plain", False)):
        raise type_error(op, argument, "a Tensor", value, "wrap the value with flow.tensor(...)")


def dtype_check(
    kinds: str, expected: str, hint: str, argument: str = "input"
) -> Callable[..., Tensor]:
    """Make a check that returns a tensor when its dtype is of these kinds, and raises otherwise."""

    def check(op: str, value: Tensor, argument: str = argument) -> Tensor:
        if check_tensor(op, argument, value)._data.dtype.kind in kinds:
            return value
        raise arg_error(op, argument, expected, value.dtype, hint, DTypeError)

    check.__name__ = f"check_{kinds}"
    check.__dict__["raises"] = {"DTypeError": f"When {{x}} is not of {expected}."}
    return check


_AS_FLOAT, _AS_LONG = "convert it with .float()", "convert it with .long()"
real = dtype_check("fiub", "a real dtype", "take its .real and .imag, or .abs()")
real_floating = dtype_check("f", "a real floating point dtype", _AS_FLOAT)
require_floating = dtype_check("fc", "a floating point dtype", _AS_FLOAT)
require_integer = dtype_check("iu", "an integer dtype", _AS_LONG, "index")
number_tensor = dtype_check("fiu", "a real dtype other than bool", _AS_FLOAT)
numeric = dtype_check("fciu", "numbers", _AS_LONG)


def floating(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` as a floating or complex tensor; integers become the default dtype."""
    try:
        if value._data.dtype.kind in "fc":
            return value
    except AttributeError:
        check_tensor(op, argument, value)
    return dispatch1(_CAST, value, {"dtype": default_float()})


def real_to_floating(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a real tensor as a floating one; integers become the default dtype."""
    return floating(op, real(op, value, argument), argument)


def real_pair(op: str, input: Tensor, other: Tensor) -> list[Tensor]:
    """Return two operands in one dtype; raise `DTypeError` when one is complex."""
    return promote(op, real(op, input), real(op, other, "other"))


def real_to_floating_pair(op: str, input: Tensor, other: Tensor) -> list[Tensor]:
    """Return two real operands in one floating dtype; integers become the default dtype."""
    return [floating(op, x) for x in real_pair(op, input, other)]


def real_floating_pair(op: str, input: Tensor, other: Tensor) -> list[Tensor]:
    """Return two operands in one dtype; raise `DTypeError` unless it is real floating."""
    operands = promote(op, check_tensor(op, "input", input), check_tensor(op, "other", other))
    if operands[0]._data.dtype.kind != "f":  # then one of the two is the cause
        real_floating(op, input)
        real_floating(op, other, "other")
    return operands


def to_dtype(op: str, input: Tensor, dtype: Any) -> Tensor:
    """Return `input` cast to `dtype`, or as it is when it has that dtype, or `dtype` is None."""
    own = check_tensor(op, "input", input)._data.dtype
    wanted = own if dtype is None else as_dtype(op, dtype)
    return input if own == wanted else dispatch1(_CAST, input, {"dtype": wanted})


def to_dtype_of_numbers(op: str, input: Tensor, dtype: Any) -> Tensor:
    """Return `input` cast to a dtype, which is not bool: a sum of truth values is a number."""
    kind = as_dtype(op, dtype).kind
    if kind != "b":
        if kind != "c" and check_tensor(op, "input", input)._data.dtype.kind == "c":
            text = "the imaginary part is dropped; take .real to say that it is meant"
            warn_caller(f"{op}(): {text}")
        return to_dtype(op, input, dtype)
    hint = "use any() or all(), or convert the result with .bool()"
    raise arg_error(op, "dtype", "a dtype of numbers", dtype, hint, DTypeError)


cast = functools.partial(to_dtype, "to")


# --- Tensors: their shapes ------------------------------------------------------------------------


def check_ndim(op: str, value: Tensor, ndims: Sequence[int], argument: str = "input") -> Tensor:
    """Return `value` when its number of dimensions is among `ndims`."""
    if check_tensor(op, argument, value)._data.ndim in ndims:
        return value
    expected = f"{' or '.join(map(str, ndims))} dimensions"
    raise arg_error(op, argument, expected, value, "reshape or unsqueeze it")


def check_vector(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it has one dimension."""
    return check_ndim(op, value, (1,), argument)


def check_matrices(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it has at least two dimensions."""
    if check_tensor(op, argument, value)._data.ndim >= 2:
        return value
    raise arg_error(op, argument, "at least 2 dimensions", value, "reshape or unsqueeze it")


def check_matrix(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a matrix in single or double precision, real or complex, or a batch of them."""
    data = check_tensor(op, argument, value)._data
    if data.dtype.char not in "fdFD":
        expected = "float32, float64, complex64 or complex128"
        raise arg_error(op, argument, expected, value.dtype, _AS_FLOAT, DTypeError)
    if data.ndim >= 2:
        return value
    raise arg_error(op, argument, "a matrix, or a batch of them", value, "unsqueeze it")


def check_square(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a matrix, as `check_matrix`, with as many rows as columns, or a batch of them."""
    shape = check_matrix(op, value, argument)._data.shape
    if shape[-1] == shape[-2]:
        return value
    hint = "the last two dimensions have one size"
    raise arg_error(op, argument, "a square matrix, or a batch of them", value, hint)


def check_broadcast(op: str, argument: str, value: Tensor, other: Tensor) -> tuple[int, ...]:
    """Return the shape in which two tensors meet; raise `ShapeError` when there is none."""
    shape: tuple[int, ...] = value._data.shape
    if shape == other._data.shape:
        return shape
    try:
        return np.broadcast_shapes(shape, other._data.shape)
    except ValueError:
        got = f"{other.shape} and {shape}"
        hint = "make the sizes equal or 1, counted from the last dimension"
        expected = "shapes that broadcast together"
        raise arg_error(op, argument, expected, got, hint) from None


def dimension_error(
    op: str, argument: str, kind: type[FlowError], hint: str = "unsqueeze it"
) -> FlowError:
    """Return the error for a 0-d tensor where a dimension is needed."""
    return arg_error(op, argument, "at least one dimension", "a 0-d tensor", hint, kind)


def check_tensors(op: str, value: Any, argument: str = "tensors") -> Sequence[Tensor]:
    """Return a sequence of one tensor or more, brought to their common dtype."""
    if isinstance(value, Tensor) or not isinstance(value, (tuple, list)) or not value:
        kind = ArgumentTypeError if isinstance(value, Tensor) or value else ArgumentError
        expected, got = "a sequence of Tensors, not empty", type(value).__name__
        raise arg_error(op, argument, expected, got, "pass a list or a tuple", kind)
    for i, each in enumerate(value):
        check_any_tensor(op, f"{argument}[{i}]", each)
    first = value[0]._data.dtype
    return value if all([x._data.dtype is first for x in value]) else promote(op, *value)


# --- Numbers, dimensions, sizes, words ------------------------------------------------------------


def check_int(op: str, argument: str, value: Any, minimum: int | None = None) -> int:
    """Return `value` as a Python int of at least `minimum`; 0-d tensors of integers are read."""
    if isinstance(value, (Tensor, np.ndarray)) and not value.ndim and value.dtype.kind in "iu":
        value = int(value)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        hint = "pass a whole number"
        raise arg_error(op, argument, "an int", brief(value), hint, ArgumentTypeError)
    if minimum is None or value >= minimum:
        return int(value)
    expected = f"an int of at least {minimum}"
    raise arg_error(op, argument, expected, value, "pass a larger one", ArgumentError)


def check_ints(op: str, argument: str, value: Any) -> int | tuple[int, ...]:
    """Return an int, or a tuple of ints."""
    if isinstance(value, (tuple, list)):
        return tuple(check_int(op, argument, each) for each in value)
    return check_int(op, argument, value)


def check_number(op: str, argument: str, value: Any) -> float:
    """Return `value` as a Python float; raise `ArgumentTypeError` when it is no real number."""
    if isinstance(value, (int, float)) or isinstance(as_number(value), (int, float)):
        return float(value)
    raise arg_error(op, argument, "a number", repr(value), "pass a float", ArgumentTypeError)


def check_not_negative(op: str, argument: str, value: Any) -> float:
    """Return `value` as a Python float of at least 0."""
    number = check_number(op, argument, value)
    if number >= 0:
        return number
    raise arg_error(op, argument, "0 or more", number, "pass its absolute value", ArgumentError)


def check_choice(op: str, argument: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return a word when it is among the allowed words."""
    if isinstance(value, str) and value in allowed:
        return value
    expected = " or ".join(map(repr, allowed))
    raise arg_error(op, argument, expected, repr(value), "name one of these", ArgumentError)


def check_dim(op: str, dim: Any, ndim: int, argument: str = "dim") -> int:
    """Return `dim` counted from 0; a 0-d tensor has one dimension, as in PyTorch."""
    rank = max(ndim, 1)
    number = check_int(op, argument, dim)
    if -rank <= number < rank:
        return number + rank if number < 0 else number
    expected = f"{-rank} to {rank - 1} for a tensor of {ndim} dimensions"
    raise arg_error(op, argument, expected, number, "name a dimension the tensor has", DimError)


def check_dims(op: str, dims: Any, ndim: int, argument: str = "dim") -> tuple[int, ...]:
    """Return the dimensions as a tuple counted from 0; None and () mean all of them."""
    if dims is None or (isinstance(dims, (tuple, list)) and len(dims) == 0):
        return tuple(range(ndim))
    given = dims if isinstance(dims, (tuple, list)) else (dims,)
    result = tuple(check_dim(op, dim, ndim, argument) for dim in given)
    if len(set(result)) != len(result):
        hint = "drop the repeated one"
        raise arg_error(op, argument, "each dimension once", dims, hint, DimError)
    return result if ndim else ()


def check_shape(op: str, shape: Any, argument: str = "size") -> tuple[int, ...]:
    """Return sizes, given as ints or as one sequence (`f(2, 3)`, `f((2, 3))`), as a tuple."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return tuple([n if type(n) is int else check_int(op, argument, n) for n in shape])


def named_sizes(op: str, given: tuple[Any, ...], named: dict[str, Any], *names: str) -> Any:
    """Return the arguments given by position or by these names; raise for other names."""
    if not named:
        return given
    for name in names:
        if name in named:
            given = (*given, named.pop(name))
    for name in named:
        raise ArgumentTypeError(f"{op}() has no argument {name!r}; leave it out")
    return given


def check_sizes(op: str, given: Any, named: dict[str, Any], argument: str) -> tuple[int, ...]:
    """Return whole numbers given as arguments, as a sequence, or by the name of the argument."""
    # dims=() says that none is meant; permute() counts them itself.
    if not given and not named and argument == "dims" and op != "permute":
        hint = "name them, or pass ()"
        raise arg_error(op, argument, "dimensions", "none", hint, ArgumentTypeError)
    names = ("size", "shape") if argument in ("size", "shape") else (argument,)
    return check_shape(op, named_sizes(op, given, named, *names), argument)
