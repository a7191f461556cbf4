"""Dual tensors give PyTorch's values and tangents, and gradients go through both."""

import threading

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import forward_ad
from oneflow_lite.errors import ArgumentTypeError, DTypeError, ShapeError, TransformError

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
V = np.array([[1.5, 0.5, -1.0], [0.75, 2.0, 1.25]])


def both(function, *pairs):
    """Return value and tangent of a function of duals, here and in PyTorch."""
    torch = pytest.importorskip("torch")
    results = []
    for lib in (flow, torch):
        ad = lib.autograd.forward_ad
        with ad.dual_level():
            duals = [ad.make_dual(lib.tensor(x), lib.tensor(v)) for x, v in pairs]
            y, t = ad.unpack_dual(function(lib, *duals))
            results.append((y.detach().numpy(), t.detach().numpy()))
    return results


FUNCTIONS = {
    "a product": lambda lib, x: x * x.sum(),
    "a matrix product": lambda lib, x: (x @ x.t()).tanh(),
    "softmax": lambda lib, x: lib.softmax(x, -1),
    "a view": lambda lib, x: x.t()[1:] * 2,
    "in place": lambda lib, x: (x * 2).mul_(x),
    "parts": lambda lib, x: lib.cat([x[:, :1], x.exp()], 1),
    "of two": lambda lib, x, y: lib.where(x > 0, x * y, y.sin()),
}


class TestAgreesWithPyTorch:
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_functions(self, name):
        pairs = [(X, V), (V, X)][: 2 if name == "of two" else 1]
        ours, theirs = both(FUNCTIONS[name], *pairs)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)

    def test_complex_numbers(self):
        ours, theirs = both(lambda lib, z: z * z.conj() * z, (X + 1j * V, V - 1j * X))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)

    def test_a_module_with_dual_parameters(self):
        torch = pytest.importorskip("torch")
        found = []
        start = torch.nn.Linear(3, 2).double()
        weights = {n: p.detach().numpy() for n, p in start.named_parameters()}
        for lib in (flow, torch):
            ad = lib.autograd.forward_ad
            module = lib.nn.Linear(3, 2).double()
            with ad.dual_level():
                for name, value in weights.items():
                    delattr(module, name)
                    tangent = lib.tensor(np.cos(value))
                    setattr(module, name, ad.make_dual(lib.tensor(value), tangent))
                found.append(ad.unpack_dual(lib.sigmoid(module(lib.tensor(X)))))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)

    def test_backward_through_the_tangent(self):
        torch = pytest.importorskip("torch")
        found = []
        for lib in (flow, torch):
            ad = lib.autograd.forward_ad
            x = lib.tensor(X, requires_grad=True)
            v = lib.tensor(V, requires_grad=True)
            with ad.dual_level():
                y, t = ad.unpack_dual((ad.make_dual(x, v) ** 3).sum())
                (y + t).backward()
            found.append((x.grad.numpy(), v.grad.numpy()))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(found[0][0], 3 * X**2 + 6 * X * V)


