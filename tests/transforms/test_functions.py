"""Custom Functions under transforms agree with PyTorch, by their own rules and by derived ones."""

import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    GradientError,
    NotDifferentiableError,
    ShapeError,
    TransformError,
)

X = np.array([0.5, -1.0, 2.0])
XS = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
V = np.array([1.5, 0.5, -1.0])


def numbers(result):
    """Return the arrays of a nested result."""
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in numbers(part)]
    return [result.detach().numpy()]


# Each builds a Function for a library.


def cube(lib, with_jvp=True):
    """As the page "Extending torch.func with autograd.Function" writes it."""

    class Cube(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3, 3 * x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            _, slope = output
            ctx.save_for_backward(x, slope)
            ctx.save_for_forward(x, slope)

        @staticmethod
        def backward(ctx, dy, dslope):
            x, slope = ctx.saved_tensors
            return dy * slope + dslope * 6 * x

        if with_jvp:

            @staticmethod
            def jvp(ctx, t):
                x, slope = ctx.saved_tensors
                return t * slope, 6 * x * t

    return lambda x: Cube.apply(x)[0]


def straight_through(lib, with_jvp=True):
    """The derivative is not that of forward's ops."""

    class Rounded(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, scale):
            return lib.round(x * scale)

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.scale = inputs
            ctx.save_for_backward(x, output)
            ctx.save_for_forward(x, output)

        @staticmethod
        def backward(ctx, dy):
            x, y = ctx.saved_tensors
            return dy * (x * ctx.scale + y * x), None

        if with_jvp:

            @staticmethod
            def jvp(ctx, t, _):
                x, y = ctx.saved_tensors
                return t * (x * ctx.scale + y * x)

    return lambda x: Rounded.apply(x, 2.0)


def product(lib, with_jvp=True):
    """Of two tensors, one of which may have no tangent."""

    class Product(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return lib.outer(x, y)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, dz):
            x, y = ctx.saved_tensors
            return dz @ y, x @ dz

        if with_jvp:

            @staticmethod
            def jvp(ctx, tx, ty):
                x, y = ctx.saved_tensors
                return lib.outer(tx, y) + lib.outer(x, ty)

    constant = lib.tensor(V)
    return lambda x: (Product.apply(x, constant) * Product.apply(x.sin(), x)).sum(0)


def in_numpy(lib, with_jvp=True):
    """Forward and backward read NumPy arrays, so that it needs rules for a batch."""

    def array(x):
        return np.asarray(x.detach().cpu().numpy())

    class Times(lib.autograd.Function):
        @staticmethod
        def forward(x, y):
            return lib.tensor(array(x) * array(y))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, dz):
            x, y = ctx.saved_tensors
            return Times.apply(dz, y), Times.apply(dz, x)

        if with_jvp:

            @staticmethod
            def jvp(ctx, tx, ty):
                x, y = ctx.saved_tensors
                return Times.apply(tx, y) + Times.apply(x, ty)

        @staticmethod
        def vmap(info, in_dims, x, y):
            sizes = {z.shape[d] for z, d in zip((x, y), in_dims, strict=True) if d is not None}
            assert sizes == {info.batch_size}
            assert info.randomness == "error"
            x, y = (
                z.unsqueeze(0) if d is None else z.movedim(d, 0)
                for z, d in zip((x, y), in_dims, strict=True)
            )
            ndim = max(x.ndim, y.ndim)
            x, y = (z.reshape(z.shape[:1] + (1,) * (ndim - z.ndim) + z.shape[1:]) for z in (x, y))
            return Times.apply(x, y).movedim(0, -1), -1

    return lambda x: Times.apply(x, Times.apply(x, x)).sin()


MAKERS = [cube, straight_through, product, in_numpy]


def transforms(lib):
    f = lib.func
    total = lambda g: lambda x: (g(x) * lib.arange(3)).sum()  # noqa: E731
    tangent = lambda g: lambda x: f.jvp(g, (x,), (lib.tensor(V),))[1]  # noqa: E731
    return {
        "vmap": (lambda g: f.vmap(g), XS),
        "vmap of the last dimension": (lambda g: f.vmap(g, -1, -1), XS.T),
        "vmap of vmap": (lambda g: f.vmap(f.vmap(g)), np.stack([XS, 2 * XS, -XS])),
        "grad": (lambda g: f.grad(total(g)), X),
        "grad of grad": (lambda g: f.grad(total(lambda x: f.grad(total(g))(x) * x)), X),
        "vmap of grad": (lambda g: f.vmap(f.grad(total(g))), XS),
        "grad of vmap": (lambda g: f.grad(lambda xs: f.vmap(total(g))(xs).sum()), XS),
        "jvp": (lambda g: lambda x: f.jvp(g, (x,), (lib.tensor(V),)), X),
        "jvp of jvp": (lambda g: tangent(tangent(g)), X),
        "jvp of grad": (lambda g: tangent(f.grad(total(g))), X),
        "grad of jvp": (lambda g: f.grad(total(tangent(g))), X),
        "vmap of jvp": (lambda g: f.vmap(tangent(g)), XS),
        "jvp of vmap": (
            lambda g: lambda xs: f.jvp(f.vmap(g), (xs,), (lib.tensor(np.cos(XS)),)),
            XS,
        ),
        "jacrev": (lambda g: f.jacrev(g), X),
        "jacfwd": (lambda g: f.jacfwd(g), X),
        "hessian": (lambda g: f.hessian(g), X),
        "jacrev of jacfwd": (lambda g: f.jacrev(f.jacfwd(g)), X),
        "vmap of hessian": (lambda g: f.vmap(f.hessian(total(g))), XS),
    }


