"""Operands that may be tensors or numbers: their checks, and the domains that ask for them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_number, check_tensor, floating, real
from oneflow_lite.functors.domains import pair
from oneflow_lite.interpreter import promote
from oneflow_lite.tensor import Tensor, make_tensor

REAL_NUMBERS = (int, float, np.bool_, np.integer, np.floating)
NUMBERS = (*REAL_NUMBERS, complex, np.complexfloating)


def is_bool(value: Any) -> bool:
    """Return whether a tensor or a number holds truth values."""
    if isinstance(value, Tensor):
        return value._data.dtype.kind == "b"
    return isinstance(value, (bool, np.bool_))


def is_integer(value: Any) -> bool:
    """Return whether a tensor, an array or a number holds integers or truth values."""
    dtype = getattr(value._data if isinstance(value, Tensor) else value, "dtype", None)
    return isinstance(value, int) if dtype is None else dtype.kind in "iub"


def real_operand(op: str, value: Any, argument: str) -> Any:
    """Return a tensor or a number that is not complex; raise naming the argument otherwise."""
    if isinstance(value, Tensor):
        return real(op, value, argument)
    if isinstance(value, np.ndarray):
        return real(op, make_tensor(value), argument)
    if isinstance(value, REAL_NUMBERS):
        return value
    raise bad_argument(
        DTypeError if isinstance(value, NUMBERS) else ArgumentTypeError,
        op,
        argument,
        expected="a real tensor or number",
        got=value if isinstance(value, NUMBERS) else type(value).__name__,
        mend="pass a tensor of real numbers, an int or a float",
    )


def check_operands(op: str, **given: Any) -> None:
    """Check operands (a tensor, then tensors or numbers): errors name the op that was called."""
    shape: tuple[int, ...] | None = None
    for argument, value in given.items():
        if shape is not None and isinstance(value, (*NUMBERS, np.ndarray)):
            continue
        have = check_tensor(op, argument, value).shape
        if shape is None or have == shape:
            shape = have
            continue
        try:
            shape = np.broadcast_shapes(shape, have)
        except ValueError:
            raise ShapeError(
                f"{op}(): argument '{argument}': expected a shape that broadcasts with {shape}, "
                f"got {have}; make the sizes equal or 1, counted from the last dimension"
            ) from None


def real_to_floating_operands(op: str, input: Any, other: Any) -> list[Tensor]:
    """Return a real tensor and another one, or a number, in one floating dtype."""
    if not isinstance(other, Tensor):
        check_tensor(op, "input", input)
    given = [
        real(op, x, name) if isinstance(x, Tensor) else check_number(op, name, x)
        for name, x in (("input", input), ("other", other))
    ]
    return [floating(op, x) for x in promote(op, *given)]


OPERAND = "Tensor or number"

RealToFloatingOperands = Annotated[
    Any,
    pair(
        real_to_floating_operands,
        "One a Tensor; real, of shapes that broadcast together. Integers and bools are computed "
        "in the default dtype.",
        "When an argument is complex.",
        "f",
        OPERAND,
    ),
]
