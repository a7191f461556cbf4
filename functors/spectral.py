"""Fourier transforms: `flow.fft`; their frequencies, and windows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.dtype import to_complex
from oneflow_lite.errors import ArgumentError, DimError, DTypeError
from oneflow_lite.functors.checks import cast, check_dims, floating, no_dimension, wrong
from oneflow_lite.functors.creation import from_host, keyword, with_options
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.decompositions import flag
from oneflow_lite.functors.domains import AnyTensor, Count, Domain, Number, Positive, choice, tensor
from oneflow_lite.tensor import Tensor


def transformable(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a tensor in a dtype that is transformed; integers become the default one."""
    value = floating(op, value, argument)
    if value._data.dtype.char != "e":
        return value
    expected, mend = "a dtype of at least 32 bits", "convert it with .float()"
    raise wrong(op, argument, expected, value.dtype, mend, DTypeError)


REAL_INPUT = ("rfft", "ihfft")
NORMS = ("backward", "ortho", "forward")
_FILLED = "With at least one dimension. Integers are computed in the default dtype."
_REFUSED = "When {x} is float16, or complex where real numbers are transformed."
Signal = Annotated[Tensor, tensor(transformable, "c", _FILLED, DTypeError=_REFUSED)]
_DIVIDES = "Which direction divides by the number of entries."
Norm = Annotated[str, choice(*NORMS, says=_DIVIDES)] | None
Ints = int | Sequence[int]
Sizes = Ints | None

_SAYS = {
    "fft": "Return the Fourier transform",
    "ifft": "Return the inverse Fourier transform",
    "rfft": "Return the Fourier transform of real numbers, without what follows by symmetry,",
    "irfft": "Return the real inverse of `rfft`",
    "hfft": "Return the real Fourier transform of half of a symmetric signal",
    "ihfft": "Return the inverse of `hfft`, of real numbers,",
}
_SIZED = """: entries to take, or to fill up to with zeros; of a real result those it has.
    DimError: when a dimension is out of range or given twice.
    ShapeError: when a size is below 1, or there is not one for each dimension."""


def _declare(kind: str) -> None:
    """Declare a transform along one dimension, along two, and along any number of them."""

    def one(input: Signal, n: int | None = None, dim: int = -1, norm: Norm = None) -> Tensor:
        return _transform(f"fft.{kind}", kind, input, n, dim, norm)

    def two(input: Signal, s: Sizes = None, dim: Ints = (-2, -1), norm: Norm = None) -> Tensor:
        return _transform(f"fft.{kind}2", kind, input, s, dim, norm)

    def many(input: Signal, s: Sizes = None, dim: Sizes = None, norm: Norm = None) -> Tensor:
        return _transform(f"fft.{kind}n", kind, input, s, dim, norm)

    w = "x" if kind in REAL_INPUT else "z"
    line = "{w}(4); {w}(2, 3), 5, 0, 'ortho'; {w}(4), 3, -1, 'forward'"
    plane = "{w}(2, 3); {w}(3, 2, 2), (2, 3), (0, 2), 'ortho'"
    space = "{w}(2, 3); {w}(3, 2), dim=(0,); {w}(2, 2, 3), (4,); {w}(2, 3), (-1, 4), (1, 0)"
    rows = (
        (one, "", "along one dimension", "n", line),
        (two, "2", "along two dimensions", "s", plane),
        (many, "n", "along all dimensions, or some", "s", space),
    )
    for author, suffix, where, sized, samples in rows:
        author.__name__ = author.__qualname__ = f"fft_{kind}{suffix}"
        author.__doc__ = f"{_SAYS[kind]} {where}.\n\n    {sized}{_SIZED}"
        functor("fft", out=True, samples=samples.format(w=w))(author)


