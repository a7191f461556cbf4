"""`gradcheck` and `gradgradcheck` pass what is right and catch each way of being wrong."""

import subprocess
import sys

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import gradcheck, gradgradcheck
from oneflow_lite.autograd.engine import run as engine
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradcheckError,
    OptionError,
)
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
Y = np.array([[1.5, 0.5, -1.0], [0.75, 2.0, 1.25]])
CHECKS = [gradcheck, gradgradcheck]
BOTH = pytest.mark.parametrize("check", CHECKS)
SPEEDS = pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])


def leaf(array):
    return flow.tensor(array, requires_grad=True)


@pytest.fixture
def make(request):
    """Make ops from kernels and rules; they are forgotten after the test."""
    made = []

    def build(kernel, rule=None, saves="", materialize=True, name=""):
        name = f"gradchecked_{request.node.originalname}{name}"
        op = flow.register_op(name)(kernel)
        made.append(name)
        if rule is not None:
            flow.register_grad_func(name, saves=saves, materialize=materialize)(rule)
        return op

    yield build
    for name in made:
        for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
            registry.remove(name)
        op_expr(name).forget()


def fails(check, match, *args, **options):
    """Assert that a check fails in both ways of saying so; return the text."""
    with pytest.raises(GradcheckError, match=match) as caught:
        check(*args, **options)
    assert isinstance(caught.value, RuntimeError)
    assert check(*args, raise_exception=False, **options) is False
    return str(caught.value)


RIGHT = {
    "one input": (lambda x: x.exp(), [X]),
    "two inputs": (lambda x, y: x * y, [X, Y]),
    "broadcasting": (lambda x, y: x / y, [X, Y[0]]),
    "several outputs": (lambda x, y: (x * y, x.sum(), (y * y)[0]), [X, Y]),
    "a list of outputs": (lambda x: [x * x, x.exp()], [X]),
    "several outputs of one op": (lambda x: x.unbind(), [X]),
    "an integer output before": (lambda x: (x.argmax(), x * x), [X]),
    "an integer output after": (lambda x: (x * x, x.argmax()), [X]),
    "a detached output": (lambda x: (x * x, (x * x).detach()), [X]),
    "an unused input": (lambda x, y: x * x, [X, Y]),
    "an identity": (lambda x: x, [X]),
    "linear": (lambda x: x * 2, [X]),
    "a view": (lambda x: x.t()[1:], [X]),
    "0-d": (lambda x: x.sin(), [np.array(0.5)]),
    "empty": (lambda x: x * x, [X[:0]]),
    "an empty output": (lambda x: (x * x)[:0], [X]),
    "complex to complex": (lambda z: z * z, [X + 1j * Y]),
    "complex to real": (lambda z: flow.abs(z), [X + 1j * Y]),
    "real to complex": (lambda x: x * (1 + 2j), [X]),
    "complex and real": (lambda z, x: z * x, [X + 1j * Y, Y[0]]),
    "not holomorphic": (lambda z: z.conj() * z * z, [X + 1j * Y]),
    "the parts": (lambda z: z.real * z.imag, [X + 1j * Y]),
    "in place": (lambda x: (x * 2).exp_() * x, [X]),
}


