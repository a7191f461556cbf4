"""Ops of users under transforms: derived ways, rules of their own, and `check_op` on both."""

import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.rules.forward_rules import FORWARD_RULES
from oneflow_lite.errors import NotDifferentiableError, RegistrationError, TransformError
from oneflow_lite.extend import forget_op
from oneflow_lite.ops.registry import WAYS_OVER_BATCHES
from oneflow_lite.testing import Fixed, OpCheckError, Sample, check_op
from oneflow_lite.transforms import batching

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
V = np.array([[1.0, 0.5, -2.0], [0.25, -1.0, 1.5]])


@pytest.fixture
def name(request):
    name = f"own_{request.node.originalname}"
    yield name
    forget_op(name)
    assert name not in FORWARD_RULES


def looped(function, *args):
    """Return the result of vmap over three entries and whether it was called for each of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = flow.vmap(function)(*args)
    return made, any("has no rule for a batch" in str(w.message) for w in caught)


def shapes_of(name, calls, **options):
    """Register x³ with a list of the shapes that its kernel gets."""

    @flow.register_op(name, **options)
    def cube(xp, x):
        calls.append(x.shape)
        return x * x * x

    @cube.grad(saves="x")
    def cube_grad(F, ctx, dy):
        return dy * 3 * ctx.x**2

    return cube


class TestBatch:
    def test_without_a_declaration_it_is_called_for_each_entry(self, name):
        calls = []
        cube = shapes_of(name, calls)
        made, warned = looped(cube, flow.tensor(X))
        assert calls == [(3,)] * 2 and warned
        np.testing.assert_allclose(made.numpy(), X**3)

    @pytest.mark.parametrize("options", [{"sbp": "elementwise"}, {"batch": "pointwise"}])
    def test_pointwise(self, name, options):
        calls = []
        cube = shapes_of(name, calls, **options)
        made, warned = looped(cube, flow.tensor(X))
        assert calls == [(2, 3)] and not warned
        np.testing.assert_allclose(made.numpy(), X**3)
        made, _ = looped(flow.func.grad(lambda x: cube(x).sum()), flow.tensor(X))
        np.testing.assert_allclose(made.numpy(), 3 * X**2)

    def test_pointwise_with_shapes_that_broadcast(self, name):
        @flow.register_op(name, batch="pointwise")
        def weighted(xp, x, y):
            return x * xp.exp(y)

        x, y = flow.tensor(X), flow.tensor(X[:, :1])
        for dims, expected in (
            ((0, 0), X * np.exp(X[:, :1])),
            ((0, None), X[:, None] * np.exp(X[:, :1])),
            ((None, 0), X * np.exp(X[:, :1])[:, None]),
        ):
            np.testing.assert_allclose(flow.vmap(weighted, dims)(x, y).numpy(), expected)

    def test_loop_is_silent(self, name):
        calls = []
        _, warned = looped(shapes_of(name, calls, batch="loop"), flow.tensor(X))
        assert len(calls) == 2 and not warned

    def test_refuse(self, name):
        with pytest.raises(TransformError, match=name):
            flow.vmap(shapes_of(name, [], batch="refuse"))(flow.tensor(X))

    def test_front(self, name):
        @flow.register_op(name, batch="front")
        def spread(xp, x, *, dim):
            return x.max(dim) - x.min(dim)

        made, warned = looped(lambda x: spread(x, dim=0), flow.tensor(X))
        assert not warned
        np.testing.assert_allclose(made.numpy(), X.max(1) - X.min(1))

    def test_a_rule(self, name):
        calls = []

        @flow.register_op(name)
        def total(xp, x, *, scale=1.0):
            calls.append(x.ndim)
            return xp.asarray((x * x).sum() * scale)

        @total.batch
        def over_batch(call, x, *, scale):
            assert call.batched == [True] and call.size == 2
            rows = call.F.reshape(x, shape=(call.size, -1 if not x.ndim else x.numel() // 2))
            squares = call.F.sum(call.F.mul(rows, rows), dim=(1,), keepdim=False)
            return call.F.mul_scalar(squares, factor=scale)

        made, warned = looped(lambda x: total(x, scale=2.0), flow.tensor(X))
        assert not calls and not warned
        np.testing.assert_allclose(made.numpy(), 2 * (X**2).sum(1))

    def test_a_rule_may_leave_a_case_to_the_loop(self, name):
        cube = shapes_of(name, calls := [])
        cube.batch()(lambda call, x: NotImplemented)
        made, warned = looped(cube, flow.tensor(X))
        assert len(calls) == 2 and warned
        np.testing.assert_allclose(made.numpy(), X**3)

    def test_a_second_way(self, name):
        cube = shapes_of(name, [], batch="pointwise")
        with pytest.raises(RegistrationError, match="has a way over a batch already"):
            cube.batch(lambda call, x: x)

    def test_an_unknown_way(self, name):
        with pytest.raises(RegistrationError, match="'pointwise', 'front'.*got 'points'"):
            shapes_of(name, [], batch="points")

    def test_the_names_of_the_ways(self):
        assert set(WAYS_OVER_BATCHES) == set(batching._WAYS)

    def test_a_view_of_any_kind(self, name):
        """Nobody knows along which dimensions the kernel of a user reverses."""
        turned = flow.register_op(name, view_of="x")(lambda xp, x: x[::-1])
        made, _ = looped(turned, flow.tensor(X))
        np.testing.assert_allclose(made.numpy(), X[:, ::-1])

    def test_a_rule_replaces_what_was_derived_before(self, name):
        cube = shapes_of(name, calls := [])
        looped(cube, flow.tensor(X))
        cube.batch(lambda call, x: call.run(x))
        del calls[:]
        looped(cube, flow.tensor(X))
        assert calls == [(2, 3)]


class TestJvp:
    def test_it_follows_from_the_gradient(self, name):
        cube = shapes_of(name, [])
        made = flow.func.jvp(cube, (flow.tensor(X),), (flow.tensor(V),))
        np.testing.assert_allclose(made[1].numpy(), 3 * X**2 * V)

    def test_a_rule(self, name):
        @flow.register_op(name)
        def scaled(xp, x, y, *, by):
            return x * y * by

        seen = []

        @scaled.jvp
        def scaled_jvp(F, ctx, tx, ty):
            seen.append((tx is None, ty is None, ctx.by, ctx.y.shape))
            terms = [t * other for t, other in ((tx, ctx.y), (ty, ctx.x)) if t is not None]
            return sum(terms) * ctx.by

        x, v = flow.tensor(X), flow.tensor(V)
        made = flow.func.jvp(lambda x: scaled(x, x, by=2.0), (x,), (v,))[1]
        np.testing.assert_allclose(made.numpy(), 4 * X * V)
        made = flow.func.jvp(lambda x: scaled(v, x, by=2.0), (x,), (v,))[1]
        np.testing.assert_allclose(made.numpy(), 2 * V * V)
        assert [row[:3] for row in seen] == [(False, False, 2.0), (True, False, 2.0)]

    def test_series_and_batches_by_a_rule(self, name):
        cube = flow.register_op(name, batch="pointwise")(lambda xp, x: x * x * x)
        cube.jvp()(lambda F, ctx, t: 3 * ctx.x * ctx.x * t)
        _, made = flow.func.jet(cube, (flow.tensor(X),), ((flow.tensor(V), 0.0, 0.0, 0.0),))
        expected = [3 * X**2 * V, 6 * X * V**2, 6 * V**3, 0 * X]
        for ours, theirs in zip(made, expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)
        made = flow.vmap(flow.func.jacfwd(cube))(flow.tensor(X))
        np.testing.assert_allclose(made.numpy(), [np.diag(3 * x**2) for x in X])

    def test_several_outputs(self, name):
        both = flow.register_op(name)(lambda xp, x: (xp.sin(x), xp.cos(x)))
        both.jvp(lambda F, ctx, t: (ctx.y1 * t, -ctx.y0 * t))
        made = flow.func.jvp(both, (flow.tensor(X),), (flow.tensor(V),))[1]
        np.testing.assert_allclose(made[0].numpy(), np.cos(X) * V)
        np.testing.assert_allclose(made[1].numpy(), -np.sin(X) * V)

    def test_a_second_rule(self, name):
        cube = shapes_of(name, [])
        cube.jvp(lambda F, ctx, t: t)

        def again(F, ctx, t):
            return t

        with pytest.raises(RegistrationError, match="registered already"):
            cube.jvp(again)

    def test_neither_rule_nor_gradient(self, name):
        halved = flow.register_op(name)(lambda xp, x: x / 2)
        with pytest.raises(NotDifferentiableError, match=name):
            flow.func.jvp(halved, (flow.tensor(X),), (flow.tensor(V),))

    def test_an_op_that_writes_its_input(self, name):
        squared = flow.register_op(name, mutates="x")(lambda xp, x: xp.multiply(x, x, out=x))
        squared.grad(saves="x.shape, y")(lambda F, ctx, dy: dy * 2 * F.sqrt(ctx.y))

        def function(x):
            y = x.exp()
            view = y[:1]
            squared(y)
            return y, view

        _, (made, view) = flow.func.jvp(function, (flow.tensor(X),), (flow.tensor(V),))
        np.testing.assert_allclose(made.numpy(), 2 * np.exp(2 * X) * V)
        np.testing.assert_allclose(view.numpy(), (2 * np.exp(2 * X) * V)[:1])
        with pytest.raises(TransformError, match="let the kernel return a new array"):
            flow.func.jet(function, (flow.tensor(X),), ((flow.tensor(V), 0.0),))


class TestCheckOp:
    """A wrong rule is reported by its name."""

    def fails(self, match, op, *args, **options):
        with pytest.raises(OpCheckError, match=match) as caught:
            check_op(op, [Sample(*args)], **options)
        return str(caught.value)

    def right(self, name, **options):
        cube = shapes_of(name, [], **options)
        check_op(name, [Sample(X)])
        return cube

    def test_right_rules(self, name):
        cube = self.right(name)
        cube.batch(lambda call, x: call.run(x))
        cube.jvp(lambda F, ctx, t: t * 3 * ctx.x**2)
        check_op(name, [Sample(X)])

    def test_the_warning_is_left_to_the_user(self, name):
        cube = self.right(name)
        _, warned = looped(cube, flow.tensor(X))
        assert warned

    def test_a_wrong_batch_rule(self, name):
        cube = self.right(name)
        cube.batch(lambda call, x: call.F.mul_scalar(call.run(x), factor=2.0))
        text = self.fails("against a loop, by the batch rule of", name, X)
        assert repr(name) in text and "input 0" in text
        check_op(name, [Sample(X)], transforms=False)

    def test_a_batch_rule_that_forgets_which_inputs_are_batched(self, name):
        product = flow.register_op(name)(lambda xp, x, y: xp.einsum("i,j->ij", x, y))
        product.grad(wrt="x", saves="y")(lambda F, ctx, dz: dz @ ctx.y)
        product.grad(wrt="y", saves="x")(lambda F, ctx, dz: ctx.x @ dz)

        @product.batch
        def wrong(call, x, y):
            if call.batched[1]:
                return NotImplemented
            return call.F.mul(call.F.unsqueeze(x, dim=1), y)

        self.fails("a batch of input 0 against a loop", name, X[0], X[1], degenerate=False)

    def test_a_wrong_way(self, name):
        """The kernel is not pointwise."""
        shapes_of(name, [], batch="pointwise")
        forget_op(name)
        turned = flow.register_op(name, batch="pointwise")(lambda xp, x: xp.flip(x).copy())
        turned.grad()(lambda F, ctx, dy: F.flip(dy, dims=tuple(range(dy.ndim))))
        self.fails("output 0 of a batch of input 0 against a loop", name, X, degenerate=False)

    def test_a_batch_of_indices(self, name):
        taken = flow.register_op(name)(lambda xp, x, index: x[index])
        taken.grad(wrt="x", saves="x.shape, index")(
            lambda F, ctx, dy: flow.zeros(ctx.x_shape, dtype=dy.dtype).index_add(0, ctx.index, dy)
        )
        index = Fixed(np.array([2, 0, 0]))
        check_op(name, [Sample(X[0], index)], single_precision=False)
        taken.batch(
            lambda call, x, index: call.run(x, index) if not call.batched[0] else NotImplemented
        )
        check_op(name, [Sample(X[0], index)], single_precision=False)
        forget_op(name)
        taken = flow.register_op(name)(lambda xp, x, index: x[index])
        taken.grad(wrt="x", saves="x.shape, index")(
            lambda F, ctx, dy: flow.zeros(ctx.x_shape, dtype=dy.dtype).index_add(0, ctx.index, dy)
        )

        @taken.batch
        def wrong(call, x, index):
            if call.batched == [False, True]:
                return call.run(x, call.F.flip(index, dims=(1,)))
            return NotImplemented

        self.fails("a batch of input 1 against a loop", name, X[0], index, single_precision=False)

    def test_a_wrong_jvp_rule(self, name):
        cube = self.right(name)
        cube.jvp(lambda F, ctx, t: t * 2 * ctx.x**2)
        text = self.fails("tangent, by the jvp rule of", name, X)
        assert repr(name) in text and "in forward mode is wrong" in text

    def test_a_jvp_rule_that_no_second_derivative_goes_through(self, name):
        cube = self.right(name)
        cube.jvp(lambda F, ctx, t: t * 3 * flow.tensor(ctx.x.detach().numpy() ** 2))
        self.fails("derivative 2 of output 0 along a line", name, X)

    def test_a_wrong_linear(self, name):
        """Then tangents go through the kernel itself."""
        flow.register_op(name, linear="x")(lambda xp, x: x * x).grad(saves="x")(
            lambda F, ctx, dy: dy * 2 * ctx.x
        )
        self.fails("tangent: gradcheck", name, X)
