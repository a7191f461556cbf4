"""`autograd.grad` with every argument, and gradients that do not fit."""

from typing import ClassVar

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    FreedGraphError,
    GradientError,
)
from oneflow_lite.utils.checkpoint import checkpoint
from tests.autograd.leaves import leaf


class TestGrad:
    def test_returns_a_tuple_and_touches_no_grad(self):
        x = leaf([1.0, 2.0])
        result = flow.autograd.grad((x * x).sum(), x)
        assert isinstance(result, tuple) and len(result) == 1
        assert result[0].tolist() == [2.0, 4.0]
        assert x.grad is None
        assert not result[0].requires_grad

    def test_several_outputs_and_inputs(self):
        x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        gx, gy = flow.autograd.grad(
            [x * y, x.sum()], (x, y), [flow.tensor([1.0, 10.0]), flow.tensor(100.0)]
        )
        assert gx.tolist() == [103.0, 140.0]
        assert gy.tolist() == [1.0, 20.0]

    def test_with_respect_to_a_non_leaf(self):
        x = leaf(2.0)
        y = x * 3
        z = y * y
        assert flow.autograd.grad(z, y)[0].item() == 12

    def test_with_respect_to_a_leaf_and_the_non_leaf_on_the_way(self):
        x = leaf(2.0)
        y = x * 3
        z = y * y * x
        gx, gy = flow.autograd.grad(z, [x, y])
        assert (gx.item(), gy.item()) == (9 * 3 * 4, 24)

    def test_the_output_is_an_input(self):
        x = leaf(2.0)
        y = x * 3
        gy, gx = flow.autograd.grad(y, [y, x])
        assert (gy.item(), gx.item()) == (1, 3)
        (g,) = flow.autograd.grad(x, x, flow.tensor(5.0))
        assert g.item() == 5
        assert x.grad is None

    def test_an_output_that_is_an_input_of_another_output(self):
        x = leaf(2.0)
        y = x * 3
        z = y * y
        (g,) = flow.autograd.grad([y, z], y, [flow.tensor(100.0), flow.tensor(1.0)])
        assert g.item() == 112

    def test_the_same_input_twice(self):
        x = leaf(2.0)
        a, b = flow.autograd.grad(x * x, [x, x])
        assert a.item() == b.item() == 4
        assert not np.shares_memory(a.numpy(), b.numpy())

    def test_the_same_output_twice(self):
        x = leaf(2.0)
        y = x * x
        assert flow.autograd.grad([y, y], x)[0].item() == 8

    def test_one_output_of_a_node_with_several(self):
        x = leaf([3.0, 1.0, 2.0])
        a, b, c = x.unbind()
        y = a * b * c
        ga, gx = flow.autograd.grad(y, [a, x])
        assert ga.item() == 2
        assert gx.tolist() == [2.0, 6.0, 3.0]

    def test_the_result_does_not_share_memory_with_what_was_given(self):
        x = leaf([1.0, 2.0])
        given = flow.tensor([3.0, 4.0])
        (g,) = flow.autograd.grad(x.clone(), x, given)
        assert not np.shares_memory(g.numpy(), given.numpy())
        (g,) = flow.autograd.grad(x, x, given)
        assert not np.shares_memory(g.numpy(), given.numpy())

    def test_an_unused_input_raises(self):
        x, unused = leaf(2.0), leaf([1.0, 1.0])
        y = x * x
        with pytest.raises(GradientError, match=r"inputs\[1\].*\(2,\).*allow_unused"):
            flow.autograd.grad(y, [x, unused])
        assert flow.autograd.grad(y, x)[0].item() == 4  # nothing was freed

    def test_allow_unused(self):
        x, unused = leaf(2.0), leaf([1.0, 1.0])
        gx, none = flow.autograd.grad(x * x, [x, unused], allow_unused=True)
        assert gx.item() == 4 and none is None

    def test_materialize_grads(self):
        x, unused = leaf(2.0), leaf([1.0, 1.0])
        gx, zeros = flow.autograd.grad(x * x, [x, unused], materialize_grads=True)
        assert gx.item() == 4
        assert zeros.tolist() == [0.0, 0.0] and zeros.dtype == unused.dtype
        with pytest.raises(ArgumentError, match="allow_unused"):
            flow.autograd.grad(x * x, x, allow_unused=False, materialize_grads=True)

    def test_an_input_later_than_the_output(self):
        x = leaf(2.0)
        y = x * 3
        z = y * 4
        with pytest.raises(GradientError, match="not used"):
            flow.autograd.grad(y, z)
        assert flow.autograd.grad(y, z, allow_unused=True) == (None,)

    def test_an_output_without_history(self):
        x = leaf(2.0)
        with pytest.raises(GradientError, match="does not require a gradient"):
            flow.autograd.grad(flow.tensor(1.0), x)
        with pytest.raises(GradientError, match="does not require"):
            flow.autograd.grad(x * 2, flow.tensor(1.0))

    @pytest.mark.parametrize("bad", [3.0, None, "x", [1.0], np.ones(1), [None]])
    def test_non_tensors(self, bad):
        x = leaf(2.0)
        y = x * x
        for call in (
            lambda: flow.autograd.grad(bad, x),
            lambda: flow.autograd.grad(y, bad),
            lambda: flow.autograd.backward(bad),
        ):
            with pytest.raises(FlowError):
                call()
        if bad is not None and not isinstance(bad, list):
            with pytest.raises(ArgumentTypeError):
                flow.autograd.grad(y, x, [bad])
            with pytest.raises(FlowError):
                flow.autograd.grad(y, x, bad)
            with pytest.raises(FlowError):
                y.backward(bad)
        assert flow.autograd.grad(y, x)[0].item() == 4
        assert x.grad is None

    def test_is_grads_batched(self):
        x = leaf([1.0, 2.0, 3.0])
        y = x * x
        (g,) = flow.autograd.grad(y, x, flow.eye(3), is_grads_batched=True)
        np.testing.assert_array_equal(g.numpy(), np.diag([2.0, 4.0, 6.0]))

    def test_is_grads_batched_with_several(self):
        x, w, unused = leaf([1.0, 2.0]), leaf(3.0), leaf(1.0)
        outputs = (x * w, x.sum() * w)
        batch = (flow.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), flow.tensor([0.0, 0.0, 1.0]))
        gx, gw, none = flow.autograd.grad(
            outputs, (x, w, unused), batch, is_grads_batched=True, allow_unused=True
        )
        assert gx.tolist() == [[3.0, 0.0], [0.0, 3.0], [6.0, 6.0]]
        assert gw.tolist() == [1.0, 2.0, 6.0]
        assert none is None
        gx, zeros = flow.autograd.grad(
            (x * w, x.sum() * w), (x, unused), batch, is_grads_batched=True, materialize_grads=True
        )
        assert zeros.tolist() == [0.0, 0.0, 0.0]

    def test_is_grads_batched_frees_the_graph_unless_retained(self):
        x = leaf([1.0, 2.0])
        y = x * x
        flow.autograd.grad(y, x, flow.eye(2), is_grads_batched=True, retain_graph=True)
        flow.autograd.grad(y, x, flow.eye(2), is_grads_batched=True)
        with pytest.raises(FreedGraphError):
            flow.autograd.grad(y, x, flow.eye(2), is_grads_batched=True)

    @pytest.mark.parametrize("bad", [None, 3.0])
    def test_is_grads_batched_needs_gradients(self, bad):
        x = leaf([1.0, 2.0])
        y = x * x
        with pytest.raises(FlowError, match="grad_outputs"):
            flow.autograd.grad(y, x, bad, is_grads_batched=True)
        with pytest.raises(FlowError):
            flow.autograd.grad(y, x, flow.ones(3, 5), is_grads_batched=True)
        with pytest.raises(FlowError):
            flow.autograd.grad(y.sum(), x, flow.tensor(1.0), is_grads_batched=True)
        assert flow.autograd.grad(y.sum(), x)[0].tolist() == [2.0, 4.0]

    def test_grad_outputs_that_require_a_gradient(self):
        x, v = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        (g,) = flow.autograd.grad(x * x, x, v, create_graph=True)
        (gv,) = flow.autograd.grad(g.sum(), v)
        assert gv.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool"])
