"""The text of a tensor's repr, laid out as PyTorch lays it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LINE_WIDTH = 80
EDGE_ITEMS = 3  # shown at both ends of a dimension that is shortened
THRESHOLD = 1000  # more elements than this are shortened


def _real_format(values: Array) -> Callable[[Any], str]:
    """Choose whole numbers, four decimals or scientific notation by the values to print.

    Zeros, infinities and NaN decide neither the notation nor the width of a column.
    """
    deciding = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    sizes = np.abs(deciding)
    low, high = (sizes.min(), sizes.max()) if sizes.size else (1.0, 1.0)
    whole = bool((deciding == np.round(deciding)).all())
    if high / low > 1000 or high > 1e8 or (low < 1e-4 and not whole):

        def text(value: Any) -> str:
            return f"{value:.4e}"
    elif whole:

        def text(value: Any) -> str:
            return f"{value:.0f}." if np.isfinite(value) else f"{value}"
    else:

        def text(value: Any) -> str:
            return f"{value:.4f}"

    width = max([len(text(value)) for value in deciding], default=1)
    return lambda value: text(value).rjust(width)


def _element_format(values: Array) -> Callable[[Any], str]:
    if values.dtype.kind == "f":
        return _real_format(values)
    if values.dtype.kind == "c":
        real, imag = _real_format(values.real), _real_format(values.imag)

        def both(value: Any) -> str:
            second = imag(value.imag).lstrip()
            return f"{real(value.real)}{'' if second.startswith('-') else '+'}{second}j"

        return both
    width = max([len(str(value)) for value in values], default=0)
    return lambda value: str(value).rjust(width)


def _shown(array: Array, shorten: bool) -> Iterator[Any]:
    """Yield the entries of the first dimension that are printed, with None for the gap."""
    if not shorten or len(array) <= 2 * EDGE_ITEMS:
        yield from array
        return
    yield from array[:EDGE_ITEMS]
    yield None
    yield from array[-EDGE_ITEMS:]


def _lines(array: Array, indent: int, shorten: bool, one: Callable[[Any], str]) -> str:
    if array.ndim == 0:
        return one(array[()])
    if array.ndim > 1:
        parts = [
            "..." if row is None else _lines(row, indent + 1, shorten, one)
            for row in _shown(array, shorten)
        ]
        gap = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
        return "[" + gap.join(parts) + "]"
    parts = [" ..." if value is None else one(value) for value in _shown(array, shorten)]
    per_line = max(1, (LINE_WIDTH - indent) // (max(map(len, parts), default=0) + 2))
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def array_text(array: Array, prefix: str = "") -> str:
    """Return nested brackets with aligned columns; long arrays are shortened."""
    if not array.size:
        return "[]"
    shorten = array.size > THRESHOLD
    seen = array
    if shorten:
        for axis, size in enumerate(array.shape):
            if size > 2 * EDGE_ITEMS:
                ends = [*range(EDGE_ITEMS), *range(size - EDGE_ITEMS, size)]
                seen = np.take(seen, ends, axis=axis)
    return _lines(array, len(prefix), shorten, _element_format(seen.reshape(-1)))


def tensor_text(array: Array, facts: list[str]) -> str:
    """Return `tensor(...)` around an array, followed by the facts that its text does not show."""
    prefix = "tensor("
    text = prefix + array_text(array, prefix)
    length = len(text) - text.rfind("\n") - 1
    for fact in facts:
        if length + len(fact) + 3 > LINE_WIDTH:
            text += ",\n" + " " * len(prefix) + fact
            length = len(prefix) + len(fact)
        else:
            text += ", " + fact
            length += len(fact) + 2
    return text + ")"
