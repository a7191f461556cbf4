"""Special functions: special points, dtypes, tails, derivatives of high order and errors."""

import math
import warnings

import numpy as np
import pytest
import scipy.special

import oneflow_lite as flow
from oneflow_lite.kernels.special_functions import bessel_jn, modified_bessel_in
from oneflow_lite.testing import Fixed, Sample, check_op

INF, NAN = math.inf, math.nan
POINTS = np.array(
    [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, -3.7, INF, -INF, NAN, 5e-324, -5e-324, 1e-300, 1e300]
    + [-1e300, 50, -50, 800, -800, 1e-3, 3.3, 0.999, 0.02]
)
ONE = """
    digamma lgamma erfinv erfcx ndtr ndtri log_ndtr entr i0 i0e i1 i1e logit bessel_j0 bessel_j1
    bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0
""".split()
TWO = "igamma igammac zeta xlog1py copysign fmax fmin nextafter heaviside logaddexp2 xlogy".split()


def find(lib, name):
    return getattr(lib if hasattr(lib, name) else lib.special, name)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ONE)
def test_special_points_are_pytorchs_and_silent(name, dtype):
    torch = pytest.importorskip("torch")
    with np.errstate(all="ignore"):
        x = POINTS.astype(dtype)
    if name.startswith(("bessel_", "ndtr")):
        x = x[abs(x) != 800]  # PyTorch loses digits there
    expected = find(torch, name)(torch.tensor(x)).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = find(flow, name)(flow.tensor(x)).numpy()
    assert got.dtype == expected.dtype
    # Some of PyTorch's have 9 digits in float64, and 4 in float32.
    np.testing.assert_allclose(got, expected, rtol=1e-4 if dtype == "float32" else 2e-9)