class TestAcceptsWhatIsRight:
    @BOTH
    @SPEEDS
    @pytest.mark.parametrize("name", RIGHT)
    def test_functions(self, check, fast, name):
        function, arrays = RIGHT[name]
        inputs = [leaf(a) for a in arrays]
        assert check(function, inputs, fast_mode=fast, check_batched_grad=True) is True
        for x, a in zip(inputs, arrays, strict=True):
            assert np.array_equal(x.numpy(), a) and x.grad is None and x._version == 0

    @pytest.mark.parametrize("name", RIGHT)
    def test_what_pytorch_accepts(self, name):
        torch = pytest.importorskip("torch")
        if name == "an integer output before":
            pytest.skip("PyTorch 2.13 raises IndexError")
        function, arrays = RIGHT[name]
        inputs = [torch.tensor(a, requires_grad=True) for a in arrays]
        if name == "complex to real":
            function = torch.abs
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)

    @BOTH
    def test_a_single_input_and_ones_that_are_not_tensors(self, check):
        assert check(lambda x: x**3, leaf(X))
        assert check(lambda x, n, m: x[m] ** n, (leaf(X), 3, flow.tensor([0, 1])))

    @BOTH
    @pytest.mark.parametrize(
        "layout",
        [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x.flip(1), lambda x: x.narrow(1, 1, 2)],
    )
    def test_inputs_that_are_not_contiguous(self, check, layout):
        x = layout(flow.tensor(X)).detach().requires_grad_()
        before = x.numpy().copy()
        assert check(lambda x: x * x.sum(), x)
        assert np.array_equal(x.numpy(), before)

    @BOTH
    def test_inputs_that_are_no_leaves(self, check):
        x = leaf(X)
        y = x * 2
        assert check(lambda y: y.exp(), y)
        y.sum().backward()
        assert x.grad.tolist() == [[2.0] * 3] * 2

    @BOTH
    def test_inputs_that_the_function_reaches_by_itself(self, check):
        linear = flow.nn.Linear(3, 2).double()
        x = leaf(X)
        assert check(lambda *_: linear(x).tanh(), (x, *linear.parameters()))

    @BOTH
    def test_the_same_input_twice(self, check):
        x = leaf(X)
        assert check(lambda a, b: a * b.exp(), (x, x))

    @BOTH
    def test_on_each_device(self, check, device):
        x = flow.tensor(X, device=device, requires_grad=True)
        z = flow.tensor(X + 1j * Y, device=device, requires_grad=True)
        for fast in (False, True):
            assert check(lambda x, z: (x * x, z * x), (x, z), fast_mode=fast)
        assert np.array_equal(x.numpy(), X)

    def test_gradients_of_the_outputs_can_be_given(self):
        x = leaf(X)
        assert gradgradcheck(lambda x: x**3, x, leaf(Y))
        assert gradgradcheck(lambda x: x**3, x, flow.tensor(Y))
        assert gradgradcheck(lambda x: (x**3, x.exp()), x, (leaf(Y), leaf(X)))
        assert gradgradcheck(lambda x: x**3, x, gen_non_contig_grad_outputs=True)

    def test_a_constant_function(self):
        assert gradcheck(lambda x: x.detach() * 0 + 1, leaf(X))
        fails(gradcheck, "does not require a gradient", lambda x: x.detach() * 2, leaf(X))

    def test_no_grad_changes_nothing(self):
        """As in PyTorch: nothing requires a gradient, so all has to be constant."""
        with flow.no_grad():
            fails(gradcheck, "does not require a gradient", lambda x: x * x, leaf(X))

    @BOTH
    def test_grads_stay(self, check):
        x = leaf(X)
        x.grad = given = flow.tensor(Y)
        check(lambda x: x * x, x)
        assert x.grad is given and np.array_equal(given.numpy(), Y)


