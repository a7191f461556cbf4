"""Checks of what the functors of normalization are given."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.functors.checks import check_int, check_tensor
from oneflow_lite.functors.elementwise_checks import real_floating
from oneflow_lite.functors.shape import cast
from oneflow_lite.tensor import Tensor


def check_last_dims(op: str, input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    """Return the dimensions that `normalized_shape` names by their sizes."""
    real_floating(op, input)
    if not isinstance(normalized_shape, (tuple, list)):
        raise bad_argument(
            ArgumentTypeError,
            op,
            "normalized_shape",
            expected="a tuple of ints",
            got=repr(normalized_shape),
            mend="write the sizes as a tuple, such as (8,)",
        )
    sizes = tuple([check_int(op, "normalized_shape", size) for size in normalized_shape])
    first = input.ndim - len(sizes)
    if not sizes or first < 0 or input.shape[first:] != sizes:
        raise bad_argument(
            ShapeError,
            op,
            "normalized_shape",
            expected=f"the last sizes of the input, shape {input.shape}, at least one",
            got=tuple(normalized_shape),
            mend="give the sizes of the last dimensions",
        )
    return tuple(range(first, input.ndim))


def check_channels(op: str, input: Tensor) -> tuple[int]:
    """Return (C,) of an input (N, C, *)."""
    if real_floating(op, input).ndim < 2:
        raise bad_argument(
            DimError,
            op,
            "input",
            expected="at least 2 dimensions, (N, C, *)",
            got=f"shape {input.shape}",
            mend="add the dimension of the batch with unsqueeze(0)",
        )
    return (input.shape[1],)


def check_parameter(
    op: str,
    name: str,
    value: Tensor | None,
    shape: tuple[int, ...],
    input: Tensor,
    widen: bool = False,
) -> Tensor | None:
    """Check the shape of what scales or shifts the input, and bring it to the input's dtype.

    Next to halves it may be float32, as in PyTorch; with `widen` it stays so.
    """
    if value is None:
        return None
    if check_tensor(op, name, value).shape != shape:
        raise bad_argument(
            ShapeError,
            op,
            name,
            expected=f"shape {shape}",
            got=f"shape {value.shape}",
            mend="match the input's sizes",
        )
    if value.dtype == input.dtype:
        return value
    if (input.dtype.char, value.dtype.char) != ("e", "f"):
        raise bad_argument(
            DTypeError,
            op,
            name,
            expected=f"dtype {input.dtype}, that of the input",
            got=value.dtype,
            mend="convert one of them with .to(dtype)",
        )
    return value if widen else cast(value, input.dtype)


def check_more_than_one(op: str, input: Tensor, count: int) -> None:
    """Raise `ArgumentError` when there is one value only: it has no spread."""
    if count == 1:
        raise bad_argument(
            ArgumentError,
            op,
            "input",
            expected="more than one value to normalize over",
            got=f"shape {input.shape}",
            mend="pass a larger batch, or use the running statistics",
        )