def test_a_gradient_of_another_dtype_is_cast(dtype):
    torch = pytest.importorskip("torch")
    x = leaf([1.0, 2.0])
    y = x * x
    given = flow.ones(2, dtype=dtype)
    (dx,) = flow.autograd.grad(y, x, given, retain_graph=True)
    t = torch.tensor([1.0, 2.0], requires_grad=True)
    (dt,) = torch.autograd.grad(t * t, t, torch.ones(2, dtype=getattr(torch, dtype)))
    assert dx.tolist() == dt.tolist() and dx.dtype == flow.float32
    y.backward(given)
    assert x.grad.dtype == flow.float32 and given.dtype == np.dtype(dtype)


def test_the_gradient_of_a_gradient_that_is_cast():
    x, g = leaf([1.0, 2.0]), flow.ones(2, dtype=flow.float64, requires_grad=True)
    (dx,) = flow.autograd.grad(x * x, x, g, create_graph=True)
    (dg,) = flow.autograd.grad(dx.sum(), g)
    assert dg.tolist() == [2.0, 4.0] and dg.dtype == flow.float64


class TestWrongGradients:
    CASES: ClassVar = {
        "shape": flow.ones(3),
        "shape that broadcasts": flow.ones(1),
        "shape with more dimensions": flow.ones(1, 2),
        "dtype": flow.ones(2, dtype=flow.complex64),
    }

    @pytest.mark.parametrize("case", CASES)
    def test_names_what_is_wrong(self, case):
        x = leaf([1.0, 2.0])
        y = x * x
        what = case.split()[0]
        for call in (
            lambda g: y.backward(g),
            lambda g: flow.autograd.grad(y, x, g),
            lambda g: flow.autograd.backward([y], [g]),
        ):
            with pytest.raises(GradientError, match=what) as caught:
                call(self.CASES[case])
            assert isinstance(caught.value, RuntimeError)
        assert x.grad is None
        y.backward(flow.ones(2))
        assert x.grad.tolist() == [2.0, 4.0]

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_a_wrong_number(self, count):
        x = leaf([1.0, 2.0])
        roots = [x * 2, x * 3]
        grads = [flow.ones(2)] * count
        with pytest.raises(GradientError, match="2 gradient"):
            flow.autograd.backward(roots, grads)
        with pytest.raises(GradientError, match="2 gradient"):
            flow.autograd.grad(roots, x, grads)
        assert x.grad is None

    def test_a_complex_root_needs_one(self):
        x = leaf(1 + 2j)
        with pytest.raises(GradientError, match="complex"):
            (x * x).backward()

    @pytest.mark.parametrize(
        "value", [flow.ones(3), flow.ones(2, dtype=flow.float64), 1.0, np.ones(2, np.float32)]
    )
    def test_assigned_to_grad(self, value):
        x = leaf([1.0, 2.0])
        with pytest.raises(FlowError, match="grad"):
            x.grad = value
        assert x.grad is None

    def test_a_tensor_as_its_own_gradient(self):
        x = leaf([1.0])
        with pytest.raises(FlowError):
            x.grad = x


