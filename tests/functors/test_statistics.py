"""Variance, standard deviation, norms: both spellings, kinks and errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op

X = np.random.default_rng(2).uniform(-2.0, 2.0, (2, 3, 4))
X[np.abs(X) < 0.1] = 0.5
INF = math.inf

SPREAD = [
    lambda f, x: f(x),
    lambda f, x: f(x, 1),
    lambda f, x: f(x, dim=(0, -1), keepdim=True),
    lambda f, x: f(x, False),
    lambda f, x: f(x, unbiased=False),
    lambda f, x: f(x, 1, False),
    lambda f, x: f(x, 1, True, True),
    lambda f, x: f(x, dim=2, correction=0),
    lambda f, x: f(x, correction=0.5),
    lambda f, x: f(x, None, correction=2),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("number", range(len(SPREAD)))
def test_spread_agrees_with_pytorch(number, name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function = SPREAD[number]
    compare(
        lambda x: function(getattr(flow, name), x),
        lambda x: function(getattr(torch, name), x),
        X.astype(dtype),
    )


SMALL = np.array([[0.5, -1.2, 2.0], [1.5, 0.7, -0.4]])
SPREADS = [
    Sample(SMALL),
    Sample(SMALL, 1),
    Sample(SMALL, (0, 1), False, True),
    Sample(SMALL, 1, correction=0, keepdim=True),
]
SAMPLES = {
    "var": SPREADS,
    "std": SPREADS,
    "var_mean": SPREADS,
    "std_mean": SPREADS,
    "norm": [
        Sample(SMALL),
        Sample(SMALL, dim=1),
        Sample(SMALL, 1, 0, True),
        Sample(SMALL, 3, (0, 1), True),
        Sample(SMALL, 0.5),
        Sample(SMALL, 1.5, 1),
        Sample(SMALL, INF, 1),
        Sample(SMALL, -INF),
        Sample(SMALL, 0),
    ],
    "safe_divide": [Sample(SMALL, SMALL[0]), Sample(SMALL, SMALL[1] * 2)],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    # The degenerate samples reach the kinks, which have tests of their own.
    check_op(op, SAMPLES[op], device=device, degenerate=False)


EDGES = {
    "constant": (lambda lib, f, x: f(x), np.full(3, 2.0)),
    "constant_rows": (lambda lib, f, x: f(x, 1), np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]])),
    "one_element": (lambda lib, f, x: f(x, 0), np.array([2.0])),
    "correction_of_the_count": (lambda lib, f, x: f(x, 0, correction=2), np.array([2.0, 3.0])),
    "empty": (lambda lib, f, x: f(x, 0), np.zeros((0, 3))),
    "to_empty": (lambda lib, f, x: f(x, 1), np.zeros((0, 3))),
    "0d": (lambda lib, f, x: f(x, correction=0), np.array(2.0)),
    "method": (lambda lib, f, x: getattr(x, f.__name__)(1), X),
}


# PyTorch is silent where NumPy warns of 0 · inf, and warns of the degrees of freedom.
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("case", EDGES)
def test_edges_of_spread_agree_with_pytorch(case, name):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, x = EDGES[case]
    compare(
        lambda x: function(flow, getattr(flow, name), x),
        lambda x: function(torch, getattr(torch, name), x),
        x,
    )


def test_no_dimensions_are_all_dimensions():
    assert flow.var(flow.tensor(X), (), keepdim=True).shape == (1, 1, 1)
    assert flow.std(flow.tensor(X), dim=()).item() == flow.std(flow.tensor(X)).item()


@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_of_complex_numbers(name):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    z = X[0] + 1j * X[1]
    compare(lambda z: getattr(flow, name)(z, 1), lambda z: getattr(torch, name)(z, 1), z, orders=1)


def test_half_precision():
    x = flow.tensor([300.0, 302.0, 304.0], dtype=flow.float16)
    assert flow.var(x).item() == 4 and flow.std(x).dtype == flow.float16
    assert flow.norm(x).item() == pytest.approx(523.1, rel=1e-3)


NORMS = [
    lambda lib, x, p: lib.norm(x, p, (0, 1, 2)),
    lambda lib, x, p: x.norm(p, dim=1),
    lambda lib, x, p: x.norm(p=p, dim=-1, keepdim=True),
    lambda lib, x, p: lib.norm(x, p, (0, 2)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("p", ["fro", 0, 0.5, 1, 1.5, 2, 3, -1, INF, -INF])
@pytest.mark.parametrize("number", range(len(NORMS)))
def test_norm_agrees_with_pytorch(number, p, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function = NORMS[number]
    # PyTorch takes "fro" of at most two dimensions at once.
    theirs = 2 if p == "fro" and number == 0 else p
    compare(lambda x: function(flow, x, p), lambda x: function(torch, x, theirs), X.astype(dtype))


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, INF, -INF, -1])
@pytest.mark.parametrize("x", [[0.0, 0.0], [0.0, 3.0, -3.0], [2.0, -2.0, 1.0]])
def test_gradient_of_norm_at_kinks_is_that_of_pytorch(x, p):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(lambda x: flow.norm(x, p), lambda x: torch.norm(x, p), np.array(x), orders=1)


def test_second_derivative_of_norm_at_zero_is_zero():
    x = flow.zeros(3, requires_grad=True)
    (dx,) = flow.autograd.grad(flow.norm(x), x, create_graph=True)
    (ddx,) = flow.autograd.grad(dx.sum(), x)
    assert dx.tolist() == ddx.tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [1, 2, 3, INF])
def test_norm_of_complex_numbers(p):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(lambda z: flow.norm(z, p), lambda z: torch.norm(z, p), X[0] + 1j * X[1], orders=1)


def test_norm_of_other_arguments():
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    single = X.astype("float32")
    compare(lambda x: x.norm(dtype=flow.float64), lambda x: x.norm(dtype=torch.float64), single)
    compare(lambda x: x.norm(), lambda x: x.norm(), np.array(-2.0))
    compare(lambda x: x.norm(dim=0), lambda x: x.norm(dim=0), np.zeros((0, 3)))
    compare(lambda x: x.norm(INF, dim=1), lambda x: x.norm(INF, dim=1), np.zeros((0, 3)))
    x = flow.tensor(X).transpose(0, 2)
    assert flow.norm(x).item() == pytest.approx(np.linalg.norm(X.ravel()))
    assert flow.norm(x, None).item() == flow.norm(x, "fro").item()


ERRORS = [
    (lambda x: flow.var(x.long()), RuntimeError, "var", "input"),
    (lambda x: flow.std(x, 2), IndexError, "std", "dim"),
    (lambda x: flow.std([1.0]), TypeError, "std", "input"),
    (lambda x: flow.var(x, 0, True, correction=1), TypeError, "var", "unbiased"),
    (lambda x: flow.var(x, correction="one"), TypeError, "var", "correction"),
    (lambda x: flow.var_mean(x, 7), IndexError, "var_mean", "dim"),
    (lambda x: flow.std_mean(x, (0, 0)), flow.errors.DimError, "std_mean", "dim"),
    (lambda x: flow.norm(x.long()), RuntimeError, "norm", "input"),
    (lambda x: flow.norm(x, "nuclear"), ValueError, "norm", "p"),
    (lambda x: flow.norm(x, dim=3), IndexError, "norm", "dim"),
    (lambda x: flow.norm(x[:0], INF), IndexError, "norm", "dim"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_bad_arguments(number):
    call, kind, op, argument = ERRORS[number]
    x = flow.ones(2, 3)
    with pytest.raises(kind, match=rf"{op}\(\).*'{argument}'.*;") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0] * 3] * 2
