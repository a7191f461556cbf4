"""In-place twins, made from the out-of-place functors: compute, write, move the history."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oneflow_lite.errors import ShapeError
from oneflow_lite.functors.checks import cast, check_tensor
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.shape import expand, transfer
from oneflow_lite.functors.writes import check_target, take_view, write_result
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.scalars import scalar_tensor
from oneflow_lite.tensor import Tensor

_COPY_ = op_expr("copy_")
_FILL_ = op_expr("fill_")

TWINS = """
    abs acos acosh add addcdiv addcmul addmm asin asinh atan atan2 atanh baddbmm bitwise_and
    bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min cos cosh cumprod cumsum div elu
    erf erfc exp exp2 expm1 floor floor_divide fmod frac hardsigmoid hardswish hardtanh hypot
    index_add index_fill leaky_relu lerp log log10 log1p log2 masked_fill masked_scatter mish
    mul nan_to_num neg pow reciprocal relu relu6 remainder round rsqrt scatter scatter_add
    selu sgn sigmoid sign silu sin sinc sinh sqrt square sub tan tanh threshold tril triu trunc
    xlogy
""".split()


def make_inplace(name: str) -> Callable[..., Tensor]:
    """Make `name_` from the functor `name`: it writes its result into its first argument."""
    doc = f"Write the result of `{name}` into the tensor, and return the tensor."
    return _register_twin(name, write_result, doc)


def make_reshaping(name: str) -> Callable[..., Tensor]:
    """Make `name_` from the functor `name`, a view: it changes the tensor's own shape."""
    doc = f"Do what `{name}` does to the tensor itself: same memory, another shape."
    return _register_twin(name, take_view, doc)


def _register_twin(name: str, run: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    functor = FUNCTORS.get(name)
    own_name = f"{name}_"
    if own_name in FUNCTORS:
        return FUNCTORS.get(own_name)

    @functools.wraps(functor)
    def twin(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return run(own_name, functor, input, args, kwargs)

    twin.__name__ = twin.__qualname__ = own_name
    twin.__doc__ = doc
    return register_functor(own_name)(twin)


@register_functor("copy_")
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write `src`, broadcast and converted, into the tensor, and return the tensor."""
    check_tensor("copy_", "input", input)
    if not isinstance(src, Tensor):
        return fill_(input, src)
    value = expand(cast(transfer(src, input.device), input.dtype), input.shape)
    return dispatch(_COPY_, (input, value))


@register_functor("fill_")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one number, or a 0-d tensor, into every element, and return the tensor."""
    return _fill("fill_", input, value)


def _fill(op: str, input: Tensor, value: Any) -> Tensor:
    check_tensor(op, "input", input)
    check_target(op, input)
    if not isinstance(value, Tensor):
        number = fill_value(op, "value", value, input.dtype)
        value = scalar_tensor(number, input.dtype, input.device)
    elif value.ndim:
        raise ShapeError(
            f"{op}(): argument 'value': expected a number or a 0-d tensor, got shape "
            f"{value.shape}; use copy_() for tensors"
        )
    return dispatch(_FILL_, (input, cast(value, input.dtype)))


@register_functor("zero_")
def zero_(input: Tensor) -> Tensor:
    """Write zeros into the tensor, and return the tensor."""
    return _fill("zero_", input, 0)


for _name in ("t", "transpose", "squeeze", "unsqueeze"):
    make_reshaping(_name)