@pytest.mark.parametrize("name", TWO)
def test_pairs_of_special_points_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    points = POINTS[:12] if name not in ("zeta", "igamma", "igammac") else POINTS[:9]
    x, y = (a.ravel() for a in np.meshgrid(points, points))
    expected = find(torch, name)(torch.tensor(x), torch.tensor(y)).numpy()
    with np.errstate(all="ignore"):
        got = find(flow, name)(flow.tensor(x), flow.tensor(y)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", [*ONE, "deg2rad", "signbit", "isposinf", "isreal"])
def test_integers_and_halves(name, device):
    for dtype in ("int64", "bool", "float16"):
        x = flow.tensor(np.array([0, 1, 1], dtype), device=device)
        y = find(flow, name)(x)
        wide = find(flow, name)(x.double())
        expected = flow.bool if wide.dtype == flow.bool else flow.float32
        assert y.dtype == (
            flow.float16 if "float16" == dtype != expected != flow.bool else expected
        )
        np.testing.assert_allclose(y.cpu().numpy(), wide.cpu().numpy(), rtol=1e-3)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_bessel_functions_of_higher_order(n):
    x = np.concatenate([np.linspace(-60, 60, 2401), [1e-30, 1e5]])
    np.testing.assert_allclose(bessel_jn(np, x, n=n), scipy.special.jv(n, x), rtol=0, atol=1e-14)
    for scaled, function in ((True, scipy.special.ive), (False, scipy.special.iv)):
        with np.errstate(over="ignore"):
            got = modified_bessel_in(np, x[:-1], n=n, scaled=scaled)
        np.testing.assert_allclose(got, function(n, x[:-1]), rtol=1e-13)


@pytest.mark.parametrize("attrs", [{"n": 2}, {"n": 3}])
@pytest.mark.parametrize("op", ["bessel_jn", "modified_bessel_in", "polygamma_n"])
def test_derivatives_go_on(op, attrs):
    """The ops that derivatives are made of have derivatives themselves, also around 0."""
    x = np.array([-7.3, -0.4, 0.6, 2.5, 8.1])
    if op == "modified_bessel_in":
        check_op(op, [Sample(x, **attrs, scaled=s) for s in (True, False)], rtol=1e-4)
    else:
        check_op(op, [Sample(x, **attrs)])
    if op == "bessel_jn":
        check_op(op, [Sample(np.array([0.0, 1.0]), **attrs)])


def test_the_third_derivative_at_zero():
    """1/2, 0 and 3/8 are the first coefficients of I₁, 1/2, 0 and -3/8 those of J₁."""
    for name, third in (("i1", 0.375), ("bessel_j1", -0.375)):
        x = flow.tensor(0.0, dtype=flow.float64, requires_grad=True)
        y, found = find(flow, name)(x), []
        for _ in range(3):
            (y,) = flow.autograd.grad(y, x, create_graph=True)
            found.append(y.item())
        np.testing.assert_allclose(found, [0.5, 0.0, third], atol=1e-15)


def test_both_derivatives_of_log_ndtr_in_the_tails():
    x = flow.tensor([-1e4, -40.0, 45.0], dtype=flow.float64, requires_grad=True)
    (dx,) = flow.autograd.grad(flow.special.log_ndtr(x).sum(), x, create_graph=True)
    (d2x,) = flow.autograd.grad(dx.sum(), x)
    # -x + 1/x - 2/x³ far to the left, and nothing far to the right
    np.testing.assert_allclose(dx.tolist(), [10000.0001, 40.024968847, 0], rtol=1e-9)
    np.testing.assert_allclose(d2x.tolist(), [-1 + 1e-8, -0.99937733, 0], rtol=1e-7)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions_and_their_missing_derivative(name):
    a, x = np.array([0.5, 1.0, 2.5]), np.array([[0.3, 1.2, 4.0]])
    check_op(name, [Sample(Fixed(a), x)])
    b = flow.tensor(a, requires_grad=True)
    with pytest.raises(flow.errors.NotDifferentiableError, match=rf"{name}: .*'x'"):
        find(flow, name)(b, flow.tensor(x)).sum().backward()
    assert b.grad is None


@pytest.mark.parametrize("call", [
    lambda x: flow.heaviside(x, x * 1),
    lambda x: flow.special.zeta(x + 2, 1.5),
])  # fmt: skip
def test_what_has_no_derivative_raises(call):
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(flow.errors.NotDifferentiableError):
        call(x).sum().backward()


def test_shifts_out_of_the_integer(device):
    for dtype in ("int8", "uint8", "int64"):
        x = flow.tensor(np.array([5, 100, 1], dtype), device=device)
        far = flow.tensor(np.array([1, 9, 64], dtype), device=device)
        assert (x << far).tolist() == [10, 0 if dtype != "int64" else 51200, 0]
        assert (x >> far).tolist() == [2, 0, 0]
    assert (flow.tensor([-5], dtype=flow.int8, device=device) >> 100).tolist() == [-1]
    assert (1 << flow.tensor([3], device=device)).tolist() == [8]
    x = flow.tensor([3], device=device)
    y = x
    y <<= 2
    assert y is x and x.tolist() == [12]


def test_methods_take_their_tensor_first():
    x = flow.tensor([0.5, 1.5])
    np.testing.assert_allclose(x.polygamma(1).numpy(), flow.polygamma(1, x).numpy())
    assert x.where(x > 1, 0.0).tolist() == [0, 1.5]


@pytest.mark.parametrize(("call", "kind", "argument"), [
    (lambda x: flow.polygamma(-1, x), ValueError, "n"),
    (lambda x: flow.polygamma(0.5, x), TypeError, "n"),
    (lambda x: flow.mvlgamma(x, 0), ValueError, "p"),
    (lambda x: flow.lgamma(x * 1j), RuntimeError, "input"),
    (lambda x: flow.igamma(x.long(), x.long()), RuntimeError, "input"),
    (lambda x: flow.special.zeta(2.0, 1.0), TypeError, "input"),
    (lambda x: flow.gcd(x, x), RuntimeError, "input"),
    (lambda x: flow.frexp(x.long()), RuntimeError, "input"),
    (lambda x: flow.logit(x, "a"), TypeError, "eps"),
    (lambda x: x << 1, RuntimeError, "input"),
    (lambda x: flow.ldexp(x, 2), TypeError, "other"),
])  # fmt: skip
def test_errors_name_the_argument(call, kind, argument):
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(kind, match=rf"argument '{argument}'"):
        call(x)
    assert x._version == 0 and x.grad is None
