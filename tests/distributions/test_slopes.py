"""Derivatives of gamma and Beta numbers by their concentrations, against 40 digits and PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import oneflow_lite as flow
from oneflow_lite.autograd import gradcheck, gradgradcheck
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F

mpmath = pytest.importorskip("mpmath")
torch = pytest.importorskip("torch")

SIZES = [0.002, 0.03, 0.1, 0.4, 1.0, 2.5, 10.0, 80.0, 1000.0]
SHARES = np.array([1e-6, 0.01, 0.3, 0.7, 0.99, 1 - 1e-6])


def by_differences(share: Callable[[Any], Any], density: Any, a: float) -> float:
    """Return -(∂F/∂a) / f, F(a) the share of numbers below."""
    step = mpmath.mpf(10) ** -14 * a
    return float(-(share(a + step) - share(a - step)) / (2 * step * density))


def gamma_numbers() -> tuple[Any, Any]:
    """Return concentrations and numbers, of all shares."""
    a = np.repeat(SIZES, len(SHARES))
    z = special.gammaincinv(a, np.tile(SHARES, len(SIZES)))
    kept = z > 1e-30
    return a[kept], z[kept]


def gamma_truth(a: float, z: float) -> float:
    a, z = mpmath.mpf(a), mpmath.mpf(z)
    density = z ** (a - 1) * mpmath.exp(-z) / mpmath.gamma(a)
    return by_differences(lambda a: mpmath.gammainc(a, 0, z, regularized=True), density, a)


def beta_numbers() -> tuple[Any, Any, Any]:
    """Return both concentrations and numbers, of all shares."""
    a, b, share = (x.ravel() for x in np.meshgrid(SIZES[::2], SIZES[::2], SHARES))
    x = special.betaincinv(a, b, share)
    kept = (x > 1e-30) & (x < 1 - 1e-6)
    return a[kept], b[kept], x[kept]


def beta_truth(a: float, b: float, x: float) -> float:
    a, b, x = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(x)
    density = x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)
    return by_differences(lambda a: mpmath.betainc(a, b, 0, x, regularized=True), density, a)


CASES = {
    "gamma_slope": (gamma_numbers, gamma_truth),
    "beta_slope": (beta_numbers, beta_truth),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CASES)
def test_slopes_in_double_precision(name: str) -> None:
    numbers, truth = CASES[name]
    given = numbers()
    assert len(given[0]) > 40
    found = getattr(F, name)(*map(flow.tensor, given)).numpy()
    with mpmath.workdps(40):
        want = [truth(*row) for row in zip(*given, strict=True)]
    np.testing.assert_allclose(found, want, rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_slopes_in_less_precision(name: str, dtype: str) -> None:
    lowest = 1e-4 if dtype == "float16" else 1e-30
    given = [x.astype(dtype) for x in CASES[name][0]()]
    kept = (given[-1] > lowest) & (given[-1] < (1 if name == "beta_slope" else np.inf))
    narrow = [flow.tensor(x[kept]) for x in given]
    found = getattr(F, name)(*narrow)
    want = getattr(F, name)(*[x.double() for x in narrow]).numpy()
    assert str(found.dtype) == dtype
    rtol, atol = (2e-3, 1e-7) if dtype == "float16" else (1e-5, 0)
    np.testing.assert_allclose(found.numpy().astype(float), want, rtol=rtol, atol=atol)


def test_gradients_are_nearer_to_the_truth_than_pytorchs() -> None:
    """PyTorch fits the derivative by rational functions, to about three digits."""
    a, z = gamma_numbers()
    b, c, x = beta_numbers()
    both = np.stack([b, c], -1), np.stack([x, 1 - x], -1)
    with mpmath.workdps(40):
        gamma = np.array([gamma_truth(*row) for row in zip(a, z, strict=True)])
        beta = np.array([beta_truth(*row) for row in zip(b, c, x, strict=True)])
    total = torch.tensor(both[0].sum(-1, keepdims=True)).expand(both[0].shape).contiguous()
    theirs = torch._dirichlet_grad(torch.tensor(both[1]), torch.tensor(both[0]), total)
    pairs = [
        (F.gamma_slope, (a, z), torch._standard_gamma_grad(*map(torch.tensor, (a, z))), gamma),
        (F.beta_slope, (b, c, x), theirs[..., 0] * torch.tensor(1 - x), beta),
    ]
    for function, given, other, want in pairs:
        found = function(*[flow.tensor(v.astype(np.float32)) for v in given]).numpy()
        narrow = [v.astype(np.float32).astype(float) for v in given]
        rounded = function(*map(flow.tensor, narrow)).numpy()
        ours = abs(found / rounded - 1)
        theirs = abs(other.numpy() / want - 1)
        assert ours.max() < 1e-5
        assert theirs.max() > 1e-3


def test_a_concentration_broadcasts() -> None:
    z = flow.tensor([[0.5, 2.0], [1.0, 3.0]])
    a = flow.tensor([0.7, 4.0])
    whole = F.gamma_slope(a.expand(2, 2), z)
    assert F.gamma_slope(a, z).equal(whole)
    assert F.beta_slope(a, flow.tensor(2.0), z / 4).shape == (2, 2)
    assert F.gamma_slope(a[:0], z[0, :0]).shape == (0,)


def test_second_derivatives() -> None:
    def leaf(*values: float) -> Any:
        return flow.tensor(values, dtype=flow.float64, requires_grad=True)

    a, z = leaf(0.05, 0.4, 3.0, 3.0, 40.0), leaf(0.02, 0.2, 1.0, 5.0, 38.0)
    assert gradcheck(F.gamma_slope, (a, z))
    assert gradgradcheck(F.gamma_slope, (a, z))
    a, b, x = leaf(0.4, 3.0, 3.0, 30.0), leaf(0.9, 2.0, 0.5, 20.0), leaf(0.2, 0.1, 0.8, 0.6)
    assert gradcheck(F.beta_slope, (a, b, x))
    assert gradgradcheck(F.beta_slope, (a, b, x))


def test_on_devices(device: str) -> None:
    given = [flow.tensor(x[:50].astype(np.float32), device=device) for x in gamma_numbers()]
    found = F.gamma_slope(*given)
    assert found.device.type == device
    plain = F.gamma_slope(*[x.cpu() for x in given]).numpy()
    np.testing.assert_allclose(found.cpu().numpy(), plain, rtol=1e-6)
