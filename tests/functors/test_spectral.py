"""Fourier transforms: values next to NumPy's, derivatives, and what an adjoint is."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.gradients import FUNCTORS_F as F
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
