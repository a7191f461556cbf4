"""Losses with a margin: shapes and edges as in PyTorch, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, FlowError, ShapeError

F = flow.nn.functional
X = np.random.default_rng(0).normal(size=(4, 3))
# A function of (library, its nn.functional), which PyTorch's samples leave out.
CASES = {
    "one sample": lambda t, f: f.multi_margin_loss(t.tensor(X[0]), t.tensor(1), reduction="none"),
    "a row": lambda t, f: f.multi_margin_loss(t.tensor(X[0]), t.tensor([1]), reduction="none"),
    "a score": lambda t, f: f.multi_margin_loss(t.tensor(1.0), t.tensor(0), reduction="none"),
    "weights": lambda t, f: f.multi_margin_loss(
        t.tensor(X), t.tensor([0, 2, 2, 1]), 2, 0.7, t.tensor([1.0, 2.0, 0.5], dtype=t.float64)
    ),
    "labels": lambda t, f: f.multilabel_margin_loss(t.tensor(X[0]), t.tensor([2, -1, 0])),
    "no labels": lambda t, f: f.multilabel_margin_loss(t.tensor(X[0]), t.tensor([-1, 0, 1])),
    "a label twice": lambda t, f: f.multilabel_margin_loss(t.tensor(X[0]), t.tensor([1, 1, -1])),
    "integers": lambda t, f: f.soft_margin_loss(t.tensor(X[0]), t.tensor([1, -1, 1])),
    "soft labels": lambda t, f: f.multilabel_soft_margin_loss(
        t.tensor(X), t.tensor([[1, 0, 1]] * 4), t.tensor(X[:, :1])
    ),
    "broadcast": lambda t, f: f.triplet_margin_loss(
        t.tensor(X[:1]), t.tensor(X), t.tensor(X + 1), reduction="none"
    ),
    "distance": lambda t, f: f.triplet_margin_with_distance_loss(
        t.tensor(X),
        t.tensor(X + 0.5),
        t.tensor(X - 0.5),
        distance_function=lambda a, b: (a - b).abs().sum(-1),
        swap=True,
    ),
}


@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
def test_agrees_with_pytorch(function):
    torch = pytest.importorskip("torch")
    ours, theirs = function(flow, F), function(torch, torch.nn.functional)
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_the_logistic_loss_does_not_overflow():
    x = flow.tensor([-1000.0, 1000.0], requires_grad=True)
    loss = F.soft_margin_loss(x, flow.ones(2), reduction="sum")
    loss.backward()
    assert loss.item() == 1000 and x.grad.tolist() == [-1.0, 0.0]


x, t = flow.zeros(4, 3), flow.zeros(4, dtype=flow.int64)
ERRORS = {
    "p": (lambda: F.multi_margin_loss(x, t, 3), ArgumentError, "p"),
    "targets": (lambda: F.multi_margin_loss(x, t[:1]), ShapeError, "target"),
    "floats": (lambda: F.multi_margin_loss(x, t.float()), DTypeError, "target"),
    "image": (lambda: F.multi_margin_loss(x[None], t), ShapeError, "input"),
    "no class": (lambda: F.multi_margin_loss(x[:, :0], t), ShapeError, "input"),
    "weight": (lambda: F.multi_margin_loss(x, t, weight=x[0, :2]), ShapeError, "weight"),
    "labels": (lambda: F.multilabel_margin_loss(x, t), ShapeError, "target"),
    "one": (lambda: F.multilabel_soft_margin_loss(x[0, 0], x[0, 0]), ShapeError, "input"),
    "margin": (lambda: F.triplet_margin_loss(x, x, x, 0), ArgumentError, "margin"),
    "dims": (lambda: F.triplet_margin_loss(x, x, x[0]), ShapeError, "negative"),
    "distance": (
        lambda: F.triplet_margin_with_distance_loss(x, x, x, margin=-1),
        ArgumentError,
        "margin",
    ),
    "reduction": (lambda: F.soft_margin_loss(x, x, reduction="x"), ArgumentError, "reduction"),
}


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(call, error, argument):
    with pytest.raises(error, match=rf"\(\): argument '{argument}'"):
        call()


def test_a_target_out_of_range():
    for bad in (t + 3, t - 1):
        with pytest.raises(FlowError):
            F.multi_margin_loss(x, bad)
