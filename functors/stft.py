"""Fourier transforms of short overlapping windows, and back."""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError
from oneflow_lite.functors.checks import check_ndim, check_tensor, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, FloatingOrComplex, Positive
from oneflow_lite.functors.spectral import transformable
from oneflow_lite.tensor import Tensor

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
        expected, mend = f"at most n_fft, {n_fft}", "make n_fft larger"
        raise wrong(op, "win_length", expected, length, mend, ArgumentError)
    if window is None and length == n_fft:
        return hop, None
    if window is None:
        window = F.ones(length, dtype=input.real.dtype, device=input.device)
    elif check_tensor(op, "window", window)._data.shape != (length,):
        raise wrong(op, "window", f"shape {(length,)}", window, "give it win_length entries")
    left = (n_fft - length) // 2
    return hop, F.pad(window, (left, n_fft - length - left)) if length < n_fft else window


@functor("flow Tensor", samples=_SIGNALS)
def stft(
    input: FloatingOrComplex,
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
    hop_length: entries from one window to the next; n_fft // 4 otherwise.
    win_length: entries of the window, which stands in the middle of n_fft; n_fft otherwise.
    window: what each part is multiplied with; ones otherwise.
    center: pad the signal with n_fft // 2 entries on both sides, so that windows are centered.
    pad_mode: how, in the words of `nn.functional.pad`.
    normalized: divide by the root of n_fft.
    onesided: leave out what follows by symmetry; otherwise done where input and window are real.
    return_complex: False sees complex numbers as pairs; needs to be given for real signals.
    align_to_window: let the first window, not the first n_fft entries, begin with the signal; only
        without `center`.
    returns: of shape (batch, frequencies, windows), or (frequencies, windows).
    ArgumentError: when the numbers do not fit, or `return_complex` is missing.
    """
    op = "stft"
    transformable(op, check_ndim(op, input, (1, 2)))
    hop, window = _geometry(op, input, n_fft, hop_length, win_length, window)
    if center and align_to_window is not None:
        mend = "pass center=False"
        raise wrong(op, "align_to_window", "None", align_to_window, mend, ArgumentError)
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not is_complex:
        expected, mend = "True or False for real signals", "pass return_complex=True"
        raise wrong(op, "return_complex", expected, None, mend, ArgumentError)
    if onesided and is_complex:
        expected, mend = "False for complex signals", "leave it out"
        raise wrong(op, "onesided", expected, True, mend, ArgumentError)
    x = input
    if center:
        x = F.pad(x, (n_fft // 2, n_fft // 2), pad_mode)
    elif align_to_window and win_length is not None:
        left = (n_fft - win_length) // 2
        x = F.pad(x, (left, n_fft - win_length - left))
    if x._data.shape[-1] < n_fft:
        expected, mend = f"at most the {x.shape[-1]} entries there are", "take a longer signal"
        raise wrong(op, "n_fft", expected, n_fft, mend, ArgumentError)
    frames = x.unfold(-1, n_fft, hop)
    if window is not None:
        frames = frames * window
    attrs = {"dim": (input._data.ndim,), "normalization": 1 if normalized else 0}
    if is_complex or onesided is False:
        y = F.fft_c2c(frames, **attrs, forward=True)
    else:
        y = F.fft_r2c(frames, **attrs)
    y = y.transpose(-1, -2)
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
    onesided: whether half of the frequencies are there; told from their number otherwise.
    length: the entries of the signal; otherwise as many as can be known.
    return_complex: whether the signal was complex.
    DTypeError: when `input` is real, or a window is complex for a real signal.
    ShapeError: when there are not as many frequencies as n_fft asks for.
    ArgumentError: when some entries lie under no window.
    """
    op = "istft"
    if not check_ndim(op, input, (2, 3)).is_complex():
        mend = "view_as_complex() makes it of pairs"
        raise wrong(op, "input", "a complex dtype", input.dtype, mend, DTypeError)
    hop, window = _geometry(op, input, n_fft, hop_length, win_length, window)
    x, last = input.transpose(-1, -2), input._data.ndim - 1
    *batch, count, frequencies = x._data.shape
    onesided = frequencies != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if frequencies != wanted or not count:
        expected = f"{wanted} frequencies, one window at least"
        raise wrong(op, "input", expected, input, "take the n_fft of the stft()")
    if window is not None and window.is_complex() and not return_complex:
        mend = "pass return_complex=True"
        raise wrong(op, "window", "a real dtype", window.dtype, mend, DTypeError)
    attrs = {"dim": (last,), "normalization": 1 if normalized else 2}
    if return_complex:
        if onesided:
            expected, mend = "False for onesided transforms", "leave it out"
            raise wrong(op, "return_complex", expected, True, mend, ArgumentError)
        frames = F.fft_c2c(x, **attrs, forward=False)
    else:
        half = x if onesided else x.narrow(-1, 0, n_fft // 2 + 1)
        frames = F.fft_c2r(half, **attrs, n=n_fft)
    if window is None:
        window = F.ones(n_fft, dtype=input.real.dtype, device=input.device)
    total = n_fft + hop * (count - 1)
    place = {"size": n_fft, "step": hop}
    summed = F.unfold_grad(frames * window, dimension=last - 1, shape=(*batch, total), **place)
    weights = (window * window).expand(count, n_fft)
    weight = F.unfold_grad(weights, dimension=0, shape=(total,), **place)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    known = max(min(end, total) - start, 0)
    summed, weight = summed.narrow(-1, start, known), weight.narrow(0, start, known)
    # On CUDA the look would be a copy.
    if weight.device.type == "cpu" and weight._data.size and not weight._data.all():
        expected, mend = "windows that reach every entry", "make hop_length smaller"
        raise wrong(op, "window", expected, "gaps between them", mend, ArgumentError)
    y = summed / weight
    return F.pad(y, (0, end - total)) if end > total else y
