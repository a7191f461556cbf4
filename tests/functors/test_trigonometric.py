"""Circular and hyperbolic functions: values, derivatives, extremes and errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
ANY = RNG.uniform(-1.2, 1.2, (2, 3))
INSIDE = RNG.uniform(-0.8, 0.8, (2, 3))
INF, NAN = math.inf, math.nan

# name: (the function on a Python number, an input away from its edges)
UNARY = {
    "sin": (math.sin, ANY),
    "cos": (math.cos, ANY),
    "tan": (math.tan, ANY),
    "asin": (math.asin, INSIDE),
    "acos": (math.acos, INSIDE),
    "atan": (math.atan, ANY),
    "sinh": (math.sinh, ANY),
    "cosh": (math.cosh, ANY),
    "asinh": (math.asinh, ANY),
    "acosh": (math.acosh, INSIDE + 2),
    "atanh": (math.atanh, INSIDE),
    "sinc": (lambda x: math.sin(math.pi * x) / (math.pi * x) if x else 1.0, 2 * ANY),
}
BINARY = {"atan2": math.atan2, "hypot": math.hypot}


@pytest.mark.parametrize("name", UNARY)
def test_derivatives(name, device):
    check_op(name, [Sample(UNARY[name][1])], device=device)


@pytest.mark.parametrize("name", BINARY)
def test_derivatives_of_two(name, device):
    check_op(name, [Sample(ANY, INSIDE[0]), Sample(ANY[:1], INSIDE)], device=device)


@pytest.mark.parametrize("name", UNARY)
def test_complex_derivatives(name):
    # One point in each quadrant: a wrong branch of a root shows there.
    z = np.array([0.5 + 0.4j, -0.7 + 1.1j, 1.2 - 0.3j, -1.4 - 0.6j])
    check_op(name, [Sample(z)])


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values(name, dtype, device):
    function, x = UNARY[name]
    x = x.astype(dtype)
    result = getattr(flow, name)(flow.tensor(x, device=device))
    assert result.dtype == x.dtype and result.shape == x.shape
    expected = np.vectorize(function)(x.astype("float64"))
    tolerance = {"float64": 1e-14, "float32": 5e-7, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values_of_two(name, dtype, device):
    x, y = ANY.astype(dtype), INSIDE[0].astype(dtype)
    result = getattr(flow, name)(flow.tensor(x, device=device), flow.tensor(y, device=device))
    assert result.dtype == x.dtype
    expected = np.vectorize(BINARY[name])(*np.broadcast_arrays(x.astype("d"), y.astype("d")))
    tolerance = {"float64": 1e-14, "float32": 5e-7, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in UNARY if name != "atanh"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_become_the_default_dtype(name, dtype):
    result = getattr(flow, name)(flow.tensor([1, 1]).to(dtype))
    assert result.dtype == flow.float32
    np.testing.assert_allclose(result.numpy(), UNARY[name][0](1.0), rtol=1e-6, atol=1e-6)


def test_atan2_promotes():
    ints = flow.tensor([1, 2])
    assert flow.atan2(ints, ints).dtype == flow.float32
    assert flow.atan2(ints, flow.tensor([1.0], dtype=flow.float64)).dtype == flow.float64
    assert flow.atan2(flow.tensor([1.0], dtype=flow.float16), ints).dtype == flow.float16


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", UNARY)
def test_unary_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = UNARY[name][1].astype(dtype)
    for case in (x, x.T, x[0, 0], x[:0]):
        compare(getattr(flow, name), getattr(torch, name), case)


@pytest.mark.parametrize("name", UNARY)
def test_complex_agrees_with_pytorch(name):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    z = ANY + 1j * INSIDE
    for part in ("real", "imag"):
        compare(
            lambda x, part=part: getattr(getattr(flow, name)(x), part),
            lambda x, part=part: getattr(getattr(torch, name)(x), part),
            z,
        )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", BINARY)
def test_binary_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, y = (a.astype(dtype) for a in (ANY, INSIDE))
    for pair in ((x, y), (x, y[0]), (x[0], y), (x[0, 0], y), (x.T, y.T), (x[:0], y[:1])):
        compare(getattr(flow, name), getattr(torch, name), *pair)


# op, inputs, value, gradient of each input: all as PyTorch, but for acosh below 1, where PyTorch
# gives the slope of a function that is not there.
EXTREMES = [
    ("asin", [1.0], math.pi / 2, [INF]),
    ("asin", [-1.0], -math.pi / 2, [INF]),
    ("asin", [2.0], NAN, [NAN]),
    ("acos", [1.0], 0.0, [-INF]),
    ("acos", [-1.0], math.pi, [-INF]),
    ("atan", [INF], math.pi / 2, [0.0]),
    ("acosh", [1.0], 0.0, [INF]),
    ("acosh", [0.5], NAN, [NAN]),
    ("acosh", [-2.0], NAN, [NAN]),
    ("atanh", [1.0], INF, [INF]),
    ("atanh", [-1.0], -INF, [INF]),
    ("sinc", [0.0], 1.0, [0.0]),
    ("sinc", [1.0], 0.0, [-1.0]),
    ("sinc", [NAN], NAN, [NAN]),
    ("atan2", [0.0, 0.0], 0.0, [0.0, 0.0]),
    ("atan2", [0.0, -1.0], math.pi, [-1.0, 0.0]),
    ("hypot", [0.0, 0.0], 0.0, [NAN, NAN]),
    ("hypot", [0.0, 1.0], 1.0, [0.0, 1.0]),
    ("hypot", [3e200, 4e200], 5e200, [0.6, 0.8]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy remarks on every inf and nan
@pytest.mark.parametrize(("name", "inputs", "value", "gradients"), EXTREMES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_extremes(name, inputs, value, gradients, create_graph):
    xs = [flow.tensor(x, dtype=flow.float64, requires_grad=True) for x in inputs]
    y = getattr(flow, name)(*xs)
    found = flow.autograd.grad(y, xs, create_graph=create_graph)
    np.testing.assert_allclose(y.detach().numpy(), value, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose([g.detach().numpy() for g in found], gradients, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_derivative_of_sinc(dtype):
    """Against the integral sinc⁽ⁿ⁾(x) = πⁿ ∫₀¹ sⁿ cos(πxs + nπ/2) ds, also at 0 and near it."""
    points = np.array([0.0, 1e-9, -1e-4, 0.3, -0.6, 0.95, 1.0, 1.3, -2.0, 2.4, 5.7], dtype)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s, weights = (nodes + 1) / 2, weights / 2
    x = flow.tensor(points, requires_grad=True)
    derivative = flow.sinc(x)
    for n in range(1, 7):
        (derivative,) = flow.autograd.grad(derivative.sum(), x, create_graph=True)
        angles = np.pi * np.outer(points.astype("d"), s) + n * np.pi / 2
        expected = np.pi**n * (np.cos(angles) * s**n) @ weights
        assert derivative.dtype == points.dtype
        # The recurrence and the series both lose a digit or two at the seam between them.
        tolerance = {"float64": 1e-12, "float32": 1e-4}[dtype] * np.pi**n
        np.testing.assert_allclose(derivative.detach().numpy(), expected, 0, tolerance)


ERRORS = [
    *[(lambda x, n=n: getattr(flow, n)(2.0), TypeError, n, "input") for n in UNARY],
    (lambda x: flow.atan2(x, 2.0), TypeError, "atan2", "other"),
    (lambda x: flow.atan2(2.0, x), TypeError, "atan2", "input"),
    (lambda x: flow.atan2(x * 1j, x), RuntimeError, "atan2", "input"),
    (lambda x: flow.atan2(x, x * 1j), RuntimeError, "atan2", "other"),
    (lambda x: flow.atan2(x, flow.ones(5)), RuntimeError, "atan2", "shapes"),
    (lambda x: flow.hypot(x, 2.0), TypeError, "hypot", "other"),
    (lambda x: flow.hypot([1.0], x), TypeError, "hypot", "input"),
    (lambda x: flow.hypot(x.long(), x.long()), RuntimeError, "hypot", "input"),
    (lambda x: flow.hypot(x, x * 1j), RuntimeError, "hypot", "other"),
    (lambda x: flow.hypot(x, flow.ones(5)), RuntimeError, "hypot", "shapes"),
]


@pytest.mark.parametrize(("call", "kind", "op", "argument"), ERRORS)
def test_errors(call, kind, op, argument):
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(kind, match=rf"(?s)^{op}\(\).*{argument}") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
