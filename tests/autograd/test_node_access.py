"""Nodes from outside: calling them, what they saved, and saved tensors that may be written."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.graph import allow_mutation_on_saved_tensors
from oneflow_lite.errors import FreedGraphError, GradientError, ShapeError, StaleTensorError


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


class TestCalls:
    CASES = (
        lambda x: x * 3,
        lambda x: x.exp(),
        lambda x: x * x,
        lambda x: x.sum(),
        lambda x: x @ x,
        lambda x: x.sqrt(),
        lambda x: x[0],
        lambda x: x.reshape(1, 2),
    )

    @pytest.mark.parametrize("case", CASES)
    def test_like_pytorch(self, torch, case):
        results = []
        for library in (flow, torch):
            x = library.tensor([1.0, 2.0], requires_grad=True)
            y = case(x)
            grads = y.grad_fn(library.ones_like(y))
            found = grads if isinstance(grads, tuple) else (grads,)
            results.append([None if g is None else g.tolist() for g in found])
            assert isinstance(grads, tuple) == (len(found) > 1)
            assert x.grad is None
            y.grad_fn(library.ones_like(y))  # nothing was released
        for ours, theirs in zip(*results, strict=True):
            assert (ours is None) == (theirs is None)
            assert ours is None or np.allclose(ours, theirs)

    def test_several_outputs(self, torch):
        for library in (flow, torch):
            x = library.tensor([3.0, 1.0, 2.0], requires_grad=True)
            values, indices = library.sort(x)
            dx = values.grad_fn(library.tensor([1.0, 2.0, 3.0]))
            assert dx.tolist() == [3.0, 1.0, 2.0]

    def test_it_is_recorded(self, torch):
        for library in (flow, torch):
            x = library.tensor([1.0, 2.0], requires_grad=True)
            dx = x.exp().grad_fn(library.ones(2))
            (d2x,) = library.autograd.grad(dx.sum(), x)
            np.testing.assert_allclose(d2x.tolist(), np.exp([1, 2]), rtol=1e-6)
            y = x.exp()
            with library.no_grad():
                assert not y.grad_fn(library.ones(2)).requires_grad

    def test_complex(self, torch):
        for library in (flow, torch):
            z = library.tensor([1 + 2j], requires_grad=True)
            assert (z * z).grad_fn(library.tensor([1 + 0j]))[0].tolist() == [1 - 2j]

    def test_a_leaf_accumulates(self, torch):
        for library in (flow, torch):
            x = library.ones(2, requires_grad=True)
            leaf = (x * 2).grad_fn.next_functions[0][0]
            assert leaf(library.ones(2)) == ()
            leaf(library.ones(2))
            assert x.grad.tolist() == [2.0, 2.0]

    def test_a_leaf_is_the_variable_of_its_node(self, torch):
        for library in (flow, torch):
            x = library.ones(2, requires_grad=True)
            node = (x * 2).grad_fn.next_functions[0][0]
            assert node.variable is x and not hasattr((x * 2).grad_fn, "variable")
        node = (flow.ones(2, requires_grad=True) * 2).grad_fn.next_functions[0][0]
        with pytest.raises(GradientError, match="the leaf is gone"):
            _ = node.variable

    def test_hooks_do_not_run(self):
        x = flow.ones(2, requires_grad=True)
        y = x * 2
        y.grad_fn.register_hook(lambda i, o: pytest.fail("ran"))
        assert y.grad_fn(flow.ones(2))[0].tolist() == [2.0, 2.0]

    def test_errors(self):
        x = flow.ones(2, requires_grad=True)
        y = x.exp()
        with pytest.raises(ShapeError, match=r"exp_backward.*\(3,\)"):
            y.grad_fn(flow.ones(3))
        with pytest.raises(GradientError, match="one per output"):
            y.grad_fn()
        y.sum().backward()
        with pytest.raises(FreedGraphError):
            y.grad_fn(flow.ones(2))

    def test_a_custom_function(self):
        class Double(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, dy):
                return dy * 2

        y = Double.apply(flow.ones(2, requires_grad=True))
        assert y.grad_fn(flow.ones(2)).tolist() == [2.0, 2.0]


class TestSaved:
    @pytest.mark.parametrize(
        ("case", "names"),
        [
            (lambda lib, x: x.exp(), ["result"]),
            (lambda lib, x: x.tanh(), ["result"]),
            (lambda lib, x: x.sqrt(), ["result"]),
            (lambda lib, x: x.log(), ["self"]),
            (lambda lib, x: x * lib.ones(2), ["other"]),
            (lambda lib, x: x * x, ["self", "other"]),
            (lambda lib, x: lib.atan2(x, x), ["self", "other"]),
            (lambda lib, x: x.softmax(0), ["result"]),
            (lambda lib, x: x.relu(), ["result"]),
        ],
    )
    def test_pytorchs_names(self, torch, case, names):
        x, t = (library.tensor([1.0, 2.0], requires_grad=True) for library in (flow, torch))
        y, z = case(flow, x), case(torch, t)
        for name in names:
            ours = getattr(y.grad_fn, f"_saved_{name}")
            theirs = getattr(z.grad_fn, f"_saved_{name}")
            np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-6)
            assert ours.requires_grad == theirs.requires_grad
            assert f"_saved_{name}" in dir(y.grad_fn)
            if name == "result":
                assert ours.grad_fn is y.grad_fn

    def test_attributes_of_the_call(self):
        x = flow.ones(2, 3, requires_grad=True)
        assert x.softmax(1).grad_fn._saved_dim == 1
        assert x.sum(1).grad_fn._saved_self_sym_sizes == (2, 3)

    def test_our_names(self):
        x = flow.ones(2, requires_grad=True)
        assert x.exp().grad_fn._saved_y.tolist() == x.exp().tolist()

    def test_what_is_not_there(self):
        x = flow.ones(2, requires_grad=True)
        y = x.exp()
        with pytest.raises(AttributeError, match="_saved_result"):
            _ = y.grad_fn._saved_self
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = y.grad_fn.nothing
        with pytest.raises(AttributeError):
            _ = x.grad_fn_node._saved_self
        y.sum().backward()
        with pytest.raises(FreedGraphError):
            _ = y.grad_fn._saved_result

    def test_a_tensor_that_was_written(self):
        y = flow.ones(2, requires_grad=True).exp()
        y.detach().add_(1)
        with pytest.raises(StaleTensorError):
            _ = y.grad_fn._saved_result

    def test_packed(self):
        with flow.autograd.graph.save_on_cpu():
            y = flow.ones(2, requires_grad=True).exp()
        assert y.grad_fn._saved_result.tolist() == y.tolist()


class TestAllowMutation:
    def test_like_pytorch(self, torch):
        def function(library, x):
            y = x.clone()
            z = y * y
            w = y.exp()
            y[0] = 5.0
            w.mul_(3)
            y.view(-1).add_(1)
            u = (z * w * y.sin()).sum()
            w.zero_()
            return u

        results = []
        for library in (flow, torch):
            x = library.tensor([0.5, 2.0], requires_grad=True, dtype=library.float64)
            with library.autograd.graph.allow_mutation_on_saved_tensors():
                function(library, x).backward()
            results.append(x.grad.tolist())
        np.testing.assert_allclose(*results)

    def test_without_it(self):
        x = flow.ones(2, requires_grad=True)
        y = x.clone()
        z = y * y
        y.zero_()
        with pytest.raises(StaleTensorError):
            z.sum().backward()

    def test_second_derivatives(self):
        x = flow.tensor([0.5, 2.0], requires_grad=True)
        with allow_mutation_on_saved_tensors():
            y = x.clone()
            z = y * y * y
            y.zero_()
            (dx,) = flow.autograd.grad(z.sum(), x, create_graph=True)
            (d2x,) = flow.autograd.grad(dx.sum(), x)
        assert d2x.tolist() == [3.0, 12.0]

    def test_after_the_block(self):
        x = flow.ones(2, requires_grad=True)
        with allow_mutation_on_saved_tensors():
            y = x.clone()
            z, u = y * y, y.exp()
            y.mul_(2)
        z.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        u.detach().zero_()
        with pytest.raises(StaleTensorError, match="allow_mutation"):
            u.sum().backward()
