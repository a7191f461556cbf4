"""Losses of pairs and of distributions: values, derivatives and kinks against PyTorch, errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, FlowError, ShapeError
from oneflow_lite.testing import Fixed, Sample, check_op

F = flow.nn.functional


def numbers(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


X, Y, V = numbers(4, 3), numbers(4, 3, seed=1), numbers(4, 3, seed=2, low=0.2)
SIGNS = np.array([1, -1, -1, 1])
# With a count of 0, PyTorch's gradient of the full Poisson loss is NaN.
COUNTS = np.array([[0.2, 1.0, 2.0], [3.0, 0.5, 1.5], [7.0, 1.0, 0.9], [2.0, 2.0, 9.0]])

CASES = {
    "hinge": (lambda f, x, t, **o: f.hinge_embedding_loss(x, t, **o), X, SIGNS[:, None] * 1.0),
    "hinge_margin": (lambda f, x, t, **o: f.hinge_embedding_loss(x, t, 0.3, **o), X, SIGNS[:3]),
    "hinge_neither": (
        lambda f, x, t, **o: f.hinge_embedding_loss(x, t, **o),
        X,
        np.zeros((4, 3), int),
    ),
    "ranking": (lambda f, x, y, t, **o: f.margin_ranking_loss(x, y, t, **o), X[0], Y[0], SIGNS[:3]),
    "ranking_margin": (
        lambda f, x, y, t, **o: f.margin_ranking_loss(x, y, t, 0.5, **o),
        X,
        Y,
        SIGNS[:, None],
    ),
    "cosine": (lambda f, x, y, t, **o: f.cosine_embedding_loss(x, y, t, **o), X, Y, SIGNS),
    "cosine_margin": (
        lambda f, x, y, t, **o: f.cosine_embedding_loss(x, y, t, -0.5, **o),
        X,
        Y,
        SIGNS,
    ),
    "cosine_one": (
        lambda f, x, y, t, **o: f.cosine_embedding_loss(x, y, t, **o),
        X[0],
        Y[0],
        np.array(1),
    ),
    "poisson": (lambda f, x, t, **o: f.poisson_nll_loss(x, t, **o), X, COUNTS),
    "poisson_rate": (lambda f, x, t, **o: f.poisson_nll_loss(x, t, False, **o), V, COUNTS),
    "poisson_full": (lambda f, x, t, **o: f.poisson_nll_loss(x, t, full=True, **o), X, COUNTS),
    "poisson_eps": (
        lambda f, x, t, **o: f.poisson_nll_loss(x, t, False, True, eps=0.5, **o),
        V,
        COUNTS,
    ),
    "gaussian": (lambda f, x, y, v, **o: f.gaussian_nll_loss(x, y, v, **o), X, Y, V),
    "gaussian_full": (
        lambda f, x, y, v, **o: f.gaussian_nll_loss(x, y, v, full=True, **o),
        X,
        Y,
        V,
    ),
    "gaussian_floor": (
        lambda f, x, y, v, **o: f.gaussian_nll_loss(x, y, v, eps=1.0, **o),
        X,
        Y,
        V,
    ),
    "gaussian_lines": (lambda f, x, y, v, **o: f.gaussian_nll_loss(x, y, v, **o), X, Y, V[:, 0]),
    "gaussian_columns": (lambda f, x, y, v, **o: f.gaussian_nll_loss(x, y, v, **o), X, Y, V[:1]),
    "gaussian_number": (lambda f, x, y, **o: f.gaussian_nll_loss(x, y, 0.7, **o), X, Y),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_agrees_with_pytorch(case, reduction, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, *arrays = case
    compare(
        lambda *tensors: function(F, *tensors, reduction=reduction),
        lambda *tensors: function(torch.nn.functional, *tensors, reduction=reduction),
        *[a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays],
        orders=2 if dtype == "float64" else 1,
    )


SAMPLES = {
    "hinge_embedding_loss": [Sample(X[:2], Fixed(SIGNS[:2, None]))],
    "margin_ranking_loss": [Sample(X[0], Y[0], Fixed(SIGNS[:3]), 0.3)],
    "cosine_embedding_loss": [Sample(X[:2], Y[:2], Fixed(SIGNS[:2]))],
    "poisson_nll_loss": [Sample(X[1], Fixed(COUNTS[1]), full=True)],
    "gaussian_nll_loss": [Sample(X[0], Y[0], V[0])],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device, degenerate=False)


KINKS = {
    "hinge": (lambda f, x, t: f.hinge_embedding_loss(x, t), [1.0, 1.0], [-1, 1]),
    "ranking": (lambda f, x, y, t: f.margin_ranking_loss(x, y, t), [1.0, 2.0], [1.0, 2.0], [1, -1]),
    "cosine": (lambda f, x, y, t: f.cosine_embedding_loss(x, y, t), [0.0, 0.0], [1.0, 2.0], -1),
    "gaussian": (
        lambda f, x, y, v: f.gaussian_nll_loss(x, y, v, eps=0.5),
        [1.0, 2.0],
        [1.0, 1.0],
        [0.0, 0.5],
    ),
}


@pytest.mark.parametrize("case", KINKS.values(), ids=KINKS)
def test_kinks_as_in_pytorch(case):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, *arrays = case
    compare(
        lambda *tensors: function(F, *tensors),
        lambda *tensors: function(torch.nn.functional, *tensors),
        *map(np.array, arrays),
        orders=1,
        rtol=1e-6,
    )


def test_poisson_of_no_counts_is_finite_in_full():
    x = flow.tensor([0.5], requires_grad=True)
    count = flow.tensor([0.0], requires_grad=True)
    loss = F.poisson_nll_loss(x, count, full=True)
    loss.backward()
    assert loss.item() == pytest.approx(math.exp(0.5))
    assert count.grad.tolist() == [-0.5]


def tensors(*arrays):
    return [flow.tensor(a) for a in arrays]


ERRORS = {
    "hinge shapes": (
        lambda: F.hinge_embedding_loss(*tensors(X, SIGNS)),
        ShapeError,
        "",
    ),
    "hinge integers": (
        lambda: F.hinge_embedding_loss(*tensors(SIGNS, SIGNS)),
        DTypeError,
        "input",
    ),
    "hinge margin": (
        lambda: F.hinge_embedding_loss(*tensors(X, X), margin="a"),
        ArgumentTypeError,
        "margin",
    ),
    "hinge reduction": (
        lambda: F.hinge_embedding_loss(*tensors(X, X), reduction="x"),
        ArgumentError,
        "reduction",
    ),
    "ranking dimensions": (
        lambda: F.margin_ranking_loss(*tensors(X, X, SIGNS)),
        ShapeError,
        "target",
    ),
    "ranking inputs": (lambda: F.margin_ranking_loss(*tensors(X, X[0], X)), ShapeError, "input2"),
    "cosine target": (lambda: F.cosine_embedding_loss(*tensors(X, Y, X)), ShapeError, "input1"),
    "cosine inputs": (
        lambda: F.cosine_embedding_loss(*tensors(X, Y[0], SIGNS)),
        ShapeError,
        "input2",
    ),
    "poisson target": (
        lambda: F.poisson_nll_loss(flow.tensor(X), COUNTS),
        ArgumentTypeError,
        "target",
    ),
    "poisson reduction": (
        lambda: F.poisson_nll_loss(*tensors(X, COUNTS), reduction="x"),
        ArgumentError,
        "reduction",
    ),
    "gaussian negative": (lambda: F.gaussian_nll_loss(*tensors(X, Y, -V)), ArgumentError, "var"),
    "gaussian negative number": (
        lambda: F.gaussian_nll_loss(*tensors(X, Y), -1.0),
        ArgumentError,
        "var",
    ),
    "gaussian shape": (lambda: F.gaussian_nll_loss(*tensors(X, Y, V[:3])), ArgumentError, "var"),
    "gaussian two sizes": (
        lambda: F.gaussian_nll_loss(*tensors(X, Y, V[:1, :1])),
        ArgumentError,
        "var",
    ),
    "gaussian reduction": (
        lambda: F.gaussian_nll_loss(*tensors(X, Y, V), reduction="batchmean"),
        ArgumentError,
        "reduction",
    ),
}


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(call, error, argument):
    with pytest.raises(error, match=rf"^\w+\(\): argument '{argument}") as caught:
        call()
    assert isinstance(caught.value, FlowError)
