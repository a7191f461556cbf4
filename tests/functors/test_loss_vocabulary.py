"""Cross entropy over many classes, alone and with its linear layer, beside PyTorch's.

The ops take over from many logits on; in these tests from the first, in pieces of a few.
"""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import IndexRangeError, NotDifferentiableError, StaleTensorError
from oneflow_lite.functors import loss_classification
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.kernels import loss_vocabulary
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.testing import Fixed, Sample, check_op
from tests.functors.agreement import compare

F = flow.nn.functional
RANDOM = np.random.default_rng(0)
OPTIONS = [
    {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignored}
    for reduction, smoothing, ignored in itertools.product(
        ("mean", "sum", "none"), (0.0, 0.3), (-100, 1)
    )
]


@pytest.fixture(autouse=True)
def every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ops take calls of any size, in many pieces, on two threads."""
    for name in ("_MANY", "_TILED", "_WIDE"):
        monkeypatch.setattr(loss_classification, name, 1)
    for name, value in (("_PIECE", 24), ("_TILE", 12), ("_ROWS", 4), ("_EACH", 1e9)):
        monkeypatch.setattr(loss_vocabulary, name, value)


def seen(function: Any, *inputs: Any) -> set[str]:
    """Return the names of the ops that a call dispatches."""
    names: set[str] = set()

    class Names(flow.Interpreter):
        def apply(self, op: Any, inputs: Any, attrs: Any) -> Any:
            names.add(op.op_type_name)
            return self.inner.apply(op, inputs, attrs)

    with flow.push_interpreter(Names()):
        function(*inputs)
    return names


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 7), (1, 9), (3, 4, 6), (2, 3, 2, 5)])
def test_cross_entropy_is_pytorchs_to_second_order(shape: tuple[int, ...], weighted: bool) -> None:
    torch = pytest.importorskip("torch")
    x, target = RANDOM.normal(size=shape) * 3, RANDOM.integers(0, shape[1], (shape[0], *shape[2:]))
    weight = RANDOM.random(shape[1]) if weighted else None
    for options in OPTIONS:

        def loss(lib: Any, x: Any, options: Any = options) -> Any:
            given = None if weight is None else lib.tensor(weight)
            return lib.nn.functional.cross_entropy(x, lib.tensor(target), given, **options)

        compare(lambda x: loss(flow, x), lambda x: loss(torch, x), x, orders=2)
    assert "cross_entropy_rows" in seen(lambda: loss(flow, flow.tensor(x)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 9])
def test_linear_cross_entropy_is_pytorchs_to_second_order(
    rows: int, bias: bool, weighted: bool
) -> None:
    torch = pytest.importorskip("torch")
    classes, target = 7, RANDOM.integers(0, 7, rows)
    arrays = [RANDOM.normal(size=s) for s in ((rows, 3), (classes, 3), (classes,))][: 2 + bias]
    weight = RANDOM.random(classes) if weighted else None
    for options in OPTIONS:

        def loss(lib: Any, x: Any, w: Any, *b: Any, options: Any = options) -> Any:
            given = None if weight is None else lib.tensor(weight)
            return lib.nn.functional.linear_cross_entropy(
                x, w, lib.tensor(target), linear_bias=b[0] if b else None, weight=given, **options
            )

        compare(lambda *t: loss(flow, *t), lambda *t: loss(torch, *t), *arrays, orders=2)
    assert "linear_cross_entropy_rows" in seen(lambda: loss(flow, *map(flow.tensor, arrays)))


TARGET = np.array([1, 0, 2])
X, W, B = RANDOM.normal(size=(3, 3)), RANDOM.normal(size=(3, 3)), RANDOM.normal(size=3)
EACH = np.array([0.2, 1.5, 0.7])


def losses(op: str, weight: Any, smoothing: float) -> Any:
    attributes = {"ignore_index": 0, "label_smoothing": smoothing}

    def function(*inputs: Any) -> Any:
        given = None if weight is None else flow.tensor(weight, device=inputs[0].device)
        if given is not None:
            given = given.to(inputs[0].dtype)
        return dispatch(op_expr(op), (*inputs, given), attributes)[0]

    return function


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("weight", [None, EACH])
def test_ops_pass_every_check(weight: Any, smoothing: float, device: str) -> None:
    for op, arrays in (
        ("cross_entropy_rows", (X,)),
        ("linear_cross_entropy_rows", (X, W, B)),
    ):
        sample = Sample(*arrays, Fixed(TARGET))
        check_op(losses(op, weight, smoothing), [sample], device=device, degenerate=False)


def test_third_derivatives(device: str) -> None:
    def loss(x: Any, w: Any) -> Any:
        target = flow.tensor(TARGET, device=device)
        return F.linear_cross_entropy(x, w, target, label_smoothing=0.25)

    def second(x: Any, w: Any) -> Any:
        first = flow.autograd.grad(loss(x, w), (x, w), create_graph=True)
        total = first[0].square().sum() + (first[1] ** 3).sum()
        return flow.autograd.grad(total, (x, w), create_graph=True)

    inputs = [flow.tensor(a, device=device, requires_grad=True) for a in (X, W)]
    assert flow.autograd.gradcheck(second, inputs)


def test_a_mean_of_nothing_is_nan_without_a_warning() -> None:
    x = flow.tensor(X, requires_grad=True)
    w = flow.tensor(W, requires_grad=True)
    target = flow.full((3,), -100, dtype=flow.int64)
    for loss in (F.cross_entropy(x, target), F.linear_cross_entropy(x, w, target)):
        assert np.isnan(loss.item())
        for gradient in flow.autograd.grad(loss, [x, w], allow_unused=True):
            assert gradient is None or not gradient.numpy().any()


def test_classes_that_are_masked_out() -> None:
    x = np.full((2, 9), -np.inf)
    x[:, 4], x[0, 6] = 1.0, 0.5
    x = flow.tensor(x, requires_grad=True)
    loss = F.cross_entropy(x, flow.tensor([6, 4]), reduction="none")
    bias = flow.tensor(np.where(np.arange(9) < 6, -np.inf, 0.0))
    linear = F.linear_cross_entropy(
        flow.zeros(2, 3, dtype=flow.float64),
        flow.zeros(9, 3, dtype=flow.float64),
        flow.tensor([6, 8]),
        linear_bias=bias,
    )
    np.testing.assert_allclose(loss.detach().numpy(), [np.log1p(np.exp(0.5)), 0.0])
    np.testing.assert_allclose(linear.item(), np.log(3))


def test_large_logits_keep_their_digits() -> None:
    x = np.array([[10000.0, 10001.0, 9990.0]], np.float32)
    found = F.cross_entropy(flow.tensor(x), flow.tensor([0])).item()
    assert found == pytest.approx(np.log1p(np.exp(1.0) + np.exp(-10.0)), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_computed_in_float32(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    half = getattr(flow, dtype)
    x, w = [flow.tensor(a).to(half).requires_grad_() for a in (X, W)]
    weight, target = flow.tensor(EACH).to(half), flow.tensor(TARGET)
    for function, inputs in (
        (lambda x: F.cross_entropy(x, target, weight), (x,)),
        (lambda x, w: F.linear_cross_entropy(x, w, target, weight=weight), (x, w)),
    ):
        loss = function(*inputs)
        wide = [y.detach().float().requires_grad_() for y in inputs]
        weight = weight.float()
        exact = function(*wide)
        weight = weight.to(half)
        assert loss.dtype == half and loss.item() == exact.to(half).item()
        pairs = zip(flow.autograd.grad(loss, inputs), flow.autograd.grad(exact, wide), strict=True)
        for found, wanted in pairs:
            assert found.dtype == half
            np.testing.assert_array_equal(found.float().numpy(), wanted.to(half).float().numpy())


def test_single_precision_is_near_the_composed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_vocabulary, "_TILE", 1 << 12)
    monkeypatch.setattr(loss_vocabulary, "_ROWS", 64)
    arrays = [RANDOM.normal(size=s).astype("f4") * 0.3 for s in ((200, 32), (1000, 32), (1000,))]
    target, found = flow.tensor(RANDOM.integers(0, 1000, 200)), []
    for many in (1, 1 << 60):
        monkeypatch.setattr(loss_classification, "_MANY", many)
        monkeypatch.setattr(loss_classification, "_TILED", many)
        x, w, b = [flow.tensor(a, requires_grad=True) for a in arrays]
        loss = F.linear_cross_entropy(x, w, target, linear_bias=b)
        found.append([loss, *flow.autograd.grad(loss, (x, w, b))])
    for one, other in zip(*found, strict=True):
        ours, theirs = one.detach().numpy(), other.detach().numpy()
        assert np.abs(ours - theirs).max() <= 1e-6 * np.abs(theirs).max()


def _step(function: Any, *arrays: Any) -> int:
    """Return the peak of the bytes that a step allocates above its start."""
    inputs = [flow.tensor(a, requires_grad=True) for a in arrays]
    tracemalloc.start()
    flow.autograd.grad(function(*inputs), inputs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_the_logits_are_stored_once_or_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    x, w = RANDOM.normal(size=(512, 8)).astype("f4"), RANDOM.normal(size=(40000, 8)).astype("f4")
    target = flow.tensor(RANDOM.integers(0, len(w), len(x)))
    logits = len(x) * len(w) * 4
    composed = _step(lambda x, w: F.cross_entropy(F.linear(x, w), target), x, w)
    alone = _step(lambda x: F.cross_entropy(x, target), np.zeros((len(x), len(w)), "f4"))
    tiled = _step(lambda x, w: F.linear_cross_entropy(x, w, target), x, w)
    assert composed < 2.1 * logits  # and their gradient
    assert alone < 1.1 * logits  # which is their gradient
    assert tiled - w.nbytes < 0.3 * logits  # which is a tile's


def test_what_they_keep_may_not_be_written() -> None:
    def overwritten(i: int) -> tuple[Any, list[Any]]:
        inputs = [flow.tensor(a, requires_grad=True) for a in (X, W, B)]
        copies = [x * 1 for x in inputs]
        x, w, b = copies
        loss = F.linear_cross_entropy(x, w, flow.tensor(TARGET), linear_bias=b)
        copies[i].detach().add_(1)
        return loss, inputs

    for i in range(3):
        loss, inputs = overwritten(i)
        with pytest.raises(StaleTensorError, match="linear_cross_entropy_rows"):
            flow.autograd.grad(loss, inputs)
    x = flow.tensor(X, requires_grad=True) * 1
    loss = F.cross_entropy(x, flow.tensor(TARGET))
    x.detach().add_(1)
    with pytest.raises(StaleTensorError, match="cross_entropy_rows"):
        loss.backward()


def test_errors() -> None:
    x, w, target = flow.tensor(X, requires_grad=True), flow.tensor(W), flow.tensor([0, 3, 1])
    with pytest.raises(IndexRangeError, match=r"^cross_entropy\(\): argument 'target'"):
        F.cross_entropy(x, target)
    with pytest.raises(IndexRangeError, match=r"^linear_cross_entropy\(\): argument 'target'"):
        F.linear_cross_entropy(x, w, target)
    weight = flow.ones(3, dtype=flow.float64, requires_grad=True)
    target = flow.tensor(TARGET)
    for loss in (
        F.cross_entropy(x, target, weight),
        F.linear_cross_entropy(x, w, target, weight=weight),
    ):
        with pytest.raises(NotDifferentiableError, match="weight"):
            loss.backward()


def test_entries_of_a_batch() -> None:
    x, target = RANDOM.normal(size=(4, 3, 5)), RANDOM.integers(0, 5, (4, 3))
    w = flow.tensor(RANDOM.normal(size=(6, 5)))
    x, target = flow.tensor(x), flow.tensor(target)
    whole = flow.vmap(F.cross_entropy)(x, target)
    linear = flow.vmap(lambda x, t: F.linear_cross_entropy(x, w, t))(x, target)
    gradients = flow.vmap(flow.func.grad(F.cross_entropy))(x, target)
    for i in range(4):
        np.testing.assert_allclose(whole[i].item(), F.cross_entropy(x[i], target[i]).item())
        one = F.linear_cross_entropy(x[i], w, target[i])
        np.testing.assert_allclose(linear[i].item(), one.item())
        wanted = flow.func.grad(F.cross_entropy)(x[i], target[i])
        np.testing.assert_allclose(gradients[i].numpy(), wanted.numpy())
