"""Fourier transforms: values next to NumPy's, derivatives, and what an adjoint is."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DimError, DTypeError, ShapeError
from oneflow_lite.testing import Sample, check_op

REAL = np.cos(np.arange(30.0) * 1.3).reshape(2, 5, 3)
COMPLEX = REAL + 1j * np.sin(np.arange(30.0) * 0.7).reshape(2, 5, 3)
DIMS = [(0,), (2, 0), (0, 1, 2)]


@pytest.mark.parametrize("normalization", [0, 1, 2])
@pytest.mark.parametrize("forward", [True, False])
def test_derivatives_of_complex_transforms(forward, normalization, device):
    attrs = {"normalization": normalization, "forward": forward}
    samples = [
        Sample(COMPLEX[0], dim=(1,), **attrs),
        Sample(COMPLEX[:, :2], dim=(2, 0), **attrs),
        Sample(REAL[0], dim=(1, 0), **attrs),
        Sample(REAL[0, :2], dim=(), **attrs),
    ]
    check_op("fft_c2c", samples, device=device)


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("normalization", [0, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_derivatives_of_real_transforms(n, normalization, device):
    attrs = {"normalization": normalization}
    real, half = REAL[:, :n], COMPLEX[:, : n // 2 + 1]
    for op in ("fft_r2c", "fft_c2r_grad"):
        samples = [Sample(real[0], dim=(0,), **attrs), Sample(real, dim=(2, 0, 1), **attrs)]
        check_op(op, samples, device=device)
    for op in ("fft_c2r", "fft_r2c_grad"):
        samples = [
            Sample(half[0], dim=(0,), n=n, **attrs),
            Sample(half[..., :2], dim=(2, 0, 1), n=n, **attrs),
        ]
        check_op(op, samples, device=device, degenerate=False)


def inner(x, y):
    return float(np.vdot(x, y).real)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_adjoints(dim, normalization):
    attrs = {"dim": dim, "normalization": normalization}
    x = flow.tensor(REAL)
    y = F.fft_r2c(x, **attrs)
    n = REAL.shape[dim[-1]]
    other = flow.tensor(np.arange(y.numel()).reshape(y.shape) * (0.5 - 1j))
    back = F.fft_r2c_grad(other, n=n, **attrs)
    assert inner(y.numpy(), other.numpy()) == pytest.approx(inner(REAL, back.numpy()))
    z = F.fft_c2r(other, n=n, **attrs)
    back = F.fft_c2r_grad(x, **attrs)
    assert inner(z.numpy(), REAL) == pytest.approx(inner(other.numpy(), back.numpy()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype, device):
    x = flow.tensor(REAL.astype(dtype), device=device)
    y = F.fft_r2c(x, dim=(1,), normalization=0)
    assert y.dtype == np.result_type(dtype, np.complex64)
    assert F.fft_c2c(x, dim=(1, 2), normalization=0, forward=True).dtype == y.dtype
    assert F.fft_c2r(y, dim=(1,), n=5, normalization=2).dtype == dtype


def test_what_would_make_it_complex_is_left_out(device):
    """Some libraries on GPUs let it in; PyTorch's answer on the CPU is NumPy's."""
    x = flow.tensor(COMPLEX, device=device)
    got = F.fft_c2r(x, dim=(1, 2), n=4, normalization=2)
    np.testing.assert_allclose(got.cpu().numpy(), np.fft.irfftn(COMPLEX, (5, 4), (1, 2)))


# --- What users call: values and derivatives stand in tests/functors/test_declared.py -------------


def test_there_and_back(device):
    x = flow.tensor(REAL, device=device)
    for norm in (None, "backward", "ortho", "forward"):
        back = flow.fft.irfftn(flow.fft.rfftn(x, norm=norm), REAL.shape, norm=norm)
        np.testing.assert_allclose(back.cpu().numpy(), REAL)
        back = flow.fft.hfft(flow.fft.ihfft(x, dim=1, norm=norm), 5, dim=1, norm=norm)
        np.testing.assert_allclose(back.cpu().numpy(), REAL)
    assert flow.fft.ifftshift(flow.fft.fftshift(x)).tolist() == x.tolist()


def test_signals_of_a_length(device):
    x = flow.tensor(np.sin(np.arange(41.0) ** 1.5), device=device)
    window = flow.hann_window(6, dtype=flow.float64, device=device)
    for options in ({"normalized": True}, {"onesided": False}, {"hop_length": 1}):
        parts = flow.stft(x, 8, win_length=6, window=window, return_complex=True, **options)
        back = flow.istft(parts, 8, win_length=6, window=window, length=41, **options)
        np.testing.assert_allclose(back.cpu().numpy(), x.cpu().numpy(), atol=1e-12)


@pytest.mark.parametrize(
    "name", ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]
)
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_windows(name, length):
    torch = pytest.importorskip("torch")
    for periodic in (True, False):
        ours, theirs = (
            getattr(lib, name)(length, periodic, dtype=lib.float64) for lib in (flow, torch)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)
    assert getattr(flow, name)(3).dtype == flow.float32
    assert getattr(flow, name)(3, requires_grad=True).requires_grad


X, Z = flow.ones(4, 3), flow.ones(3, 2, dtype=flow.complex64)
ERRORS = [
    (lambda: flow.fft.fft(flow.ones(())), DimError, "fft.fft", "input"),
    (lambda: flow.fft.fft(X, 0), ShapeError, "fft.fft", "n"),
    (lambda: flow.fft.fft(X, dim=2), DimError, "fft.fft", "dim"),
    (lambda: flow.fft.fft(X, norm="both"), ArgumentError, "fft.fft", "norm"),
    (lambda: flow.fft.fft(X.half()), DTypeError, "fft.fft", "input"),
    (lambda: flow.fft.fft2(X[0]), DimError, "fft.fft2", "dim"),
    (lambda: flow.fft.fftn(X, (2, 2, 2)), ShapeError, "fft.fftn", "s"),
    (lambda: flow.fft.fftn(X, dim=(0, 0)), DimError, "fft.fftn", "dim"),
    (lambda: flow.fft.rfft(Z), DTypeError, "fft.rfft", "input"),
    (lambda: flow.fft.rfftn(X, dim=()), ArgumentError, "fft.rfftn", "dim"),
    (lambda: flow.fft.irfft(X[:, :1]), ShapeError, "fft.irfft", "n"),
    (lambda: flow.fft.ihfft(X, -3), ShapeError, "fft.ihfft", "n"),
    (lambda: flow.fft.fftfreq(-1), ArgumentError, "fft_fftfreq|fft.fftfreq", "n"),
    (lambda: flow.stft(X[:, 0], 4), ArgumentError, "stft", "return_complex"),
    (lambda: flow.stft(X[:, 0], 8, center=False, return_complex=True), ArgumentError, "stft", "n_"),
    (lambda: flow.stft(X[0, 0], 4), ShapeError, "stft", "input"),
    (lambda: flow.stft(X, 2, 0, return_complex=True), ArgumentError, "stft", "hop_length"),
    (lambda: flow.stft(X, 2, win_length=3), ArgumentError, "stft", "win_length"),
    (lambda: flow.stft(X, 2, window=X[0], return_complex=True), ShapeError, "stft", "window"),
    (lambda: flow.stft(Z, 2, onesided=True), ArgumentError, "stft", "onesided"),
    (lambda: flow.istft(X, 4), DTypeError, "istft", "input"),
    (lambda: flow.istft(Z, 8), ShapeError, "istft", "input"),
    (lambda: flow.istft(Z, 4, return_complex=True), ArgumentError, "istft", "return_complex"),
    (lambda: flow.istft(Z, 4, window=flow.zeros(4)), ArgumentError, "istft", "window"),
    (lambda: flow.hann_window(-1), ArgumentError, "hann_window", "window_length"),
    (lambda: flow.hann_window(3, dtype=flow.int64), DTypeError, "hann_window", "dtype"),
]


@pytest.mark.parametrize(("call", "error", "op", "argument"), ERRORS)
def test_errors(call, error, op, argument):
    with pytest.raises(error, match=rf"^({op})\(\): argument '{argument}"):
        call()
