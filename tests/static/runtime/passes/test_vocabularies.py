"""A linear layer and the cross entropy of its logits become one op, where nobody else sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, static
from oneflow_lite.functors import loss_classification
from oneflow_lite.kernels import loss_vocabulary
from oneflow_lite.static.runtime.passes import run_passes, vocabularies
from oneflow_lite.static.runtime.plan import ExecutionPlan

F = nn.functional
CLASSES, ROWS, FEATURES = 50, 12, 6
RANDOM = np.random.default_rng(0)
pytestmark = pytest.mark.unjudged("sums are taken tile by tile")


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_classification, "_MANY", 1)
    monkeypatch.setattr(vocabularies, "_MANY", CLASSES * ROWS)
    monkeypatch.setattr(loss_vocabulary, "_TILE", 100)


@pytest.fixture(params=[False, True], ids=["NumPy", "jit"], autouse=True)
def jit(request: pytest.FixtureRequest) -> Iterator[None]:
    with flow.use_jit(request.param):
        yield


Loss = Callable[..., Any]


def plan_of(loss: Loss, shape: tuple[int, ...] = (ROWS, FEATURES), **options: Any) -> Any:
    """Return the plan of a training step, after the pass, and the pass's report."""
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        h, target = static.data("h", shape), static.data("target", [ROWS], "int64")
        layers = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, CLASSES, **options)
        fetched = loss(layers[1], layers[0](h), target)
        flow.optim.SGD([p for layer in layers for p in layer.parameters()], lr=0.1).minimize(
            fetched[0]
        )
    plan = ExecutionPlan.of(main, ["h", "target"], [y.name for y in fetched])
    run_passes(plan, ["dead_code", "vocabularies"])
    return plan, plan.reports[-1]


def types(plan: ExecutionPlan) -> list[str]:
    return [op.type for op in plan.block.ops]


def plain(linear: Any, h: Any, target: Any) -> list[Any]:
    return [F.cross_entropy(linear(h), target)]


def in_rows(linear: Any, h: Any, target: Any) -> list[Any]:
    return [F.cross_entropy(linear(h).view(-1, CLASSES), target, label_smoothing=0.1)]


def test_the_logits_are_gone() -> None:
    plan, report = plan_of(plain)
    assert "linear_cross_entropy_rows" in types(plan)
    assert "linear_cross_entropy_rows_grad" in types(plan)
    logits = (ROWS, CLASSES)
    made = [plan.block.var(name) for op in plan.block.ops for name in op.outputs]
    assert not [desc.name for desc in made if desc.shape == logits]
    # matmul_nt and add; sum_to, matmul and matmul_tn
    assert report.fired == 1 and report.saved == {"ops": 5, "bytes": 3 * ROWS * CLASSES * 4}


def test_the_gradient_of_the_weight_alone() -> None:
    plan, report = plan_of(lambda linear, h, t: plain(linear, h.detach(), t), bias=False)
    (op,) = [op for op in plan.block.ops if op.type == "linear_cross_entropy_rows_grad"]
    assert op.attrs["needs"] == (False, True, False) and report.saved["ops"] == 2


def test_losses_without_gradients() -> None:
    main = static.Program()
    with static.program_guard(main, static.Program()):
        h, target = static.data("h", [ROWS, FEATURES]), static.data("t", [ROWS], "int64")
        loss = F.cross_entropy(nn.Linear(FEATURES, CLASSES)(h), target, reduction="none")
    plan = ExecutionPlan.of(main, ["h", "t"], [loss.name])
    run_passes(plan, ["vocabularies"])
    assert types(plan) == ["linear_cross_entropy_rows"]


def logits_fetched(linear: Any, h: Any, target: Any) -> list[Any]:
    logits = linear(h)
    return [F.cross_entropy(logits, target), logits]


def logits_used(linear: Any, h: Any, target: Any) -> list[Any]:
    logits = linear(h)
    return [F.cross_entropy(logits, target) + logits.square().mean()]


