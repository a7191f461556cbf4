"""Argument checks that functors share: each raises an error naming op, argument and mend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.dtype import as_dtype, default_float
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    FlowError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.interpreter import dispatch1, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

_CAST = op_expr("cast")


def check_tensor(op: str, argument: str, value: Any) -> Tensor:
    """Return `value` when it is a Tensor; raise `ArgumentTypeError` otherwise."""
    if isinstance(value, Tensor):
        return value
    raise ArgumentTypeError(
        f"{op}(): argument '{argument}': expected a Tensor, got {type(value).__name__}; wrap "
        "the value with flow.tensor(...)"
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
    raise DTypeError(
        f"{op}(): argument '{argument}': expected a floating point dtype, got {value.dtype}; "
        "convert it with .float()"
    )


def require_integer(op: str, value: Tensor, argument: str = "index") -> Tensor:
    """Return `value` when it holds integers; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind in "iu":
        return value
    raise DTypeError(
        f"{op}(): argument '{argument}': expected an integer dtype, got {value.dtype}; convert "
        "it with .long()"
    )


def check_ndim(op: str, value: Tensor, ndims: Sequence[int], argument: str = "input") -> Tensor:
    """Return `value` when its number of dimensions is among `ndims`."""
    if check_tensor(op, argument, value)._data.ndim in ndims:
        return value
    raise ShapeError(
        f"{op}(): argument '{argument}': expected {' or '.join(map(str, ndims))} dimensions, "
        f"got shape {value.shape}; reshape or unsqueeze it"
    )


def check_broadcast(op: str, argument: str, value: Tensor, other: Tensor) -> tuple[int, ...]:
    """Return the shape in which two tensors meet; raise `ShapeError` when there is none."""
    shape: tuple[int, ...] = value._data.shape
    if shape == other._data.shape:
        return shape
    try:
        return np.broadcast_shapes(shape, other._data.shape)
    except ValueError:
        raise ShapeError(
            f"{op}(): argument '{argument}': expected shapes that broadcast together, got "
            f"{other.shape} and {shape}; make the sizes equal or 1, counted from the last "
            "dimension"
        ) from None