def _transform(op: str, kind: str, input: Tensor, sizes: Any, dims: Any, norm: Any) -> Tensor:
    real_input, real_output = kind in REAL_INPUT, kind in ("irfft", "hfft")
    if real_input and input.is_complex():
        mend = "take its .real and .imag"
        raise wrong(op, "input", "a real dtype", input.dtype, mend, DTypeError)
    rank = input._data.ndim
    sizes = (sizes,) if isinstance(sizes, int) else sizes
    dims = (dims,) if isinstance(dims, int) else dims
    if dims is None:
        dims = range(0 if sizes is None else max(rank - len(sizes), 0), rank)
    elif not rank:
        raise no_dimension(op, "input", DimError)
    dim = check_dims(op, tuple(dims), rank) if len(dims) else ()
    if not dim and (real_input or real_output):
        raise wrong(op, "dim", "at least one", dim, "name a dimension", ArgumentError)
    have = [input._data.shape[d] for d in dim]
    wanted, fits = list(have), sizes is None or len(sizes) == len(dim)
    if sizes is None and real_output:
        wanted[-1] = 2 * (have[-1] - 1)
    elif sizes is not None and fits:
        wanted = [h if n == -1 else n for n, h in zip(sizes, have, strict=True)]
    if not fits or min(wanted, default=1) < 1:
        got = wanted if fits else tuple(sizes)
        expected = f"{len(dim)} of at least 1, one for each dimension"
        mend = "give as many sizes as dimensions, none of them 0"
        raise wrong(op, "s" if op[-1] in "2n" else "n", expected, got, mend)
    n = wanted[-1] if wanted else 1
    if real_output:
        input = input if input.is_complex() else cast(input, to_complex(input.dtype))
        wanted = [*wanted[:-1], n // 2 + 1]
    if wanted != have:
        grows = [0] * (2 * rank)
        for d, new, old in zip(dim, wanted, have, strict=True):
            grows[2 * (rank - 1 - d) + 1] = new - old
        input = F.pad(input, grows)
    place = NORMS.index(norm or "backward")
    attrs = {"dim": dim, "normalization": 2 - place if kind[0] == "i" else place}
    if real_input:
        half = F.fft_r2c(input, **attrs)
        return half.conj() if kind == "ihfft" else half
    if real_output:
        return F.fft_c2r(input.conj() if kind == "hfft" else input, **attrs, n=n)
    return F.fft_c2c(input, **attrs, forward=kind == "fft")


for _kind in _SAYS:
    _declare(_kind)


def _shift(name: str, half: int, says: str) -> None:
    def author(input: AnyTensor, dim: Sizes = None) -> Tensor:
        shape = input._data.shape
        dims = check_dims(f"fft.{name}", dim, len(shape)) if dim != () else ()
        return input.roll([(shape[d] + half) // 2 for d in dims], dims) if dims else input

    author.__name__ = author.__qualname__ = f"fft_{name}"
    author.__doc__ = says
    functor("fft", samples="x(5); x(2, 3), 1; x(3, 4), (0, -1)")(author)


_shift("fftshift", 0, "Return the tensor with frequency 0 moved from the front to the middle.")
_shift("ifftshift", 1, "Return the tensor with frequency 0 moved from the middle to the front.")


# --- Windows and frequencies ----------------------------------------------------------------------

_FLOATING = {"DTypeError": "When {x} is not a floating one."}
_DTYPE = Domain("Of the result; the default one otherwise.", raises=_FLOATING)
_OPTIONS = (keyword("dtype", domain=_DTYPE), keyword("device"), keyword("requires_grad", "bool"))
Periodic = Annotated[bool, flag("Leave out the last entry, with which the next one would begin.")]


def _window(op: str, make: Callable[[int], Any], length: int, periodic: bool, to: Any) -> Tensor:
    values = make(length + periodic)[:length] if length > 1 else np.ones(length)
    return from_host(op, values, to)


def _declare_window(name: str, make: Callable[[int], Any], summary: str) -> None:
    samples = "5, dtype=float64; 4, False, dtype=float64; 1"

    @with_options("flow", _OPTIONS, name, summary, samples=samples)
    def author(window_length: Count, periodic: Periodic = True, **options: Any) -> Tensor:
        return _window(name, make, window_length, periodic, options)


_BLACKMAN = "Return the window 0.42 - 0.5 cos(2πn / (N - 1)) + 0.08 cos(4πn / (N - 1))."
_declare_window("hann_window", np.hanning, "Return the window ½ - ½ cos(2πn / (N - 1)).")
_declare_window("blackman_window", np.blackman, _BLACKMAN)
_declare_window("bartlett_window", np.bartlett, "Return the window that is a triangle.")


@with_options(options=_OPTIONS, samples="5, dtype=float64; 4, False, 0.6, 0.4, dtype=float64")
def hamming_window(
    window_length: Count,
    periodic: Periodic = True,
    alpha: Number = 0.54,
    beta: Number = 0.46,
    **options: Any,
) -> Tensor:
    """Return the window alpha - beta cos(2πn / (N - 1)).

    >>> flow.hamming_window(4, periodic=False)
    tensor([0.0800, 0.7700, 0.7700, 0.0800])
    """

    def make(n: int) -> Any:
        return alpha - beta * np.cos(2 * np.pi / (n - 1) * np.arange(n))

    return _window("hamming_window", make, window_length, periodic, options)


@with_options(options=_OPTIONS, samples="5, dtype=float64; 4, False, 3.5, dtype=float64")
def kaiser_window(
    window_length: Count, periodic: Periodic = True, beta: Number = 12.0, **options: Any
) -> Tensor:
    """Return the window I₀(beta √(1 - (2n / (N - 1) - 1)²)) / I₀(beta).

    I₀ is the modified Bessel function of order 0.
    """
    make = functools.partial(np.kaiser, beta=beta)
    return _window("kaiser_window", make, window_length, periodic, options)


def _frequencies(name: str, says: str) -> None:
    summary = f"""Return the frequencies of {says} of n entries, in cycles per unit of d.

    d: the distance of the entries.
    """
    options = (keyword("out", "Tensor | None"), *_OPTIONS)
    samples = "5, dtype=float64; 4, 0.5, dtype=float64"

    @with_options("fft", options, f"fft_{name}", summary, samples=samples)
    def author(n: Positive, d: Number = 1.0, **options: Any) -> Tensor:
        return from_host(f"fft.{name}", getattr(np.fft, name)(n, d), options)


_frequencies("fftfreq", "the transform")
_frequencies("rfftfreq", "the transform of real numbers")