class TestGraphTask:
    def build(self):
        x, w = leaf(2.0), leaf(3.0)
        a = x * 2
        b = a * w
        c = a + b
        return x, w, a, b, c

    def test_compute_dependencies(self):
        x, w, a, b, c = self.build()
        task = GraphTask(False, False, accumulate=True)
        task.compute_dependencies(c.grad_fn)
        assert task.dependencies == {
            c.grad_fn: 0,
            b.grad_fn: 1,
            a.grad_fn: 2,
            x.grad_fn_node: 1,
            w.grad_fn_node: 1,
        }

    def test_compute_dependencies_and_prune_node(self):
        _, w, _, b, c = self.build()
        task = GraphTask(False, False, accumulate=False)
        task.compute_dependencies_and_prune_node(c.grad_fn, [(w.grad_fn_node, 0)])
        assert set(task.exec_info) == {w.grad_fn_node, b.grad_fn, c.grad_fn}

    def test_pruning_stops_at_small_topological_numbers(self):
        x = leaf(2.0)
        y = x
        for _ in range(10):
            y = y * 2
        z = y * 3
        task = GraphTask(False, False, accumulate=False)
        task.compute_dependencies_and_prune_node(z.grad_fn, [(y.grad_fn, 0)])
        assert set(task.dependencies) == {z.grad_fn, y.grad_fn}

    def test_rules_do_not_run_for_inputs_that_are_not_asked_for(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        calls = []

        class Count(flow.Interpreter):
            def apply(self, op_expr, inputs, attrs):
                calls.append(op_expr.op_type_name)
                return self.inner.apply(op_expr, inputs, attrs)

        y, ones = x * w.exp(), flow.ones(2)
        with flow.push_interpreter(Count()):
            flow.autograd.grad(y, x, ones)
        assert calls == ["mul", "clone"]  # a copy, as the interpreter may keep what it saw


def combine(lib, kind, a, b):
    """One of six ops of two operands."""
    if kind == 0:
        return a + b
    if kind == 1:
        return a * b * 0.5
    if kind == 2:
        return lib.tanh(a - b)
    if kind == 3:
        return lib.sin(a) + b.sum() * 0.1
    if kind == 4:
        return lib.sigmoid(a) * b
    return lib.stack([a, b]).sum(0) * 0.5


class TestRandomGraphs:
    @pytest.mark.parametrize("seed", range(8))
    def test_against_pytorch(self, seed):
        torch = pytest.importorskip("torch")
        results = []
        for lib in (flow, torch):
            rng = np.random.default_rng(seed)
            leaves = [lib.tensor(rng.normal(size=3), requires_grad=True) for _ in range(3)]
            pool = list(leaves)
            for _ in range(25):
                i, j = rng.integers(len(pool), size=2)
                a, b = pool[i], pool[j]
                kind = rng.integers(6)
                pool.append(combine(lib, int(kind), a, b))
            total = sum(p.sum() for p in pool[-4:])
            options = {"create_graph": True, "allow_unused": True}
            first = lib.autograd.grad(total, leaves, **options)
            used = [g for g in first if g is not None]
            norm = sum((g * g).sum() for g in used)
            second = lib.autograd.grad(norm, leaves, allow_unused=True, retain_graph=True)
            total = sum(p.sum() for p in pool[-2:])
            total.backward()
            results.append(
                [
                    None if g is None else g.detach().numpy()
                    for g in (*first, *second, *[t.grad for t in leaves])
                ]
            )
        for ours, theirs in zip(*results, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_batch_of_gradients_takes_one_pass():
    calls = []
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda g: calls.append(tuple(g.shape)))
    (made,) = flow.autograd.grad(y, x, flow.eye(2), is_grads_batched=True)
    assert calls == [(2,)]
    assert made.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_a_batch_of_gradients_through_a_checkpoint_with_dropout():
    """A part that is computed again draws the numbers of the forward pass."""
    flow.manual_seed(0)
    x = flow.ones(20, requires_grad=True)
    y = checkpoint(lambda x: flow.nn.functional.dropout(x * x, 0.5), x, use_reentrant=False)
    (made,) = flow.autograd.grad(y, x, flow.stack([flow.ones(20)] * 2), is_grads_batched=True)
    assert made.tolist() == [(2 * y).tolist()] * 2
