"""`torch.fx`: graphs of modules and functions, changed and run, beside PyTorch's."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.compatibility import fx
from oneflow_lite.nn.functional import dropout

torch = pytest.importorskip("torch")


def network(lib: Any) -> Any:
    """Return a module of a library that uses functions, methods, operators and attributes."""

    class Block(lib.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv = lib.nn.Conv2d(3, 4, 3)
            self.tail = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.BatchNorm2d(4))
            self.scale = lib.nn.Parameter(lib.ones(4, 1, 1) * 2)
            self.register_buffer("shift", lib.full((1,), 0.5))

        def forward(self, x: Any, plus: float = 1.0) -> Any:
            y = self.tail(self.conv(x))
            y = lib.relu(y) + y * self.scale - self.shift + plus
            a, b = lib.chunk(y, 2, 1)
            y = lib.cat([a, 1 / (2 + b * b)], dim=1)
            return {"out": lib.flatten(y, 1).view(y.size(0), -1), "rest": (y[:, 0, None], -y)}

    return Block()


def both() -> tuple[Any, Any]:
    ours, theirs = network(flow), network(torch)
    state = {name: flow.tensor(value.numpy()) for name, value in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return ours, theirs


def test_the_graph_is_that_of_pytorch() -> None:
    from torch import fx as their_fx

    def calls(graph: Any, module: str) -> list[Any]:
        return [
            (n.op, getattr(n.target, "__name__", n.target), str(n.args), str(n.kwargs))
            for n in graph.nodes
        ]

    ours, theirs = both()
    mine, given = fx.symbolic_trace(ours), their_fx.symbolic_trace(theirs)
    assert calls(mine.graph, "flow") == calls(given.graph, "torch")
    assert [n.name for n in mine.graph.nodes] == [n.name for n in given.graph.nodes]
    assert flow.flatten in [n.target for n in mine.graph.nodes]


def test_a_graph_module_runs_trains_and_is_copied() -> None:
    module, _ = both()
    traced = fx.symbolic_trace(module)
    assert set(traced.state_dict()) == set(module.state_dict())
    x = flow.randn(2, 3, 5, 5)
    module.eval(), traced.eval()
    for found in (traced, copy.deepcopy(traced)):
        assert flow.equal(found(x)["out"], module(x)["out"])
        assert flow.equal(found(x, plus=3.0)["rest"][1], module(x, plus=3.0)["rest"][1])
    traced.train()(x)["out"].sum().backward()
    assert module.scale.grad is not None and type(traced).__name__ == "GraphModule"
    small = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    clone = pickle.loads(pickle.dumps(small))
    assert clone(flow.ones(1, 2)).shape == (1, 2)
    assert traced.code == str(traced.graph)
    with pytest.raises(TypeError):
        traced(x, minus=1.0)


def test_graphs_can_be_changed() -> None:
    traced = fx.symbolic_trace(lambda x: flow.relu(x) + flow.relu(x * 2))
    graph = traced.graph
    for node in graph.nodes:
        if node.target is flow.relu:
            with graph.inserting_after(node):
                new = graph.call_function(flow.tanh, (node.args[0],))
            node.replace_all_uses_with(new)
            with pytest.raises(flow.errors.ArgumentError, match="replace_all_uses_with"):
                graph.erase_node(new)
            graph.erase_node(node)
    graph.lint()
    text = traced.recompile()
    assert "tanh" in text and "relu" not in text
    x = flow.randn(3)
    assert flow.equal(traced(x), flow.tanh(x) + flow.tanh(x * 2))
    with graph.inserting_before(list(graph.nodes)[-1]):
        dead = graph.call_function(operator.add, (next(iter(graph.nodes)), 1))
    assert graph.eliminate_dead_code() and dead not in graph.nodes
    assert not graph.eliminate_dead_code()
    first, last = next(iter(graph.nodes)), list(graph.nodes)[1]
    graph._nodes[0], graph._nodes[1] = last, first
    with pytest.raises(flow.errors.CaptureError, match="too early"):
        graph.lint()


def test_tracers_decide_what_is_one_call() -> None:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 if x.sum() > 0 else x

    outer = nn.Sequential(Inner(), nn.ReLU())
    with pytest.raises(fx.TraceError, match="is_leaf_module"):
        fx.symbolic_trace(outer)

    class Whole(fx.Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return isinstance(m, Inner) or super().is_leaf_module(m, module_qualified_name)

    tracer = Whole()
    traced = fx.GraphModule(tracer.root, graph) if (graph := tracer.trace(outer)) else None
    assert traced is not None and traced(flow.ones(2)).tolist() == [2, 2]
    extra = nn.Sequential(outer, nn.Linear(1, 1))
    held = fx.GraphModule(extra, fx.Tracer().trace(nn.Sequential(nn.ReLU())))
    held.add_submodule("unused", nn.Linear(1, 1))
    held.delete_all_unused_submodules()
    assert [name for name, _ in held.named_modules() if name] == ["0", "0.0", "0.1"]


def test_concrete_arguments_constants_and_wrapped_functions() -> None:
    def branch(x: Any, flag: bool) -> Any:
        return dropout(x, 0.0) + flow.tensor([1.0]) if flag else x

    traced = fx.symbolic_trace(branch, {"flag": True})
    assert traced(flow.zeros(2)).tolist() == [1, 1] and "flag" not in traced.code
    assert dropout.__module__.startswith("oneflow_lite.functors")  # put back after the trace

    def asks(x: Any) -> Any:
        return x + length(x)

    with pytest.raises(fx.TraceError, match="its length"):
        fx.symbolic_trace(asks)
    fx.wrap("length")
    assert fx.symbolic_trace(asks)(flow.zeros(2)).tolist() == [2, 2]
    for wrong in (lambda x: list(x), lambda x: [0][x]):
        with pytest.raises(fx.TraceError, match="fx.wrap"):
            fx.symbolic_trace(wrong)


def length(x: Any) -> int:
    return len(x)


def test_a_graph_that_somebody_makes_takes_what_is_done_with_proxies() -> None:
    graph = fx.Graph()
    tracer = fx.GraphAppendingTracer(graph)
    x = fx.Proxy(graph.placeholder("x"), tracer)
    w = fx.Proxy(graph.get_attr("inner.w"), tracer)
    y = (
        flow.tensordot(x, w, 1) * 0
        + flow.einsum("ij,jk->ik", [x, w])
        + flow.broadcast_tensors(x[:, :1], w[:1, :1])[0]
    )
    graph.output(flow.stack([y.relu(), flow.exp(y)]).node)
    module = fx.GraphModule({"inner.w": flow.eye(2) * 2}, graph, "made")
    assert list(module.state_dict()) == ["inner.w"]
    given = flow.tensor([[1.0, -2.0]])
    expected = given * 2 + given[:, :1]
    assert module(given).tolist() == flow.stack([expected.relu(), expected.exp()]).tolist()


@pytest.mark.parametrize("lib", [flow, torch], ids=["flow", "torch"])
def test_an_interpreter_does_otherwise_with_some_nodes(lib: Any) -> None:
    room = fx if lib is flow else torch.fx
    kind, trace = room.Interpreter, room.symbolic_trace

    class Doubled(kind):  # type: ignore[misc, valid-type]
        def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
            return super().call_module(target, args, kwargs) * 2

        def run_node(self, n: Any) -> Any:
            seen.append((n.op, len(self.fetch_args_kwargs_from_env(n)[0])))
            return super().run_node(n)

    seen: list[Any] = []
    module = trace(lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Identity()))
    assert Doubled(module).run(lib.ones(2)).tolist() == [4, 4]
    assert seen == [("placeholder", 0), ("call_module", 1), ("call_module", 1), ("output", 1)]
    first = next(iter(module.graph.nodes))
    graph: Any = room.Graph()
    made: dict[Any, Any] = {}
    for node in module.graph.nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
    assert room.GraphModule(module, graph)(lib.ones(1)).tolist() == [1]
    assert kind(module).run(initial_env={first: lib.ones(1)}).tolist() == [1]
    scaled = trace(lambda x, k=3: x * k)
    assert kind(scaled).run(lib.ones(1)).tolist() == [3]
