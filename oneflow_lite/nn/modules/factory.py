"""How a module makes the tensors it is built with, and checks the sizes it is given."""

from __future__ import annotations

from typing import Any

from oneflow_lite.device import as_device, on_device
from oneflow_lite.dtype import as_dtype, default_float
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_int
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor, make_constant


def filled(shape: tuple[int, ...], value: float, device: Any = None, dtype: Any = None) -> Tensor:
    """Return a tensor of one value; the default dtype is the default floating point one."""
    chosen = default_float() if dtype is None else as_dtype("nn.Module", dtype)
    with on_device(as_device(device)) as xp:
        return make_constant(xp.full(shape, value, dtype=chosen))


def parameter(
    shape: tuple[int, ...], device: Any = None, dtype: Any = None, value: float = 0.0
) -> Parameter:
    """Return a parameter of one value, to be initialised by the module."""
    return Parameter(filled(shape, value, device, dtype))


def sizes(op: str, argument: str, value: Any, count: int, minimum: int) -> tuple[int, ...]:
    """Return an int, repeated, or a sequence of `count` ints as a tuple of at least `minimum`."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    if len(given) != count:
        raise bad_argument(
            ArgumentError,
            op,
            argument,
            expected=f"an int or {count} ints",
            got=value,
            mend="give one for each dimension",
        )
    return tuple(check_int(op, argument, size, minimum) for size in given)
