"""Gradients of higher order, to the fifth, against closed forms."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    GradientError,
)
from tests.autograd.leaves import leaf

CLOSED_FORMS = {
    "x**6": (lambda x: x**6, lambda x, n: math.perm(6, n) * x ** (6 - n)),
    "exp(2x)": (lambda x: (x * 2).exp(), lambda x, n: 2**n * np.exp(2 * x)),
    "sin": (lambda x: x.sin(), lambda x, n: np.sin(x + n * np.pi / 2)),
    "1/x": (lambda x: 1 / x, lambda x, n: (-1) ** n * math.factorial(n) / x ** (n + 1)),
    "log": (
        lambda x: x.log(),
        lambda x, n: (-1) ** (n - 1) * math.factorial(n - 1) / x**n if n else np.log(x),
    ),
    "sqrt": (
        lambda x: x.sqrt(),
        lambda x, n: math.prod(0.5 - k for k in range(n)) * x ** (0.5 - n),
    ),
    "x exp(x)": (lambda x: x * x.exp(), lambda x, n: (x + n) * np.exp(x)),
    "x**2 * x**3": (lambda x: x**2 * x**3, lambda x, n: math.perm(5, n) * x ** (5 - n)),
}


class TestHigherOrders:
    @pytest.mark.parametrize("name", CLOSED_FORMS)
    def test_to_the_fifth(self, name):
        function, derivative = CLOSED_FORMS[name]
        at = np.array([0.7, 1.3, 2.1])
        x = leaf(at)
        y = function(x)
        for order in range(1, 6):
            (y,) = flow.autograd.grad(y.sum(), x, create_graph=True)
            np.testing.assert_allclose(y.numpy(), derivative(at, order), rtol=1e-9)

    def test_tanh_to_the_fifth_against_differences_of_the_fourth(self):
        def nth(at, order):
            x = leaf(at)
            y = x.tanh()
            for _ in range(order):
                (y,) = flow.autograd.grad(y.sum(), x, create_graph=True)
            return y.numpy()

        at, step = np.array([-0.4, 0.3, 1.1]), 1e-5
        numeric = (nth(at + step, 4) - nth(at - step, 4)) / (2 * step)
        np.testing.assert_allclose(nth(at, 5), numeric, rtol=1e-6)

    def test_mixed_derivatives_agree(self):
        x, y = leaf(0.7), leaf(1.3)
        z = (x * y).sin() * x.exp()
        (zx,) = flow.autograd.grad(z, x, create_graph=True)
        (zy,) = flow.autograd.grad(z, y, create_graph=True)
        (zxy,) = flow.autograd.grad(zx, y, retain_graph=True)
        (zyx,) = flow.autograd.grad(zy, x)
        assert zxy.item() == pytest.approx(zyx.item(), rel=1e-6)

    def test_the_hessian_of_a_cubic(self):
        a = np.random.default_rng(0).normal(size=(3, 3))
        x = leaf(np.array([1.0, 2.0, 3.0]))
        m = flow.tensor(a)
        z = (x * (m @ x)).sum() + (x**3).sum()
        (g,) = flow.autograd.grad(z, x, create_graph=True)
        rows = [flow.autograd.grad(g[i], x, retain_graph=True)[0].numpy() for i in range(3)]
        expected = a + a.T + np.diag(6 * np.array([1.0, 2.0, 3.0]))
        np.testing.assert_allclose(np.stack(rows), expected, rtol=1e-12)

    def test_the_saved_output_is_recorded_too(self):
        """exp and tanh save their output: its edge leads back to their own node."""
        for f in (flow.exp, flow.sigmoid, flow.sqrt):
            x = leaf(0.9)
            y = f(x)
            (g,) = flow.autograd.grad(y, x, create_graph=True)
            (h,) = flow.autograd.grad(g, x)
            v = y.item()
            expected = {
                flow.exp: v,
                flow.sigmoid: v * (1 - v) * (1 - 2 * v),
                flow.sqrt: -0.25 * 0.9**-1.5,
            }[f]
            assert h.item() == pytest.approx(expected, rel=1e-5)

    def test_the_fourth_by_backward(self):
        x = leaf(2.0)
        y = x**5
        for _ in range(3):
            (y,) = flow.autograd.grad(y, x, create_graph=True)
        y.backward()
        assert x.grad.item() == 240

    def test_without_create_graph_the_result_has_no_history(self):
        x = leaf(2.0)
        (g,) = flow.autograd.grad(x**3, x)
        with pytest.raises(GradientError):
            flow.autograd.grad(g, x)