NAMES = list(transforms(flow))


@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_pytorch(maker, name):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (flow, torch):
        transform, x = transforms(lib)[name]
        if name == "jvp of jvp" and lib is torch:  # PyTorch 2.13 gives 0 for all Functions
            jacobian = torch.func.jacfwd(torch.func.jacrev(maker(lib)))(lib.tensor(x))
            found.append([np.einsum("ijk,j,k", jacobian.numpy(), V, V)])
            continue
        found.append(numbers(transform(maker(lib))(lib.tensor(x))))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_tangents_follow_from_backward(maker, name):
    """Without jvp, which PyTorch refuses, the results are the same."""
    transform, x = transforms(flow)[name]
    found = [numbers(transform(maker(flow, own))(flow.tensor(x))) for own in (True, False)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
def test_series(maker, own):
    """Higher derivatives along a line, against nested first derivatives."""
    function = maker(flow, own)
    v = flow.tensor(V)
    x = flow.tensor(X)
    _, made = flow.func.jet(function, (x,), ((v, 0.0, 0.0),))
    derived = function
    for k in range(3):
        derived = lambda x, g=derived: flow.func.jvp(g, (x,), (v,))[1]  # noqa: E731
        np.testing.assert_allclose(made[k].numpy(), derived(x).numpy(), rtol=1e-9, atol=1e-11)


class Square(flow.autograd.Function):
    """In the style with ctx, and without rules for transforms."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


class TestStyles:
    @pytest.mark.parametrize("name", NAMES)
    def test_forward_with_ctx(self, name):
        """PyTorch refuses these: here forward and backward run on the levels."""
        transform, x = transforms(flow)[name]
        made, expected = (
            numbers(transform(g)(flow.tensor(x))) for g in (Square.apply, flow.square)
        )
        for a, b in zip(made, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)

    def test_forward_runs_once_for_a_batch(self):
        calls = []

        class Counted(Square):
            @staticmethod
            def forward(ctx, x):
                calls.append(x.shape)
                return Square.forward(ctx, x)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            flow.vmap(Counted.apply)(flow.tensor(XS))
        assert calls == [(3,)]

    def test_jvp_sees_no_tangents_in_forward(self):
        seen = []

        class Watched(Square):
            @staticmethod
            def forward(ctx, x):
                seen.append(isinstance(x._data, flow.transforms.levels.LevelArray))
                return Square.forward(ctx, x)

        flow.func.jvp(Watched.apply, (flow.tensor(X),), (flow.tensor(V),))
        assert seen == [False]

    def test_in_place(self):
        class Doubled(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, dy):
                return 2 * dy

        def function(x):
            y = x * x
            z = Doubled.apply(y)
            assert z is y
            return y * x

        made = flow.func.jvp(function, (flow.tensor(X),), (flow.tensor(V),))[1]
        np.testing.assert_allclose(made.numpy(), 6 * X**2 * V)
        made = flow.vmap(flow.func.grad(lambda x: function(x).sum()))(flow.tensor(XS))
        np.testing.assert_allclose(made.numpy(), 6 * XS**2)
        made = flow.func.grad(lambda x: flow.func.jvp(function, (x,), (flow.tensor(V),))[1].sum())(
            flow.tensor(X)
        )
        np.testing.assert_allclose(made.numpy(), 12 * X * V)

    def test_outputs_without_a_derivative(self):
        class Sorted(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y, order = x.sort()
                shifted = y + 1
                ctx.mark_non_differentiable(shifted)
                ctx.save_for_backward(order)
                return y, order, shifted, "text"

            @staticmethod
            def backward(ctx, dy, dorder, dshifted, dtext):
                (order,) = ctx.saved_tensors
                return flow.zeros_like(dy).scatter(0, order, dy)

        def function(x):
            y, order, shifted, text = Sorted.apply(x)
            assert text == "text"
            return y, order, shifted

        _, made = flow.func.jvp(function, (flow.tensor(X),), (flow.tensor(V),))
        assert made[0].tolist() == [0.5, 1.5, -1.0]
        assert made[1].tolist() == [0, 0, 0] and made[2].tolist() == [0, 0, 0]

    def test_materialized_tangents(self):
        seen = []

        class Sum(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x, y, n, wanted):
                ctx.set_materialize_grads(wanted)
                return x + y

            @staticmethod
            def jvp(ctx, *tangents):
                seen.append([None if t is None else t.tolist() for t in tangents])
                return tangents[0]

        y = flow.tensor(X)
        for wanted in (True, False):
            flow.func.jvp(lambda x, w=wanted: Sum.apply(x, y, 3, w), (y,), (flow.tensor(V),))
        assert seen == [[V.tolist(), [0.0] * 3, None, None], [V.tolist(), None, None, None]]

    def test_duals(self):
        forward_ad = flow.autograd.forward_ad
        x, v = flow.tensor(X, requires_grad=True), flow.tensor(V, requires_grad=True)
        with forward_ad.dual_level():
            y, t = forward_ad.unpack_dual(cube(flow)(forward_ad.make_dual(x, v)))
            t.sum().backward()
        np.testing.assert_allclose(t.detach().numpy(), 3 * X**2 * V)
        np.testing.assert_allclose(x.grad.numpy(), 6 * X * V)
        np.testing.assert_allclose(v.grad.numpy(), 3 * X**2)


class TestErrors:
    def test_once_differentiable(self):
        class Once(Square):
            @staticmethod
            @flow.autograd.function.once_differentiable
            def backward(ctx, dy):
                return Square.backward(ctx, dy)

        with pytest.raises(NotDifferentiableError, match="define the static method jvp"):
            flow.func.jvp(Once.apply, (flow.tensor(X),), (flow.tensor(V),))
        made = flow.vmap(flow.func.grad(lambda x: Once.apply(x).sum()))(flow.tensor(XS))
        np.testing.assert_allclose(made.numpy(), 2 * XS)

    def test_numpy_in_forward_under_vmap(self):
        class ByNumPy(Square):
            @staticmethod
            def forward(ctx, x):
                return flow.tensor(np.sin(x.numpy()))

        with pytest.raises(TransformError) as caught:
            flow.vmap(ByNumPy.apply)(flow.tensor(XS))
        assert any("define the static method vmap(info" in note for note in caught.value.__notes__)

    @pytest.mark.parametrize(
        "read",
        [
            lambda x: flow.tensor(x.numpy()),
            lambda x: flow.tensor(x),
            lambda x: flow.from_numpy(np.asarray(x)),
            lambda x: flow.tensor(np.array(x.numpy(), copy=True)),
        ],
    )
    def test_no_array_has_the_values_of_a_batch(self, read):
        with pytest.raises(TransformError, match="has a value for each entry"):
            flow.vmap(read)(flow.tensor(XS))
        x = (flow.tensor(X),)
        assert flow.func.jvp(read, x, x)[0].tolist() == X.tolist()

    def test_both_ways_over_a_batch(self):
        class Both(Square):
            generate_vmap_rule = True

            @staticmethod
            def vmap(info, in_dims, x):
                return x, 0

        with pytest.raises(TransformError, match="leave one of the two out"):
            flow.vmap(Both.apply)(flow.tensor(XS))

    def test_vmap_without_setup_context(self):
        class Alone(Square):
            @staticmethod
            def vmap(info, in_dims, x):
                return x, 0

        with pytest.raises(TransformError, match="define the static method setup_context"):
            flow.vmap(Alone.apply)(flow.tensor(XS))

    @pytest.mark.parametrize(
        ("returned", "text"),
        [
            (lambda x: x, "return a pair"),
            (lambda x: ((x, x), (0,)), "2 outputs, and 1 out_dims"),
            (lambda x: (x, 1), "has size 3 at its out_dims"),
        ],
    )
    def test_wrong_results_of_vmap(self, returned, text):
        class Wrong(flow.autograd.Function):
            @staticmethod
            def forward(x):
                return x

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def vmap(info, in_dims, x):
                return returned(x)

        with pytest.raises(TransformError, match=text):
            flow.vmap(Wrong.apply)(flow.tensor(XS))

    def test_wrong_results_of_jvp(self):
        class Wrong(Square):
            @staticmethod
            def jvp(ctx, t):
                return Wrong.returned(t)

        def run():
            flow.func.jvp(Wrong.apply, (flow.tensor(X),), (flow.tensor(V),))

        Wrong.returned = staticmethod(lambda t: (t, t))
        with pytest.raises(GradientError, match=r"returned 2 tangent\(s\), expected 1"):
            run()
        Wrong.returned = staticmethod(lambda t: t[:2])
        with pytest.raises(ShapeError, match="wrong tangent for output 0"):
            run()


def test_a_backward_that_is_differentiable_once_has_no_tangents():
    class Square(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**2

        @staticmethod
        @flow.autograd.function.once_differentiable
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return flow.tensor(2 * x.numpy()) * dy

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 2 * x * tangent

    x, one = flow.tensor(3.0), flow.tensor(1.0)
    assert flow.func.jvp(Square.apply, (x,), (one,))[1].item() == 6.0
    with pytest.raises(flow.errors.NotDifferentiableError, match="once_differentiable"):
        flow.func.jvp(flow.func.grad(Square.apply), (x,), (one,))
