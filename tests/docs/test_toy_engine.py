"""The toy engine of docs/learn takes the real one's gradients, and holds to the same structure."""

from __future__ import annotations

import gc
import weakref
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

FILE = Path(__file__).resolve().parents[2] / "docs" / "learn" / "toy_engine.py"


def _load() -> ModuleType:
    spec = spec_from_file_location("toy_engine", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


toy = _load()
# name, function of tensors that has the same methods on both sides, shapes of its inputs
PROGRAMS: list[tuple[str, Any, list[tuple[int, ...]]]] = [
    ("broadcast sum", lambda F, x, y: (x + y) ** 3, [(2, 3), (3,)]),
    ("broadcast product", lambda F, x, y: F.exp(x * y) * x, [(2, 1), (1, 3)]),
    ("difference from a number", lambda F, x: (1.5 - x) ** 3 - 2 * x, [(3,)]),
    ("matmul", lambda F, x, w: F.tanh(x @ w) ** 2, [(4, 3), (3, 2)]),
    ("relu", lambda F, x: x.relu() * x * x, [(5,)]),
    ("a product of relus", lambda F, x, y: (x * y).relu() * y, [(2, 2), (2, 2)]),
    ("used three times", lambda F, x: x * x * F.exp(-x) + x, [(3, 2)]),
    ("an inner sum", lambda F, x: F.exp(x) * (x * x).sum(), [(2, 3)]),
    (
        "two layers",
        lambda F, x, w, b, v: F.tanh((x @ w + b).relu() @ v),
        [(4, 3), (3, 5), (5,), (5, 1)],
    ),
]
all_programs = pytest.mark.parametrize(
    ("function", "shapes"), [p[1:] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS]
)


def _values(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(len(shapes) + sum(map(sum, shapes)))
    return [np.asarray(rng.normal(size=shape)) for shape in shapes]


def _toy_derivatives(function: Any, values: list[np.ndarray]) -> list[np.ndarray]:
    """First derivatives, and those of the sum of their squares."""
    inputs = [toy.Tensor(value, requires_grad=True) for value in values]
    first = toy.grad(function(toy.F, *inputs).sum(), inputs, create_graph=True)
    penalty = sum((g * g).sum() for g in first)
    second = toy.grad(penalty, inputs)
    assert all(g.requires_grad for g in first)
    assert not any(g.requires_grad for g in second)
    return [g.data for g in first + second]


@all_programs
def test_gradients_are_those_of_the_real_engine(
    function: Any, shapes: list[tuple[int, ...]]
) -> None:
    values = _values(shapes)
    inputs = [flow.tensor(value, requires_grad=True) for value in values]
    first = flow.autograd.grad(function(flow, *inputs).sum(), inputs, create_graph=True)
    second = flow.autograd.grad(flow.stack([(g * g).sum() for g in first]).sum(), inputs)
    for ours, real in zip(_toy_derivatives(function, values), [*first, *second], strict=True):
        np.testing.assert_allclose(ours, real.detach().numpy(), rtol=1e-12, atol=1e-12)


def _differences(function: Any, values: list[np.ndarray], step: float = 1e-6) -> list[np.ndarray]:
    slopes = []
    for value in values:
        slope = np.empty_like(value)
        for place in np.ndindex(value.shape):
            kept = value[place]
            value[place] = kept + step
            above = function(*values)
            value[place] = kept - step
            slope[place] = (above - function(*values)) / (2 * step)
            value[place] = kept
        slopes.append(slope)
    return slopes


@all_programs
def test_gradients_are_those_of_differences(function: Any, shapes: list[tuple[int, ...]]) -> None:
    values = _values(shapes)

    def total(*arrays: np.ndarray) -> float:
        return float(function(toy.F, *[toy.Tensor(a.copy()) for a in arrays]).sum().data)

    def penalty(*arrays: np.ndarray) -> float:
        inputs = [toy.Tensor(a.copy(), requires_grad=True) for a in arrays]
        grads = toy.grad(function(toy.F, *inputs).sum(), inputs)
        return float(sum(np.square(g.data).sum() for g in grads))

    wanted = _differences(total, values) + _differences(penalty, values)
    for ours, slope in zip(_toy_derivatives(function, values), wanted, strict=True):
        np.testing.assert_allclose(ours, slope, rtol=1e-5, atol=1e-6)


def test_the_fourth_derivative() -> None:
    y = x = toy.Tensor(2.0, requires_grad=True)
    y = x**4 * toy.F.exp(x)
    for _ in range(4):
        (y,) = toy.grad(y, [x], create_graph=True)
    # Leibniz: the sum over k of (4 over k) (x⁴)⁽ᵏ⁾ eˣ
    wanted = np.exp(2.0) * (16 + 4 * 32 + 6 * 48 + 4 * 48 + 24)
    np.testing.assert_allclose(y.data, wanted)


def test_backward_adds_up_and_frees() -> None:
    x = toy.Tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.data.tolist() == [4.0, 8.0]
    assert x.grad.node is None
    with pytest.raises(RuntimeError, match="sum_to_backward was freed"):
        y.backward()


def test_dependencies_count_edges_and_order_is_by_creation() -> None:
    x, w = (toy.Tensor(value, requires_grad=True) for value in ([1.0, 2.0], [3.0, 4.0]))
    a = x * w
    b = a.relu()
    y = (a + b).sum()
    task = toy.GraphTask(y, None, retain_graph=True, create_graph=False)
    counts = {node.name: n for node, n in task.dependencies.items()}
    real = {"sum_to_backward": 0, "add_backward": 1, "relu_backward": 1, "mul_backward": 2}
    assert counts == {**real, "accumulate_grad": 1}
    ran = []
    evaluate = task.evaluate
    task.evaluate = lambda node: ran.append(node) or evaluate(node)
    task.run()
    assert ran == sorted(task.dependencies, key=lambda node: -node.sequence_nr)
    assert x.grad.data.tolist() == [6.0, 8.0]


def test_grad_prunes() -> None:
    x, w = (toy.Tensor(value, requires_grad=True) for value in (2.0, 3.0))
    a = toy.F.exp(x)
    y = a * w + toy.F.tanh(w)
    task = toy.GraphTask(y, None, False, False, inputs=[a])
    assert {node.name for node in task.dependencies} == {
        "add_backward",
        "mul_backward",
        "exp_backward",
    }
    task.run()
    assert task.captured_grads[a.node].data == 3.0
    assert x.grad is None
    assert w.grad is None
    assert toy.grad(a, [w]) == [None]


def test_the_walk_turns_back_below_the_inputs() -> None:
    class Walk(toy.GraphTask):
        def prune(self) -> None:
            pass

    x, w = (toy.Tensor(value, requires_grad=True) for value in (2.0, 3.0))
    a = toy.F.exp(toy.F.exp(x))
    task = Walk(toy.F.tanh(a) * w, None, False, False, inputs=[a])
    assert {node.name for node in task.dependencies} == {
        "mul_backward",
        "tanh_backward",
        "exp_backward",
    }
    assert len(task.dependencies) == 3  # neither w, nor what lies behind a


def test_sums_wait_in_current_grad() -> None:
    x = toy.Tensor(2.0, requires_grad=True)
    y = x * 3.0 + toy.F.exp(x)
    seen = []

    class Watching:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def apply(self, op: str, inputs: list[Any], attrs: dict[str, Any]) -> Any:
            seen.append((op, x.node.meta.current_grad))
            return self.inner.apply(op, inputs, attrs)

    with toy.pushed(toy.interpreters, Watching(toy.interpreters[-1])):
        y.backward()
    ops, sums = zip(*seen, strict=True)
    assert ops == ("mul", "mul", "mul", "add")  # exp's, 3 · dy (twice: one for the number), the sum
    assert sums[0] is None
    assert sums[-1] is not None
    assert x.node.meta.current_grad is None
    np.testing.assert_allclose(x.grad.data, 3 + np.exp(2.0))


def test_a_graph_is_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = toy.Tensor([1.0], requires_grad=True)
        y = toy.F.exp(toy.F.tanh(x * x).relu())
        node = weakref.ref(y.node)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_a_long_chain_needs_no_recursion() -> None:
    x = y = toy.Tensor(1.0, requires_grad=True)
    for _ in range(20_000):
        y = y + x
    y.backward()
    assert x.grad.data == 20_001.0


def test_it_is_short_and_needs_numpy_alone() -> None:
    text = FILE.read_text("utf-8")
    code = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(code) < 240
    assert "oneflow_lite" not in text
