"""Anomaly mode: the first NaN of a backward pass is found, and where its op was called."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from oneflow_lite.autograd.engine.anomaly import AnomalyMode
from oneflow_lite.errors import AnomalyError, GradientError, StaleTensorError
from oneflow_lite.tensors.mode import local
from tests.autograd.leaves import leaf

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy remarks on every NaN
PACKAGE = str(Path(flow.__file__).parent)


def root_times_zero(x: Any) -> Any:
    return flow.sqrt(x) * 0  # 0 · inf: this line is looked for


class TestNaN:
    def test_names_the_node_and_the_lines_of_the_forward_op(self):
        x = leaf([0.0, 1.0])
        with detect_anomaly(), pytest.raises(AnomalyError) as caught:
            y = root_times_zero(x)
            (y + x).sum().backward()
        text = str(caught.value)
        assert text.startswith("sqrt_backward returned NaN in the gradient of input 0 (shape (2,))")
        assert "this line is looked for" in text
        assert "y = root_times_zero(x)" in text
        assert "most recent call last" in text
        assert text.index("y = root_times_zero(x)") < text.index("this line is looked for")
        assert PACKAGE not in text

    def test_frames_of_the_package_are_left_out(self):
        class Root(flow.nn.Module):
            def forward(self, x):
                return root_times_zero(x)

        model = flow.nn.Sequential(Root())
        with detect_anomaly(), pytest.raises(AnomalyError) as caught:
            model(leaf([0.0, 1.0])).sum().backward()
        assert "return root_times_zero(x)" in str(caught.value)
        assert PACKAGE not in str(caught.value)

    def test_nothing_is_raised_without_it(self):
        x = leaf([0.0, 1.0])
        root_times_zero(x).sum().backward()
        assert np.isnan(x.grad.numpy()).tolist() == [True, False]

    def test_gradients_of_leaves_that_ran_before_are_there_and_others_are_not(self):
        x, w = leaf([0.0, 1.0]), leaf([1.0, 1.0])
        with detect_anomaly(), pytest.raises(AnomalyError):
            (root_times_zero(x) * w).sum().backward()
        assert x.grad is None

    def test_of_which_input(self):
        w = leaf([1.0, 0.0])
        with detect_anomaly(), pytest.raises(AnomalyError, match="div_backward .* input 1"):
            (flow.ones(2) / w).sum().backward(flow.tensor(0.0))

    def test_an_input_that_needs_no_gradient_is_not_checked(self):
        class Second(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                return x * w

            @staticmethod
            def backward(ctx, dy):
                return dy, dy * np.nan

        x = leaf([1.0, 2.0])
        with detect_anomaly():
            Second.apply(x, flow.ones(2)).sum().backward()
            with pytest.raises(AnomalyError, match="SecondBackward .* input 1"):
                Second.apply(x, leaf([1.0, 1.0])).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
        node = (x * flow.ones(2)).grad_fn
        AnomalyMode(check_nan=True).check(node, (np.ones(2), np.full(2, np.nan)))

    def test_recorded_outside_of_the_mode(self):
        x = leaf([0.0, 1.0])
        y = root_times_zero(x).sum()
        with detect_anomaly(), pytest.raises(AnomalyError, match="unknown, it was recorded with"):
            y.backward()

    def test_recorded_inside_and_run_outside(self):
        x = leaf([0.0, 1.0])
        with detect_anomaly():
            y = root_times_zero(x).sum()
        y.backward()
        assert np.isnan(x.grad.numpy()[0])

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
    def test_in_every_dtype(self, dtype):
        x = leaf(np.array([1, 2], dtype))
        bad = flow.tensor(np.array([1, np.nan], dtype))
        with detect_anomaly():
            x.clone().backward(flow.tensor(np.array([1, np.inf], dtype)))
            with pytest.raises(AnomalyError, match="clone_backward"):
                x.clone().backward(bad)

    def test_in_the_imaginary_part(self):
        x = leaf(np.array([1 + 0j, 2]))
        with detect_anomaly(), pytest.raises(AnomalyError, match="clone_backward"):
            x.clone().backward(flow.tensor(np.array([1, complex(0, np.nan)])))

    @pytest.mark.parametrize("values", [[np.inf, -np.inf], [np.inf, 0.0], [3e38, -3e38]])
    def test_infinity_is_no_nan(self, values):
        x = leaf([1.0, 2.0])
        with detect_anomaly():
            x.clone().backward(flow.tensor(values))
        assert x.grad.tolist() == flow.tensor(values).tolist()

    @pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
    def test_any_shape(self, shape):
        x = leaf(np.ones(shape))
        grad = np.full(shape, np.nan)
        with detect_anomaly():
            x.clone().backward(flow.ones(shape, dtype=flow.float64))
            if grad.size:
                with pytest.raises(AnomalyError):
                    x.clone().backward(flow.tensor(grad))

    def test_a_transposed_gradient(self):
        x = leaf(np.ones((2, 3)))
        grad = np.ones((2, 3))
        grad[1, 1] = np.nan
        with detect_anomaly(), pytest.raises(AnomalyError, match="transpose_backward"):
            x.transpose(0, 1).backward(flow.tensor(grad.T))

    def test_on_each_device(self, device):
        x = flow.tensor([0.0, 1.0], device=device, requires_grad=True)
        with detect_anomaly():
            (x * 2).sum().backward()
            with pytest.raises(AnomalyError, match="this line is looked for"):
                root_times_zero(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_a_gradient_that_the_caller_gave(self):
        x = leaf([1.0, 2.0])
        bad = flow.tensor([np.nan, 1.0])
        with detect_anomaly():
            with pytest.raises(AnomalyError, match="graph_root .*\n.*that the caller gave"):
                flow.autograd.backward([x * 2, x * 3], [bad, bad])
            with pytest.raises(AnomalyError, match="mul_backward"):
                flow.autograd.backward(x * 2, bad)

    def test_a_nan_that_a_hook_makes_is_found_at_the_next_node(self):
        x = leaf([1.0, 2.0])
        with detect_anomaly(), pytest.raises(AnomalyError, match="mul_backward"):
            y = x * 2
            y.register_hook(lambda g: g * np.nan)
            y.sum().backward()

    def test_in_grad(self):
        x = leaf([0.0, 1.0])
        with detect_anomaly(), pytest.raises(AnomalyError, match="sqrt_backward"):
            flow.autograd.grad(root_times_zero(x).sum(), x)

    def test_an_op_that_writes_in_place(self):
        x = leaf([0.0, 1.0])
        with detect_anomaly(), pytest.raises(AnomalyError, match="this line writes"):
            y = x * 1
            y.sqrt_()  # this line writes
            (y * 0).sum().backward()


class TestSecondOrder:
    def test_the_chain_of_calls(self):
        x = leaf(0.0)
        with detect_anomaly(), pytest.raises(AnomalyError) as caught:
            y = (x * x) ** 1.5  # the first call
            (g,) = flow.autograd.grad(y, x, create_graph=True)  # the call that recorded it
            g.backward()
        text = str(caught.value)
        assert "it ran in the backward pass of pow_backward" in text
        assert "# the call that recorded it" in text
        assert "# the first call" in text
        assert text.index("# the call that recorded it") < text.index("# the first call")
        assert PACKAGE not in text

    def test_a_chain_of_three(self):
        x = leaf(0.0)
        with detect_anomaly(), pytest.raises(AnomalyError) as caught:
            y = (x * x) ** 2.5
            (g,) = flow.autograd.grad(y, x, create_graph=True)
            (h,) = flow.autograd.grad(g, x, create_graph=True)
            (k,) = flow.autograd.grad(h, x, create_graph=True)
            k.backward()
        assert str(caught.value).count("it ran in the backward pass of") >= 2

    def test_nothing_is_wrong(self):
        x = leaf([1.0, 2.0])
        with detect_anomaly():
            (g,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
            (h,) = flow.autograd.grad(g.sum(), x)
        assert h.tolist() == [6.0, 12.0]


class TestOtherExceptions:
    def test_get_the_place_as_a_note(self):
        x = leaf([1.0, 2.0])
        with detect_anomaly(), pytest.raises(ZeroDivisionError) as caught:
            y = x.exp()  # this line made it
            y.register_hook(lambda g: 1 / 0)
            y.sum().backward()
        (note,) = [n for n in caught.value.__notes__ if "forward op was called here" in n]
        assert "# this line made it" in note
        assert "in the backward pass, at exp_backward" in caught.value.__notes__

    def test_no_note_outside_of_the_mode(self):
        x = leaf([1.0, 2.0])
        y = x.exp()
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError) as caught:
            y.sum().backward()
        assert caught.value.__notes__ == ["in the backward pass, at exp_backward"]

    def test_a_gradient_that_does_not_fit(self):
        x = leaf([1.0, 2.0])
        with detect_anomaly(), pytest.raises(StaleTensorError) as caught:
            y = x * 1
            z = y.sin()  # this line saved it
            with flow.no_grad():
                y.zero_()
            z.sum().backward()
        assert any("# this line saved it" in note for note in caught.value.__notes__)

    def test_without_looking_for_nan(self):
        x = leaf([0.0, 1.0])
        with detect_anomaly(check_nan=False):
            root_times_zero(x).sum().backward()
            with pytest.raises(ZeroDivisionError) as caught:
                y = x.exp()  # this line made it
                y.register_hook(lambda g: 1 / 0)
                y.sum().backward()
        assert np.isnan(x.grad.numpy()[0])
        assert any("# this line made it" in note for note in caught.value.__notes__)


class TestTheMode:
    def test_is_on_in_the_block(self):
        assert (is_anomaly_enabled(), is_anomaly_check_nan_enabled()) == (False, True)
        with detect_anomaly(check_nan=False):
            assert (is_anomaly_enabled(), is_anomaly_check_nan_enabled()) == (True, False)
            with detect_anomaly():
                assert (is_anomaly_enabled(), is_anomaly_check_nan_enabled()) == (True, True)
            assert (is_anomaly_enabled(), is_anomaly_check_nan_enabled()) == (True, False)
        assert not is_anomaly_enabled()

    def test_ends_with_an_error(self):
        with pytest.raises(KeyError), detect_anomaly():
            raise KeyError
        assert not is_anomaly_enabled()
        x = leaf([0.0])
        with pytest.raises(AnomalyError), detect_anomaly():
            root_times_zero(x).sum().backward()
        assert not is_anomaly_enabled()
        assert flow.is_grad_enabled()
        assert flow.tensors.mode.local.task is None

    def test_as_a_function(self):
        set_detect_anomaly(True, check_nan=False)
        try:
            assert (is_anomaly_enabled(), is_anomaly_check_nan_enabled()) == (True, False)
            with set_detect_anomaly(False):
                assert not is_anomaly_enabled()
            assert is_anomaly_enabled()
        finally:
            set_detect_anomaly(False)
        assert not is_anomaly_enabled()

    def test_does_not_reach_other_threads(self):
        seen = []
        with detect_anomaly():
            thread = threading.Thread(target=lambda: seen.append(is_anomaly_enabled()))
            thread.start()
            thread.join()
        assert seen == [False]

    def test_with_no_grad_and_a_pushed_interpreter(self):
        class Names(flow.Interpreter):
            def __init__(self):
                self.names: list[str] = []

            def apply(self, op_expr, inputs, attrs):
                self.names.append(op_expr.op_type_name)
                return self.inner.apply(op_expr, inputs, attrs)

        x = leaf([0.0, 1.0])
        with detect_anomaly(), flow.push_interpreter(Names()) as names:
            with flow.no_grad():
                assert not (x * 2).requires_grad
            assert is_anomaly_enabled()
            with pytest.raises(AnomalyError, match="this line is looked for"):
                root_times_zero(x).sum().backward()
        assert names.names[:3] == ["mul", "sqrt", "mul"]

    def test_holds_no_variables_of_the_caller(self):
        class Thing:
            pass

        def forward(x):
            thing = Thing()
            references.append(weakref.ref(thing))
            return x.exp()

        gc.disable()
        try:
            references: list[Any] = []
            x = leaf([1.0])
            with detect_anomaly():
                y = forward(x)
                assert references[0]() is None
                y.sum().backward()
            node = weakref.ref(y.grad_fn)
            del y
            assert node() is None
        finally:
            gc.enable()

    def test_the_graph_goes_after_an_error(self):
        gc.disable()
        try:
            x = leaf([0.0, 1.0])
            y = x * 1
            node = weakref.ref(y.grad_fn)
            try:
                with detect_anomaly():
                    root_times_zero(y).sum().backward()
            except GradientError:
                pass
            del y
            assert node() is None
        finally:
            gc.enable()

    def test_gradients_are_the_same(self):
        rng = np.random.default_rng(0)
        x, w = leaf(rng.normal(size=(3, 4))), leaf(rng.normal(size=(4, 2)))

        def both():
            y = (x @ w).tanh().sum(0).exp().prod()
            firsts = flow.autograd.grad(y, [x, w], create_graph=True)
            total = sum((g * g).sum() for g in firsts)
            return [*firsts, *flow.autograd.grad(total, [x, w])]

        expected = both()
        with detect_anomaly():
            got = both()
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_the_origin_is_the_node_that_this_thread_runs(monkeypatch):
    """Workers of several devices may run nodes of one task at once."""
    x = flow.ones(1, requires_grad=True)
    here, elsewhere, node = (x * 2).grad_fn, (x * 3).grad_fn, (x * 4).grad_fn
    task = SimpleNamespace(evaluating={threading.get_ident(): here, -1: elsewhere})
    monkeypatch.setattr(local, "task", task)
    AnomalyMode(True).remember(node)
    assert node.metadata["parent_"] is here
