"""Memory formats: accepted wherever PyTorch takes them, and without effect.

An array lies in memory as NumPy or CuPy made it. A format changes no value and no shape in PyTorch
either, only strides and speed.
"""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentTypeError, arg_error


class memory_format:
    """The name of a layout."""

    def __init__(self, name: str, order: tuple[int, ...] = ()) -> None:
        self.name = name
        self.order = order  # of the dimensions, from the largest stride to the smallest

    def __repr__(self) -> str:
        return f"oneflow_lite.{self.name}"


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last", (0, 2, 3, 1))
channels_last_3d = memory_format("channels_last_3d", (0, 2, 3, 4, 1))


def check_memory_format(op: str, value: Any, argument: str = "memory_format") -> Any:
    """Return a memory format, or None; raise for anything else."""
    if value is None or isinstance(value, memory_format):
        return value
    raise arg_error(
        op,
        argument,
        expected="a memory format",
        got=repr(value),
        hint="pass flow.contiguous_format, or leave it out",
        kind=ArgumentTypeError,
    )


def lies_in(array: Any, wanted: memory_format) -> bool:
    """Return whether an array's elements lie in a format without gaps."""
    if not wanted.order:
        return bool(array.flags.c_contiguous)
    if array.ndim != len(wanted.order):
        return False
    return bool(array.transpose(wanted.order).flags.c_contiguous)
