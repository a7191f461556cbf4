"""The contents of tensors in the document: a line of text, and images of the larger ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype_object import CHAR
from oneflow_lite.explore.document import Number, Value
from oneflow_lite.transforms.levels import LevelArray

SIDE = 64  # most rows and columns of an image
SMALL_SIDE = 8  # the same, once the room for images is used up
ROOM = 1 << 18  # numbers in all images
_WIDTH = 120  # characters of the text
_WHOLE, _EDGE = 32, 3  # most elements shown whole; of a longer dimension, elements at each end
_FILTER = 11  # most rows and columns of a filter
_COPIED = 1 << 24  # bytes from which an array on a device is not copied


class Values:
    """Describes arrays, while there is room: later images of one document are smaller.

    Parameters
    ----------
    shown : bool
        Whether values are in the document at all.
    """

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._room = ROOM

    def of(self, array: Any) -> Value | None:
        """Return the contents of an array; None where values are left out or not known yet."""
        plain = _on_host(array) if self.shown else None
        if plain is None:
            return None
        value = Value(text=_text(plain))
        if plain.dtype.kind in "fc" and np.isnan(plain).any():
            value["nan"] = True
        side = SIDE if self._room > 0 else SMALL_SIDE
        image = _pictured(plain, side)
        if image is not None:
            value["rows"], value["low"], value["high"] = image
            self._room -= len(value["rows"]) * len(value["rows"][0])
        return value

    def text(self, array: Any) -> str:
        """Return the contents of an array as text; "" where there are none."""
        plain = _on_host(array) if self.shown else None
        return "" if plain is None else _text(plain)


def _on_host(array: Any) -> Any:
    """Return an array of NumPy's own numbers; None for an array without values."""
    if getattr(array, "is_symbolic", False):
        return None  # a variable of a Program
    while isinstance(array, LevelArray):  # under vmap the whole batch, in a series its value
        array = array.parts[0]._data
    if isinstance(array, np.ndarray):
        return array if array.dtype.char != CHAR else np.asarray(array, np.float32)
    if not hasattr(array, "get") or getattr(array, "nbytes", _COPIED) >= _COPIED:
        return None
    return array.get()


def _text(array: Any) -> str:
    text = _said(array.tolist() if array.size <= _WHOLE else _edges(array))
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 4]} ..."


def _edges(array: Any) -> Any:
    """Return nested lists of the elements at both ends of each dimension."""
    if array.ndim == 0:
        return array.item()
    if len(array) <= 2 * _EDGE:
        return [_edges(row) for row in array]
    first, last = [[_edges(row) for row in part] for part in (array[:_EDGE], array[-_EDGE:])]
    return [*first, "...", *last]


def _said(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_said, value))}]"
    return f"{value:.4g}" if isinstance(value, (float, complex)) else str(value)


Image = tuple[list[list[Number | None]], float, float]


def _pictured(array: Any, side: int) -> Image | None:
    """Return the image of a matrix, a long vector or filters; None for another array."""
    if array.dtype.kind not in "biufc":
        return None
    if array.ndim == 2 and min(array.shape) >= 2:
        return _image(array, side)
    if array.ndim == 1 and array.size > _WHOLE:
        return _image(array[None], side)
    if array.ndim != 4 or not 2 <= min(array.shape[2:]) <= max(array.shape[2:]) <= _FILTER:
        return None
    height, width = array.shape[2:]
    few = array[: (side + 1) // (height + 1), : (side + 1) // (width + 1)]
    if not few.size:
        return None
    _, low, high = _image(array.reshape(-1, width), side)
    rows: list[list[Number | None]] = []
    for filters in few:  # of one output channel, beside each other
        lines: list[list[Number | None]] = [[] for _ in range(height)]
        for one in filters:
            for line, row in zip(lines, _image(one, side)[0], strict=True):
                line += [*([None] if line else []), *row]
        if rows:
            rows.append([None] * len(lines[0]))
        rows += lines
    return rows, low, high


def _image(array: Any, side: int) -> Image:
    """Return at most `side` rows and columns, and the least and greatest number of all."""
    if array.dtype.kind == "c":
        array = np.abs(array)
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    rows, columns = (max(1, -(-n // side)) for n in array.shape)
    thin = array[::rows, ::columns].astype(np.float64)
    most = max(abs(low), abs(high))
    if most > 0:
        thin = np.round(thin, int(np.clip(3 - np.floor(np.log10(most)), -300, 300)))
    bad = not np.isfinite(thin).all()
    return [list(map(number, row)) if bad else row for row in thin.tolist()], low, high


def number(value: float) -> Number:
    """Return a number as JSON may hold it."""
    return value if np.isfinite(value) else str(value)
