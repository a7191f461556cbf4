"""`np.pad`: its modes copy elements, continue them linearly, or take a statistic of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from oneflow_lite.array_api.adapter import ADAPTERS, adapter, functor, through_numpy
from oneflow_lite.array_api.elementwise import tensor
from oneflow_lite.array_api.functions import asarray
from oneflow_lite.array_api.places import moved
from oneflow_lite.tensors.tensor import Tensor

STATISTICS = {"maximum": "max", "mean": "mean", "median": "median", "minimum": "min"}


# The functor's modes, for borders smaller than the tensor.
QUICK = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}


@adapter("pad")
def pad(x: Any, pad_width: Any, /, mode: Any = "constant", **options: Any) -> Tensor:
    """Return the tensor with entries added at both ends of its axes."""
    x = tensor(x)
    one = np.ones((1,) * x.ndim, np.complex128 if x.is_complex() else np.float64)
    frame = np.pad(one, pad_width)
    places = zip(np.argwhere(frame)[0].tolist(), frame.shape, strict=True)
    widths = [(before, size - before - 1) for before, size in places]
    small = all([max(pair) < size for pair, size in zip(widths, x.shape, strict=True)])
    fill = options.get("constant_values", 0)
    number = isinstance(fill, (int, float)) and x.dtype.kind in "fc"
    if (mode in QUICK and small and not options) or (
        mode == "constant" and number and set(options) <= {"constant_values"}
    ):
        flat = [width for pair in reversed(widths) for width in pair]
        return functor("pad")(x, flat, QUICK[mode], fill or None)
    if mode == "constant" or (mode == "empty" and not options):
        options.pop("constant_values", None)

        def filled(x: Any, fill: Any) -> Any:
            return np.pad(x, pad_width, constant_values=fill, **options)

        return moved(filled, x, fill, dtype=x.dtype)
    linear = mode == "linear_ramp" or options.get("reflect_type") == "odd"
    if not callable(mode) and not linear and mode not in STATISTICS:
        return moved(lambda places: np.pad(places, pad_width, mode, **options), x)
    if callable(mode) or x.dtype.kind not in "fc":  # NumPy rounds integers
        return through_numpy("pad", (x, pad_width, mode), options)
    np.pad(one, pad_width, mode, **options)  # checks the arguments
    for axis, pair in enumerate(widths):
        own = {
            name: value if name == "reflect_type" else np.broadcast_to(value, (x.ndim, 2))[axis]
            for name, value in options.items()
        }
        ends = (_lines if linear else _statistics)(x, axis, pair, mode, **own)
        low, high = [
            functor("broadcast_to")(end, (*x.shape[:axis], width, *x.shape[axis + 1 :]))
            for end, width in zip(ends, pair, strict=True)
        ]
        x = functor("cat")([low, x, high], axis)
    return x


def _statistics(
    x: Tensor, axis: int, widths: tuple[int, int], mode: Any, stat_length: Any = (None, None)
) -> Iterator[Tensor]:
    """Yield a statistic of the first entries of an axis, and of the last."""
    size = x.shape[axis]
    for length, last in zip(stat_length, (False, True), strict=True):
        count = size if length is None else min(int(length), size)
        part = functor("narrow")(x, axis, size - count if last else 0, count)
        yield ADAPTERS[STATISTICS[mode]](part, axis=axis, keepdims=True)


def _lines(
    x: Tensor, axis: int, widths: tuple[int, int], mode: Any, **options: Any
) -> Iterator[Tensor]:
    """Yield the continuation of an axis at its two ends.

    Each entry is a constant, and shares of the first, of the last and of a third entry of the axis.
    NumPy's results for a few vectors tell the shares.
    """
    size = x.shape[axis]
    line = functools.partial(np.pad, pad_width=widths, mode=mode, **options)
    number = np.arange(size)
    wide = np.complex128 if x.is_complex() else np.float64
    constant = line(np.zeros(size, wide))
    first, last = [line((number == k).astype(wide)) - constant for k in (0, size - 1)]
    third = line(np.ones(size, wide)) - constant - first - last
    place = np.pad(number, widths, "edge" if mode == "linear_ramp" else mode)

    def along(shares: Any) -> Tensor:
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        return asarray(shares.reshape(shape), x.dtype, device=x.device)

    for end in (slice(widths[0]), slice(widths[0] + size, None)):
        y = along(constant[end])
        for share, places in ((first, 0 * place), (last, 0 * place + size - 1), (third, place)):
            if share[end].any():  # an infinity has no part where its share is 0
                index = asarray(places[end], device=x.device)
                y = y + along(share[end]) * functor("index_select")(x, axis, index)
        yield y