def logits_read(linear: Any, h: Any, target: Any) -> list[Any]:
    logits = linear(h)
    return [F.cross_entropy(logits, target), logits.argmax(1)]


def logits_scaled(linear: Any, h: Any, target: Any) -> list[Any]:
    return [F.cross_entropy(linear(h) * 0.5, target)]


def logits_written(linear: Any, h: Any, target: Any) -> list[Any]:
    logits = linear(h)
    logits.detach().mul_(0.5)
    return [F.cross_entropy(logits, target)]


def two_losses(linear: Any, h: Any, target: Any) -> list[Any]:
    logits = linear(h)
    return [F.cross_entropy(logits, target) + F.cross_entropy(logits, 1 - target.clamp(0, 1))]


def in_other_rows(linear: Any, h: Any, target: Any) -> list[Any]:
    logits = linear(h).view(CLASSES, ROWS).t()
    return [F.cross_entropy(logits, target)]


@pytest.mark.parametrize(
    "loss",
    [
        logits_fetched,
        logits_used,
        logits_read,
        logits_scaled,
        logits_written,
        two_losses,
        in_other_rows,
    ],
)
def test_it_holds_back(loss: Loss) -> None:
    plan, report = plan_of(loss)
    assert report.fired == 0 and "linear_cross_entropy_rows" not in types(plan)


@pytest.mark.parametrize("written", [False, True])
def test_an_operand_that_is_written_in_between(written: bool) -> None:
    main = static.Program()
    with static.program_guard(main, static.Program()), flow.no_grad():
        h, target = static.data("h", [ROWS, FEATURES]), static.data("t", [ROWS], "int64")
        h = h * 2
        logits = nn.Linear(FEATURES, CLASSES)(h)
        if written:
            h.mul_(0.5)
        loss = F.cross_entropy(logits, target)
    plan = ExecutionPlan.of(main, ["h", "t"], [loss.name, h.name])
    run_passes(plan, ["vocabularies"])
    assert plan.reports[-1].fired == (not written)


def test_few_logits_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "_MANY", CLASSES * ROWS + 1)
    assert plan_of(plain)[1].fired == 0


def trained(loss: Loss, shape: tuple[int, ...], compiled: bool) -> list[Any]:
    flow.manual_seed(0)
    layers = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, CLASSES)
    parameters = [p for layer in layers for p in layer.parameters()]
    optimizer = flow.optim.SGD(parameters, lr=0.1, momentum=0.9)

    def step(h: Any, target: Any) -> Any:
        optimizer.zero_grad()
        fetched = loss(layers[1], layers[0](h).relu(), target)
        fetched[0].backward()
        optimizer.step()
        return fetched[0].detach()

    run = flow.compile(step) if compiled else step
    random = np.random.default_rng(1)
    found = []
    for _ in range(5):
        h = flow.tensor(random.normal(size=shape).astype("f4"))
        found.append(run(h, flow.tensor(random.integers(0, CLASSES, ROWS))))
    if compiled:
        assert run.explain().hits and not run.explain().fallbacks
    return [x.detach().numpy() for x in (*found, *parameters)]


@pytest.mark.parametrize(
    ("loss", "shape"),
    [
        (plain, (ROWS, FEATURES)),
        (in_rows, (3, 4, FEATURES)),
        (logits_used, (ROWS, FEATURES)),
        (two_losses, (ROWS, FEATURES)),
    ],
)
def test_compiled_steps_train_as_eager_ones(loss: Loss, shape: tuple[int, ...]) -> None:
    pairs = zip(trained(loss, shape, True), trained(loss, shape, False), strict=True)
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_rows_in_more_dimensions() -> None:
    plan, report = plan_of(in_rows, (3, 4, FEATURES))
    assert report.fired == 1 and report.saved["ops"] == 7
    assert "matmul_tn" in types(plan)  # of the first layer
    assert types(plan).count("reshape") == 0
