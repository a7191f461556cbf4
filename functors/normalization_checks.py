"""Checks of what the functors of normalization are given, and domains of them."""

from __future__ import annotations

from typing import Annotated, Any

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DimError, DTypeError
from oneflow_lite.functors.checks import cast, check_int, check_tensor, real_floating, wrong
from oneflow_lite.functors.domains import Domain, tensor
from oneflow_lite.tensor import Tensor


def check_last_dims(op: str, input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    """Return the dimensions that `normalized_shape` names by their sizes."""
    name = "normalized_shape"
    if not isinstance(normalized_shape, (tuple, list)):
        mend = "write the sizes as a tuple, such as (8,)"
        raise wrong(op, name, "a tuple of ints", repr(normalized_shape), mend, ArgumentTypeError)
    sizes = tuple([check_int(op, name, size) for size in normalized_shape])
    first = input.ndim - len(sizes)
    if not sizes or first < 0 or input.shape[first:] != sizes:
        expected = f"the last sizes of the input, shape {input.shape}, at least one"
        mend = "give the sizes of the last dimensions"
        raise wrong(op, name, expected, tuple(normalized_shape), mend)
    return tuple(range(first, input.ndim))


def with_channels(op: str, input: Tensor, argument: str = "input") -> Tensor:
    """Return a real floating input (N, C, *)."""
    if real_floating(op, input, argument).ndim >= 2:
        return input
    mend = "add the dimension of the batch with unsqueeze(0)"
    raise wrong(op, argument, "at least 2 dimensions, (N, C, *)", input, mend, DimError)


def check_parameter(
    op: str, name: str, value: Any, shape: tuple[int, ...], input: Tensor, widen: bool = False
) -> Tensor:
    """Check the shape of what scales or shifts the input, and bring it to the input's dtype.

    Next to halves it may be float32, as in PyTorch; with `widen` it stays so.
    """
    if check_tensor(op, name, value).shape != shape:
        raise wrong(op, name, f"shape {shape}", value, "match the input's sizes")
    if value.dtype == input.dtype:
        return value
    if (input.dtype.char, value.dtype.char) != ("e", "f"):
        expected = f"dtype {input.dtype}, that of the input"
        mend = "convert one of them with .to(dtype)"
        raise wrong(op, name, expected, value.dtype, mend, DTypeError)
    return value if widen else cast(value, input.dtype)


def check_more_than_one(op: str, input: Tensor, count: int) -> None:
    """Raise `ArgumentError` when there is one value only: it has no spread."""
    if count == 1:
        expected = "more than one value to normalize over"
        mend = "pass a larger batch, or use the running statistics"
        raise wrong(op, "input", expected, input, mend, ArgumentError)


def _parameter(shape: str, says: str, widen: bool = False) -> Domain:
    return Domain(
        says,
        f"{{x}} = check_parameter(NAME, '{{x}}', {{x}}, {shape}, {{first}}, {widen})",
        raises={"DTypeError": "When the dtypes differ.", "ShapeError": "When a shape differs."},
        uses=(check_parameter,),
        tensor="one",
    )


Channels = Annotated[
    Tensor,
    tensor(
        with_channels,
        "",
        "(N, C, *), real floating.",
        DimError="When {x} has fewer than two dimensions.",
        DTypeError="When {x} is not real floating.",
    ),
]
NormalizedShape = Annotated[  # handed on as the dimensions themselves
    Any,
    Domain(
        "The sizes of the last dimensions, which are normalized over.",
        "{x} = check_last_dims(NAME, {first}, {x})",
        raises={"ShapeError": "When {x} is not how the input's shape ends."},
        uses=(check_last_dims,),
        type="sequence of int",
    ),
]
PerChannel = Annotated[Tensor, _parameter("{first}._data.shape[1:2]", "(C,)")]
Statistic = Annotated[Tensor, _parameter("{first}._data.shape[1:2]", "(C,)", widen=True)]
PerElement = Annotated[  # after a NormalizedShape
    Tensor,
    _parameter(
        "{first}._data.shape[normalized_shape[0] :]", "Of the sizes that are normalized over."
    ),
]
