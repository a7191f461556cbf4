"""Debug mode: a write that no version counter sees is found, and no other one is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import set_debug_mode
from oneflow_lite.autograd.graph import save_on_cpu
from oneflow_lite.errors import StaleTensorError
from tests.autograd.leaves import leaf
from tests.functors.test_saved_tensors import CASES


@pytest.fixture(autouse=True)
def debug_mode() -> Any:
    with set_debug_mode(True):
        yield


class TestRawWrites:
    def test_to_an_input(self):
        x = leaf([1.0, 2.0])
        y = x.sin()
        x.detach().numpy()[0] = 5.0
        with pytest.raises(StaleTensorError, match="without its version counter") as caught:
            y.sum().backward()
        assert str(caught.value).startswith("sin_backward: the saved tensor 'x' of shape (2,)")
        assert x.grad is None

    def test_to_a_result(self):
        x = leaf([1.0, 2.0])
        y = x.exp()
        y.detach().numpy()[1] = 5.0
        with pytest.raises(StaleTensorError, match="exp_backward: .* 'y'"):
            y.sum().backward()

    def test_to_an_array_that_became_a_tensor(self):
        array = np.array([1.0, 2.0])
        x = leaf([3.0, 4.0])
        y = x.double() * flow.from_numpy(array)
        array *= 2
        with pytest.raises(StaleTensorError, match="mul_backward"):
            y.sum().backward()

    def test_through_a_view(self):
        x = leaf(np.ones((3, 4)))
        y = (x * 2).reshape(12)[2:9:3].exp().tanh()
        y.detach().numpy()[...] += 1
        with pytest.raises(StaleTensorError, match="tanh_backward"):
            y.sum().backward()

    def test_of_the_same_content_is_none(self):
        x = leaf([1.0, 2.0])
        y = x.sin()
        x.detach().numpy()[0] = 1.0
        y.sum().backward()
        assert x.grad is not None

    def test_of_what_was_not_saved(self):
        x = leaf([1.0, 2.0])
        y = x + 1
        y.detach().numpy()[0] = 7.0
        y.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_before_a_second_derivative(self):
        x = leaf([1.0, 2.0])
        (g,) = flow.autograd.grad((x.sin()).sum(), x, create_graph=True)
        x.detach().numpy()[0] = 5.0
        with pytest.raises(StaleTensorError):
            g.sum().backward()

    def test_a_complex_tensor(self):
        z = leaf(np.array([1 + 2j, 3j]))
        y = z * z
        z.detach().numpy()[0] = 0
        with pytest.raises(StaleTensorError, match="mul_backward"):
            y.real.sum().backward()

    def test_is_not_found_with_the_mode_off(self):
        x = leaf([1.0, 2.0])
        with set_debug_mode(False):
            y = x.sin()
        x.detach().numpy()[0] = 5.0
        y.sum().backward()
        assert x.grad[0].item() == pytest.approx(np.cos(5.0))

    def test_is_found_when_the_mode_ended_before_the_backward(self):
        x = leaf([1.0, 2.0])
        y = x.sin()
        x.detach().numpy()[0] = 5.0
        with set_debug_mode(False), pytest.raises(StaleTensorError):
            y.sum().backward()

    def test_on_each_device(self, device):
        x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
        y = x.sin()
        y.sum().backward(retain_graph=True)
        x._data[0] = 5.0
        with pytest.raises(StaleTensorError, match="sin_backward"):
            y.sum().backward()


class TestWritesThatAreCounted:
    def test_are_reported_with_their_versions(self):
        x = leaf([1.0, 2.0])
        a = x * 1
        y = a.sin()
        with flow.no_grad():
            a.mul_(2)
        with pytest.raises(StaleTensorError, match="it is at version 1"):
            y.sum().backward()

    def test_ops_that_overwrite_what_they_saved(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * 1
        y.mul_(w)
        y.exp_()
        y = y + 0
        y[0].mul_(w[0])
        y[y > 5] = 2.0
        y.sigmoid_()
        y.sum().backward()
        assert np.isfinite(x.grad.numpy()).all()
        assert np.isfinite(w.grad.numpy()).all()

    def test_an_accumulated_gradient(self):
        x = leaf([1.0, 2.0])
        for _ in range(3):
            (x * x).sum().backward()
        assert x.grad.tolist() == [6.0, 12.0]

    def test_a_training_loop(self):
        rng = np.random.default_rng(0)
        model = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU(), flow.nn.Linear(8, 2))
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = flow.tensor(rng.normal(size=(5, 4)).astype(np.float32))
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]

    @pytest.mark.parametrize("name", CASES)
    def test_any_op_to_second_order(self, name):
        call, arrays = CASES[name]
        xs = [flow.tensor(a).requires_grad_() for a in arrays]
        y = call(flow, *xs)
        y = (y * y.conj() if y.is_complex() else y * y).real.sum()
        firsts = flow.autograd.grad(y, xs, create_graph=True, allow_unused=True)
        terms = [(g * g.conj()).real.sum() for g in firsts if g is not None and g.requires_grad]
        if terms:
            flow.autograd.grad(sum(terms), xs, allow_unused=True)


class TestTheMode:
    def test_saved_tensors_and_hooks_on_the_node(self):
        x = leaf([1.0, 2.0])
        y = x.sin()
        assert y.grad_fn.saved_tensors[0].tolist() == [1.0, 2.0]
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 2,))
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos([1.0, 2.0]), rtol=1e-6)

    def test_packed_tensors_are_not_checked(self):
        x = leaf([1.0, 2.0])
        with save_on_cpu():
            y = x.sin()
        x.detach().numpy()[0] = 5.0
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.cos([1.0, 2.0]), rtol=1e-6)

    def test_an_error_leaves_the_mode_as_it_was(self):
        with set_debug_mode(False):
            with pytest.raises(KeyError), set_debug_mode(True):
                raise KeyError
            assert not flow.tensors.mode.local.state.debug
        assert flow.tensors.mode.local.state.debug

    def test_empty_and_0d_tensors(self):
        for value in (np.ones(0), np.array(2.0)):
            x = leaf(value)
            (x * x).sum().backward()
            assert x.grad.tolist() == (2 * value).tolist()