def check_int(op: str, argument: str, value: Any, minimum: int | None = None) -> int:
    """Return `value` as a Python int of at least `minimum`; 0-d tensors of integers are read."""
    if isinstance(value, (Tensor, np.ndarray)) and not value.ndim and value.dtype.kind in "iu":
        value = int(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if minimum is None or value >= minimum:
            return int(value)
        raise ArgumentError(
            f"{op}(): argument '{argument}': expected an int of at least {minimum}, got "
            f"{value}; pass a larger one"
        )
    raise ArgumentTypeError(
        f"{op}(): argument '{argument}': expected an int, got {value!r}; pass a whole number"
    )


def check_dim(op: str, dim: Any, ndim: int, argument: str = "dim") -> int:
    """Return `dim` counted from 0; a 0-d tensor has one dimension, as in PyTorch."""
    rank = max(ndim, 1)
    number = check_int(op, argument, dim)
    if -rank <= number < rank:
        return number + rank if number < 0 else number
    raise DimError(
        f"{op}(): argument '{argument}': expected {-rank} to {rank - 1} for a tensor of {ndim} "
        f"dimensions, got {dim}; name a dimension the tensor has"
    )


def check_dims(op: str, dims: Any, ndim: int, argument: str = "dim") -> tuple[int, ...]:
    """Return the dimensions as a tuple counted from 0; None and () mean all of them."""
    if dims is None or (isinstance(dims, (tuple, list)) and len(dims) == 0):
        return tuple(range(ndim))
    given = dims if isinstance(dims, (tuple, list)) else (dims,)
    result = tuple(check_dim(op, dim, ndim, argument) for dim in given)
    if len(set(result)) != len(result):
        raise DimError(
            f"{op}(): argument '{argument}': expected each dimension once, got {dims}; drop the "
            "repeated one"
        )
    return result if ndim else ()


def check_shape(op: str, shape: Any, argument: str = "size") -> tuple[int, ...]:
    """Return sizes, given as ints or as one sequence (`f(2, 3)`, `f((2, 3))`), as a tuple."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return tuple(check_int(op, argument, size) for size in shape)


def real(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it is no complex tensor; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind != "c":
        return value
    raise DTypeError(
        f"{op}(): argument '{argument}': expected a real dtype, got {value.dtype}; take its "
        ".real and .imag, or .abs()"
    )


def real_floating(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when its dtype is a real floating one; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind == "f":
        return value
    raise DTypeError(
        f"{op}(): argument '{argument}': expected a real floating point dtype, got "
        f"{value.dtype}; convert it with .float()"
    )


def real_floating_pair(op: str, input: Tensor, other: Tensor) -> list[Tensor]:
    """Return two operands in one dtype; raise `DTypeError` when it is no real floating one."""
    operands = promote(op, check_tensor(op, "input", input), check_tensor(op, "other", other))
    if operands[0]._data.dtype.kind != "f":  # then one of the two is the cause
        real_floating(op, input)
        real_floating(op, other, "other")
    return operands


def real_pair(op: str, input: Tensor, other: Tensor) -> list[Tensor]:
    """Return two operands in one dtype; raise `DTypeError` when one is complex."""
    return promote(op, real(op, input), real(op, other, "other"))


def real_to_floating_pair(op: str, input: Tensor, other: Tensor) -> list[Tensor]:
    """Return two real operands in one floating dtype; integers become the default dtype."""
    return [floating(op, x) for x in real_pair(op, input, other)]


def check_number(op: str, argument: str, value: Any) -> float:
    """Return `value` as a Python float; raise `ArgumentTypeError` when it is no real number."""
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    raise ArgumentTypeError(
        f"{op}(): argument '{argument}': expected a number, got {value!r}; pass a float"
    )


def real_to_floating(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a real tensor as a floating one; integers become the default dtype."""
    return floating(op, real(op, value, argument), argument)


def _of_kind(op: str, value: Tensor, argument: str, kinds: str, expected: str, mend: str) -> Tensor:
    if check_tensor(op, argument, value)._data.dtype.kind in kinds:
        return value
    raise DTypeError(
        f"{op}(): argument '{argument}': expected {expected}, got {value.dtype}; {mend}"
    )


def number_tensor(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when its dtype is an integer or real floating one."""
    expected = "a real dtype other than bool"
    return _of_kind(op, value, argument, "fiu", expected, "convert it with .float()")


def numeric(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it does not hold truth values."""
    return _of_kind(op, value, argument, "fciu", "numbers", "convert it with .long()")


def integer_or_bool(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it holds integers or truth values."""
    expected = "an integer dtype or bool"
    return _of_kind(op, value, argument, "iub", expected, "convert it with .long()")


def cast(input: Tensor, dtype: Any) -> Tensor:
    """Return the tensor in another dtype; itself when it has that dtype."""
    chosen = as_dtype("to", dtype)
    if check_tensor("to", "input", input)._data.dtype is chosen:
        return input
    return dispatch1(_CAST, input, {"dtype": chosen})


def to_dtype(op: str, input: Tensor, dtype: Any) -> Tensor:
    """Return `input` cast to `dtype`, or as it is when `dtype` is None."""
    check_tensor(op, "input", input)
    if dtype is None:
        return input
    wanted = as_dtype(op, dtype)
    return input if input.dtype == wanted else dispatch1(_CAST, input, {"dtype": wanted})


def check_matrix(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a matrix in single or double precision, real or complex, or a batch of them."""
    data = check_tensor(op, argument, value)._data
    if data.dtype.char not in "fdFD":
        raise DTypeError(
            f"{op}(): argument '{argument}': expected float32, float64, complex64 or "
            f"complex128, got {value.dtype}; convert it with .float()"
        )
    if data.ndim >= 2:
        return value
    raise ShapeError(
        f"{op}(): argument '{argument}': expected a matrix, or a batch of them, got shape "
        f"{value.shape}; unsqueeze it"
    )


def check_square(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a matrix, as `check_matrix`, with as many rows as columns, or a batch of them."""
    shape = check_matrix(op, value, argument)._data.shape
    if shape[-1] == shape[-2]:
        return value
    raise ShapeError(
        f"{op}(): argument '{argument}': expected a square matrix, or a batch of them, got "
        f"shape {shape}; the last two dimensions have one size"
    )


def check_tensors(op: str, value: Any, argument: str = "tensors") -> Sequence[Tensor]:
    """Return a sequence of one tensor or more, brought to their common dtype."""
    if isinstance(value, Tensor) or not isinstance(value, (tuple, list)) or not value:
        raise bad_argument(
            ArgumentTypeError if isinstance(value, Tensor) or value else ArgumentError,
            op,
            argument,
            expected="a sequence of Tensors, not empty",
            got=type(value).__name__,
            mend="pass a list or a tuple",
        )
    for i, each in enumerate(value):
        check_tensor(op, f"{argument}[{i}]", each)
    first = value[0]._data.dtype
    return value if all([x._data.dtype is first for x in value]) else promote(op, *value)


def check_ints(op: str, argument: str, value: Any) -> int | tuple[int, ...]:
    """Return an int, or a tuple of ints."""
    if isinstance(value, (tuple, list)):
        return tuple(check_int(op, argument, each) for each in value)
    return check_int(op, argument, value)


def check_choice(op: str, argument: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return a word when it is among the allowed ones."""
    if isinstance(value, str) and value in allowed:
        return value
    raise ArgumentError(
        f"{op}(): argument '{argument}': expected {' or '.join(map(repr, allowed))}, got "
        f"{value!r}; name one of these"
    )


def check_not_negative(op: str, argument: str, value: Any) -> float:
    """Return `value` as a Python float of at least 0."""
    number = check_number(op, argument, value)
    if number >= 0:
        return number
    raise ArgumentError(
        f"{op}(): argument '{argument}': expected 0 or more, got {number}; pass its absolute value"
    )


def check_sizes(
    op: str, given: tuple[Any, ...], named: dict[str, Any], argument: str
) -> tuple[int, ...]:
    """Return whole numbers given one by one, as one sequence, or by the name of the argument."""
    names = ("size", "shape") if argument in ("size", "shape") else (argument,)
    return check_shape(op, named_sizes(op, given, named, *names), argument)


def named_sizes(op: str, given: tuple[Any, ...], named: dict[str, Any], *names: str) -> Any:
    """Return what was given by position, or by one of the names; raise for other names."""
    if not named:
        return given
    for name in names:
        if name in named:
            given = (*given, named.pop(name))
    for name in named:
        raise ArgumentTypeError(f"{op}() has no argument {name!r}; leave it out")
    return given


def no_dimension(
    op: str, argument: str, kind: type[FlowError], mend: str = "unsqueeze it"
) -> FlowError:
    """Return the error for a 0-d tensor where a dimension is needed."""
    return bad_argument(kind, op, argument, "at least one dimension", "a 0-d tensor", mend)


def check_vector(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it has one dimension."""
    return check_ndim(op, value, (1,), argument)


def check_matrices(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when it has at least two dimensions."""
    if check_tensor(op, argument, value)._data.ndim >= 2:
        return value
    got, mend = f"shape {value.shape}", "reshape or unsqueeze it"
    raise bad_argument(ShapeError, op, argument, "at least 2 dimensions", got, mend)


def wrong(
    op: str, argument: str, expected: str, got: Any, mend: str, kind: type[FlowError] = ShapeError
) -> FlowError:
    """Return the error for an argument; of a tensor its shape is shown."""
    got = f"shape {got.shape}" if isinstance(got, Tensor) else got
    return bad_argument(kind, op, argument, expected, got, mend)
