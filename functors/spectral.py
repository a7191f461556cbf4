"""Fourier transforms for users: `flow.fft`, transforms of short windows, frequencies, windows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from oneflow_lite.arrays.dtype import to_complex
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DimError, DTypeError, arg_error, memory_for
from oneflow_lite.functors.creation import LAID_OUT, from_host
from oneflow_lite.functors.declaring import checks, domains
from oneflow_lite.functors.declaring.checks import cast, check_dims, check_ndim, dimension_error
from oneflow_lite.functors.declaring.declare import functor, keyword, with_options
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Count,
    Domain,
    Flag,
    Number,
    Positive,
    choice,
    flag,
    tensor,
)
from oneflow_lite.tensors.spellings import as_number
from oneflow_lite.tensors.tensor import Tensor


def transformable(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return a tensor in a dtype that is transformed; integers become the default one."""
    value = checks.floating(op, value, argument)
    if value._data.dtype.char != "e":
        return value
    expected, hint = "a dtype of at least 32 bits", "convert it with .float()"
    raise arg_error(op, argument, expected, value.dtype, hint, DTypeError)


REAL_INPUT = ("rfft", "ihfft")
NORMS = ("backward", "ortho", "forward")
_FILLED = "With at least one dimension. Integers are computed in the default dtype."
_REFUSED = "When {x} is float16, or complex where real numbers are transformed."
Signal = Annotated[Tensor, tensor(transformable, "c", _FILLED, DTypeError=_REFUSED)]
_DIVIDES = 'The direction that divides by the number of entries; "ortho" shares it evenly.'
Norm = Annotated[str, choice(*NORMS, says=_DIVIDES)] | None
Ints = int | Sequence[int]
Sizes = Ints | None

_SAYS = {
    "fft": "Return the Fourier transform",
    "ifft": "Return the inverse Fourier transform",
    "rfft": "Return the Fourier transform of real numbers, without its symmetric half,",
    "irfft": "Return the real inverse of `rfft`",
    "hfft": "Return the real Fourier transform of half of a symmetric signal",
    "ihfft": "Return the inverse of `hfft`, of real numbers,",
}
_SIZED = """: entries to take, or to fill up to with zeros; for a real result, its entries.
    DimError: when a dimension is out of range or given twice.
    ShapeError: when a size is below 1, or sizes and dimensions differ in number."""


