"""checkpoint: the gradients are those of the plain call, and nothing is kept in between."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, CheckpointError, StaleTensorError
from oneflow_lite.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)


def net(seed=0):
    flow.manual_seed(seed)
    return flow.nn.Sequential(
        flow.nn.Linear(4, 8), flow.nn.Tanh(), flow.nn.Dropout(0.5), flow.nn.Linear(8, 3)
    )


def gradients(module, x, run):
    """The loss and all gradients of one step."""
    module.zero_grad()
    x = x.clone().requires_grad_()
    flow.manual_seed(5)
    y = run(module, x)
    flow.rand(2)  # what is drawn later changes nothing
    (y * y).sum().backward()
    return [y, x.grad, *[p.grad for p in module.parameters()]]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("early_stop", [False, True])
def test_gradients_with_dropout(reentrant, early_stop):
    module, x = net(), flow.randn(6, 4)
    expected = gradients(module, x, lambda m, x: m(x))
    after = flow.rand(1).item()
    found = gradients(
        module,
        x,
        lambda m, x: checkpoint(m, x, use_reentrant=reentrant, early_stop=early_stop),
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert flow.rand(1).item() == after  # the generator goes on as if nothing had run again


@pytest.mark.parametrize("reentrant", [False, True])
def test_other_numbers_without_preserve_rng_state(reentrant):
    x = flow.ones(200, requires_grad=True)
    seen = []

    def function(x):
        seen.append(flow.rand(1).item())
        return x * x

    checkpoint(function, x, use_reentrant=reentrant, preserve_rng_state=False).sum().backward()
    assert len(seen) == 2 and seen[0] != seen[1]
    checkpoint(function, x, use_reentrant=reentrant).sum().backward()
    assert seen[2] == seen[3]


def test_on_devices(device):
    x = flow.ones(64, device=device, requires_grad=True)
    for reentrant in (False, True):
        x.grad = None
        y = checkpoint(lambda x: flow.nn.functional.dropout(x * x, 0.5), x, use_reentrant=reentrant)
        y.sum().backward()
        assert x.grad.tolist() == (y * 2).tolist()  # the same elements are dropped


@pytest.mark.parametrize("reentrant", [False, True])
def test_in_segments(reentrant):
    module, x = net(), flow.randn(6, 4)
    expected = gradients(module, x, lambda m, x: m(x))
    for segments in (1, 2, 4):
        for functions in (module, list(module)):
            found = gradients(
                module,
                x,
                lambda m, x: checkpoint_sequential(functions, segments, x, use_reentrant=reentrant),
            )
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


class TestWithoutReentrantAutograd:
    def test_nothing_is_kept(self):
        kept = []

        def function(x):
            y = x.exp()
            kept.append(weakref.ref(y))
            return y.sin().cos()

        x = flow.ones(3, requires_grad=True)
        gc.disable()
        try:
            y = checkpoint(function, x, use_reentrant=False)
            assert kept[0]() is None
            y.sum().backward()
            assert all(each() is None for each in kept) and len(kept) == 2
        finally:
            gc.enable()

    def test_every_kind_of_derivative(self):
        x = flow.tensor([0.5, 1.5], requires_grad=True, dtype=flow.float64)
        function = lambda x: (x * x).exp().sin()  # noqa: E731

        def second(f):
            (dx,) = flow.autograd.grad(f(x).sum(), x, create_graph=True)
            (d2x,) = flow.autograd.grad((dx * dx).sum(), x)
            return dx.detach().numpy(), d2x.numpy()

        plain = second(function)
        checked = second(lambda x: checkpoint(function, x, use_reentrant=False))
        for a, b in zip(plain, checked, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_more_than_one_backward(self):
        runs = []

        def function(x):
            runs.append(1)
            return x.exp().sin()

        x = flow.ones(2, requires_grad=True)
        y = checkpoint(function, x, use_reentrant=False).sum()
        y.backward(retain_graph=True)
        first = x.grad.clone()
        y.backward()
        assert x.grad.tolist() == (first * 2).tolist() and len(runs) == 3

    def test_keyword_arguments_and_structures(self):
        x, w = flow.ones(2, requires_grad=True), flow.full((2,), 3.0, requires_grad=True)
        found = checkpoint(
            lambda x, *, w: {"y": (x * w).exp(), "z": [x.sin()]}, x, w=w, use_reentrant=False
        )
        (found["y"] + found["z"][0]).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), np.exp([3.0, 3.0]), rtol=1e-6)

    def test_nested(self):
        module, x = net(), flow.randn(6, 4)
        expected = gradients(module, x, lambda m, x: m(x))

        def outer(x):
            h = checkpoint(module[:2], x, use_reentrant=False)
            return module[3](module[2](h))

        found = gradients(module, x, lambda m, x: checkpoint(outer, x, use_reentrant=False))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())

    def test_early_stop(self):
        ends = []

        def function(x):
            y = x.exp()
            z = y + 1
            ends.append(1)
            return z

        x = flow.ones(2, requires_grad=True)
        checkpoint(function, x, use_reentrant=False).sum().backward()
        assert len(ends) == 1
        with set_checkpoint_early_stop(False):
            y = checkpoint(function, x, use_reentrant=False)
        y.sum().backward()
        assert len(ends) == 3

    def test_contexts(self):
        entered = []

        @contextlib.contextmanager
        def context(name):
            entered.append(name)
            yield

        x = flow.ones(2, requires_grad=True)
        y = checkpoint(
            flow.exp,
            x,
            use_reentrant=False,
            context_fn=lambda: (context("first"), context("second")),
        )
        assert entered == ["first"]
        y.sum().backward()
        assert entered == ["first", "second"]

    def test_without_grad_nothing_happens(self):
        with flow.no_grad():
            assert not checkpoint(flow.exp, flow.ones(2), use_reentrant=False).requires_grad

    def test_a_function_that_does_something_else(self):
        sizes = iter([2, 3, 4])

        def function(x):
            return x.exp().sum() * flow.ones(next(sizes)).exp() * x.sum()

        x = flow.ones(2, requires_grad=True)
        y = checkpoint(function, x, use_reentrant=False)
        with pytest.raises(CheckpointError, match=r"\(2,\).*\(3,\)"):
            y.sum().backward()

        counts = iter([2, 1])

        def fewer(x):
            for _ in range(next(counts)):
                x = x.exp()
            return x

        y = checkpoint(fewer, x, use_reentrant=False)
        with pytest.raises(CheckpointError, match="2 tensor.*1 when"):
            y.sum().backward()

    def test_writes_in_between(self):
        x, w = flow.ones(2), flow.ones(2, requires_grad=True)
        y = checkpoint(lambda x: (x * w).exp(), x, use_reentrant=False)
        x.add_(1)
        with pytest.raises(StaleTensorError, match="argument"):
            y.sum().backward()
        y = checkpoint(lambda: w.exp() * w, use_reentrant=False)
        with flow.no_grad():
            w.add_(1)
        with pytest.raises(StaleTensorError, match="uses"):
            y.sum().backward()

    def test_writes_inside(self):
        x = flow.ones(2, requires_grad=True)

        def function(x):
            y = x.exp()
            z = y.sin()
            y.add_(1)
            return z * y.exp()

        y = checkpoint(function, x, use_reentrant=False)
        with pytest.raises(StaleTensorError):
            y.sum().backward()


class TestReentrantAutograd:
    def test_what_it_refuses(self):
        x = flow.ones(2, requires_grad=True)
        y = checkpoint(flow.exp, x, use_reentrant=True)
        with pytest.raises(CheckpointError, match="use_reentrant=False"):
            flow.autograd.grad(y.sum(), x)
        y = checkpoint(flow.exp, x, use_reentrant=True)
        with pytest.raises(CheckpointError, match="inputs="):
            y.sum().backward(inputs=[x])
        with pytest.raises(ArgumentError, match="'w'"):
            checkpoint(flow.exp, x, w=1, use_reentrant=True)
        with pytest.raises(ArgumentError, match="determinism_check"):
            checkpoint(flow.exp, x, use_reentrant=False, determinism_check="maybe")

    def test_no_argument_requires_a_gradient(self):
        with pytest.warns(UserWarning, match="no argument requires"):
            y = checkpoint(flow.exp, flow.ones(2), use_reentrant=True)
        assert not y.requires_grad

    def test_the_default(self):
        x = flow.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="use_reentrant explicitly"):
            y = checkpoint(flow.exp, x)
        assert "Checkpoint" in y.grad_fn.name()


def test_like_pytorch():
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint as theirs

    values = np.random.default_rng(0).normal(size=(3, 4))
    for reentrant in (False, True):
        x = flow.tensor(values, requires_grad=True)
        t = torch.tensor(values, requires_grad=True)
        y = checkpoint(lambda x: (x.exp(), x * x), x, use_reentrant=reentrant)
        z = theirs(lambda x: (x.exp(), x * x), t, use_reentrant=reentrant)
        (y[0] * y[1]).sum().backward()
        (z[0] * z[1]).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy())


def test_compiled():
    module = flow.nn.Sequential(flow.nn.Linear(2, 3), flow.nn.Tanh())

    @flow.compile
    def step(x):
        return checkpoint(module, x, use_reentrant=False).sum()

    x = flow.ones(4, 2, requires_grad=True)
    for _ in range(3):
        x.grad = None
        step(x).backward()
        expected = flow.autograd.grad(module(x).sum(), x)[0]
        np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-6)
