"""Operands that may be tensors or numbers: their checks, and the domains that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_number, check_tensor, floating, real
from oneflow_lite.functors.declaring.domains import Domain, pair
from oneflow_lite.interpreter.dispatch import promote
from oneflow_lite.tensors.tensor import Tensor, make_tensor

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
    if isinstance(value, (Tensor, np.ndarray)):
        return real(op, value if isinstance(value, Tensor) else make_tensor(value), argument)
    if isinstance(value, REAL_NUMBERS):
        return value
    expected, hint = "a real tensor or number", "pass a tensor of real numbers, an int or a float"
    if isinstance(value, NUMBERS):
        raise arg_error(op, argument, expected, value, hint, DTypeError)
    raise arg_error(op, argument, expected, type(value).__name__, hint, ArgumentTypeError)


def check_operands(op: str, **given: Any) -> None:
    """Check operands (a tensor, then tensors or numbers): errors name the op that was called."""
    shape: tuple[int, ...] | None = None
    for argument, value in given.items():
        if isinstance(value, Tensor):
            have = value._data.shape
        elif shape is not None and isinstance(value, (*NUMBERS, np.ndarray)):
            continue
        else:
            have = check_tensor(op, argument, value).shape
        if shape is None or have == shape:
            shape = have
            continue
        try:
            shape = np.broadcast_shapes(shape, have)
        except ValueError:
            expected = f"a shape that broadcasts with {shape}"
            hint = "make the sizes equal or 1, counted from the last dimension"
            raise arg_error(op, argument, expected, have, hint) from None


def real_to_floating_operands(op: str, input: Any, other: Any) -> list[Tensor]:
    """Return two real operands, of which one may be a number, in a common floating dtype."""
    if not isinstance(other, Tensor):
        check_tensor(op, "input", input)
    given = [
        real(op, x, name) if isinstance(x, Tensor) else check_number(op, name, x)
        for name, x in (("input", input), ("other", other))
    ]
    return [floating(op, x) for x in promote(op, *given)]


def mixed_pair(meet: Callable[..., Any], says: str, when: str, kinds: str, **more: Any) -> Domain:
    """Return the domain of two operands, one of which may be a number; see `pair`."""
    says = f"{says}; of shapes that broadcast together."
    return pair(meet, says, when, kinds, "Tensor or number", **more)


_SAYS = "One a Tensor; real, integers and bools are computed in the default dtype"
_WHEN = "When an argument is complex."
RealToFloatingOperands = Annotated[Any, mixed_pair(real_to_floating_operands, _SAYS, _WHEN, "f")]
