"""The films of an exploration say what `autograd.trace` says of the same backward calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.explore.values import Values
from oneflow_lite.utils.checkpoint import checkpoint
from tests.autograd.leaves import leaf
from tests.explore.schema import check, states

F = flow.nn.functional


class Cube(flow.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * dy


def network() -> Any:
    flow.manual_seed(0)
    return flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.Tanh(), flow.nn.Linear(4, 2))


def train() -> None:
    net = network()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        F.mse_loss(net(flow.randn(5, 3)), flow.randn(5, 2)).backward()
        optimizer.step()


def pruned() -> None:
    x, w, b = leaf([2.0, 3.0]), leaf([5.0, 1.0]), leaf(1.0)
    u = x * w
    flow.autograd.grad([(u * b).sum(), (u.exp() + b).sum()], [w, u])


def twice() -> None:
    x, w = leaf([2.0, 3.0]), leaf([5.0, 1.0])
    (g,) = flow.autograd.grad(((x * w).tanh() * w).sum(), x, create_graph=True)
    (h,) = flow.autograd.grad((g * g).sum(), x, create_graph=True)
    h.sum().backward()


def written() -> None:
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 2
    row = y.reshape(2, 2)[0]
    other = y[1:3]
    row.mul_(3)
    y[3] = 7.0
    (other * y.sum()).sum().backward()


def custom() -> None:
    x = leaf([1.0, 2.0])
    (g,) = flow.autograd.grad(Cube.apply(x * 2).sum(), x, create_graph=True)
    g.sum().backward()


def several_outputs() -> None:
    x = leaf([[1.0, 3.0], [4.0, 2.0]])
    values, _ = x.sort(1)
    first, second = values.unbind(0)
    (first * 2 + second).sum().backward()


def hooked() -> None:
    x, z = leaf([2.0, 1.0]), leaf(3.0)
    y = x * 5
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda t: None)

    def inside(grad: Any) -> None:
        with flow.enable_grad():
            (z * 7).backward()

    out = y.exp()
    out.grad_fn.register_hook(lambda grads, _: tuple(g * 2 for g in grads))
    out.register_hook(inside)
    out.sum().backward()


def retained() -> None:
    x = leaf([2.0, 1.0])
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    (x * x).backward(flow.tensor([1.0, 2.0]), inputs=[x])


def checkpointed() -> None:
    x = leaf([2.0, 1.0])
    for reentrant in (False, True):
        checkpoint(lambda t: (t * t).tanh(), x, use_reentrant=reentrant).sum().backward()


def with_a_zero() -> None:
    x = leaf([2.0, 1.0])
    y = x * 3
    y.register_hook(lambda g: None)
    (y.detach() * x + y * 0).sum().backward()


def complex_numbers() -> None:
    x = flow.tensor([1 + 2j, 3j], requires_grad=True)
    ((x * x).abs().sum() + x.real.sum()).backward()


def anomalous() -> None:
    x = leaf([2.0, 1.0])
    with flow.autograd.detect_anomaly():
        x.sin().sum().backward()


PROGRAMS: list[Callable[[], None]] = [
    train, pruned, twice, written, custom, several_outputs, hooked, retained, checkpointed,
    with_a_zero, complex_numbers, anomalous,
]  # fmt: skip
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


def explored(program: Callable[[], Any], tmp_path: Path, **options: Any) -> tuple[Any, Any]:
    """Return the document and the trace of a program."""
    flow.manual_seed(0)
    path = tmp_path / "page.html"
    with flow.explore(path=path, **options) as e, flow.autograd.trace() as t:
        program()
    check(e.document)
    return e.document, t


def shown(grad: Any) -> Any:
    """Return what a document has of a gradient."""
    value = Values(True).of(grad.cpu().numpy())
    return list(grad.shape), str(grad.dtype), grad.nbytes, value


@programs
def test_numbers_are_those_of_the_trace(program: Any, tmp_path: Path) -> None:
    compare(*explored(program, tmp_path))


def test_on_each_device(device: str, tmp_path: Path) -> None:
    def program() -> None:
        net = network().to(device)
        x = flow.randn(5, 3).to(device).requires_grad_()
        out = net(x)
        out[0].mul_(2)
        (g,) = flow.autograd.grad(out.sum(), x, create_graph=True)
        (g.square().sum() + out.sum()).backward()

    document, t = explored(program, tmp_path)
    compare(document, t)
    assert "cuda:0" in {part["device"] for part in document["tensors"]} or device == "cpu"
    for run in document["runs"]:
        assert run["retain_graph"] or run["steps"][-1]["held"] == 0
    assert min(op["alive"] for op in document["ops"]) > 0


def compare(document: Any, t: Any) -> None:
    """Assert that the films of a document are what a trace says."""
    nodes = {part["sequence_nr"]: part["id"] for part in document["nodes"]}
    runs: dict[int, list[Any]] = {}
    for step in t.steps:
        runs.setdefault(step.task, []).append(step)
    assert len(runs) == len(document["runs"]) > 0
    steps_seen = 0
    for run, steps in zip(document["runs"], runs.values(), strict=True):
        assert run["order"] == [nodes[n.sequence_nr] for n in steps[0].dependencies]
        assert [s["node"] for s in run["steps"]] == [nodes[s.node.sequence_nr] for s in steps[1:]]
        for state, step in zip(states(run), steps, strict=True):
            assert state["ready"] == [nodes[n.sequence_nr] for n in step.ready_queue]
            counts = {nodes[n.sequence_nr]: count for n, count in step.dependencies.items()}
            assert state["dependencies"] == counts
            told = {}
            for name, grad in step.current_grad.items():
                name, _, output = name.partition("[")
                (node,) = [n for n in step.dependencies if t.name(n) == name]
                output = int(output.rstrip("]") or 0)
                told[nodes[node.sequence_nr], output] = shown(grad)
            assert told == {
                (node, g["output"]): (g["shape"], g["dtype"], g["bytes"], g["value"])
                for node, grads in state["not_ready"].items()
                for g in grads
            }
            steps_seen += 1
    assert steps_seen == len(t.steps)


@programs
def test_nodes_are_those_of_the_graph(program: Any, tmp_path: Path) -> None:
    document, t = explored(program, tmp_path)
    parts = {part["sequence_nr"]: part for part in document["nodes"]}
    for step in t.steps:
        for node in step.dependencies:
            part = parts[node.sequence_nr]
            assert part["name"] == node.name()
            assert part["topological_nr"] == node.topological_nr
            assert part["shapes"] == [i and list(i.shape) for i in node.output_tensor_infos]
            edges = [(i, n, k) for i, (n, k) in enumerate(node.edges) if n is not None]
            assert [(e["input"], e["to"], e["output"]) for e in part["edges"]] == [
                (i, parts[n.sequence_nr]["id"], k) for i, n, k in edges
            ]
            shapes = [n.output_tensor_infos[k].shape for _, n, k in edges]
            assert [tuple(e["shape"]) for e in part["edges"]] == shapes


@programs
def test_each_node_takes_what_had_arrived(program: Any, tmp_path: Path) -> None:
    document, _ = explored(program, tmp_path)
    for run in document["runs"]:
        for before, step in zip(states(run), run["steps"], strict=False):
            assert before["ready"][0] == step["node"]
            assert before["dependencies"][step["node"]] == 0
            assert before["not_ready"].get(step["node"], []) == step["current_grad"]


@programs
def test_bytes_add_up(program: Any, tmp_path: Path) -> None:
    document, _ = explored(program, tmp_path)
    for run in document["runs"]:
        for step in run["steps"]:
            assert step["released"] >= 0 <= step["freed"]
            assert step["held"] >= 0 <= step["alive"]
        if not run["retain_graph"]:
            assert run["steps"][-1]["held"] == 0
    alive = [op["alive"] for op in document["ops"]]
    assert min(alive) > 0


class TestFilms:
    def test_of_pruning(self, tmp_path: Path) -> None:
        document, _ = explored(pruned, tmp_path)
        (run,) = document["runs"]
        names = {part["id"]: part["name"] for part in document["nodes"]}
        assert run["kind"] == "grad"
        assert [names[n] for n in run["inputs"]] == ["accumulate_grad", "mul_backward"]
        assert sorted(names[n] for n in run["pruned"]) == ["accumulate_grad"] * 2
        assert {*run["order"]}.isdisjoint(run["pruned"])
        assert names[run["root"]] == "graph_root"
        assert len(run["roots"]) == 2
        captured = {at: g for step in run["steps"] for at, g in step["captured"].items()}
        assert {*captured} == {"0", "1"}

    def test_of_what_the_walk_never_reaches(self, tmp_path: Path) -> None:
        x, w = leaf(2.0), leaf(5.0)

        def program() -> None:
            y = (x * w).exp()
            flow.autograd.grad((y * w).sum(), y)

        document, _ = explored(program, tmp_path)
        (run,) = document["runs"]
        names = {part["id"]: part["name"] for part in document["nodes"]}
        assert sorted(names[n] for n in run["unvisited"]) == [
            "accumulate_grad", "accumulate_grad", "mul_backward",
        ]  # fmt: skip
        assert {*run["unvisited"]} <= {*run["pruned"]}
        assert [names[n] for n in run["order"]] == ["sum_backward", "mul_backward", "exp_backward"]
        assert [names[n] for n in run["needed"]] == ["sum_backward", "mul_backward"]

    def test_of_gradients_in_grad(self, tmp_path: Path) -> None:
        x = leaf([1.0, 2.0])
        x.grad = flow.tensor([10.0, 20.0])

        def program() -> None:
            y = x * 3
            y.retain_grad()
            y.sum().backward()

        document, _ = explored(program, tmp_path)
        (run,) = document["runs"]
        told = {
            document["nodes"][step["node"]]["name"]: [g["value"]["text"] for g in step["acc_grad"]]
            for step in run["steps"]
        }
        assert told == {
            "sum_backward": [],
            "mul_backward": ["[1, 1]"],
            "accumulate_grad": ["[13, 23]"],
        }

    def test_of_layers(self, tmp_path: Path) -> None:
        document, _ = explored(twice, tmp_path)
        layers = {}
        for part in document["nodes"]:
            layers.setdefault(part["layer"], []).append(part["name"])
        assert {*layers} == {0, 1, 2}
        assert "tanh_grad_backward" in layers[1]
        assert "tanh_backward" in layers[0]
        assert [run["layer"] for run in document["runs"]] == [1, 2, 3]
        assert [run["create_graph"] for run in document["runs"]] == [True, True, False]
        for part in document["nodes"]:
            assert (part["made_by"] is None) == (part["layer"] == 0), part

    def test_of_calls_inside_of_calls(self, tmp_path: Path) -> None:
        document, _ = explored(hooked, tmp_path)
        outer, inner = document["runs"]
        assert (outer["parent"], inner["parent"]) == (None, 0)
        called = [s for s in outer["steps"] if s["ops"][0] <= inner["op"] <= s["ops"][1]]
        assert "exp_backward" in [document["nodes"][s["node"]]["name"] for s in called]

    def test_of_hooks(self, tmp_path: Path) -> None:
        document, _ = explored(hooked, tmp_path)
        hooks = {part["name"]: part["hooks"] for part in document["nodes"] if part["hooks"]}
        assert [text.partition(" hooked.")[0] for text in hooks["mul_backward"]] == [
            "tensor hook", "retain_grad",
        ]  # fmt: skip
        assert [text.partition(" hooked.")[0] for text in hooks["exp_backward"]] == [
            "tensor hook", "hook",
        ]  # fmt: skip
        assert [text.split(" hooked.")[0] for text in hooks["accumulate_grad"]] == [
            "post-accumulate hook"
        ]

    def test_of_an_error(self, tmp_path: Path) -> None:
        x = leaf(2.0)
        y = x.exp()
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError), flow.explore(path=tmp_path / "p.html") as e:
            (y * 2).sum().backward()
        check(e.document)
        (run,) = e.document["runs"]
        names = {part["id"]: part["name"] for part in e.document["nodes"]}
        assert [names[s["node"]] for s in run["steps"]] == ["sum_backward", "mul_backward"]
        assert run["error"] == "ZeroDivisionError: division by zero"

    def test_of_memory(self, tmp_path: Path) -> None:
        """By hand: x and y have 8,000 bytes; exp saves its result, the sum nothing."""

        def program() -> None:
            x = flow.ones(1000, dtype=flow.float64, requires_grad=True)
            x.exp().sum().backward()

        document, _ = explored(program, tmp_path)
        (run,) = document["runs"]
        # The gradient of the root, a float64, which the sum expands to that of exp.
        assert run["start"]["held"] == 8000 + 8
        summed, exp, leaf_step = run["steps"]
        assert (summed["released"], summed["held"]) == (0, 8000 + 8)
        assert (exp["released"], exp["held"]) == (8000, 8000)  # now the gradient of x
        assert exp["freed"] == 8000  # the caller has the gradient of the root
        assert (leaf_step["released"], leaf_step["held"]) == (0, 0)
        assert exp["alive"] == 8000 + 8000 + 8 + 8  # x, its gradient, the loss, the root's

    def test_is_freed_with_what_it_shows(self, tmp_path: Path) -> None:
        """The exploration keeps nothing that it has seen."""
        import weakref

        seen = []

        def program() -> None:
            x = leaf([1.0, 2.0])
            y = x * 3
            seen.extend([weakref.ref(y), weakref.ref(y.grad_fn)])
            y.sum().backward()
            del y
            assert [each() for each in seen] == [None, None]

        flow.manual_seed(0)
        with flow.explore(path=tmp_path / "p.html"):
            program()


@pytest.mark.slow
def test_a_chain_of_5000_is_linear(tmp_path: Path) -> None:
    def size(length: int) -> tuple[int, float]:
        x = leaf([1.0, 2.0])

        def program() -> None:
            y = x
            for _ in range(length):
                y = y * 1.0001
            y.sum().backward()

        start = time.perf_counter()
        with flow.explore(path=tmp_path / f"{length}.html") as e:
            program()
        took = time.perf_counter() - start
        (run,) = e.document["runs"]
        assert len(run["steps"]) == length + 2
        changed = [len(s["dependencies"]) + len(s["not_ready"]) for s in run["steps"]]
        assert max(changed) <= 2
        return len(json.dumps(e.document)), took

    half, _ = size(2500)
    whole, took = size(5000)
    assert whole < 2.1 * half
    print(f"5,000 nodes: {took:.2f} s, {whole / 1e6:.1f} MB")


def test_a_trace_of_a_long_chain_is_linear() -> None:
    x = leaf([1.0, 2.0])
    y = x
    for _ in range(5000):
        y = y + 1
    with flow.autograd.trace() as t:
        y.sum().backward()
    assert len(t.steps) == 5003
    for k in (0, 1, 2500, 5002):
        step = t.steps[k]
        assert len(step.dependencies) == 5002 - k
        assert len(step.ready_queue) == (1 if k < 5002 else 0)
        assert len(step.current_grad) == (1 if k < 5002 else 0)
    changes = [len(s._call.changes[s._position].counts) for s in t.steps[1:]]
    assert max(changes) == 1
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])
