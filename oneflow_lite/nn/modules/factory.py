"""The common part of layers with parameters, which makes, draws and shows the parameters."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.arrays.device import as_device, on_device
from oneflow_lite.arrays.dtype import as_dtype, default_float
from oneflow_lite.errors import ArgumentError, arg_error, memory_for
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.nn import init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.tensor import Tensor, make_constant

_MOST_LAYERS = 2**16


class Weighted(Module):
    """A layer that can say the shapes of its tensors, so that its lazy twin can make them later."""

    weight: Any  # a Parameter, or None where the layer goes without
    bias: Any

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of weight and bias, and of buffers."""
        return {}

    def _make(self, device: Any, dtype: Any, **wanted: Any) -> None:
        """Register parameters, as None where they are not wanted, and draw their values."""
        shapes = self._shapes()
        for name, yes in wanted.items():
            made = self._parameter(shapes[name], device, dtype) if yes else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def _parameter(self, shape: tuple[int, ...], device: Any, dtype: Any) -> Parameter:
        return parameter(shape, device, dtype)

    def _buffer(self, shape: tuple[int, ...], device: Any, dtype: Any) -> Tensor:
        return filled(shape, 0.0, device, dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniformly within 1/sqrt(fan_in)."""
        # a = sqrt(5) makes the gain sqrt(1/3), so that the bound is 1/sqrt(fan_in) here, too.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def _told(self, positional: str, always: str = "", **defaults: Any) -> str:
        """Return attributes as text: values, `name=value` for `always`, and changed `defaults`."""
        always += "".join([f" {n}" for n, value in defaults.items() if self._value(n) != value])
        parts = [str(self._value(name)) for name in positional.split()]
        return ", ".join(parts + [f"{name}={self._value(name)}" for name in always.split()])

    def _value(self, name: str) -> Any:
        value = getattr(self, name)
        return value is not None if name == "bias" else value


def check_layers(op: str, num_layers: Any, minimum: int = 0) -> int:
    """Return a number of layers; each is an object, so that billions would be made for hours."""
    count = check_int(op, "num_layers", num_layers, minimum)
    if count <= _MOST_LAYERS:
        return count
    expected = f"at most {_MOST_LAYERS} layers"
    raise arg_error(op, "num_layers", expected, count, "take fewer", ArgumentError)


def filled(shape: tuple[int, ...], value: float, device: Any = None, dtype: Any = None) -> Tensor:
    """Return a tensor filled with a value, by default of the default floating point dtype."""
    chosen = default_float() if dtype is None else as_dtype("nn.Module", dtype)
    with memory_for("nn.Module", shape=shape), on_device(as_device(device)) as xp:
        # The system gives out zeros when memory is first touched.
        array = xp.full(shape, value, dtype=chosen) if value else xp.zeros(shape, dtype=chosen)
        return make_constant(array)


def parameter(
    shape: tuple[int, ...], device: Any = None, dtype: Any = None, value: float = 0.0
) -> Parameter:
    """Return a parameter filled with a value, to be initialised by the module."""
    return Parameter(filled(shape, value, device, dtype))


def sizes(op: str, argument: str, value: Any, count: int, minimum: int) -> tuple[int, ...]:
    """Return an int, repeated, or a sequence of `count` ints as a tuple of at least `minimum`.

    A sequence of one int is repeated, too, as the functionals do.
    """
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    given = given * count if len(given) == 1 else given
    if len(given) != count:
        raise arg_error(
            op,
            argument,
            expected=f"an int or {count} ints",
            got=value,
            hint="give one for each dimension",
            kind=ArgumentError,
        )
    return tuple(check_int(op, argument, size, minimum) for size in given)
