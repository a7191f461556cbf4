"""Smooth activations: values, derivatives, extremes, large arrays and errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.kernels import numerics
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.5, 2.5, (2, 3))
INF, NAN = math.inf, math.nan


def sigma(x):
    return 1 / (1 + math.exp(-x))


def normal_cdf(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x):
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def elu(x, alpha=1.0):
    return x if x > 0 else alpha * math.expm1(x)


# functor, keywords, the function on a Python number
CASES = [
    ("gelu", {}, lambda x: x * normal_cdf(x)),
    ("gelu", {"approximate": "tanh"}, gelu_tanh),
    ("silu", {}, lambda x: x * sigma(x)),
    ("elu", {}, elu),
    ("elu", {"alpha": 2}, lambda x: elu(x, 2)),
    ("selu", {}, lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    ("celu", {}, elu),
    ("celu", {"alpha": 0.5}, lambda x: 0.5 * elu(x / 0.5)),
    ("softplus", {}, lambda x: math.log1p(math.exp(x))),
    ("softplus", {"beta": 2}, lambda x: math.log1p(math.exp(2 * x)) / 2),
    ("softplus", {"threshold": 1}, lambda x: x if x > 1 else math.log1p(math.exp(x))),
    ("mish", {}, lambda x: x * math.tanh(math.log1p(math.exp(x)))),
    ("softsign", {}, lambda x: x / (1 + abs(x))),
    ("logsigmoid", {}, lambda x: math.log(sigma(x))),
    ("tanhshrink", {}, lambda x: x - math.tanh(x)),
]
IDS = [name + "".join(f"-{k}={v}" for k, v in options.items()) for name, options, _ in CASES]
NAMES = list(dict.fromkeys(name for name, _, _ in CASES))


@pytest.mark.parametrize(("name", "options", "function"), CASES, ids=IDS)
def test_derivatives(name, options, function, device):
    check_op(name, [Sample(X, **options)], device=device)


@pytest.mark.parametrize(("name", "options", "function"), CASES, ids=IDS)
def test_third_derivative(name, options, function):
    """The slope of the second derivative, which only rules of rules reach."""

    def derivative(order, points):
        x = flow.tensor(points, requires_grad=True)
        y = FUNCTORS.get(name)(x, **options)
        for _ in range(order):
            (y,) = flow.autograd.grad(y.sum(), x, create_graph=True)
        return y.detach().numpy()

    step = 1e-5
    differences = (derivative(2, X + step) - derivative(2, X - step)) / (2 * step)
    np.testing.assert_allclose(derivative(3, X), differences, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "options", "function"), CASES, ids=IDS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values(name, options, function, dtype, device):
    x = X.astype(dtype)
    result = FUNCTORS.get(name)(flow.tensor(x, device=device), **options)
    assert result.dtype == x.dtype and result.shape == x.shape
    expected = np.vectorize(function)(x.astype("float64"))
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "options", "function"), CASES, ids=IDS)
def test_agrees_with_pytorch(name, options, function, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = X.astype(dtype)
    for case in (x, x.T, x[0, 0], x[:0]):
        compare(
            lambda t: FUNCTORS.get(name)(t, **options),
            lambda t: getattr(torch.nn.functional, name)(t, **options),
            case,
            orders=3,
        )


SPECIAL = [-0.0, 0.0, 1e-8, -1e-8, 8.0, -8.0, 19.9, 20.1, 60.0, -60.0, 1000.0, -1000.0, NAN]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "options", "function"), CASES, ids=IDS)
def test_extremes_agree_with_pytorch(name, options, function, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    # The second derivative of PyTorch's mish at 1000 is nan; the true one is 0.
    points = [x for x in SPECIAL if not (name == "mish" and x == 1000.0)]
    compare(
        lambda t: FUNCTORS.get(name)(t, **options),
        lambda t: getattr(torch.nn.functional, name)(t, **options),
        np.array(points, dtype),
    )


# Limits that hold whatever PyTorch says: functor, x, value, slope, curvature
LIMITS = [
    ("gelu", 1000.0, 1000.0, 1.0, 0.0),
    ("gelu", -1000.0, 0.0, 0.0, 0.0),
    ("silu", 1000.0, 1000.0, 1.0, 0.0),
    ("silu", -1000.0, 0.0, 0.0, 0.0),
    ("elu", 1000.0, 1000.0, 1.0, 0.0),
    ("elu", -1000.0, -1.0, 0.0, 0.0),
    ("celu", 1000.0, 1000.0, 1.0, 0.0),
    ("softplus", 1000.0, 1000.0, 1.0, 0.0),
    ("softplus", -1000.0, 0.0, 0.0, 0.0),
    ("mish", 1000.0, 1000.0, 1.0, 0.0),
    ("mish", -1000.0, 0.0, 0.0, 0.0),
    ("softsign", 1e300, 1.0, 0.0, 0.0),
    ("logsigmoid", 1000.0, 0.0, 0.0, 0.0),
    ("logsigmoid", -1000.0, -1000.0, 1.0, 0.0),
    ("tanhshrink", 1000.0, 999.0, 1.0, 0.0),
]


@pytest.mark.parametrize(("name", "x", "value", "slope", "curvature"), LIMITS)
def test_limits(name, x, value, slope, curvature):
    x = flow.tensor(x, dtype=flow.float64, requires_grad=True)
    y = FUNCTORS.get(name)(x)
    (dx,) = flow.autograd.grad(y, x, create_graph=True)
    (ddx,) = flow.autograd.grad(dx, x)
    assert (y.item(), dx.item(), ddx.item()) == (value, slope, curvature)


@pytest.mark.parametrize(
    ("name", "slope", "curvature"),
    [("elu", 3.0, 0.0), ("celu", 1.0, 0.0), ("softsign", 1.0, 0.0)],
)
def test_kink_at_zero(name, slope, curvature):
    """At 0 the slope is the left one, the curvature the right one, as in PyTorch."""
    x = flow.tensor(0.0, requires_grad=True)
    y = FUNCTORS.get(name)(x, *([3.0] if name != "softsign" else []))
    (dx,) = flow.autograd.grad(y, x, create_graph=True)
    (ddx,) = flow.autograd.grad(dx, x)
    assert (dx.item(), ddx.item()) == (slope, curvature)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize(("name", "options", "function"), CASES, ids=IDS)
def test_large_arrays_take_quicker_ways_to_the_same_result(name, options, function, dtype):
    rng = np.random.default_rng(1)
    x, dy = (rng.normal(size=(100, 100)).astype(dtype) * 3 for _ in range(2))

    def value_and_gradient(x, dy):
        x = flow.tensor(x, requires_grad=True)
        y = FUNCTORS.get(name)(x, **options)
        (dx,) = flow.autograd.grad(y, x, flow.tensor(dy))
        assert y.dtype == dx.dtype == x.dtype
        return y.detach().numpy(), dx.numpy()

    rows = [value_and_gradient(*pair) for pair in zip(x, dy, strict=True)]
    tolerance = {"float64": 1e-13, "float32": 5e-6, "float16": 5e-3}[dtype]
    for whole, parts in zip(value_and_gradient(x, dy), zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(whole, np.stack(parts), tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize(("name", "options", "function"), CASES, ids=IDS)
def test_pieces_of_large_arrays_have_the_bits_of_the_whole(
    monkeypatch, name, options, function, dtype
):
    x, dy = np.random.default_rng(1).normal(size=(2, 50, 111)).astype(dtype) * 3

    def value_and_gradient(dy):
        given = flow.tensor(x, requires_grad=True)
        y = FUNCTORS.get(name)(given, **options)
        (dx,) = flow.autograd.grad(y, given, dy)
        return y.detach().numpy(), dx.numpy()

    for gradient in (flow.tensor(dy), flow.tensor(dy.T.copy()).T):
        whole = value_and_gradient(gradient)
        with monkeypatch.context() as patch:
            patch.setattr("oneflow_lite.kernels.halves._LARGE", 2048)
            patch.setattr("oneflow_lite.kernels.pieces.BYTES", 2048 * x.itemsize)
            parts = value_and_gradient(gradient)
        assert all(map(np.array_equal, whole, parts))


def test_softsign_and_tanhshrink_of_integers():
    x = flow.tensor([-1, 0, 3])
    np.testing.assert_allclose(FUNCTORS.get("softsign")(x).numpy(), [-0.5, 0, 0.75])
    assert FUNCTORS.get("tanhshrink")(x).dtype == flow.float32


def test_silu_is_holomorphic():
    check_op("silu", [Sample(np.array([0.5 + 0.4j, -0.7 + 1.1j]))])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(dim, device):
    x = RNG.normal(size=(2, 4))
    a, b = np.split(x, 2, axis=dim)
    result = FUNCTORS.get("glu")(flow.tensor(x, device=device), dim)
    np.testing.assert_allclose(result.numpy(), a / (1 + np.exp(-b)), rtol=1e-12)
    check_op("glu", [Sample(x, dim), Sample(x, dim=dim)], device=device)


@pytest.mark.parametrize("name", ["silu", "elu", "selu", "celu", "mish"])
def test_inplace(name):
    x = flow.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    result = FUNCTORS.get(name)(y, inplace=True)
    assert result is y
    expected = FUNCTORS.get(name)(x)
    np.testing.assert_array_equal(y.detach().numpy(), expected.detach().numpy())
    (dx,) = flow.autograd.grad(y.sum(), x)
    (expected_dx,) = flow.autograd.grad(expected.sum(), x)
    np.testing.assert_array_equal(dx.numpy(), expected_dx.numpy())


def call(name, *args, **options):
    return lambda x: FUNCTORS.get(name)(*(x if a is None else a for a in args), **options)


ERRORS = [
    *[(call(name, [1.0]), TypeError, name, "input") for name in [*NAMES, "glu"]],
    *[
        (call(name, flow.tensor([1, 2])), RuntimeError, name, "input")
        for name in [*NAMES, "glu"]
        if name not in ("softsign", "tanhshrink")
    ],
    *[
        (call(name, flow.tensor([1j, 2j])), RuntimeError, name, "input")
        for name in [*NAMES, "glu"]
        if name not in ("silu", "softsign", "tanhshrink")
    ],
    (call("gelu", None, "sigmoid"), ValueError, "gelu", "approximate"),
    (call("gelu", None, approximate=None), ValueError, "gelu", "approximate"),
    (call("elu", None, "a"), TypeError, "elu", "alpha"),
    (call("celu", None, "a"), TypeError, "celu", "alpha"),
    (call("celu", None, 0), ValueError, "celu", "alpha"),
    (call("softplus", None, "a"), TypeError, "softplus", "beta"),
    (call("softplus", None, threshold=[]), TypeError, "softplus", "threshold"),
    (call("glu", None, 2), IndexError, "glu", "dim"),
    (call("glu", None, 0), RuntimeError, "glu", "input"),
    (call("glu", flow.tensor(1.0)), RuntimeError, "glu", "input"),
]


@pytest.mark.parametrize(("function", "kind", "op", "argument"), ERRORS)
def test_errors(function, kind, op, argument):
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with pytest.raises(kind, match=rf"(?s)^{op}\(\): argument '{argument}'.*") as caught:
        function(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize("wide", [False, True])
def test_log1p_of_exponentials_keeps_its_digits(wide, monkeypatch):
    monkeypatch.setattr(numerics, "has_wide_functions", lambda: wide)
    x = np.exp(-np.linspace(0, 110, 100_000)).astype("f")
    x[:5] = 0, 1, np.nan, 1e-45, 1e-38
    wanted = np.log1p(x.astype("d"))
    for out in (None, np.empty_like(x), x):
        found = numerics.log1p(np, x, out=out)
        assert out is None or found is out
        error = np.abs(found - wanted) / np.spacing(wanted.astype("f"))
        assert np.isnan(found[2]) and not found[0]
        assert np.delete(error, 2).max() < 4
