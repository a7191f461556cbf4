"""Losses as modules against PyTorch's: values, gradients, state and former arguments."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn

RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 4))
P = 1 / (1 + np.exp(-X))
T = RNG.standard_normal((6, 4))
U = RNG.uniform(0.1, 0.9, (6, 4))
CLASSES = np.array([0, 3, 1, -100, 2, 2])
W = np.array([0.5, 1.0, 2.0, 1.5])
LOG_P = X - np.log(np.exp(X).sum(1, keepdims=True))

LOSSES = [
    ("MSELoss", {}, X, T),
    ("MSELoss", {"reduction": "sum"}, X, T),
    ("MSELoss", {"reduction": "none"}, X, T),
    ("L1Loss", {}, X, T),
    ("SmoothL1Loss", {"beta": 0.4}, X, T),
    ("HuberLoss", {"delta": 0.4, "reduction": "sum"}, X, T),
    ("NLLLoss", {}, LOG_P, CLASSES),
    ("NLLLoss", {"weight": W, "ignore_index": 2, "reduction": "mean"}, LOG_P, abs(CLASSES) % 4),
    ("CrossEntropyLoss", {}, X, CLASSES),
    ("CrossEntropyLoss", {"weight": W, "label_smoothing": 0.1}, X, CLASSES),
    ("CrossEntropyLoss", {"reduction": "none"}, X, U / U.sum(1, keepdims=True)),
    ("BCELoss", {}, P, U),
    ("BCELoss", {"weight": W}, P, U),
    ("BCEWithLogitsLoss", {}, X, U),
    ("BCEWithLogitsLoss", {"weight": W, "pos_weight": W[::-1].copy()}, X, U),
    ("KLDivLoss", {"reduction": "batchmean"}, LOG_P, U),
    ("KLDivLoss", {"reduction": "sum", "log_target": True}, LOG_P, T),
    ("CosineSimilarity", {}, X, T),
    ("CosineSimilarity", {"dim": 0, "eps": 1e-4}, X, T),
]


def options(lib, kwargs):
    return {k: lib.tensor(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}


@pytest.mark.parametrize(
    ("name", "kwargs", "x", "target"),
    [pytest.param(*loss, id=f"{loss[0]}-{i}") for i, loss in enumerate(LOSSES)],
)
def test_losses_agree_with_pytorch(torch, name, kwargs, x, target):
    ours = getattr(nn, name)(**options(flow, kwargs))
    theirs = getattr(torch.nn, name)(**options(torch, kwargs))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    a, b = flow.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    loss, loss_torch = ours(a, flow.tensor(target)), theirs(b, torch.tensor(target))
    assert loss.shape == tuple(loss_torch.shape)
    np.testing.assert_allclose(loss.detach().numpy(), loss_torch.detach().numpy(), rtol=1e-10)
    loss.sum().backward()
    loss_torch.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_weights_move_with_the_module():
    loss = nn.CrossEntropyLoss(weight=flow.ones(2)).double()
    assert loss.weight.dtype == flow.float64


@pytest.mark.parametrize(
    ("former", "meant"),
    [
        ({"reduce": False}, "none"),
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": True}, "mean"),
    ],
)
def test_former_arguments_are_translated_with_a_warning(former, meant):
    with pytest.warns(DeprecationWarning, match=meant):
        assert nn.MSELoss(**former).reduction == meant


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction"):
        nn.MSELoss(reduction="median")(flow.ones(2), flow.ones(2))