class TestCatches:
    @SPEEDS
    def test_a_wrong_rule(self, make, fast):
        op = make(lambda xp, x: x * x, lambda F, ctx, dy: dy * 3.0 * ctx.x, "x")
        x = leaf(np.array([1.0, 2.0]))
        text = fails(gradcheck, "output 0 with respect to input 0", op, x, fast_mode=fast)
        assert "wrong in 2 of 4 entries: 3 at (0, 0), expected 2" in text or "1.99999" in text
        assert "numerical:\n[[" in text and "analytical:\n[[3. 0.]\n [0. 6.]]" in text
        assert x.tolist() == [1.0, 2.0]

    @SPEEDS
    def test_names_the_output_and_the_input(self, make, fast):
        op = make(lambda xp, x, y: x * y, lambda F, ctx, dz: (dz * ctx.y, dz * ctx.x * 2.0), "x, y")
        x, y = leaf(X), leaf(Y)
        text = "output 1 with respect to input 2"
        fails(gradcheck, text, lambda x, k, y: (x * y, op(x, y)), (x, 3, y), fast_mode=fast)

    @SPEEDS
    def test_a_wrong_part_of_a_complex_rule(self, make, fast):
        op = make(lambda xp, z: z * z, lambda F, ctx, dy: dy * 2.0 * F.conj(ctx.z), "z")
        text = fails(gradcheck, "the real part of output 0", op, leaf(X + 1j * Y), fast_mode=fast)
        assert "j" in text
        assert gradcheck(op, leaf(X + 0j))  # on the real axis it is right

    @SPEEDS
    def test_a_gradient_that_is_not_conjugated(self, make, fast):
        """d(z²).imag is 2(y, x) as a gradient: 2j conj(z). The rule forgets to conjugate."""
        wrong = make(lambda xp, z: (z * z).imag.copy(), lambda F, ctx, dy: dy * ctx.z * 2j, "z")
        right = make(
            lambda xp, z: (z * z).imag.copy(),
            lambda F, ctx, dy: dy * F.conj(ctx.z) * 2j,
            "z",
            name="_right",
        )
        z = leaf(X + 1j * Y)
        assert gradcheck(right, z, fast_mode=fast)
        fails(gradcheck, "output 0 with respect to input 0", wrong, z, fast_mode=fast)

    @SPEEDS
    def test_a_wrong_rule_of_second_order_alone(self, make, fast):
        inner = make(
            lambda xp, dy, x: dy * 3 * x * x,
            lambda F, ctx, g: (g * 3.0 * ctx.x * ctx.x, g * 5.0 * ctx.dy * ctx.x),
            "dy, x",
            name="_inner",
        )
        name = inner.op_expr.op_type_name
        op = make(lambda xp, x: x * x * x, lambda F, ctx, dy: getattr(F, name)(dy, ctx.x), "x")
        assert gradcheck(op, leaf(X), fast_mode=fast)
        fails(gradgradcheck, "output 0 with respect to input 0", op, leaf(X), fast_mode=fast)

    @SPEEDS
    def test_a_gradient_cut_off_from_the_graph(self, make, fast):
        """Also where the gradient by another input is right."""

        def rule(F, ctx, dz):
            cut = dz * ctx.y
            return cut.detach() if isinstance(cut, flow.Tensor) else cut, dz * ctx.x

        op = make(lambda xp, x, y: x * y, rule, "x, y")
        x, y = leaf(X), leaf(Y)
        assert gradcheck(op, (x, y), fast_mode=fast)
        fails(gradgradcheck, r"output 0.*does not require a gradient", op, (x, y), fast_mode=fast)

    def test_a_rule_that_differs_between_its_modes(self, make):
        """Right on bare arrays, wrong when it is recorded."""

        def rule(F, ctx, dy):
            return dy * (3.0 if isinstance(dy, flow.Tensor) else 2.0)

        rule.__module__ = "oneflow_lite.grad_funcs"  # the package's rules alone have two modes
        op = make(lambda xp, x: x * 2, rule)
        assert gradcheck(op, leaf(X))
        fails(gradgradcheck, "output 0 with respect to input 1", op, leaf(X))

    @SPEEDS
    def test_a_rule_that_is_not_deterministic(self, make, fast):
        noise = iter(np.linspace(0, 1e-7, 10_000))
        op = make(lambda xp, x: x * 2, lambda F, ctx, dy: dy * (2.0 + next(noise)))
        fails(gradcheck, "not deterministic", op, leaf(X), fast_mode=fast)
        assert gradcheck(op, leaf(X), nondet_tol=1e-6, fast_mode=fast)

    def test_a_rule_that_fails_on_a_missing_gradient(self, make):
        op = make(
            lambda xp, x: (x * 2, x * x),
            lambda F, ctx, dy, dz: dy * 2.0 + dz * 2.0 * ctx.x,
            "x",
            materialize=False,
        )
        fails(gradcheck, r"without gradients of outputs \[1\].*TypeError", op, leaf(X))
        assert gradcheck(op, leaf(X), check_undefined_grad=False)

    def test_a_rule_that_takes_a_missing_gradient_for_something_else(self, make):
        def rule(F, ctx, dy, dz):
            found = dy * 2.0 if dy is not None else F.ones_like(ctx.x)
            return found if dz is None else found + dz * 2.0 * ctx.x

        op = make(lambda xp, x: (x * 2, x * x), rule, "x", materialize=False)
        fails(gradcheck, r"without gradients of outputs \[0\] backward gives input 0", op, leaf(X))
        assert gradcheck(op, leaf(X), check_undefined_grad=False)

    def test_a_rule_that_handles_missing_gradients(self, make):
        def rule(F, ctx, dy, dz):
            found = None if dy is None else dy * 2.0
            if dz is not None:
                other = dz * 2.0 * ctx.x
                found = other if found is None else found + other
            return found

        op = make(lambda xp, x: (x * 2, x * x), rule, "x", materialize=False)
        assert gradcheck(op, leaf(X)) and gradgradcheck(op, leaf(X))

    def test_a_rule_that_does_not_multiply_by_its_gradient(self, make):
        """Right for the unit gradients of a Jacobian, wrong for zero."""

        def rule(F, ctx, dy):
            return dy * 2.0 + (0.0 if (dy != 0).any() else 1.0)

        op = make(lambda xp, x: x * 2, rule)
        fails(gradcheck, "does not multiply by the gradient", op, leaf(X))

    def test_a_wrong_batch(self, monkeypatch):
        def backwards(*args):
            return tuple(g.flip(0) for g in batched(*args))

        batched = engine._batched
        monkeypatch.setattr(engine, "_batched", backwards)
        x = leaf(X)
        assert gradcheck(lambda x: x * x, x)
        text = "batched gradients of output 0 with respect to input 0"
        fails(gradcheck, text, lambda x: x * x, x, check_batched_grad=True)
        fails(gradgradcheck, text, lambda x: x * x, x, check_batched_grad=True)

    def test_a_batch_that_raises(self, monkeypatch):
        def broken(*args):
            raise ValueError("no batch")

        monkeypatch.setattr(engine, "_batched", broken)
        text = "batched gradients raised ValueError"
        fails(gradcheck, text, lambda x: x * x, leaf(X), check_batched_grad=True)

    def test_a_rule_with_a_memory_of_its_own(self, make):
        """Right for the six columns taken twice and for two rows, wrong for these rows batched."""
        calls = []

        def rule(F, ctx, dy):
            calls.append(1)
            return dy * (2.0 if len(calls) <= 6 * 2 + 2 else 3.0)

        op = make(lambda xp, x: x * 2, rule)
        with pytest.raises(GradcheckError, match="batched gradients of output 0"):
            gradcheck(op, leaf(X), check_batched_grad=True)

    def test_results_that_change_their_shape(self):
        x = leaf(X)
        fails(
            gradcheck,
            "output 0 was float64.*when an input is moved",
            lambda x: x * x if x[0, 0].item() == 0.5 else (x * x)[0],
            x,
        )
        assert np.array_equal(x.numpy(), X)

    def test_single_precision_warns(self):
        x = flow.tensor(X.astype(np.float32), requires_grad=True)
        with pytest.warns(UserWarning, match=r"inputs\[0\] is float32") as caught:
            assert gradcheck(lambda x: x * 1, x, eps=1e-2)
        assert caught[0].filename == __file__
        with pytest.warns(UserWarning, match="float32"):
            assert gradcheck(lambda x: x.exp(), x, raise_exception=False) is False

    def test_tolerances_and_steps(self, make):
        op = make(lambda xp, x: x * 2, lambda F, ctx, dy: dy * 2.01)
        x = leaf(X)
        fails(gradcheck, "2.01", op, x)
        assert gradcheck(op, x, rtol=0.1)
        assert gradcheck(op, x, atol=0.1, rtol=0)
        fails(gradcheck, "2.01", op, x, atol=0, rtol=1e-3)
        # Cubes: the error of a central difference is eps**2.
        assert gradcheck(lambda x: x**3, x, eps=1e-3)
        fails(gradcheck, "expected", lambda x: x**3, x, eps=0.1)

    def test_fast_mode_says_when_the_jacobian_itself_is_within_the_tolerances(self, make):
        """Large entries that cancel in `v J u`, and errors that do not."""
        op = make(lambda xp, x: x * x * 500, lambda F, ctx, dy: dy * (ctx.x * 1000.0 + 0.9), "x")
        x = leaf(np.array([1.0, -1.0]))
        assert gradcheck(op, x)
        fails(gradcheck, "fast_mode=False would pass", op, x, fast_mode=True)


