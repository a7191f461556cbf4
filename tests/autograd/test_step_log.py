"""The step log of a backward call: dependencies, ready queue and sums after each node."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import trace
from oneflow_lite.errors import ArgumentTypeError, GradientError
from tests.autograd.leaves import leaf


def told(log: Any) -> list[Any]:
    """Return the steps of a log with names in place of nodes, and numbers in place of tensors."""
    return [
        (
            step.node and log.name(step.node),
            [log.name(node) for node in step.ready_queue],
            {log.name(node): count for node, count in step.dependencies.items()},
            {name: grad.tolist() for name, grad in step.current_grad.items()},
        )
        for step in log.steps
    ]


class TestSteps:
    def test_of_a_linear_function(self):
        x, w, b = leaf(2.0), leaf(5.0), leaf(1.0)
        with trace(x=x, w=w, b=b) as t:
            (x * w + b).backward()
        assert told(t) == [
            (
                None,
                ["add_backward#2"],
                {"add_backward#2": 0, "mul_backward#1": 1, "b": 1, "w": 1, "x": 1},
                {"add_backward#2": 1.0},
            ),
            (
                "add_backward#2",
                ["mul_backward#1", "b"],
                {"mul_backward#1": 0, "b": 0, "w": 1, "x": 1},
                {"mul_backward#1": 1.0, "b": 1.0},
            ),
            (
                "mul_backward#1",
                ["b", "w", "x"],
                {"b": 0, "w": 0, "x": 0},
                {"b": 1.0, "w": 2.0, "x": 5.0},
            ),
            ("b", ["w", "x"], {"w": 0, "x": 0}, {"w": 2.0, "x": 5.0}),
            ("w", ["x"], {"x": 0}, {"x": 5.0}),
            ("x", [], {}, {}),
        ]
        assert (x.grad.item(), w.grad.item(), b.grad.item()) == (5.0, 2.0, 1.0)

    def test_a_value_that_is_used_twice_waits_for_both(self):
        x = leaf(3.0)
        with trace(x=x) as t:
            y = x * x
            (y.sin() + y.cos()).backward()
        name = t.name(y.grad_fn)
        counts = [step[2].get(name) for step in told(t)]
        sums = [step[3].get(name) for step in told(t)]
        assert counts == [2, 2, 1, 0, None, None]
        assert sums[:2] == [None, None]
        assert sums[2] == pytest.approx(-np.sin(9.0))
        assert sums[3] == pytest.approx(np.cos(9.0) - np.sin(9.0))
        assert [step[2].get("x") for step in told(t)] == [2, 2, 2, 2, 0, None]

    def test_sums_are_copies(self):
        x = leaf([1.0, 2.0])
        with trace(x=x) as t:
            (x + x * 2).sum().backward()
        x.grad.zero_()
        values = [s.current_grad["x"].tolist() for s in t.steps if "x" in s.current_grad]
        assert values == [[1.0, 1.0], [3.0, 3.0]]
        g = flow.tensor([5.0, 6.0])
        with trace(x=x) as t:
            (x * 2).backward(g)
        g.zero_()
        assert t.steps[0].current_grad["mul_backward#1"].tolist() == [5.0, 6.0]

    def test_the_queue_is_what_runs_next(self):
        x = leaf([1.0, 2.0])
        with trace() as t:
            ((x * 2).exp() + (x * 3).sin() * x).sum().backward()
        for before, after in zip(t.steps, t.steps[1:], strict=False):
            assert after.node is before.ready_queue[0]

    def test_of_several_roots(self):
        x = leaf(2.0)
        with trace(x=x) as t:
            flow.autograd.backward([x * 3, x * 4])
        nodes = [step[0] for step in told(t)]
        assert nodes == [None, "graph_root#3", "mul_backward#2", "mul_backward#1", "x"]
        assert x.grad.item() == 7

    def test_grad_shows_the_nodes_that_lead_to_its_inputs(self):
        x, w = leaf(2.0), leaf(5.0)
        y = x * 3
        with trace(x=x, w=w) as t:
            flow.autograd.grad(y * w + w.exp(), y)
        assert [step[0] for step in told(t)] == [
            None, "add_backward#3", "mul_backward#2", "mul_backward#1",
        ]  # fmt: skip
        assert all("w" not in step[2] for step in told(t))
        assert told(t)[-2][3] == {"mul_backward#1": 5.0}
        assert y.grad_fn.saved is not None

    def test_of_an_op_with_several_outputs(self):
        x = leaf([[1.0, 3.0], [4.0, 2.0]])
        with trace(x=x) as t:
            values, _ = x.sort(1)
            values.sum().backward()
        assert told(t)[1][3] == {"sort_backward#1[0]": [[1.0, 1.0], [1.0, 1.0]]}

    def test_with_create_graph_and_the_pass_after_it(self):
        x = leaf(3.0)
        with trace(x=x) as t:
            (g,) = flow.autograd.grad(x**3, x, create_graph=True)
            (h,) = flow.autograd.grad(g, x)
        assert h.item() == 18
        assert {step.task for step in t.steps} == {1, 2}
        assert not any(grad.requires_grad for s in t.steps for grad in s.current_grad.values())

    def test_of_calls_inside_of_others(self):
        x, z = leaf(2.0), leaf(3.0)
        y = x * 5

        def hook(grad):
            with flow.enable_grad():
                (z * 7).backward()

        y.register_hook(hook)
        with trace(x=x, z=z) as t:
            (y * 2).backward()
        assert [step.task for step in t.steps] == [1, 1, 2, 2, 2, 1, 1]
        assert z.grad.item() == 7
        numbers = [line.split()[0] for line in str(t).splitlines() if line[0] in "12"]
        assert numbers == ["1.0", "1.1", "2.0", "2.1", "2.2", "1.2", "1.3"]

    def test_ends_where_an_error_ended_the_call(self):
        x = leaf(2.0)
        y = x.exp()
        y.register_hook(lambda g: 1 / 0)
        with trace(x=x) as t, pytest.raises(ZeroDivisionError):
            (y * 2).sum().backward()
        assert [step[0] for step in told(t)] == [None, "sum_backward#3", "mul_backward#2"]
        assert "exp_backward#1: " in str(t)

    def test_the_same_gradients_as_without(self):
        rng = np.random.default_rng(0)
        x, w = leaf(rng.normal(size=(3, 4))), leaf(rng.normal(size=(4, 2)))

        def both():
            y = (x @ w).tanh().sum(0).exp().prod()
            firsts = flow.autograd.grad(y, [x, w], create_graph=True)
            return [*firsts, *flow.autograd.grad(sum((g * g).sum() for g in firsts), [x, w])]

        expected = both()
        with trace():
            got = both()
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())

    def test_with_anomaly_mode_and_hooks(self):
        x = leaf([1.0, 2.0])
        x.register_hook(lambda g: g * 10)
        with trace(x=x) as t, flow.autograd.detect_anomaly():
            (x * 2).sum().backward()
        assert x.grad.tolist() == [20.0, 20.0]
        assert told(t)[-2][3] == {"x": [2.0, 2.0]}  # hooks run when the node does

    def test_on_each_device(self, device):
        x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
        with trace(x=x) as t:
            (x * 3).sum().backward()
        assert told(t)[-2][3] == {"x": [3.0, 3.0]}
        assert "x: [3., 3.]" in str(t)
        assert t.steps[-2].current_grad["x"].device == x.device


class TestTheBlock:
    def test_ends(self):
        x = leaf(2.0)
        with trace() as t:
            (x * 2).backward()
        count = len(t.steps)
        (x * 2).backward()
        assert len(t.steps) == count
        assert flow.tensors.mode.local.state.trace is None

    def test_may_be_entered_again(self):
        x = leaf(2.0)
        block = trace(x=x)
        with block as first:
            (x * 2).backward()
        with block as second:
            pass
        assert (len(first.steps), second.steps) == (3, [])

    def test_does_not_reach_other_threads(self):
        x = leaf(2.0)
        with trace() as t:
            thread = threading.Thread(target=(x * 2).backward)
            thread.start()
            thread.join()
        assert t.steps == []
        assert x.grad.item() == 2

    def test_holds_the_graph_and_no_longer(self):
        gc.disable()
        try:
            x = leaf(2.0)
            y = x * 2
            with trace() as t:
                y.backward()
            node = weakref.ref(y.grad_fn)
            del y
            assert node() is t.steps[1].node
            del t
            assert node() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize(
        ("value", "error"), [(3.0, ArgumentTypeError), (flow.ones(1), GradientError)]
    )
    def test_names_are_of_tensors_that_require_a_gradient(self, value, error):
        with pytest.raises(error, match=r"trace\(\): argument 'x'"):
            trace(x=value)


class TestTheTable:
    def test_of_nothing(self):
        with trace() as t:
            pass
        assert str(t) == ""

    def test_large_arrays_are_shortened(self):
        x = leaf(np.arange(1000.0).reshape(10, 100))
        with trace(x=x) as t:
            (x * x).sum().backward()
        table = str(t)
        assert "x: [[ 0., 2., ..., 196., 198.], [ 200., ... (10, 100)" in table
        assert max(map(len, table.splitlines())) < 140

    def test_long_cells_are_shortened(self):
        leaves = [leaf(float(i)) for i in range(20)]
        total = leaves[0]
        for x in leaves[1:]:
            total = total + x
        with trace() as t:
            total.backward()
        first = str(t).splitlines()[2:11]
        assert any("more" in line for line in first)
        assert str(t).splitlines()[10].startswith("1.1")

    def test_has_no_trailing_blanks(self):
        x = leaf([1.0, 2.0])
        with trace(x=x) as t:
            (x * 3).exp().sum().backward()
        lines = str(t).splitlines()
        assert all(line == line.rstrip() for line in lines)
        assert lines[0].split() == "step node ready queue dependencies current_grad".split()

    def test_is_the_same_each_time(self):
        def table():
            x = leaf([1.0, 2.0])
            with trace(x=x) as t:
                (x * x + x.exp()).sum().backward()
            return str(t)

        assert table() == table()
