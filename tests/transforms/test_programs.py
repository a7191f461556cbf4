"""Transforms in Programs: captured, compiled, exported, explored and printed, as plain ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import func
from oneflow_lite.static.runtime import takeover
from oneflow_lite.tensors.mode import local
from oneflow_lite.transforms.levels import BETWEEN
from tests.explore.schema import check
from tests.transforms.agreement import tensors_of

Function = Callable[..., Any]
WEIGHT = flow.tensor(np.random.default_rng(7).normal(size=(3, 3)), dtype=flow.float32)


def random(*shape: int, **options: Any) -> flow.Tensor:
    values = np.random.default_rng(sum(shape) + len(shape)).normal(size=shape)
    return flow.tensor(values, dtype=flow.float32, **options)


def scalar(r: flow.Tensor) -> flow.Tensor:
    return ((WEIGHT @ r).sin() * r).sum()


def vector(r: flow.Tensor) -> flow.Tensor:
    return (WEIGHT @ r).sin() * r


TRANSFORMED: dict[str, Function] = {
    "vmap": lambda x: flow.vmap(scalar)(x),
    "vmap of grad": lambda x: flow.vmap(func.grad(scalar))(x),
    "grad": lambda x: func.grad(scalar)(x[0]),
    "vjp": lambda x: func.vjp(vector, x[0])[1](x[1]),
    "jvp": lambda x: func.jvp(vector, (x[0],), (x[1],)),
    "jacrev": lambda x: func.jacrev(vector)(x[0]),
    "jacfwd": lambda x: func.jacfwd(vector)(x[0]),
    "hessian": lambda x: func.hessian(scalar)(x[0]),
    "vmap of hessian": lambda x: flow.vmap(func.hessian(scalar))(x),
    "jet": lambda x: func.jet(vector, (x[0],), ((x[1], 0.0, 0.0),)),
    "laplacian": lambda x: func.laplacian(scalar)(x[0]),
    "linearize": lambda x: func.linearize(vector, x[0])[1](x[1]),
    "vmap of jvp": lambda x: flow.vmap(lambda r: func.jvp(scalar, (r,), (r,))[1])(x),
}


def assert_same(found: Any, expected: Any, **tolerance: float) -> None:
    found, expected = tensors_of(found), tensors_of(expected)
    assert len(found) == len(expected) > 0
    tolerance = tolerance or {"rtol": 1e-5, "atol": 1e-5}
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), **tolerance)


# --- Programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_program_holds_plain_ops_and_computes_as_eager_mode(name: str) -> None:
    program = flow.static.Program()
    with flow.static.program_guard(program):
        x = flow.static.data("x", [4, 3])
        outputs = tensors_of(TRANSFORMED[name](x))
    ops = program.global_block().ops
    assert ops
    assert not BETWEEN.keys() & {op.type for op in ops}
    assert not any("level" in op.attrs for op in ops)
    for value in (random(4, 3), random(4, 3) + 1):
        found = flow.static.Executor().run(program, {"x": value.numpy()}, outputs)
        assert_same([flow.tensor(y) for y in found], TRANSFORMED[name](value))


# --- flow.compile ---------------------------------------------------------------------------------


def replayed(compiled: Any, function: Function, *, shapes: Any = ((4, 3), (5, 3))) -> None:
    """Check that calls of each shape are recorded once, and replayed as eager mode computes."""
    for n, shape in enumerate(shapes, 1):
        for k in range(3):
            x = random(*shape) + k
            assert_same(compiled(x), function(x), rtol=2e-4, atol=2e-4)
        explained = flow.explain(compiled)
        counts = explained.captures, explained.hits, explained.fallbacks
        assert counts == (n, 2 * n, 0), explained


@pytest.mark.parametrize("mode", [None, "numpy"])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_inside_are_replayed(name: str, mode: str | None) -> None:
    replayed(flow.compile(TRANSFORMED[name], mode=mode), TRANSFORMED[name])


def test_replays_without_fusing_have_the_bits_of_eager_mode() -> None:
    function = TRANSFORMED["vmap of grad"]
    compiled = flow.compile(function, mode="numpy")
    for k in range(3):
        x = random(4, 3) + k
        assert np.array_equal(compiled(x).numpy(), function(x).numpy())


@pytest.mark.own_loops
@pytest.mark.unjudged("loops")
@pytest.mark.parametrize("name", ["vmap of grad", "hessian", "jet", "laplacian"])
def test_fused_loops_compute_transforms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the extra `jit` is not installed")
    monkeypatch.setattr(takeover, "_AT_LEAST", 3)
    monkeypatch.setattr(takeover, "_AT_MOST", 3)
    function = TRANSFORMED[name]
    with flow.use_jit(True):
        compiled = flow.compile(function)
        for k in range(6):
            x = random(4, 3) + k
            assert_same(compiled(x), function(x), rtol=2e-4, atol=2e-4)
    assert compiled.explain().hits == 5
    assert compiled.explain().loops


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, r: flow.Tensor) -> flow.Tensor:
        return r * self.factor


OUTSIDE: dict[str, Callable[[], Function]] = {
    "vmap of grad": lambda: flow.vmap(func.grad(scalar)),
    "hessian of a row": lambda: flow.vmap(func.hessian(scalar)),
    "a module": lambda: flow.vmap(flow.nn.Linear(3, 2)),
    "a partial": lambda: flow.vmap(functools.partial(flow.add, WEIGHT[0])),
    "an object": lambda: flow.vmap(Scaled(2.0)),
    "elementwise_grad": lambda: func.elementwise_grad(lambda r: r.sin() * r),
    "chunks": lambda: flow.vmap(scalar, chunk_size=3),
    "a compiled function": lambda: flow.vmap(flow.compile(scalar)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_transforms_made_outside_are_replayed(name: str) -> None:
    made = OUTSIDE[name]()
    replayed(flow.compile(made), made)
    replayed(flow.compile(lambda *args: made(*args)), made)


def test_a_transform_around_one_from_outside() -> None:
    gradient = func.grad(scalar)
    replayed(flow.compile(lambda x: flow.vmap(gradient)(x)), flow.vmap(gradient))


def test_reads_of_the_transformed_function_are_guarded() -> None:
    scaled = Scaled(2.0)
    compiled = flow.compile(flow.vmap(scaled))
    x = random(4, 3)
    assert_same(compiled(x), x * 2)
    scaled.factor = 3.0
    assert_same(compiled(x), x * 3)
    assert_same(compiled(x), x * 3)
    assert (compiled.explain().captures, compiled.explain().hits) == (2, 1)


@pytest.mark.filterwarnings("ignore:flow.compile")
def test_effects_of_the_transformed_function_are_seen() -> None:
    seen: list[int] = []

    def notes(r: flow.Tensor) -> flow.Tensor:
        seen.append(1)
        return r * 2

    for call in (flow.vmap(notes), func.elementwise_grad(notes)):
        seen.clear()
        compiled = flow.compile(call)
        for _ in range(3):
            compiled(random(4, 3))
        assert len(seen) == 3
        assert compiled.explain().hits == 2  # a replay appends, too


@pytest.mark.filterwarnings("ignore:flow.compile")
def test_decisions_by_values_are_taken_anew() -> None:
    def branches(r: flow.Tensor) -> flow.Tensor:
        return r * 2 if r.sum() > 0 else r * 3

    compiled = flow.compile(lambda x: func.jvp(branches, (x,), (x,))[1])
    for sign in (1, 1, -1, 1, -1):
        x = flow.ones(3) * sign
        assert_same(compiled(x), x * (2 if sign > 0 else 3))


def test_parameters_that_change_between_calls_are_seen() -> None:
    layer = flow.nn.Linear(3, 2)
    compiled = flow.compile(flow.vmap(func.grad(lambda r: layer(r).square().sum())))
    x = random(4, 3)
    for _ in range(4):
        w, b = layer.weight.detach(), layer.bias.detach()
        assert_same(compiled(x), 2 * (x @ w.T + b) @ w)
        with flow.no_grad():
            layer.weight.mul_(1.5).add_(0.1)
    layer.weight.data = random(2, 3)
    w = layer.weight.detach()
    assert_same(compiled(x), 2 * (x @ w.T + layer.bias.detach()) @ w)
    assert (compiled.explain().captures, compiled.explain().hits) == (1, 4)


def test_gradients_for_each_sample() -> None:
    layer = flow.nn.Linear(3, 2)

    def loss(parameters: Any, r: flow.Tensor) -> flow.Tensor:
        return func.functional_call(layer, parameters, (r,)).square().sum()

    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    gradients = flow.vmap(func.grad(loss), in_dims=(None, 0))
    replayed(flow.compile(lambda x: gradients(parameters, x)), lambda x: gradients(parameters, x))


def test_random_numbers_are_drawn_anew() -> None:
    noisy = flow.vmap(lambda r: r * 0 + flow.rand(3), randomness="different")
    compiled = flow.compile(noisy)
    x = random(4, 3)
    compiled(x)
    for _ in range(2):
        flow.manual_seed(3)
        eager = noisy(x)
        flow.manual_seed(3)
        assert_same(compiled(x), eager)
    assert compiled.explain().hits == 2
    assert len({*np.round(eager.numpy().ravel(), 6)}) == 12


@pytest.mark.parametrize("name", TRANSFORMED)
def test_replays_have_the_history_of_the_call(name: str) -> None:
    weight = WEIGHT.clone().requires_grad_()

    def function(x: flow.Tensor) -> Any:
        return TRANSFORMED[name](x @ weight)

    def gradients(call: Function, x: flow.Tensor, twice: bool) -> Any:
        roots = sum([(y * y).sum() for y in tensors_of(call(x))])
        first = flow.autograd.grad(roots, [x, weight], create_graph=twice)
        if not twice:
            return first
        return flow.autograd.grad(sum([(g * g).sum() for g in first]), [x, weight])

    compiled = flow.compile(function)
    for k in range(3):
        x = (random(4, 3) / (k + 1)).requires_grad_()
        found, expected = [gradients(each, x, False) for each in (compiled, function)]
        assert_same(found, expected, rtol=1e-3, atol=1e-3)
    assert compiled.explain().hits == 2
    found, expected = [gradients(each, x, True) for each in (compiled, function)]
    scale = max(float(g.abs().max()) for g in expected)
    assert_same(found, expected, rtol=1e-3, atol=1e-4 * scale)


def test_a_compiled_function_keeps_no_backward_pass_of_others_from_plain_arrays() -> None:
    compiled = flow.compile(flow.vmap(scalar))
    before = set(local.foreign)
    x = random(4, 3, requires_grad=True)
    for _ in range(2):
        compiled(x).sum().backward()
    assert compiled.explain().hits == 1
    assert set(local.foreign) == before


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "vmap": lambda f: lambda x: flow.vmap(lambda r: f(r).sum())(x),
    "grad": lambda f: lambda x: func.grad(lambda r: f(r).sum())(x[0]),
    "jacrev": lambda f: lambda x: func.jacrev(f)(x[0]),
    "vmap of jacrev": lambda f: lambda x: flow.vmap(func.jacrev(f))(x),
    "jacrev of jacrev": lambda f: lambda x: func.jacrev(func.jacrev(f))(x[0]),
    "jacfwd of jacrev": lambda f: lambda x: func.jacfwd(func.jacrev(f))(x[0]),
    "jvp": lambda f: lambda x: func.jvp(f, (x[0],), (x[1],)),
    "linearize": lambda f: lambda x: func.linearize(f, x[0])[1](x[1]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_compiled_functions_can_be_transformed(name: str) -> None:
    compiled = flow.compile(vector)
    x = random(4, 3)
    for _ in range(3):
        compiled(x[0])
    assert_same(TRANSFORMS[name](compiled)(x), TRANSFORMS[name](vector)(x))
    assert compiled.explain().fallbacks == 0


# --- ONNX -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vmap", "vmap of grad", "jvp", "hessian", "laplacian"])
def test_onnx_gets_plain_ops(name: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    layer = flow.nn.Linear(3, 3)

    class Model(flow.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: flow.Tensor) -> Any:
            return tensors_of(TRANSFORMED[name](self.layer(x)))[-1]

    model, path, x = Model(), tmp_path / "model.onnx", random(4, 3)
    flow.onnx.export(model, (x,), str(path))
    assert not BETWEEN.keys() & {node.op_type for node in onnx.load(path).graph.node}
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for value in (x, x + 1):
        found = session.run(None, {session.get_inputs()[0].name: value.numpy()})
        assert_same(flow.tensor(found[0]), model(value), rtol=1e-4, atol=1e-4)


# --- Looking --------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [False, True])
def test_the_explorer_tells_the_level(values: bool) -> None:
    weight = WEIGHT.clone().requires_grad_()
    x = random(5, 3)
    with flow.explore(values=values) as exploration:
        flow.vmap(lambda r: (weight @ r).sin())(x).sum().backward()
        func.jvp(vector, (x[0],), (x[1],))
    document = exploration.document
    check(document)
    tensors = document["tensors"]
    (op,) = [op for op in document["ops"] if op["op"] == "enter_batch" and op["run"] is None]
    (entry,) = [tensors[i] for i in op["outputs"]]
    assert (entry["shape"], entry["level"]) == ([3], "batch of 5, vmap")
    assert (entry["value"] is not None) is values  # of the whole batch
    assert tensors[op["inputs"][0]]["level"] == ""
    assert any(each["level"] == "value and tangent, jvp" for each in tensors)


def test_exploring_a_result_rehearses_its_backward_pass() -> None:
    x = random(5, 3, requires_grad=True)
    exploration = flow.explore(flow.vmap(scalar)(x).sum())
    document = exploration.document
    check(document)
    assert x.grad is None
    names = [
        document["nodes"][step["node"]]["name"]
        for step in document["runs"][0]["steps"]
        if step["node"] is not None
    ]
    assert "enter_batch_backward" in names


def test_steps_of_a_backward_pass_are_traced() -> None:
    x = random(5, 3, requires_grad=True)
    y = flow.vmap(lambda r: (r * r).sum())(x).sum()
    with flow.autograd.trace() as steps:
        y.backward()
    text = str(steps)
    assert "batch of 5, vmap, shape=(3,)" in text
    assert "enter_batch_backward" in text
    assert_same(x.grad, x * 2)


def test_the_profiler_counts_ops_on_whole_batches() -> None:
    x = random(5, 3)
    with flow.profiler.profile() as profile:
        flow.vmap(lambda r: (r * r).sum())(x)
    counts = {row.key: row.count for row in profile.key_averages()}
    assert counts["mul"] == counts["sum"] == 1
    assert not counts.keys() & BETWEEN.keys()
    assert "mul" in str(profile)


# --- Texts ----------------------------------------------------------------------------------------


def texts_in(transform: Function, *args: Any) -> list[str]:
    found: list[str] = []

    def look(r: flow.Tensor) -> flow.Tensor:
        found.extend([repr(r), str(r), f"{r}"])
        assert r._repr_html_()
        return r.sum()

    transform(look)(*args)
    assert found[0] == found[1] == found[2]
    return found


def test_the_text_of_an_entry() -> None:
    x = flow.ones(5, 3)
    assert texts_in(flow.vmap, x)[0] == "tensor(batch of 5, shape=(3,), dtype=float32)"
    text = "tensor(batch of 5, shape=(3,), dtype=float32, requires_grad=True)"
    assert texts_in(lambda f: flow.vmap(func.grad(f)), x)[0] == text
    text = "tensor(batch of 3, batch of 5, shape=(), dtype=float32)"
    assert texts_in(lambda f: flow.vmap(flow.vmap(f)), x)[0] == text


def test_the_text_of_a_series() -> None:
    x = flow.tensor([1.0, 2.0])

    def jvp(f: Function) -> Function:
        return lambda x: func.jvp(f, (x,), (x * 2,))[1]

    assert texts_in(jvp, x)[0] == "tensor([1., 2.], tangent=tensor([2., 4.]))"
    inside = "tensor(batch of 2, shape=(), dtype=float32"
    assert texts_in(lambda f: flow.vmap(jvp(f)), x)[0] == f"{inside}, tangent={inside}))"
    series = texts_in(lambda f: lambda x: func.jet(f, (x,), ((x * 2, 0.0),)), x)
    assert series[0] == "tensor([1., 2.], series=[tensor([2., 4.]), 0])"


def test_the_text_of_a_variable_and_of_what_was_kept() -> None:
    with flow.static.program_guard(flow.static.Program()):
        x = flow.static.data("x", [4, 3])
        assert "batch of 4" in texts_in(flow.vmap, x)[0]
        assert "tangent=" in texts_in(lambda f: lambda x: func.jvp(f, (x,), (x,)), x)[0]
    kept: list[flow.Tensor] = []
    flow.vmap(lambda r: (kept.append(r), r * 2)[1])(flow.ones(5, 3))
    assert repr(kept[0]) == "tensor(batch of 5, shape=(3,), dtype=float32)"


# --- Results in memory of their own ---------------------------------------------------------------


def test_results_are_no_views_of_tensors_without_history() -> None:
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    jacobian = func.jacfwd(lambda r: r**3)(x)
    jacobian.mul_(2)
    jacobian.sum().backward()
    assert_same(x.grad, 12 * x)