class TestArguments:
    @BOTH
    def test_no_input_requires_a_gradient(self, check):
        for inputs in (flow.tensor(X), (), (1, 2)):
            with pytest.raises(ArgumentError, match=f"{check.__name__}.*requires_grad_"):
                check(lambda *x: flow.tensor(X), inputs, raise_exception=False)

    @BOTH
    def test_elements_that_share_memory(self, check):
        x = leaf(np.ones((1, 3))).expand(2, 3)
        with pytest.raises(ArgumentError, match="stride 0.*clone"):
            check(lambda x: x * x, x)

    @BOTH
    def test_outputs_that_are_no_tensors(self, check):
        with pytest.raises(ArgumentTypeError, match="func.*int"):
            check(lambda x: (x, 3), leaf(X))

    def test_options_that_check_nothing(self):
        x = leaf(X)
        for options in (
            {"check_backward_ad": False},
            {"check_batched_forward_grad": True},
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            {"masked": True},
        ):
            with pytest.raises(OptionError, match="expected"):
                gradcheck(lambda x: x * x, x, **options)
        for options in (
            {"check_rev_over_rev": False},
            {"check_rev_over_rev": False, "check_fwd_over_rev": True, "check_batched_grad": True},
            {"masked": True},
        ):
            with pytest.raises(OptionError, match="expected"):
                gradgradcheck(lambda x: x * x, x, **options)

    def test_gradgradcheck_needs_something_to_differentiate(self):
        with pytest.raises(ArgumentError, match="func"):
            gradgradcheck(lambda x: x.detach(), leaf(X))

    @BOTH
    def test_what_the_function_raises_comes_out(self, check):
        def broken(x):
            if x[0, 0].item() != 0.5:
                raise KeyError("mine")
            return x * x

        x = leaf(X)
        with pytest.raises(KeyError, match="mine"):
            check(broken, x, raise_exception=False)
        assert np.array_equal(x.numpy(), X)

    @BOTH
    def test_the_generator_of_the_user_is_not_touched(self, check):
        flow.manual_seed(3)
        expected = flow.rand(2).tolist()
        flow.manual_seed(3)
        check(lambda x: x * x, leaf(X), fast_mode=True)
        assert flow.rand(2).tolist() == expected


