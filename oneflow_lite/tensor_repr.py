"""The text of an array in a tensor's repr, laid out as PyTorch lays it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _float_format(values: np.ndarray[Any, Any]) -> Callable[[Any], str]:
    """Choose whole numbers, four decimals or scientific notation by the values to print."""
    finite = values[np.isfinite(values)].astype(np.float64)
    nonzero = np.abs(finite[finite != 0])
    if nonzero.size == 0 or bool((finite == np.round(finite)).all()):
        scientific = nonzero.size > 0 and bool(nonzero.max() > 1e8)
        plain: Callable[[Any], str] = lambda v: f"{v:.0f}." if np.isfinite(v) else f"{v}"  # noqa: E731
    else:
        low, high = float(nonzero.min()), float(nonzero.max())
        scientific = high / low > 1000.0 or high > 1e8 or low < 1e-4
        plain = lambda v: f"{v:.4f}"  # noqa: E731
    return (lambda v: f"{v:.4e}") if scientific else plain


def array_text(array: np.ndarray[Any, Any], prefix: str = "") -> str:
    """Return nested brackets with aligned columns; long arrays are shortened."""
    edge = 3
    shown = array
    if array.size > 1000:
        for axis, size in enumerate(array.shape):
            if size > 2 * edge:
                keep = np.r_[0:edge, size - edge : size]
                shown = np.take(shown, keep, axis=axis)
    if array.dtype.kind == "f":
        one = _float_format(shown.ravel())
    elif array.dtype.kind == "c":
        real, imag = _float_format(shown.real.ravel()), _float_format(shown.imag.ravel())

        def one(v: Any) -> str:
            sign = "-" if np.signbit(v.imag) else "+"
            return f"{real(v.real)}{sign}{imag(abs(v.imag))}j"
    else:
        one = str
    width = max((len(one(v)) for v in shown.ravel()), default=0)
    if array.ndim == 0:
        return one(array[()])
    return np.array2string(
        array,
        separator=", ",
        prefix=prefix,
        threshold=1000,
        edgeitems=edge,
        max_line_width=80,
        formatter={"all": lambda v: one(v).rjust(width)},
    )
