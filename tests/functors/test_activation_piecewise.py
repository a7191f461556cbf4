"""Activations made of straight pieces: values, derivatives, kinks, large arrays and errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.testing import Sample, check_op

INF, NAN = math.inf, math.nan
# Values on every piece, none on a kink.
X = np.array([[-4.0, -2.0, -0.7], [-0.2, 0.3, 0.8], [1.7, 4.0, 7.0]])


def clip(x, low, high):
    return min(max(x, low), high)


# functor, keywords, the function on a Python number, its kinks
CASES = [
    ("relu", {}, lambda x: max(x, 0.0), [0.0]),
    ("leaky_relu", {}, lambda x: x if x > 0 else 0.01 * x, [0.0]),
    ("leaky_relu", {"negative_slope": 2}, lambda x: x if x > 0 else 2 * x, [0.0]),
    ("hardtanh", {}, lambda x: clip(x, -1, 1), [-1.0, 1.0]),
    ("hardtanh", {"min_val": -0.5, "max_val": 2}, lambda x: clip(x, -0.5, 2), [-0.5, 2.0]),
    ("relu6", {}, lambda x: clip(x, 0, 6), [0.0, 6.0]),
    ("hardsigmoid", {}, lambda x: clip((x + 3) / 6, 0, 1), [-3.0, 3.0]),
    ("hardswish", {}, lambda x: x * clip((x + 3) / 6, 0, 1), [-3.0, 3.0]),
    ("hardshrink", {}, lambda x: x if abs(x) > 0.5 else 0.0, [-0.5, 0.5]),
    ("hardshrink", {"lambd": 1}, lambda x: x if abs(x) > 1 else 0.0, [-1.0, 1.0]),
    ("softshrink", {}, lambda x: x - clip(x, -0.5, 0.5), [-0.5, 0.5]),
    ("softshrink", {"lambd": 1}, lambda x: x - clip(x, -1, 1), [-1.0, 1.0]),
    ("threshold", {"threshold": 0.5, "value": 9}, lambda x: x if x > 0.5 else 9.0, [0.5]),
]
IDS = [name + "".join(f"-{k}={v}" for k, v in options.items()) for name, options, *_ in CASES]
NAMES = list(dict.fromkeys(name for name, *_ in CASES))
EACH = pytest.mark.parametrize(("name", "options", "function", "kinks"), CASES, ids=IDS)


@EACH
def test_derivatives(name, options, function, kinks, device):
    check_op(name, [Sample(X, **options)], device=device)


@EACH
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values(name, options, function, kinks, dtype, device):
    x = X.astype(dtype)
    result = FUNCTORS.get(name)(flow.tensor(x, device=device), **options)
    assert result.dtype == x.dtype and result.shape == x.shape
    expected = np.vectorize(function, otypes="d")(x.astype("float64"))
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3}[dtype]
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@EACH
def test_agrees_with_pytorch(name, options, function, kinks, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    # PyTorch's hardsigmoid has no second derivative, and divides by a float32 six.
    orders, atol = (1, 1e-7) if name == "hardsigmoid" else (2, None)
    x = X.astype(dtype)
    special = np.array([*kinks, -0.0, 1e30, -1e30], dtype)
    for case in (x, x.T, x[0, 0], x[:0], special):
        compare(
            lambda t: FUNCTORS.get(name)(t, **options),
            lambda t: getattr(torch.nn.functional, name)(t, **options),
            case,
            orders=orders,
            atol=atol,
        )


# functor, keywords, x, slope
KINKS = [
    ("relu", {}, 0.0, 0.0),
    ("leaky_relu", {}, 0.0, 0.01),
    ("hardtanh", {}, -1.0, 0.0),
    ("hardtanh", {}, 1.0, 0.0),
    ("relu6", {}, 0.0, 0.0),
    ("relu6", {}, 6.0, 0.0),
    ("hardsigmoid", {}, -3.0, 0.0),
    ("hardsigmoid", {}, 3.0, 0.0),
    ("hardswish", {}, -3.0, 0.0),
    ("hardswish", {}, 3.0, 1.0),
    ("hardshrink", {}, 0.5, 0.0),
    ("hardshrink", {}, -0.5, 0.0),
    ("softshrink", {}, 0.5, 0.0),
    ("softshrink", {}, -0.5, 0.0),
    ("threshold", {"threshold": 1.0, "value": 2.0}, 1.0, 0.0),
]


@pytest.mark.parametrize(("name", "options", "at", "slope"), KINKS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_slope_at_a_kink(name, options, at, slope, create_graph, device):
    x = flow.tensor(at, dtype=flow.float64, device=device, requires_grad=True)
    y = FUNCTORS.get(name)(x, **options)
    (dx,) = flow.autograd.grad(y, x, create_graph=create_graph)
    assert dx.item() == slope


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "hardtanh", "softshrink", "hardshrink"])
def test_nan_stays_nan(name):
    for size in (1, 10_000):
        result = FUNCTORS.get(name)(flow.tensor(np.full(size, NAN)))
        assert np.isnan(result.numpy()).all()


@pytest.mark.parametrize("size", [4, 10_000])
def test_a_closed_relu_stops_infinite_and_nan_gradients(size):
    """As where sqrt(relu(x)) meets x < 0: 0 times inf is not taken."""
    x = flow.tensor(np.resize([-1.0, 0.0, 1.0, 2.0], size), requires_grad=True)
    dy = flow.tensor(np.resize([INF, NAN, INF, 3.0], size))
    (dx,) = flow.autograd.grad(flow.relu(x), x, dy)
    np.testing.assert_array_equal(dx.numpy()[:4], [0.0, 0.0, INF, 3.0])


@pytest.mark.parametrize("size", [5, 10_000])
def test_hardswish_passes_and_stops_gradients_as_they_are(size):
    """From 3 on as they came, up to -3 as 0, also an inf or nan; between, x/3 + 1/2 times."""
    inner = np.nextafter(3.0, 0.0)
    x = flow.tensor(np.resize([-4.0, -9.0, 3.0, 50.0, inner], size), requires_grad=True)
    dy = flow.tensor(np.resize([INF, NAN, INF, 0.1, 1.0], size))
    (dx,) = flow.autograd.grad(FUNCTORS.get("hardswish")(x), x, dy)
    np.testing.assert_array_equal(dx.numpy()[:5], [0.0, 0.0, INF, 0.1, inner / 3 + 0.5])


def test_relu_saves_its_result_alone():
    x = flow.tensor([-1.0, 0.5], requires_grad=True)
    y = flow.relu(x)
    assert [saved._data is y._data for saved in y.grad_fn.saved_tensors] == [True]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@EACH
def test_large_arrays_take_quicker_ways_to_the_same_result(name, options, function, kinks, dtype):
    rng = np.random.default_rng(1)
    x, dy = (rng.normal(size=(100, 100)).astype(dtype) * 3 for _ in range(2))
    x[0, : len(kinks)] = kinks
    x[1, :3] = [NAN, INF, -INF] if name != "hardswish" else [NAN, 50.0, -50.0]

    def value_and_gradient(x, dy):
        x = flow.tensor(x, requires_grad=True)
        y = FUNCTORS.get(name)(x, **options)
        (dx,) = flow.autograd.grad(y, x, flow.tensor(dy))
        assert y.dtype == dx.dtype == x.dtype
        return y.detach().numpy(), dx.numpy()

    rows = [value_and_gradient(*pair) for pair in zip(x, dy, strict=True)]
    for whole, parts in zip(value_and_gradient(x, dy), zip(*rows, strict=True), strict=True):
        np.testing.assert_array_equal(whole, np.stack(parts))


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8"])
def test_integers(dtype, device):
    x = flow.tensor(np.array([0, 1, 5, 9]).astype(dtype), device=device)
    relu, hardtanh, threshold = map(FUNCTORS.get, ("relu", "hardtanh", "threshold"))
    results = {
        relu: [0, 1, 5, 9],
        lambda t: hardtanh(t, 1, 5.7): [1, 1, 5, 5],
        FUNCTORS.get("relu6"): [0, 1, 5, 6],
        lambda t: threshold(t, 4, 7): [7, 7, 5, 9],
    }
    for function, expected in results.items():
        result = function(x)
        assert result.dtype == x.dtype and result.tolist() == expected


def test_negative_integers():
    x = flow.tensor(np.arange(-10_000, 10_000))
    np.testing.assert_array_equal(flow.relu(x).numpy(), np.maximum(x.numpy(), 0))
    np.testing.assert_array_equal(FUNCTORS.get("hardtanh")(x).numpy(), np.sign(x.numpy()))


INPLACE = {
    "relu": (),
    "leaky_relu": (0.3,),
    "hardtanh": (-0.5, 0.5),
    "relu6": (),
    "hardsigmoid": (),
    "hardswish": (),
    "threshold": (0.1, 5.0),
}


@pytest.mark.parametrize("name", INPLACE)
def test_inplace(name):
    x = flow.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    result = FUNCTORS.get(name)(y, *INPLACE[name], inplace=True)
    assert result is y
    expected = FUNCTORS.get(name)(x, *INPLACE[name])
    np.testing.assert_array_equal(y.detach().numpy(), expected.detach().numpy())
    (dx,) = flow.autograd.grad(y.sum(), x)
    (expected_dx,) = flow.autograd.grad(expected.sum(), x)
    np.testing.assert_array_equal(dx.numpy(), expected_dx.numpy())


def call(name, *args):
    return lambda x: FUNCTORS.get(name)(*(x if a is None else a for a in args))


REST = {"threshold": (0.1, 0.2)}
ERRORS = [
    *[(call(n, [1.0], *REST.get(n, ())), TypeError, n, "input") for n in NAMES],
    *[(call(n, flow.tensor([1j]), *REST.get(n, ())), RuntimeError, n, "input") for n in NAMES],
    *[(call(n, flow.tensor([True]), *REST.get(n, ())), RuntimeError, n, "input") for n in NAMES],
    *[
        (call(n, flow.tensor([1])), RuntimeError, n, "input")
        for n in ("leaky_relu", "hardsigmoid", "hardswish", "hardshrink", "softshrink")
    ],
    (call("leaky_relu", None, "a"), TypeError, "leaky_relu", "negative_slope"),
    (call("hardtanh", None, 2, 1), ValueError, "hardtanh", "min_val"),
    (call("hardtanh", None, "a"), TypeError, "hardtanh", "min_val"),
    (call("hardtanh", None, 0, "a"), TypeError, "hardtanh", "max_val"),
    (call("hardtanh", flow.tensor([1]).to(flow.uint8)), RuntimeError, "hardtanh", "min_val"),
    (call("hardshrink", None, "a"), TypeError, "hardshrink", "lambd"),
    (call("softshrink", None, "a"), TypeError, "softshrink", "lambd"),
    (call("softshrink", None, -0.1), ValueError, "softshrink", "lambd"),
    (call("threshold", None, "a", 1.0), TypeError, "threshold", "threshold"),
    (call("threshold", None, 1.0, "a"), TypeError, "threshold", "value"),
    (call("threshold", flow.tensor([1]), 1, 2**70), RuntimeError, "threshold", "value"),
]


@pytest.mark.parametrize(("function", "kind", "op", "argument"), ERRORS)
def test_errors(function, kind, op, argument):
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(kind, match=rf"(?s)^{op}\(\): argument '{argument}'.*") as caught:
        function(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "float64"])
def test_threshold_of_many_numbers_of_any_kind(dtype):
    x = (np.arange(5000) % 7).astype(dtype)
    y = flow.nn.functional.threshold(flow.tensor(x), 3, 2).numpy()
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, np.where(x <= 3, 2, x))
