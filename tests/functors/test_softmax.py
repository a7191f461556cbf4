"""Softmax and its logarithm: values, derivatives, extremes and errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.testing import Sample, check_op

X = np.random.default_rng(0).normal(size=(2, 3, 2))
NAMES = ["softmax", "log_softmax", "softmin"]
INF, NAN = math.inf, math.nan


def reference(name, x, dim):
    e = np.exp(-x if name == "softmin" else x)
    y = e / e.sum(axis=dim, keepdims=True)
    return np.log(y) if name == "log_softmax" else y


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name, device):
    samples = [Sample(X[0], 0), Sample(X[0], dim=-1), Sample(X[:, :2], 1), Sample(X[0, 0], 0)]
    check_op(name, samples, device=device)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values(name, dim, dtype, device):
    x = X.astype(dtype)
    result = FUNCTORS.get(name)(flow.tensor(x, device=device), dim)
    assert result.dtype == x.dtype and result.shape == x.shape
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3}[dtype]
    expected = reference(name, x.astype("d"), dim)
    np.testing.assert_allclose(result.numpy(), expected, tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = X.astype(dtype)
    empty = np.zeros((2, 0, 3), dtype)
    cases = [(x, 0), (x, 1), (x, -1), (x.T, 1), (x[0, 0], 0), (x[0, 0, 0], 0), (x[0, 0, 0], -1)]
    for case, dim in [*cases, (empty, 1), (empty, 0), (x * 1000, 1), (np.ones((2, 1), dtype), 1)]:
        compare(
            lambda t, dim=dim: FUNCTORS.get(name)(t, dim),
            lambda t, dim=dim: getattr(torch.nn.functional, name)(t, dim),
            case,
            orders=3,
        )


def test_large_numbers_neither_overflow_nor_vanish():
    x = flow.tensor([1e30, 1e30, 0.0])
    np.testing.assert_allclose(flow.softmax(x, 0).numpy(), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(
        flow.log_softmax(x, 0).numpy(), [-math.log(2), -math.log(2), -1e30], rtol=1e-6
    )


def test_masked_with_minus_infinity():
    x = flow.tensor([[0.0, -INF, 0.0], [-INF, -INF, 1.0]], requires_grad=True)
    y = flow.softmax(x, 1)
    np.testing.assert_array_equal(y.detach().numpy(), [[0.5, 0, 0.5], [0, 0, 1]])
    (dx,) = flow.autograd.grad(y[0, 0], x)
    np.testing.assert_array_equal(dx.numpy(), [[0.25, 0, -0.25], [0, 0, 0]])
    np.testing.assert_allclose(
        flow.log_softmax(x, 1).detach().numpy(),
        [[-math.log(2), -INF, -math.log(2)], [-INF, -INF, 0]],
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_but_minus_infinity_is_nan():
    x = flow.tensor([-INF, -INF])
    assert flow.softmax(x, 0).isnan().all() and flow.log_softmax(x, 0).isnan().all()


@pytest.mark.parametrize("name", NAMES)
def test_halves_are_summed_in_single_precision(name):
    x = flow.zeros(4096, dtype=flow.float16)
    value = {"log_softmax": -math.log(4096)}.get(name, 1 / 4096)
    np.testing.assert_allclose(FUNCTORS.get(name)(x, 0).numpy(), value, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_dtype_casts_first(name, device):
    x = flow.tensor(X.astype("float32"), device=device, requires_grad=True)
    y = FUNCTORS.get(name)(x, 1, dtype=flow.float64)
    assert y.dtype == flow.float64
    np.testing.assert_allclose(
        y.detach().numpy(), reference(name, X.astype("f4").astype("d"), 1), rtol=1e-12
    )
    (dx,) = flow.autograd.grad(y, x, flow.ones_like(y))
    assert dx.dtype == flow.float32
    ints = flow.tensor([1, 2], device=device)
    assert FUNCTORS.get(name)(ints, 0, dtype="float32").dtype == flow.float32


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("ndim", "dim"), [(1, 0), (2, 1), (3, 0), (4, 1)])
def test_leaving_out_dim_is_deprecated(name, ndim, dim):
    x = flow.tensor(np.random.default_rng(1).normal(size=(2,) * ndim))
    with pytest.warns(UserWarning, match="dim"):
        result = FUNCTORS.get(name)(x)
    np.testing.assert_array_equal(result.numpy(), FUNCTORS.get(name)(x, dim).numpy())


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    function = FUNCTORS.get(name)
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    cases = [
        (lambda: function([1.0], 0), TypeError, "input"),
        (lambda: function(x, 2), IndexError, "dim"),
        (lambda: function(x, -3), IndexError, "dim"),
        (lambda: function(x, 1.0), TypeError, "dim"),
        (lambda: function(x, (0, 1)), TypeError, "dim"),
        (lambda: function(x.long(), 0), RuntimeError, "input"),
        (lambda: function(x * 1j, 0), RuntimeError, "input"),
        (lambda: function(x, 0, dtype=flow.int64), RuntimeError, "input"),
        (lambda: function(x, 0, dtype="word"), TypeError, "dtype"),
        (lambda: function(flow.tensor(1.0), 1), IndexError, "dim"),
    ]
    for call, kind, argument in cases:
        with pytest.raises(kind, match=rf"^{name}\(\): argument '{argument}'") as caught:
            call()
        assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_pieces_of_large_arrays_are_the_whole(monkeypatch, name, dtype):
    x, dy = np.random.default_rng(1).normal(size=(2, 12, 35, 16)).astype(dtype)
    function = getattr(flow.nn.functional, name)

    def value_and_gradient(dim):
        given = flow.tensor(x, requires_grad=True)
        y = function(given, dim)
        (dx,) = flow.autograd.grad(y, given, flow.tensor(dy))
        return y.detach().numpy(), dx.numpy()

    for dim in (0, 1, -1):
        whole = value_and_gradient(dim)
        with monkeypatch.context() as patch:
            patch.setattr("oneflow_lite.kernels.halves._LARGE", 2048)
            patch.setattr("oneflow_lite.kernels.pieces.BYTES", 4096)
            parts = value_and_gradient(dim)
        bound = 4 * np.finfo(dtype).eps
        for a, b in zip(whole, parts, strict=True):
            np.testing.assert_allclose(a, b, bound, bound)
