"""Checks of windows over the last dimensions, shared by the functors of conv and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_ndim
from oneflow_lite.tensor import Tensor


def check_sizes(
    op: str, argument: str, value: Any, spatial: int, minimum: int = 1
) -> tuple[int, ...]:
    """Return one int for each spatial dimension, from one int or a sequence.

    Raises
    ------
    ArgumentTypeError
        When an element is no int.
    ShapeError
        When the sequence is of the wrong length or an element is less than `minimum`.
    """
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(given) == 1:
        given *= spatial
    what = f"an int of at least {minimum}"
    if spatial > 1:
        what += f", or {spatial} of them"
    for size in given:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
            raise bad_argument(
                ArgumentTypeError,
                op,
                argument,
                expected=what,
                got=repr(value),
                mend="pass whole numbers",
            )
    if len(given) != spatial or any(size < minimum for size in given):
        raise bad_argument(
            ShapeError,
            op,
            argument,
            expected=what,
            got=repr(value),
            mend="change the number, or give one for each spatial dimension",
        )
    return tuple(int(size) for size in given)


def check_planes(op: str, input: Tensor, spatial: int) -> None:
    """Raise unless `input` holds numbers in planes (N, C, *size) or (C, *size) that are not empty.

    Raises
    ------
    ShapeError
        When there are too many or too few dimensions, or one other than the batch is empty.
    DTypeError
        When it holds bools.
    """
    check_ndim(op, input, (spatial + 1, spatial + 2))
    if 0 in input.shape[-1 - spatial :]:
        raise bad_argument(
            ShapeError,
            op,
            "input",
            expected="no size of 0 except that of the batch",
            got=f"shape {input.shape}",
            mend="pass channels that hold elements",
        )
    if input.dtype.kind == "b":
        raise bad_argument(
            DTypeError,
            op,
            "input",
            expected="numbers",
            got=input.dtype,
            mend="convert it with .float()",
        )