def _declare(kind: str) -> None:
    """Declare a transform along one dimension, along two, and along several dimensions."""

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
        hint = "take its .real and .imag"
        raise arg_error(op, "input", "a real dtype", input.dtype, hint, DTypeError)
    rank = input._data.ndim
    sizes, dims = [(n,) if isinstance(n := as_number(x), int) else x for x in (sizes, dims)]
    if dims is None:
        dims = range(0 if sizes is None else max(rank - len(sizes), 0), rank)
    elif not rank:
        raise dimension_error(op, "input", DimError)
    dim = check_dims(op, tuple(dims), rank) if len(dims) else ()
    if not dim and (real_input or real_output):
        raise arg_error(op, "dim", "at least one", dim, "name a dimension", ArgumentError)
    have = [input._data.shape[d] for d in dim]
    wanted, fits = list(have), sizes is None or len(sizes) == len(dim)
    if sizes is None and real_output:
        wanted[-1] = 2 * (have[-1] - 1)
    elif sizes is not None and fits:
        wanted = [h if n == -1 else n for n, h in zip(sizes, have, strict=True)]
    if not fits or min(wanted, default=1) < 1:
        got = wanted if fits else tuple(sizes)
        expected = f"{len(dim)} of at least 1, one for each dimension"
        hint = "give as many sizes as dimensions, none of them 0"
        raise arg_error(op, "s" if op[-1] in "2n" else "n", expected, got, hint)
    n = wanted[-1] if wanted else 1
    if real_output:
        input = input if input.is_complex() else cast(input, to_complex(input._data.dtype))
        wanted = [*wanted[:-1], n // 2 + 1]  # the frequencies that are no conjugates of others
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
        dims = check_dims(f"fft.{name}", dim, len(shape)) if dim is None or np.size(dim) else ()
        return input.roll([(shape[d] + half) // 2 for d in dims], dims) if dims else input

    author.__name__ = author.__qualname__ = f"fft_{name}"
    author.__doc__ = says
    functor("fft", samples="x(5); x(2, 3), 1; x(3, 4), (0, -1)")(author)


_shift("fftshift", 0, "Return the tensor with frequency 0 moved from the front to the middle.")
_shift("ifftshift", 1, "Return the tensor with frequency 0 moved from the middle to the front.")


# --- Of short overlapping windows -----------------------------------------------------------------

_SIGNALS = """x(9), 4, return_complex=True; x(2, 8), 4, 2, 3, pos(3), return_complex=False
    x(9), 4, 3, None, pos(4), False, normalized=True, onesided=False, return_complex=True
    x(9), 6, 2, 4, pos(4), center=False, return_complex=True, align_to_window=True
    z(9), 4, pad_mode='constant'"""
_TRANSFORMS = """z(3, 4), 4; z(2, 3, 5), 4, 2, 3, pos(3); z(4, 4), 4, length=2, normalized=True
    z(4, 4), 4, 1, window=pos(4), center=False, return_complex=True; z(3, 4), 4, length=6"""


def _geometry(
    op: str, input: Tensor, n_fft: int, hop: int | None, length: int | None, window: Any
) -> tuple[int, Tensor | None]:
    """Check and return the step from window to window, and the window in the middle of n_fft."""
    hop = max(n_fft // 4, 1) if hop is None else hop
    length = n_fft if length is None else length
    if length > n_fft:
        expected, hint = f"at most n_fft, {n_fft}", "make n_fft larger"
        raise arg_error(op, "win_length", expected, length, hint, ArgumentError)
    if window is None and length == n_fft:
        return hop, None
    if window is None:
        window = F.ones(length, dtype=input.real.dtype, device=input.device)
    elif checks.check_tensor(op, "window", window)._data.shape != (length,):
        raise arg_error(op, "window", f"shape {(length,)}", window, "give it win_length entries")
    left = (n_fft - length) // 2
    return hop, F.pad(window, (left, n_fft - length - left)) if length < n_fft else window


@functor("flow Tensor", samples=_SIGNALS)
def stft(
    input: domains.FloatingOrComplex,
    n_fft: Positive,
    hop_length: Positive | None = None,
    win_length: Positive | None = None,
    window: Tensor | None = None,
    center: Flag = True,
    pad_mode: str = "reflect",
    normalized: Flag = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of short overlapping windows of a signal.

    input: of shape (entries,) or (batch, entries).
    n_fft: the entries in each transform.
    hop_length: entries from one window to the next; by default n_fft // 4.
    win_length: entries of the window, which stands in the middle of n_fft; by default n_fft.
    window: the factors of the entries of each part; by default ones.
    center: pad the signal with n_fft // 2 entries on both sides, in `pad_mode` of `pad`.
    normalized: divide by the root of n_fft.
    onesided: leave out frequencies that follow by symmetry; the default for real input and window.
    return_complex: False returns complex numbers as pairs; has to be given for real signals.
    align_to_window: let the first window begin with the signal; only without `center`.
    returns: of shape (batch, frequencies, windows), or (frequencies, windows).
    """
    op = "stft"
    transformable(op, check_ndim(op, input, (1, 2)))
    hop, window = _geometry(op, input, n_fft, hop_length, win_length, window)
    if center and align_to_window is not None:
        hint = "pass center=False"
        raise arg_error(op, "align_to_window", "None", align_to_window, hint, ArgumentError)
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not is_complex:
        expected, hint = "True or False for real signals", "pass return_complex=True"
        raise arg_error(op, "return_complex", expected, None, hint, ArgumentError)
    if onesided and is_complex:
        expected, hint = "False for complex signals", "leave it out"
        raise arg_error(op, "onesided", expected, True, hint, ArgumentError)
    x = input
    if center:
        x = F.pad(x, (n_fft // 2, n_fft // 2), pad_mode)
    elif align_to_window and win_length is not None:
        left = (n_fft - win_length) // 2
        x = F.pad(x, (left, n_fft - win_length - left))
    if x._data.shape[-1] < n_fft:
        expected, hint = f"at most the {x.shape[-1]} entries there are", "take a longer signal"
        raise arg_error(op, "n_fft", expected, n_fft, hint, ArgumentError)
    frames = x.unfold(-1, n_fft, hop)
    if window is not None:
        frames = frames * window
    attrs = {"dim": (input._data.ndim,), "normalization": 1 if normalized else 0}
    if is_complex or onesided is False:
        y = F.fft_c2c(frames, **attrs, forward=True).transpose(-1, -2)
    else:
        y = F.fft_r2c(frames, **attrs).transpose(-1, -2)
    return F.view_as_real(y) if return_complex is False else y


@functor("flow Tensor", samples=_TRANSFORMS)
def istft(
    input: AnyTensor,
    n_fft: Positive,
    hop_length: Positive | None = None,
    win_length: Positive | None = None,
    window: Tensor | None = None,
    center: Flag = True,
    normalized: Flag = False,
    onesided: bool | None = None,
    length: Positive | None = None,
    return_complex: Flag = False,
) -> Tensor:
    """Return the signal whose `stft` is nearest to this, in the sense of least squares.

    Griffin and Lim, Signal estimation from modified short-time Fourier transform, 1984.

    input: of shape (batch, frequencies, windows), or (frequencies, windows), complex.
    n_fft, hop_length, win_length, window, center, normalized: as they were for `stft`.
    onesided: whether half of the frequencies are there; by default told from their number.
    length: the entries of the signal; by default as many as can be known.
    return_complex: whether the signal was complex.
    DTypeError: when `input` is real, or a window is complex for a real signal.
    ShapeError: when there are not as many frequencies as n_fft asks for.
    """
    op = "istft"
    if not check_ndim(op, input, (2, 3)).is_complex():
        hint = "view_as_complex() makes it of pairs"
        raise arg_error(op, "input", "a complex dtype", input.dtype, hint, DTypeError)
    hop, window = _geometry(op, input, n_fft, hop_length, win_length, window)
    x, last = input.transpose(-1, -2), input._data.ndim - 1
    *batch, count, frequencies = x._data.shape
    onesided = frequencies != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if frequencies != wanted or not count:
        expected = f"{wanted} frequencies, one window at least"
        raise arg_error(op, "input", expected, input, "take the n_fft of the stft()")
    if window is not None and window.is_complex() and not return_complex:
        hint = "pass return_complex=True"
        raise arg_error(op, "window", "a real dtype", window.dtype, hint, DTypeError)
    attrs = {"dim": (last,), "normalization": 1 if normalized else 2}
    if return_complex:
        if onesided:
            expected, hint = "False for onesided transforms", "leave it out"
            raise arg_error(op, "return_complex", expected, True, hint, ArgumentError)
        frames = F.fft_c2c(x, **attrs, forward=False)
    else:
        half = x if onesided else x.narrow(-1, 0, n_fft // 2 + 1)
        frames = F.fft_c2r(half, **attrs, n=n_fft)
    if window is None:
        window = F.ones(n_fft, dtype=input.real.dtype, device=input.device)
    total = n_fft + hop * (count - 1)
    sum_up = functools.partial(F.unfold_grad, size=n_fft, step=hop)
    summed = sum_up(frames * window, dimension=last - 1, shape=(*batch, total))
    # Least squares: an entry is the mean of its windows' entries, weighted by the squared window.
    weight = sum_up((window * window).expand(count, n_fft), dimension=0, shape=(total,))
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    known = max(min(end, total) - start, 0)
    summed, weight = summed.narrow(-1, start, known), weight.narrow(0, start, known)
    # On CUDA the look would be a copy; inside a transform there may be no one value to look at.
    readable = weight.device.type == "cpu" and not hasattr(weight._data, "levels")
    if readable and weight._data.size and not weight._data.all():
        expected, hint = "windows that reach every entry", "make hop_length smaller"
        raise arg_error(op, "window", expected, "gaps between them", hint, ArgumentError)
    y = summed / weight
    return F.pad(y, (0, end - total)) if end > total else y


# --- Windows and frequencies ----------------------------------------------------------------------

_FLOATING = {"DTypeError": "When {x} is not a floating one."}
_DTYPE = Domain("The dtype of the result; by default the default dtype.", raises=_FLOATING)
_OPTIONS = (
    keyword("dtype", domain=_DTYPE),
    keyword("device"),
    keyword("requires_grad", "bool"),
    *LAID_OUT,
)
Periodic = Annotated[bool, flag("Leave out the last entry, with which the next one would begin.")]


def _window(op: str, make: Callable[[int], Any], length: int, periodic: bool, to: Any) -> Tensor:
    with memory_for(op, window_length=length):
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
    def author(n: Count, d: Number = 1.0, **options: Any) -> Tensor:
        with memory_for(f"fft.{name}", n=n):
            values = getattr(np.fft, name)(n, d) if n else np.full(int(name == "rfftfreq"), np.nan)
            return from_host(f"fft.{name}", values, options)


_frequencies("fftfreq", "the transform")
_frequencies("rfftfreq", "the transform of real numbers")
