"""Control flow while `flow.compile` records: every replay takes the branch of its own values."""

from __future__ import annotations

import numpy as np

import oneflow_lite as flow
from oneflow_lite.static import nn
from tests.static.control_flow.control_flow_checks import array


def test_compiled_cond_replays_either_branch():
    @flow.compile
    def step(x, w):
        y = nn.cond(x.sum() > 0, lambda: x * x * w, lambda: x - w * w)
        return y, flow.autograd.grad((y * y).sum(), (x, w))

    def eager(x, w):
        y = x * x * w if x.sum() > 0 else x - w * w
        return y, flow.autograd.grad((y * y).sum(), (x, w))

    for value in (array(1.0, 2.0), array(-1.0, -2.0), array(3.0, 1.0), array(-3.0, 1.0)):
        results = []
        for fn in (step, eager):
            x = flow.tensor(value, requires_grad=True)
            w = flow.tensor([0.5, 0.25], dtype=flow.float64, requires_grad=True)
            results.append(fn(x, w))
        (y, (dx, dw)), (y1, (dx1, dw1)) = results
        for a, b in ((y, y1), (dx, dx1), (dw, dw1)):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy())
    found = step.explain()
    assert (found.captures, found.hits, found.fallbacks) == (1, 3, 0), found.reasons


def test_compiled_switch_case_and_while_loop():
    layer = flow.nn.Linear(2, 2)

    @flow.compile
    def step(x, n):
        h = nn.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, layer(h)), [flow.tensor(0), x])
        return nn.switch_case(n, [lambda: h[1], lambda: h[1] * 2])

    for count in (0, 2, 1, 3):
        x = flow.ones(1, 2)
        got = step(x, flow.tensor(count))
        want = x
        for _ in range(count):
            want = layer(want)
        want = want if count == 0 else want * 2
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6)
        (slope,) = flow.autograd.grad(got.sum(), layer.weight)
        slope_wanted = slope * 0
        if count:
            (slope_wanted,) = flow.autograd.grad(want.sum(), layer.weight)
        np.testing.assert_allclose(slope.numpy(), slope_wanted.numpy(), rtol=1e-5)
    found = step.explain()
    assert (found.captures, found.fallbacks) == (1, 0), found.reasons


def test_compiled_control_flow_has_second_derivatives():
    w = flow.tensor([2.0, 3.0], requires_grad=True)

    def eager(x, n):
        y = nn.cond(x.sum() > 0, lambda: x * x * w, lambda: x * w * w)
        return nn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * w), [0, y])[1]

    compiled = flow.compile(eager)
    for value, n in (([1.0, 2.0], 1), ([-1.0, -2.0], 2), ([1.0, 4.0], 0)):
        results = []
        for fn in (eager, compiled):
            x = flow.tensor(value, requires_grad=True)
            grads = flow.autograd.grad(fn(x, flow.tensor(n)).sum(), (x, w), create_graph=True)
            total = sum((g * g).sum() for g in grads)
            results.append([*grads, *flow.autograd.grad(total, (x, w))])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5)
    assert compiled.explain().fallbacks == 0, compiled.explain().reasons


def test_compiled_dropout_in_a_branch_goes_backward_with_its_mask():
    def fn(x):
        return nn.cond(x.sum() > 0, lambda: flow.nn.functional.dropout(x * x, 0.5), lambda: x)

    compiled = flow.compile(fn)
    for seed in range(3):
        x = flow.tensor(np.linspace(0.5, 1, 60), requires_grad=True)
        flow.manual_seed(seed)
        want = fn(x).detach().numpy()
        flow.manual_seed(seed)
        y = compiled(x)
        (dx,) = flow.autograd.grad(y.sum(), x)
        np.testing.assert_array_equal(y.detach().numpy(), want)
        np.testing.assert_allclose(dx.numpy(), 2 * want / x.detach().numpy())
