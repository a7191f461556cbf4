"""Exponentials, logarithms and what is made of them: values, derivatives, extremes and errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
ANY = RNG.uniform(-2.0, 2.0, (2, 3))
POSITIVE = RNG.uniform(0.5, 2.0, (2, 3))
INF, NAN = math.inf, math.nan

# name: (the function on a Python number, an input away from its edges)
UNARY = {
    "exp": (math.exp, ANY),
    "exp2": (lambda x: 2.0**x, ANY),
    "expm1": (math.expm1, ANY),
    "log": (math.log, POSITIVE),
    "log1p": (math.log1p, POSITIVE - 1),
    "log2": (math.log2, POSITIVE),
    "log10": (math.log10, POSITIVE),
    "tanh": (math.tanh, ANY),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), ANY),
    "erf": (math.erf, ANY),
    "erfc": (math.erfc, ANY),
}
BINARY = {
    "logaddexp": (lambda x, y: math.log(math.exp(x) + math.exp(y)), ANY, ANY[:1] + 0.3),
    "xlogy": (lambda x, y: x * math.log(y), ANY, POSITIVE[0]),
}
COMPLEX = [name for name in UNARY if not name.startswith("erf")]


def samples(name):
    if name in UNARY:
        return [Sample(UNARY[name][1])]
    x, y = BINARY[name][1:]
    return [Sample(x, y), Sample(y, x + 3)] + [Sample(x, 2.5), Sample(2.5, x + 3)] * (
        name == "xlogy"
    )


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_derivatives(name, device):
    check_op(name, samples(name), device=device)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_derivatives(name):
    check_op(name, [Sample(np.array([0.5 + 0.4j, -0.7 + 1.1j, 1.2 - 0.3j]))])


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values(name, dtype, device):
    function, x = UNARY[name]
    x = x.astype(dtype)
    result = getattr(flow, name)(flow.tensor(x, device=device))
    assert result.dtype == x.dtype and result.shape == x.shape
    expected = np.vectorize(function)(x.astype("float64"))
    tolerance = {"float64": 1e-14, "float32": 5e-7, "float16": 1e-3}[dtype]
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values_of_two(name, dtype, device):
    function, x, y = BINARY[name]
    x, y = x.astype(dtype), y.astype(dtype)
    result = getattr(flow, name)(flow.tensor(x, device=device), flow.tensor(y, device=device))
    assert result.dtype == x.dtype
    expected = np.vectorize(function)(*np.broadcast_arrays(x.astype("d"), y.astype("d")))
    tolerance = {"float64": 1e-14, "float32": 5e-7, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_become_the_default_dtype(name, dtype):
    result = getattr(flow, name)(flow.tensor([1, 1]).to(dtype))
    assert result.dtype == flow.float32
    np.testing.assert_allclose(result.numpy(), UNARY[name][0](1.0), rtol=1e-6)


def test_xlogy_promotes():
    ints = flow.tensor([1, 2])
    assert flow.xlogy(ints, ints).dtype == flow.float32
    assert flow.xlogy(ints, 3).dtype == flow.float32
    assert flow.xlogy(flow.tensor([1.0], dtype=flow.float16), ints).dtype == flow.float16
    np.testing.assert_allclose(flow.xlogy(2, ints + 1).numpy(), 2 * np.log([2, 3]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", UNARY)
def test_unary_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = UNARY[name][1].astype(dtype)
    for case in (x, x.T, x[0, 0], x[:0], np.tile(x, (300, 3))):
        compare(getattr(flow, name), getattr(torch, name), case)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_agrees_with_pytorch(name):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    # PyTorch and we agree on the gradient of a real function of complex numbers.
    z = ANY + 1j * POSITIVE
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

    x, y = (a.astype(dtype) for a in (ANY, POSITIVE))
    for pair in ((x, y), (x, y[0]), (x[0], y), (x[0, 0], y), (x.T, y.T), (x[:0], y[:1])):
        compare(getattr(flow, name), getattr(torch, name), *pair)


# op, inputs, value, gradient of each input: all as PyTorch
EXTREMES = [
    ("sigmoid", [-1000.0], 0.0, [0.0]),
    ("sigmoid", [1000.0], 1.0, [0.0]),
    ("sigmoid", [-40.0], math.exp(-40), [math.exp(-40)]),
    ("sigmoid", [NAN], NAN, [NAN]),
    ("tanh", [1000.0], 1.0, [0.0]),
    ("tanh", [-INF], -1.0, [0.0]),
    ("erf", [30.0], 1.0, [0.0]),
    ("erfc", [-INF], 2.0, [0.0]),
    ("log", [0.0], -INF, [INF]),
    ("log1p", [-1.0], -INF, [INF]),
    ("log", [-1.0], NAN, [-1.0]),
    ("exp", [1000.0], INF, [INF]),
    ("exp", [-INF], 0.0, [0.0]),
    ("expm1", [1e-20], 1e-20, [1.0]),
    ("log1p", [1e-20], 1e-20, [1.0]),
    ("logaddexp", [1000.0, 0.0], 1000.0, [1.0, 0.0]),
    ("logaddexp", [2000.0, 2000.0], 2000 + math.log(2), [0.5, 0.5]),
    ("logaddexp", [-INF, 1.0], 1.0, [0.0, 1.0]),
    ("logaddexp", [INF, INF], INF, [NAN, NAN]),
    ("xlogy", [0.0, 0.0], 0.0, [0.0, NAN]),
    ("xlogy", [0.0, -1.0], 0.0, [0.0, 0.0]),
    ("xlogy", [0.0, 2.0], 0.0, [math.log(2), 0.0]),
    ("xlogy", [0.0, 0.5], 0.0, [math.log(0.5), 0.0]),
    ("xlogy", [0.0, INF], 0.0, [INF, 0.0]),
    ("xlogy", [0.0, NAN], NAN, [NAN, NAN]),
    ("xlogy", [1.0, 0.0], -INF, [-INF, INF]),
    ("xlogy", [NAN, 0.0], NAN, [-INF, NAN]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy remarks on every inf and nan
@pytest.mark.parametrize(("name", "inputs", "value", "gradients"), EXTREMES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_extremes(name, inputs, value, gradients, create_graph):
    xs = [flow.tensor(x, dtype=flow.float64, requires_grad=True) for x in inputs]
    y = getattr(flow, name)(*xs)
    found = flow.autograd.grad(y, xs, create_graph=create_graph)
    np.testing.assert_allclose(y.detach().numpy(), value, rtol=1e-12)
    np.testing.assert_allclose([g.detach().numpy() for g in found], gradients, rtol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_saturated_activations_keep_their_result_alone(name):
    x = flow.tensor([0.5], requires_grad=True)
    y = getattr(flow, name)(x)
    assert [saved._data is y._data for saved in y.grad_fn.saved_tensors] == [True]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 4.0, 1e30])
def test_erf_of_many_float32_numbers_is_accurate(scale):
    x = (RNG.normal(size=20_000) * scale).astype(np.float32)
    expected = np.vectorize(math.erf)(x.astype(np.float64))
    result = flow.erf(flow.tensor(x)).numpy()
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=4e-7)
    special = flow.erf(flow.tensor(np.resize(np.float32([NAN, INF, -INF, -0.0]), 4096))).numpy()
    np.testing.assert_array_equal(special[:4], np.float32([NAN, 1, -1, -0.0]))
    assert np.signbit(special[3])


ERRORS = [
    *[(lambda x, n=n: getattr(flow, n)(2.0), TypeError, n, "input") for n in UNARY],
    *[(lambda x, n=n: getattr(flow, n)(x * 1j), RuntimeError, n, "input") for n in ("erf", "erfc")],
    (lambda x: flow.logaddexp(x, 2.0), TypeError, "logaddexp", "other"),
    (lambda x: flow.logaddexp(2.0, x), TypeError, "logaddexp", "input"),
    (lambda x: flow.logaddexp(x.long(), x.long()), RuntimeError, "logaddexp", "input"),
    (lambda x: flow.logaddexp(x, flow.ones(5)), RuntimeError, "logaddexp", "shapes"),
    (lambda x: flow.xlogy(2.0, 3.0), TypeError, "xlogy", "input"),
    (lambda x: flow.xlogy("a", x), TypeError, "xlogy", "input"),
    (lambda x: flow.xlogy(x, 1j), TypeError, "xlogy", "other"),
    (lambda x: flow.xlogy(x, x * 1j), RuntimeError, "xlogy", "other"),
    (lambda x: flow.xlogy(x, flow.ones(5)), RuntimeError, "xlogy", "shapes"),
]


@pytest.mark.parametrize(("call", "kind", "op", "argument"), ERRORS)
def test_errors(call, kind, op, argument):
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(kind, match=rf"(?s)^{op}\(\).*{argument}") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_complex_log1p_keeps_the_digits_near_zero(device):
    x = np.array([1e-10 + 1e-10j, 1e-20j, -1e-9 + 1e-7j, 1e-300 - 0j, 0.1 - 0.2j, -0.9 + 0.01j])
    # log|1 + z| = x + (y² - x²)/2 + ..., of which NumPy's log1p keeps nothing below 1e-16
    real = [
        1e-10,
        5e-41,
        -1e-9 + 5e-15 - 5e-19,
        1e-300,
        math.log(abs(1.1 - 0.2j)),
        -2.297609927567462,
    ]
    y = flow.log1p(flow.tensor(x, device=device)).cpu().numpy()
    np.testing.assert_allclose(y.real, real, rtol=1e-12)
    np.testing.assert_allclose(y.imag, np.arctan2(x.imag, 1 + x.real), rtol=1e-15)
    ends = np.array([-1, -0.0 + 0j, complex(-1.5, -0.0), complex(INF, 1), complex(NAN, 1), 3 + 4j])
    torch = pytest.importorskip("torch")
    expected = torch.log1p(torch.tensor(ends)).numpy()
    got = flow.log1p(flow.tensor(ends)).numpy()
    np.testing.assert_allclose(got.real, expected.real, rtol=1e-14)
    np.testing.assert_allclose(got.imag, expected.imag, rtol=1e-14)
    assert (np.signbit(got.view(float)) == np.signbit(expected.view(float)))[:10].all()