class TestLevels:
    def test_the_result_has_names(self):
        with forward_ad.dual_level() as level:
            assert level == 0
            x = forward_ad.make_dual(flow.tensor(2.0), flow.tensor(1.0), level=level)
            dual = forward_ad.unpack_dual(x * x, level=level)
        assert isinstance(dual, forward_ad.UnpackedDualTensor)
        assert (dual.primal.item(), dual.tangent.item()) == (4.0, 4.0)
        assert dual._fields == ("primal", "tangent")

    def test_no_tangent(self):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(flow.tensor(2.0), flow.tensor(1.0))
            for y in (flow.tensor(1.0), x.detach(), x > 1, flow.ones(2)):
                assert forward_ad.unpack_dual(y).tangent is None
            assert forward_ad.unpack_dual(x.detach()).primal.item() == 2.0

    def test_after_the_level_the_tangent_is_gone(self):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(flow.tensor(2.0), flow.tensor(1.0))
        assert forward_ad.unpack_dual(x).tangent is None
        assert (x * 2).item() == 4.0 and x.item() == 2.0
        with forward_ad.dual_level():
            assert forward_ad.unpack_dual(x).tangent is None
            assert forward_ad.unpack_dual(x * 2).tangent is None

    def test_histories_are_apart(self):
        v = flow.tensor(1.0, requires_grad=True)
        with forward_ad.dual_level():
            y, t = forward_ad.unpack_dual(forward_ad.make_dual(flow.tensor(2.0), v) ** 2)
        assert not y.requires_grad and t.requires_grad

    def test_a_level_in_a_level(self):
        with forward_ad.dual_level() as outer:
            x = forward_ad.make_dual(flow.tensor(2.0), flow.tensor(1.0), level=outer)
            with forward_ad.dual_level() as inner:
                assert (outer, inner) == (0, 1)
                y = forward_ad.make_dual(x, flow.tensor(1.0)) ** 3
                first = forward_ad.unpack_dual(y).tangent
                with pytest.raises(TransformError, match="that was opened last"):
                    forward_ad.unpack_dual(y, level=outer)
            assert forward_ad.unpack_dual(first).tangent.item() == 12.0

    def test_an_error_inside_closes_the_level(self):
        with pytest.raises(KeyError), forward_ad.dual_level():
            raise KeyError
        with pytest.raises(TransformError, match="no dual level is open"):
            forward_ad.make_dual(flow.ones(1), flow.ones(1))

    def test_each_thread_has_its_own(self):
        caught = []

        def work():
            try:
                forward_ad.make_dual(flow.ones(1), flow.ones(1))
            except TransformError as error:
                caught.append(error)

        with forward_ad.dual_level():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert len(caught) == 1

    def test_levels_by_hand(self):
        level = forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="opened last"):
            forward_ad.exit_dual_level(level=level + 3)
        forward_ad.exit_dual_level()
        with pytest.raises(RuntimeError, match="no dual level is open"):
            forward_ad.exit_dual_level()


class TestWithTransforms:
    def test_duals_inside_of_vmap(self):
        def tangent(v):
            with forward_ad.dual_level():
                y = forward_ad.make_dual(flow.tensor(X), v).sin().sum(0)
                return forward_ad.unpack_dual(y).tangent

        made = flow.vmap(tangent)(flow.tensor(np.stack([V, 2 * V])))
        expected = (np.cos(X) * V).sum(0)
        np.testing.assert_allclose(made.numpy(), [expected, 2 * expected])

    def test_vmap_inside_of_the_level(self):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(flow.tensor(X), flow.tensor(V))
            y = flow.vmap(lambda row: row * row.sum())(x)
            made = forward_ad.unpack_dual(y).tangent
            with pytest.raises(TransformError, match="inside of the dual"):
                flow.vmap(lambda row: forward_ad.make_dual(row, row))(flow.ones(2))
            with pytest.raises(TransformError, match="inside of the dual"):
                flow.vmap(lambda row: forward_ad.unpack_dual(row).tangent)(x)
        expected = V * X.sum(1, keepdims=True) + X * V.sum(1, keepdims=True)
        np.testing.assert_allclose(made.numpy(), expected)

    def test_the_gradient_of_a_function_of_duals(self):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(flow.tensor(X), flow.tensor(V))
            gradient = flow.func.grad(lambda x: (x**3).sum())(x)
            made = forward_ad.unpack_dual(gradient).tangent
        np.testing.assert_allclose(made.numpy(), 6 * X * V)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ((flow.tensor(1), flow.tensor(1.0)), DTypeError, "'tensor'"),
        ((flow.tensor(1.0), flow.tensor(1)), DTypeError, "'tangent'"),
        ((flow.ones(2), flow.tensor(1.0)), ShapeError, r"shape \(2,\)|\[2\]"),
        ((flow.ones(2), 1.0), ArgumentTypeError, "'tangent'"),
        ((1.0, flow.ones(2)), ArgumentTypeError, "'tensor'"),
    ],
)
def test_what_does_not_fit(given, kind, text):
    with forward_ad.dual_level(), pytest.raises(kind, match=text):
        forward_ad.make_dual(*given)


def test_a_dual_of_a_dual_needs_another_level():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(flow.ones(1), flow.ones(1))
        with pytest.raises(TransformError, match="has a tangent at this level already"):
            forward_ad.make_dual(x, flow.ones(1))
