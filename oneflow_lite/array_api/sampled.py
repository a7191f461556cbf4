"""NumPy's functions of samples: spaces, differences, convolutions, polynomials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite.array_api import functions as standard
from oneflow_lite.array_api.adapter import adapter, functor, through_numpy
from oneflow_lite.array_api.elementwise import meet, tensor
from oneflow_lite.array_api.functions import as_float, axes_of, cast
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.tensors.tensor import Tensor

# Spaces


def _ends(name: str, start: Any, stop: Any, num: int, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return both ends in one shape, and how much each of `num` samples has of the second."""
    start, stop = standard.broadcast_arrays(*map(as_float, meet(name, start, stop)))
    share = functor("arange")(num, dtype=start.real.dtype, device=start.device) / max(steps, 1)
    return start, stop, share.reshape(-1, *[1] * start.ndim)


@adapter("linspace")
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return numbers at equal distances along a new axis."""
    steps = num - bool(endpoint)
    start, stop, share = _ends("linspace", start, stop, num, steps)
    y = functor("movedim")(start * (1 - share) + stop * share, 0, axis)
    if dtype is not None and np.dtype(dtype).kind in "iu":
        y = functor("floor")(y)
    y = cast(y, dtype)
    return (y, (stop - start) / (steps or math.nan)) if retstep else y


@adapter("logspace")
def logspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Return powers of the base whose exponents have equal distances."""
    start, stop, base = standard.broadcast_arrays(*meet("logspace", start, stop, base))
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    return cast(functor("unsqueeze")(base, axis) ** exponents, dtype)


@adapter("geomspace")
def geomspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Return numbers whose neighbours have equal ratios."""
    start, stop, share = _ends("geomspace", start, stop, num, num - bool(endpoint))
    return cast(functor("movedim")(start * (stop / start) ** share, 0, axis), dtype)


# Differences


@adapter("gradient")
def gradient(x: Any, /, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the derivatives of samples along axes: one tensor for one axis, else a tuple."""
    x, *steps = map(as_float, meet("gradient", x, *spacing))
    axes = axes_of(x, axis)
    if len(steps) == 1 and not steps[0].ndim:
        steps *= len(axes)
    slopes = functor("gradient")(x, spacing=steps or None, dim=axes, edge_order=edge_order)
    return slopes[0] if len(axes) == 1 else slopes


@adapter("ediff1d")
def ediff1d(x: Any, /, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Return the differences of neighbours in the flattened tensor, between given entries."""
    difference = standard.diff(functor("flatten")(tensor(x)))
    parts = [part for part in (to_begin, difference, to_end) if part is not None]
    return standard.concat([functor("flatten")(part) for part in meet("cat", *parts)])


@adapter("unwrap")
def unwrap(
    x: Any, /, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Tensor:
    """Return angles with jumps of more than half a period undone."""
    x = tensor(x)
    fixed = x.detach()
    options = {"discont": discont, "axis": axis, "period": period}
    # The jumps are whole periods, which do not depend on the angles.
    return x + (through_numpy("unwrap", (fixed,), options) - fixed)


# Convolutions


def _convolved(name: str, x: Any, y: Any, mode: str) -> Tensor:
    """Return the convolution of a longer and a shorter vector."""
    total, short = len(x) + len(y) - 1, len(y)
    low, count = {
        "full": (0, total),
        "same": ((short - 1) // 2, len(x)),
        "valid": (short - 1, total - 2 * (short - 1)),
    }.get(mode, (0, 0))
    if not count:
        raise arg_error(
            name,
            "mode",
            expected="'full', 'same' or 'valid'",
            got=repr(mode),
            hint="name one of them",
            kind=ArgumentError,
        )
    kernel = functor("flip")(y, 0)[None, None]
    whole = functor("conv1d")(x[None, None], kernel, padding=short - 1)
    return functor("narrow")(whole[0, 0], 0, low, count)


@adapter("convolve")
def convolve(x: Any, y: Any, /, mode: str = "full") -> Tensor:
    """Return the convolution of two vectors."""
    x, y = map(functor("atleast_1d"), meet("convolve", x, y))
    return _convolved("convolve", *((y, x) if len(y) > len(x) else (x, y)), mode)


@adapter("correlate")
def correlate(x: Any, y: Any, /, mode: str = "valid") -> Tensor:
    """Return the sums of products of a vector and another, conjugated, that moves along it."""
    x, y = map(functor("atleast_1d"), meet("correlate", x, y))
    y = functor("conj")(y) if y.is_complex() else y
    if len(y) <= len(x):
        return _convolved("correlate", x, functor("flip")(y, 0), mode)
    return functor("flip")(_convolved("correlate", y, functor("flip")(x, 0), mode), 0)


# Polynomials


@adapter("polyval")
def polyval(p: Any, x: Any, /) -> Tensor:
    """Return the values of a polynomial, whose highest coefficient comes first."""
    coefficients, x = meet("polyval", p, x)
    y = functor("zeros_like")(x)
    for coefficient in functor("unbind")(coefficients):
        y = y * x + coefficient
    return y


@adapter("vander")
def vander(x: Any, /, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of the elements as rows, the highest first."""
    return functor("vander")(tensor(x), N, increasing)
