"""The text of a tensor's repr, laid out as PyTorch lays it out."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.meta_arrays import MetaArray
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import ArgumentError, arg_error

Array = np.ndarray[Any, Any]
_DEFAULTS: dict[str, Any] = {
    "precision": 4,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 80,
    "sci_mode": None,
}
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "short": {"precision": 2, "edgeitems": 2},
    "full": {"threshold": math.inf},
}
_options = dict(_DEFAULTS)


@guarded
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Parameters
    ----------
    precision : int, optional
        Digits behind the point (4 at first).
    threshold : int, optional
        More elements than this are shortened (1000).
    edgeitems : int, optional
        Number of elements shown at both ends of a shortened dimension (3).
    linewidth : int, optional
        Characters in a line (80).
    profile : {"default", "short", "full"}, optional
        Values for all of these; an argument that is given as well overrides the profile.
    sci_mode : bool, optional
        Whether numbers are written as 1.0000e+00; None decides by the numbers.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.set_printoptions(precision=2)
    >>> flow.tensor([0.12345])
    tensor([0.12])
    >>> flow.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise arg_error(
                "set_printoptions",
                "profile",
                expected="one of " + ", ".join(map(repr, _PROFILES)),
                got=repr(profile),
                hint="name one of these",
                kind=ArgumentError,
            )
        _options.update({**_DEFAULTS, **_PROFILES[profile]})
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the options of `set_printoptions`."""
    return dict(_options)


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Print tensors with other options in a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


Format = tuple[Callable[[Any], str], int]  # of an element, and its width


def _real_format(values: Array) -> Format:
    """Choose whole numbers, four decimals or scientific notation by the values to print.

    Zeros, infinities and NaN decide neither the notation nor the width of a column.
    """
    # In float64, as the differences of float16 would round.
    deciding = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    sizes = np.abs(deciding)
    low, high = (sizes.min(), sizes.max()) if sizes.size else (1.0, 1.0)
    whole = bool((deciding == np.round(deciding)).all())
    digits, scientific = _options["precision"], _options["sci_mode"]
    if scientific is None:
        scientific = high / low > 1000 or high > 1e8 or (low < 1e-4 and not whole)
    if scientific and sizes.size:

        def text(value: Any) -> str:
            return f"{value:.{digits}e}"
    elif whole:

        def text(value: Any) -> str:
            return f"{value:.0f}." if np.isfinite(value) else f"{value}"
    else:

        def text(value: Any) -> str:
            return f"{value:.{digits}f}"

    width = max([len(text(value)) for value in deciding], default=1)
    return lambda value: text(value).rjust(width), width


def _element_format(values: Array) -> Format:
    if values.dtype.kind == "f":
        return _real_format(values)
    if values.dtype.kind == "c":
        (real, first), (imag, other) = _real_format(values.real), _real_format(values.imag)

        def both(value: Any) -> str:
            second = imag(value.imag).lstrip()
            return f"{real(value.real)}{'' if second.startswith('-') else '+'}{second}j"

        return both, first + other + 1
    width = max([len(str(value)) for value in values], default=0)
    return lambda value: str(value).rjust(width), width


def cut(array: Any) -> tuple[Any, tuple[bool, ...]]:
    """Return the printed part of an array, and for each dimension whether its middle is cut.

    The cut is made where the array lies: of a long array on a device only the ends are copied to
    the host.
    """
    ends = _options["edgeitems"]
    shortened = array.size > _options["threshold"]
    gaps = tuple([shortened and size > 2 * ends for size in array.shape])
    for axis, gap in enumerate(gaps):
        if gap:
            array = array.take([*range(ends), *range(-ends, 0)], axis=axis)
    return array, gaps


def _lines(array: Array, indent: int, gaps: tuple[bool, ...], form: Format) -> str:
    text, width = form
    if array.ndim == 0:
        return text(array[()])
    if array.ndim > 1:
        parts = [_lines(row, indent + 1, gaps[1:], form) for row in array]
        between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    else:
        parts = [text(value) for value in array]
    if gaps[0]:
        middle = len(parts) // 2  # `cut` left as many before the gap as behind it
        parts[middle:middle] = ["..." if array.ndim > 1 else " ..."]
    if array.ndim > 1:
        return "[" + between.join(parts) + "]"
    per_line = max(1, (_options["linewidth"] - indent) // (width + 2))
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def array_text(array: Any, prefix: str = "") -> str:
    """Return nested brackets with aligned columns; long arrays are shortened."""
    if isinstance(array, MetaArray):
        return "..."
    if not array.size:
        return "[]"
    seen, gaps = cut(array)
    seen = adopted(seen if isinstance(seen, np.ndarray) else seen.get())
    return _lines(seen, len(prefix), gaps, _element_format(seen.reshape(-1)))


def tensor_text(array: Any, facts: list[str]) -> str:
    """Return `tensor(...)` around an array, followed by the facts that its text does not show."""
    prefix = "tensor("
    text = prefix + array_text(array, prefix)
    length = len(text) - text.rfind("\n") - 1
    for fact in facts:
        if length + len(fact) + 3 > _options["linewidth"]:
            text += ",\n" + " " * len(prefix) + fact
            length = len(prefix) + len(fact)
        else:
            text += ", " + fact
            length += len(fact) + 2
    return text + ")"