@pytest.mark.parametrize("fast_mode", [False, True])
def test_an_input_without_elements_has_nothing_to_compare(fast_mode):
    x = flow.zeros(0, 3, dtype=flow.float64, requires_grad=True)
    assert flow.autograd.gradcheck(lambda x: x.logsumexp(0), x, fast_mode=fast_mode)


@pytest.mark.parametrize(
    "statement",
    [
        "import oneflow_lite.autograd.tools.gradcheck",
        "from oneflow_lite.autograd.tools.gradcheck import GradcheckError, gradcheck",
        "from oneflow_lite.autograd import gradcheck",
    ],
)
def test_the_function_stands_in_front_of_its_module(statement):
    """`autograd.gradcheck` is the function and importable as a module, as in PyTorch."""
    code = f"{statement}\nimport oneflow_lite as flow\nassert callable(flow.autograd.gradcheck)"
    subprocess.run([sys.executable, "-c", code], check=True)


def squared(jvp):
    """Return a Function with a tangent of its own."""

    class Squared(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * x * y

        @staticmethod
        def backward(ctx, dz):
            x, y = ctx.saved_tensors
            return 2 * x * y * dz, x * x * dz

    Squared.jvp = staticmethod(jvp)
    return Squared.apply


def right_jvp(ctx, tx, ty):
    x, y = ctx.saved_tensors
    return 2 * x * y * tx + x * x * ty


class TestForwardMode:
    FORWARD = {"check_forward_ad": True, "check_batched_forward_grad": True}

    @SPEEDS
    @pytest.mark.parametrize("name", RIGHT)
    def test_accepts_what_is_right(self, fast, name):
        function, arrays = RIGHT[name]
        inputs = [leaf(a) for a in arrays]
        assert gradcheck(function, inputs, fast_mode=fast, **self.FORWARD)
        options = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
        if name != "a detached output":
            assert gradgradcheck(function, inputs, fast_mode=fast, **options)
        if name not in ("a detached output", "an integer output before"):
            options = {"check_backward_ad": False, "fast_mode": fast}
            assert gradcheck(function, inputs, **options, **self.FORWARD)

    @SPEEDS
    def test_a_right_jvp(self, fast):
        inputs = [leaf(X), leaf(Y)]
        assert gradcheck(squared(right_jvp), inputs, fast_mode=fast, **self.FORWARD)
        assert gradgradcheck(squared(right_jvp), inputs, fast_mode=fast, check_fwd_over_rev=True)

    @SPEEDS
    def test_a_wrong_jvp(self, fast):
        def wrong(ctx, tx, ty):
            x, y = ctx.saved_tensors
            return 2 * x * y * tx + x * ty

        inputs = [leaf(X), leaf(Y)]
        assert gradcheck(squared(wrong), inputs, fast_mode=fast)
        text = "output 0 with respect to input 1 in forward mode"
        fails(gradcheck, text, squared(wrong), inputs, fast_mode=fast, check_forward_ad=True)
        options = {"check_forward_ad": True, "check_backward_ad": False, "fast_mode": fast}
        fails(gradcheck, text, squared(wrong), inputs, **options)

    @SPEEDS
    def test_a_wrong_backward_is_none_of_its_business(self, fast):
        class Wrong(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, dy):
                return dy

            @staticmethod
            def jvp(ctx, t):
                (x,) = ctx.saved_tensors
                return 2 * x * t

        fails(gradcheck, "output 0", Wrong.apply, leaf(X), fast_mode=fast)
        options = {"check_forward_ad": True, "check_backward_ad": False}
        assert gradcheck(Wrong.apply, leaf(X), fast_mode=fast, **options)

    def test_a_wrong_tangent_of_the_gradient(self):
        """The rule of the gradient's own op has a wrong jvp."""

        def wrong(ctx, tx, ty):
            x, y = ctx.saved_tensors
            return 2 * x * y * tx

        inner = squared(wrong)

        class Outer(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3 / 3

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensors
                return inner(x, dy)

        assert gradgradcheck(Outer.apply, leaf(X))
        fails(gradgradcheck, "in forward mode", Outer.apply, leaf(X), check_fwd_over_rev=True)

    def test_a_tangent_that_depends_on_missing_ones(self):
        class Odd(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(False)
                ctx.save_for_backward(x, y)
                return x * x * y

            @staticmethod
            def backward(ctx, dz):
                x, y = ctx.saved_tensors
                return 2 * x * y * dz, x * x * dz

            @staticmethod
            def jvp(ctx, tx, ty):
                x, y = ctx.saved_tensors
                if tx is None:
                    return x * x * ty
                return 2 * x * y * tx * (1 if ty is None else 2) + (0 if ty is None else x * x * ty)

        options = {"check_forward_ad": True, "check_undefined_grad": False}
        assert gradcheck(Odd.apply, [leaf(X), leaf(Y)], **options)
        options["check_undefined_grad"] = True
        fails(
            gradcheck, "with a tangent of input 0 alone", Odd.apply, [leaf(X), leaf(Y)], **options
        )

    def test_a_jvp_that_no_batch_goes_through(self):
        def reading(ctx, tx, ty):
            x, y = ctx.saved_tensors
            moved = 2 * x * y * tx + x * x * ty
            return flow.tensor(moved.numpy())

        inputs = [leaf(X), leaf(Y)]
        assert gradcheck(squared(reading), inputs, check_forward_ad=True)
        fails(gradcheck, "batched tangents raised", squared(reading), inputs, **self.FORWARD)

    def test_a_wrong_batch(self):
        """The way of an op over a batch is wrong."""

        class Halved(flow.autograd.Function):
            @staticmethod
            def forward(x):
                return x / 2

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def backward(ctx, dy):
                return Halved.apply(dy)

            @staticmethod
            def jvp(ctx, t):
                return Halved.apply(t)

            @staticmethod
            def vmap(info, in_dims, x):
                return x / 3, 0

        x = leaf(X)
        assert gradcheck(Halved.apply, x, check_forward_ad=True)
        fails(gradcheck, "batched tangents of output 0", Halved.apply, x, **self.FORWARD)
        fails(gradcheck, "batched gradients of output 0", Halved.apply, x, check_batched_grad=True)
