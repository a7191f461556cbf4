"""Fourier transforms of short overlapping windows, and back."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_ndim, check_tensor
from oneflow_lite.functors.complex import view_as_real
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, FloatingOrComplex, Positive
from oneflow_lite.functors.padding import pad
from oneflow_lite.functors.shape import expand, squeeze, transpose, unsqueeze
from oneflow_lite.functors.spectral import C2C, C2R, R2C, transformable
from oneflow_lite.functors.unfolding import unfold
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor

OVERLAP_ADD = op_expr("unfold_grad")


def _geometry(
    op: str, input: Tensor, n_fft: int, hop: int | None, length: int | None, window: Any
) -> tuple[int, Tensor | None]:
    """Check and return the step from window to window, and the window in the middle of n_fft."""
    hop = n_fft // 4 if hop is None else check_int(op, "hop_length", hop, 1)
    length = n_fft if length is None else check_int(op, "win_length", length, 1)
    if length > n_fft:
        expected, mend = f"at most n_fft, {n_fft}", "make n_fft larger"
        raise bad_argument(ArgumentError, op, "win_length", expected, length, mend)
    if window is None and length == n_fft:
        return max(hop, 1), None
    if window is None:
        real = input.real.dtype
        window = FUNCTORS.get("ones")(length, dtype=real, device=input.device)
    elif check_tensor(op, "window", window)._data.shape != (length,):
        expected, got = f"shape {(length,)}", f"shape {window.shape}"
        raise bad_argument(ShapeError, op, "window", expected, got, "give it win_length entries")
    left = (n_fft - length) // 2
    return max(hop, 1), pad(window, (left, n_fft - length - left)) if length < n_fft else window


@functor(
    "flow Tensor",
    samples="""x(9), 4, return_complex=True; x(2, 8), 4, 2, 3, pos(3), return_complex=False
        x(9), 4, 3, None, pos(4), False, normalized=True, onesided=False, return_complex=True
        x(9), 6, 2, 4, pos(4), center=False, return_complex=True, align_to_window=True
        z(9), 4, pad_mode='constant'""",
)
def stft(
    input: FloatingOrComplex,
    n_fft: Positive,
    hop_length: int | None = None,
    win_length: int | None = None,
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
        raise bad_argument(ArgumentError, op, "align_to_window", "None", align_to_window, mend)
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not is_complex:
        expected, mend = "True or False for real signals", "pass return_complex=True"
        raise bad_argument(ArgumentError, op, "return_complex", expected, None, mend)
    if onesided and is_complex:
        expected, mend = "False for complex signals", "leave it out"
        raise bad_argument(ArgumentError, op, "onesided", expected, True, mend)
    x = input if input._data.ndim == 2 else unsqueeze(input, 0)
    if center:
        x = pad(x, (n_fft // 2, n_fft // 2), pad_mode)
    elif align_to_window and win_length is not None:
        left = (n_fft - win_length) // 2
        x = pad(x, (left, n_fft - win_length - left))
    if x._data.shape[1] < n_fft:
        expected, mend = f"at most the {x.shape[1]} entries there are", "take a longer signal"
        raise bad_argument(ArgumentError, op, "n_fft", expected, n_fft, mend)
    frames = unfold(x, 1, n_fft, hop)
    if window is not None:
        frames = frames * window
    attrs = {"dim": (2,), "normalization": 1 if normalized else 0}
    if is_complex or onesided is False:
        y = dispatch1(C2C, frames, {**attrs, "forward": True})
    else:
        y = dispatch1(R2C, frames, attrs)
    y = transpose(y, 1, 2)
    y = y if input._data.ndim == 2 else squeeze(y, 0)
    return view_as_real(y) if return_complex is False else y


@functor(
    "flow Tensor",
    samples="""z(3, 4), 4; z(2, 3, 5), 4, 2, 3, pos(3); z(4, 4), 4, length=2, normalized=True
        z(4, 4), 4, 1, window=pos(4), center=False, return_complex=True; z(3, 4), 4, length=6""",
)
def istft(
    input: AnyTensor,
    n_fft: Positive,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: Flag = True,
    normalized: Flag = False,
    onesided: bool | None = None,
    length: int | None = None,
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
        raise bad_argument(DTypeError, op, "input", "a complex dtype", input.dtype, mend)
    hop, window = _geometry(op, input, n_fft, hop_length, win_length, window)
    x = transpose(input if input._data.ndim == 3 else unsqueeze(input, 0), 1, 2)
    batch, count, frequencies = x._data.shape
    onesided = frequencies != n_fft if onesided is None else onesided
    if frequencies != (n_fft // 2 + 1 if onesided else n_fft) or not count:
        expected = f"{n_fft // 2 + 1 if onesided else n_fft} frequencies, one window at least"
        got, mend = f"shape {input.shape}", "take the n_fft of the stft()"
        raise bad_argument(ShapeError, op, "input", expected, got, mend)
    if window is not None and window.is_complex() and not return_complex:
        mend = "pass return_complex=True"
        raise bad_argument(DTypeError, op, "window", "a real dtype", window.dtype, mend)
    attrs = {"dim": (2,), "normalization": 1 if normalized else 2}
    if return_complex:
        if onesided:
            expected, mend = "False for onesided transforms", "leave it out"
            raise bad_argument(ArgumentError, op, "return_complex", expected, True, mend)
        frames = dispatch1(C2C, x, {**attrs, "forward": False})
    else:
        half = x if onesided else FUNCTORS.get("narrow")(x, 2, 0, n_fft // 2 + 1)
        frames = dispatch1(C2R, half, {**attrs, "n": n_fft})
    if window is None:
        window = FUNCTORS.get("ones")(n_fft, dtype=input.real.dtype, device=input.device)
    total = n_fft + hop * (count - 1)
    place = {"dimension": 1, "size": n_fft, "step": hop}
    summed = dispatch1(OVERLAP_ADD, frames * window, {**place, "shape": (batch, total)})
    weights = expand(window * window, 1, count, n_fft)
    weight = dispatch1(OVERLAP_ADD, weights, {**place, "shape": (1, total)})
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + check_int(op, "length", length, 1)
    narrow, known = FUNCTORS.get("narrow"), max(min(end, total) - start, 0)
    summed, weight = narrow(summed, 1, start, known), narrow(weight, 1, start, known)
    _check_covered(op, weight)
    y = summed / weight
    if end > total:
        y = pad(y, (0, end - total))
    return y if input._data.ndim == 3 else squeeze(y, 0)


def _check_covered(op: str, weight: Tensor) -> None:
    """Raise where no window reaches; on CUDA a look would be a copy."""
    if weight.device.type == "cpu" and weight._data.size and not weight._data.all():
        expected, mend = "windows that reach every entry", "make hop_length smaller"
        raise bad_argument(ArgumentError, op, "window", expected, "gaps between them", mend)
