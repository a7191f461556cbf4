"""Tensors made from a formula: windows, and the frequencies of Fourier transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from oneflow_lite.dtype import as_dtype, default_float
from oneflow_lite.errors import DTypeError, bad_argument
from oneflow_lite.functors import domains as D
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.decompositions import flag
from oneflow_lite.functors.out import fill_out, out_options
from oneflow_lite.tensor import Tensor, make_constant


def from_host(
    op: str,
    values: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool = False,
    out: Tensor | None = None,
    kinds: str = "f",
) -> Tensor:
    """Return what was computed on the host, in a dtype of one of these kinds, on a device."""
    if out is not None:
        dtype, device = out_options(op, out, dtype, device)
    chosen = default_float() if dtype is None else as_dtype(op, dtype)
    if chosen.kind not in kinds:
        expected = "an integer dtype" if "i" in kinds else "a floating point dtype"
        raise bad_argument(DTypeError, op, "dtype", expected, chosen, "leave it out")
    made = make_constant(values.astype(chosen))
    made = (made if device is None else made.to(device=device)).requires_grad_(requires_grad)
    return made if out is None else fill_out(op, out, made)


Periodic = Annotated[bool, flag("Leave out the last entry, with which the next one would begin.")]
_FLOATING = {"DTypeError": "When {x} is not a floating one."}
DType = Annotated[Any, D.Domain("Of the result; the default one otherwise.", raises=_FLOATING)]


def _window(op: str, make: Callable[[int], Any], length: int, periodic: bool, *to: Any) -> Tensor:
    """Return a window; a periodic one lacks the last entry, with which the next one begins."""
    values = make(length + periodic)[:length] if length > 1 else np.ones(length)
    return from_host(op, values, *to)


def _declare(name: str, make: Callable[[int], Any], says: str) -> Any:
    def author(
        window_length: D.Count,
        periodic: Periodic = True,
        *,
        dtype: DType = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _window(name, make, window_length, periodic, dtype, device, requires_grad)

    author.__name__ = author.__qualname__ = name
    author.__doc__ = f"Return {says}."
    return functor("flow", samples="5, dtype=float64; 4, False, dtype=float64; 1")(author)


_BLACKMAN = "the window 0.42 - 0.5 cos(2πn / (N - 1)) + 0.08 cos(4πn / (N - 1))"
hann_window = _declare("hann_window", np.hanning, "the window ½ - ½ cos(2πn / (N - 1))")
blackman_window = _declare("blackman_window", np.blackman, _BLACKMAN)
bartlett_window = _declare("bartlett_window", np.bartlett, "the window that is a triangle")


@functor("flow", samples="5, dtype=float64; 4, False, 0.6, 0.4, dtype=float64")
def hamming_window(
    window_length: D.Count,
    periodic: Periodic = True,
    alpha: D.Number = 0.54,
    beta: D.Number = 0.46,
    *,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the window alpha - beta cos(2πn / (N - 1)).

    >>> flow.hamming_window(4, periodic=False)
    tensor([0.0800, 0.7700, 0.7700, 0.0800])
    """

    def make(n: int) -> Any:
        return alpha - beta * np.cos(2 * np.pi / (n - 1) * np.arange(n))

    return _window("hamming_window", make, window_length, periodic, dtype, device, requires_grad)


@functor("flow", samples="5, dtype=float64; 4, False, 3.5, dtype=float64")
def kaiser_window(
    window_length: D.Count,
    periodic: Periodic = True,
    beta: D.Number = 12.0,
    *,
    dtype: DType = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the window I₀(beta √(1 - (2n / (N - 1) - 1)²)) / I₀(beta).

    I₀ is the modified Bessel function of order 0.
    """
    make = functools.partial(np.kaiser, beta=beta)
    return _window("kaiser_window", make, window_length, periodic, dtype, device, requires_grad)


def _frequencies(name: str, make: Callable[..., Any], says: str) -> None:
    def author(
        n: D.Positive,
        d: D.Number = 1.0,
        *,
        out: Tensor | None = None,
        dtype: DType = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return from_host(f"fft.{name}", make(n, d), dtype, device, requires_grad, out)

    author.__name__ = author.__qualname__ = f"fft_{name}"
    author.__doc__ = f"""Return the frequencies of {says} of n entries, in cycles per unit of d.

    d: the distance of the entries.
    """
    functor("fft", samples="5, dtype=float64; 4, 0.5, dtype=float64")(author)


_frequencies("fftfreq", np.fft.fftfreq, "the transform")
_frequencies("rfftfreq", np.fft.rfftfreq, "the transform of real numbers")
