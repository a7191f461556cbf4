"""Connectionist temporal classification: values against PyTorch, derivatives, edges, errors."""

import itertools

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    DTypeError,
    IndexRangeError,
    NotDifferentiableError,
    ShapeError,
)
from oneflow_lite.testing import Sample, check_op

F = flow.nn.functional
RNG = np.random.default_rng(0)


def _case(number):
    """Lengths, labels and scores of some batch; impossible samples and empty labellings too."""
    rng = np.random.default_rng(number)
    time, batch, classes, longest = rng.integers((1, 1, 2, 0), (9, 5, 6, 4))
    blank = int(rng.integers(0, classes))
    labels = np.array([c for c in range(classes) if c != blank])
    targets = labels[rng.integers(0, classes - 1, (batch, longest))]
    steps, sizes = rng.integers(0, time + 1, batch), rng.integers(0, longest + 1, batch)
    if number % 2:
        targets = np.concatenate([row[:n] for row, n in zip(targets, sizes, strict=True)])
    return rng.normal(size=(time, batch, classes)), targets, steps, sizes, blank


@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("number", range(12))
def test_agrees_with_pytorch(number, zero_infinity):
    torch = pytest.importorskip("torch")
    x, targets, steps, sizes, blank = _case(number)
    results = []
    for lib, f in ((flow, F), (torch, torch.nn.functional)):
        scores = lib.tensor(x).requires_grad_()
        lengths = (lib.tensor(targets), lib.tensor(steps), lib.tensor(sizes))
        loss = f.ctc_loss(scores.log_softmax(2), *lengths, blank, "none", zero_infinity)
        weight = lib.tensor(np.arange(1.0, len(steps) + 1))
        (dx,) = lib.autograd.grad((loss * weight).sum(), [scores])
        results.append((loss.detach().numpy(), dx.numpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-10, atol=1e-12)
    possible = np.isfinite(results[1][0])
    ours, theirs = (dx[:, possible] for _, dx in results)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_reductions_as_in_pytorch(reduction):
    torch = pytest.importorskip("torch")
    x, targets, steps, sizes = RNG.normal(size=(6, 2, 3)), [[1, 2, 2], [2, 0, 0]], (6, 5), (3, 0)
    got = F.ctc_loss(
        flow.tensor(x).log_softmax(2), flow.tensor(targets), steps, sizes, reduction=reduction
    )
    given = torch.tensor(x).log_softmax(2), torch.tensor(targets), steps, sizes
    expected = torch.nn.functional.ctc_loss(*given, reduction=reduction)
    np.testing.assert_allclose(got.item(), expected.item())


def test_the_loss_sums_over_all_paths():
    log_p = np.log(np.random.default_rng(1).dirichlet(np.ones(3), 5))
    target, total = (1, 2), 0.0
    for path in itertools.product(range(3), repeat=5):
        merged = [c for c, _ in itertools.groupby(path)]
        if tuple(c for c in merged if c) == target:
            total += np.exp(sum(log_p[t, c] for t, c in enumerate(path)))
    loss = F.ctc_loss(flow.tensor(log_p), flow.tensor([1, 2]), (5,), (2,), reduction="sum")
    np.testing.assert_allclose(loss.item(), -np.log(total))


def test_derivatives():
    lengths = (np.array([6, 5, 3]), np.array([3, 2, 0]))
    targets = np.array([[1, 2, 2], [1, 3, 0], [0, 0, 0]])
    samples = [
        Sample(RNG.normal(size=(6, 3, 4)), targets, *lengths, reduction="none"),
        Sample(
            RNG.normal(size=(2, 2, 3)),
            np.array([1, 1, 0]),
            np.array([2, 2]),
            np.array([2, 1]),
            blank=2,
            zero_infinity=True,
        ),
    ]
    check_op("ctc_loss", samples, degenerate=False)


def test_third_derivatives_are_refused():
    x = flow.tensor(RNG.normal(size=(4, 1, 3)), requires_grad=True)
    y = F.ctc_loss(x, flow.tensor([[1, 2]]), (4,), (2,))
    for _ in range(2):
        (y,) = flow.autograd.grad(y.square().sum(), x, create_graph=True)
    with pytest.raises(NotDifferentiableError, match="ctc_occupancy_grad"):
        flow.autograd.grad(y.square().sum(), x)


def test_probabilities_of_zero_and_long_sequences():
    x = np.log(np.full((3, 1, 3), 1 / 3))
    x[1, 0, 0] = -np.inf
    leaf = flow.tensor(x, requires_grad=True)
    loss = F.ctc_loss(leaf, flow.tensor([[1]]), (3,), (1,), reduction="sum")
    np.testing.assert_allclose(np.exp(-loss.item()), 4 / 27)  # 111, 11␣, ␣11, ␣1␣
    loss.backward()
    assert np.isfinite(leaf.grad.numpy()).all()
    long = flow.full((5000, 1, 2), np.log(0.5))
    loss = F.ctc_loss(long, flow.ones(1, 40, dtype=flow.int64), (5000,), (40,), reduction="sum")
    assert 0 < loss.item() < 5000 * np.log(2)


X = flow.zeros(4, 2, 3)
T = flow.ones(2, 2, dtype=flow.int64)
ERRORS = {
    "halves": ((X.half(), T, (4, 4), (2, 2)), DTypeError, "log_probs"),
    "dimensions": ((X[0, 0], T, (4, 4), (2, 2)), ShapeError, "log_probs"),
    "blank": ((X, T, (4, 4), (2, 2), 3), ArgumentError, "blank"),
    "batch": ((X, T[:1], (4, 4), (2, 2)), ShapeError, "targets"),
    "float": ((X, T.float(), (4, 4), (2, 2)), DTypeError, "targets"),
    "class": ((X, T + 2, (4, 4), (2, 2)), IndexRangeError, "targets"),
    "row": ((X, T[0], (4, 4), (2, 2)), ArgumentError, "targets"),
    "steps": ((X, T, (4, 5), (2, 2)), IndexRangeError, "input_lengths"),
    "labels": ((X, T, (4, 4), (2, 3)), IndexRangeError, "target_lengths"),
    "lengths": ((X, T, (4,), (2, 2)), ShapeError, "input_lengths"),
    "reduction": ((X, T, (4, 4), (2, 2), 0, "x"), ArgumentError, "reduction"),
}


@pytest.mark.parametrize(("given", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(given, error, argument):
    with pytest.raises(error, match=rf"ctc_loss\(\): argument '{argument}'"):
        F.ctc_loss(*given)
