"""check_op catches every lie that an op can tell."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import FlowError
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from oneflow_lite.testing import Fixed, OpCheckError, Sample, check_op

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
Y = np.array([[1.5, 0.5, -1.0], [0.75, 2.0, 1.25]])


@pytest.fixture
def make(request):
    """Make an op from its kernel and its rule; it is forgotten after the test."""
    name = f"checked_{request.node.originalname}"

    def build(kernel, rule=None, saves="", **flags):
        op = flow.register_op(name, **flags)(kernel)
        if rule is not None:
            op.grad(saves=saves)(rule)
        return op

    yield build
    for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
        registry.remove(name)


def fails(op, samples, match, **options):
    with pytest.raises(OpCheckError, match=match) as caught:
        check_op(op, samples, **options)
    assert isinstance(caught.value, AssertionError)
    return str(caught.value)


class TestAcceptsWhatIsRight:
    @pytest.mark.parametrize("name", ["exp", "sigmoid", "relu", "square", "softplus"])
    def test_ops_of_one_operand(self, name):
        check_op(name, [Sample(X)])

    @pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "atan2"])
    def test_ops_of_two_operands(self, name):
        check_op(name, [Sample(X, Y), Sample(X, Y[0])])

    def test_functions_of_tensors(self):
        check_op(lambda x: (x * x).sum(-1).exp(), [Sample(X * 0.3)])

    def test_several_outputs(self):
        check_op("sort", [Sample(X, dim=1)])

    def test_lists_of_tensors(self):
        check_op(lambda xs: flow.cat(xs), [Sample([X, Y])])

    def test_a_right_op(self, make):
        check_op(
            make(lambda xp, x: x * x * x, lambda F, ctx, dy: dy * 3.0 * ctx.x**2, "x"), [Sample(X)]
        )

    def test_an_op_with_a_kernel_alone(self):
        check_op("tanh_grad", [Sample(X, np.tanh(Y))])

    def test_complex_numbers(self):
        check_op("mul", [Sample(X + 1j * Y, Y - 1j * X)])

    def test_what_is_fixed_is_not_differentiated(self):
        check_op("mul", [Sample(X, Fixed(Y))])
        check_op("gather", [Sample(X, 1, np.array([[0, 2], [1, 1]]))])

    def test_on_each_device(self, device):
        check_op("mul", [Sample(X, Y)], device=device)


class TestCatches:
    def test_a_wrong_first_derivative(self, make):
        op = make(lambda xp, x: x * x, lambda F, ctx, dy: dy * 3.0 * ctx.x, "x")
        text = fails(op, [Sample(X)], "first derivative")
        assert "expected" in text and "Sample" in text

    def test_a_derivative_of_the_wrong_sign(self, make):
        fails(
            make(lambda xp, x: x * 2, lambda F, ctx, dy: -dy * 2.0), [Sample(X)], "first derivative"
        )

    def test_one_wrong_element(self, make):
        def rule(F, ctx, dy):
            return dy * 2.0 + F.where(ctx.x > 1.9, F.ones_like(dy), F.zeros_like(dy))

        fails(make(lambda xp, x: x * 2, rule, "x"), [Sample(X)], "first derivative")

    def test_a_wrong_second_derivative(self, make):
        """The first derivative is right, and so is what it computes: its own rule is wrong."""
        inner = "checked_inner_grad"
        flow.register_kernel(inner)(lambda xp, dy, x: dy * 3 * x * x)
        try:
            flow.register_grad_func(inner, saves="dy, x")(
                lambda F, ctx, g: (g * 3.0 * ctx.x * ctx.x, g * 5.0 * ctx.dy * ctx.x)
            )
            op = make(lambda xp, x: x * x * x, lambda F, ctx, dy: getattr(F, inner)(dy, ctx.x), "x")
            text = fails(op, [Sample(X)], "second derivative")
            assert "first derivative" not in text
            check_op(op, [Sample(X)], second_order=False)
        finally:
            KERNELS.remove(inner)
            GRAD_FUNCS.remove(inner)

    def test_a_second_derivative_that_is_missing(self, make):
        inner = "checked_missing_grad"
        flow.register_kernel(inner)(lambda xp, dy, x: dy * 3 * x * x)
        try:
            op = make(lambda xp, x: x * x * x, lambda F, ctx, dy: getattr(F, inner)(dy, ctx.x), "x")
            with pytest.raises((OpCheckError, FlowError), match=inner):
                check_op(op, [Sample(X)])
        finally:
            KERNELS.remove(inner)

    def test_a_derivative_cut_off_from_the_graph(self, make):
        """Right to the first order, constant to the second."""

        def rule(F, ctx, dy):
            x = ctx.x.detach() if isinstance(ctx.x, flow.Tensor) else ctx.x
            return dy * 2.0 * x

        fails(make(lambda xp, x: x * x, rule, "x"), [Sample(X)], "second derivative")

    def test_a_widened_result(self, make):
        op = make(
            lambda xp, x: x.astype("float64") * 2,
            lambda F, ctx, dy: F.cast(dy * 2.0, dtype=ctx.x_dtype),
            "x.dtype",
        )
        fails(op, [Sample(X)], "float64")

    def test_a_widened_gradient(self, make):
        op = make(lambda xp, x: x * 2, lambda F, ctx, dy: F.cast(dy * 2.0, dtype=flow.float64))
        with pytest.raises((OpCheckError, FlowError), match="float64"):
            check_op(op, [Sample(X)])

    def test_an_inaccurate_float32(self, make):
        def kernel(xp, x):
            return (
                (x + 1e4).astype(x.dtype) - np.asarray(1e4, x.dtype) if x.dtype == "f4" else x * 1
            )

        def rule(F, ctx, dy):
            return dy * (1.5 if dy.dtype == np.float32 else 1.0)

        fails(make(kernel, rule), [Sample(X)], "float32")

    def test_a_write_that_is_not_declared(self, make):
        def kernel(xp, x):
            y = x * 2
            x += 1
            return y

        op = make(kernel, lambda F, ctx, dy: dy * 2.0)
        fails(op, [Sample(X)], "(?s)writes into the input 'x'.*mutates=")

    def test_an_alias_that_is_not_declared(self, make):
        op = make(lambda xp, x: x[::-1], lambda F, ctx, dy: F.flip(dy, dims=(0,)))
        fails(op, [Sample(X)], "shares memory with the input 'x'; .*view_of='x'", degenerate=False)

    def test_the_input_itself_returned(self, make):
        op = make(lambda xp, x: x, lambda F, ctx, dy: dy)
        fails(op, [Sample(X)], "shares memory")

    def test_a_declared_alias_is_right(self, make):
        op = make(lambda xp, x: x[::-1], lambda F, ctx, dy: F.flip(dy, dims=(0,)), view_of="x")
        check_op(op, [Sample(X)], degenerate=False)

    def test_a_rule_that_works_on_arrays_alone(self, make):
        """No rule for the recorded mode: NumPy instead of F."""
        op = make(lambda xp, x: x * x, lambda F, ctx, dy: dy * 2.0 * np.asarray(ctx.x), "x")
        with pytest.raises((TypeError, AttributeError, FlowError, OpCheckError)):
            check_op(op, [Sample(X)])

    def test_a_rule_that_differs_between_its_modes(self, make):
        def rule(F, ctx, dy):
            return dy * (2.0 if isinstance(dy, flow.Tensor) else 1.0)

        rule.__module__ = "oneflow_lite.grad_funcs"  # the package's rules alone have two modes
        fails(make(lambda xp, x: x * 1, rule), [Sample(X)], "recorded")

    def test_a_value_that_depends_on_the_layout(self, make):
        def kernel(xp, x):
            return x * (1 if x.flags.c_contiguous else 2)

        text = fails(make(kernel, lambda F, ctx, dy: dy * 1.0), [Sample(X)], "inputs")
        assert "transposed" in text or "gapped" in text

    def test_a_gradient_that_depends_on_the_layout(self, make):
        def rule(F, ctx, dy):
            strided = not dy.is_contiguous()
            return dy * (2.0 if strided else 1.0)

        fails(make(lambda xp, x: x * 1, rule), [Sample(X)], "gradients")

    def test_a_gradient_of_one_input_when_it_is_alone(self, make):
        op = make(
            lambda xp, x, y: x * y,
            lambda F, ctx, dz: (
                dz * ctx.y * (1.0 if ctx.needs_input_grad[1] else 2.0),
                dz * ctx.x,
            ),
            "x, y",
        )
        fails(op, [Sample(X, Y)], "input 0 alone")

    def test_a_0d_input(self, make):
        def kernel(xp, x):
            return x * (2 if x.ndim else 3)

        op = make(kernel, lambda F, ctx, dy: dy * 2.0)
        fails(op, [Sample(X)], "first derivative")
        check_op(op, [Sample(X)], degenerate=False)

    def test_a_missing_gradient(self, make):
        with pytest.raises((OpCheckError, FlowError), match="gradient"):
            check_op(make(lambda xp, x: x * 2), [Sample(X)])

    def test_a_gradient_that_is_silently_none(self, make):
        op = make(lambda xp, x, y: x * y, lambda F, ctx, dz: (dz * ctx.y, None), "y")
        fails(op, [Sample(X, Y)], "first derivative")

    def test_no_sample(self):
        fails("exp", [], "no sample")

    def test_an_unknown_name(self):
        with pytest.raises(FlowError, match=r"'expp'.*'exp'"):
            check_op("expp", [Sample(X)])

    def test_the_report_counts_and_names_samples(self, make):
        op = make(lambda xp, x: x * 2, lambda F, ctx, dy: dy)
        text = fails(op, [Sample(X), Sample(Y)], r"failure\(s\)")
        assert "float64[2, 3]" in text


def test_samples_are_not_written():
    x, y = X.copy(), Y.copy()
    check_op("mul", [Sample(x, y)])
    assert (x == X).all() and (y == Y).all()


def test_a_sample_describes_itself():
    text = repr(Sample(X, 3, dim=1, other=[Y], mask=Fixed(np.array([True]))))
    assert "float64[2, 3]" in text and "dim=1" in text and "Fixed(bool[1])" in text


class TestAssertClose:
    """`assert_close` agrees with PyTorch's on pass and fail, and says where values differ."""

    CASES = (
        ([1.0, 2.0], [1.0, 2.000001], {}),
        ([1.0, 2.0], [1.0, 2.1], {}),
        ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.1, "atol": 0.0}),
        ([float("nan")], [float("nan")], {}),
        ([float("nan")], [float("nan")], {"equal_nan": True}),
        ([float("inf")], [float("inf")], {}),
        ([1, 2], [1, 3], {}),
        ([2**60], [2**60 + 1], {}),
        ([[1.0]], [1.0], {}),
        ([True], [False], {}),
        ([1 + 1j], [1 + 1.1j], {}),
        ([], [], {}),
    )
    NESTED = (
        lambda m: (1.0, 1.0),
        lambda m: (1, 1.0),
        lambda m: (1.0, 1.1),
        lambda m: (True, True),
        lambda m: (None, None),
        lambda m: (m.ones(2), None),
        lambda m: ([m.ones(2)], [m.ones(2) * 1.5]),
        lambda m: ([m.ones(2)], (m.ones(2),)),
        lambda m: ([m.ones(2)], [m.ones(2)] * 2),
        lambda m: ({"a": m.ones(2)}, {"a": m.ones(2)}),
        lambda m: ({"a": m.ones(2)}, {"b": m.ones(2)}),
        lambda m: (m.ones(2), m.ones(2, dtype=m.float64)),
        lambda m: (m.ones(2, requires_grad=True), m.ones(2)),
        lambda m: (m.nn.Parameter(m.ones(2)), m.ones(2)),
        lambda m: (m.ones(2), [1.0, 1.0]),
        lambda m: (m.ones(2), 1.0),
        lambda m: ("a", "a"),
        lambda m: (np.ones(2), np.ones(2)),
        lambda m: (np.ones(2), np.zeros(2)),
        lambda m: (range(3), range(3)),
        lambda m: (m.eye(2).to_sparse(), m.eye(2).to_sparse()),
        lambda m: (m.eye(2).to_sparse(), m.eye(2).to_sparse() * 2),
        lambda m: (m.eye(2).to_sparse(), m.eye(2)),
    )

    @staticmethod
    def outcome(module, *args, **options):
        try:
            module.testing.assert_close(*args, **options)
        except Exception as error:
            kinds = (AssertionError, TypeError, ValueError)
            return next(kind for kind in kinds if isinstance(error, kind))
        return None

    @pytest.mark.parametrize(("a", "b", "options"), CASES)
    def test_of_tensors(self, a, b, options):
        torch = pytest.importorskip("torch")
        ours = self.outcome(flow, flow.tensor(a), flow.tensor(b), **options)
        assert ours is self.outcome(torch, torch.tensor(a), torch.tensor(b), **options)

    @pytest.mark.parametrize("make", NESTED)
    def test_of_numbers_and_nested_values(self, make):
        torch = pytest.importorskip("torch")
        assert self.outcome(flow, *make(flow)) is self.outcome(torch, *make(torch))

    @pytest.mark.parametrize(
        ("options", "make"),
        [
            ({"check_dtype": False}, lambda m: (m.ones(2), m.ones(2, dtype=m.float64))),
            ({"check_dtype": False}, lambda m: (m.tensor([1, 2]), m.tensor([1.0, 2.0]))),
            ({"check_stride": True}, lambda m: (m.ones(2, 3), m.ones(3, 2).t())),
            ({"check_stride": False}, lambda m: (m.ones(2, 3), m.ones(3, 2).t())),
            ({"allow_subclasses": False}, lambda m: (m.nn.Parameter(m.ones(2)), m.ones(2))),
            ({"rtol": 1.0}, lambda m: (1.0, 1.1)),
        ],
    )
    def test_of_options(self, options, make):
        torch = pytest.importorskip("torch")
        ours = self.outcome(flow, *make(flow), **options)
        assert ours is self.outcome(torch, *make(torch), **options)

    def test_says_where(self):
        a, b = {"w": [flow.zeros(2, 2)]}, {"w": [flow.tensor([[0.0, 0.0], [0.5, 0.0]])]}
        with pytest.raises(AssertionError) as caught:
            flow.testing.assert_close(a, b)
        assert str(caught.value) == (
            "1 of 4 elements are not close; largest absolute difference 0.5 at index (1, 0) (1e-05 "
            "allowed); largest relative difference 1 at index (1, 0) (1.3e-06 allowed) (at "
            "['w'][0])"
        )
        with pytest.raises(AssertionError, match="^mine: 1 of 4"):
            flow.testing.assert_close(a, b, msg=lambda text: f"mine: {text}")
        with pytest.raises(AssertionError, match="^mine$"):
            flow.testing.assert_close(a, b, msg="mine")

    def test_of_bfloat16_and_devices(self, device):
        pytest.importorskip("ml_dtypes")
        x = flow.ones(2, device=device)
        flow.testing.assert_close(x, x.clone())
        with pytest.raises(AssertionError, match="not close"):
            flow.testing.assert_close(x, x * 1.1)
        x = flow.ones(2)
        flow.testing.assert_close(x.to(flow.bfloat16), x.to(flow.bfloat16) * 1.01)
        with pytest.raises(AssertionError, match="not close"):
            flow.testing.assert_close(x.to(flow.bfloat16), x.to(flow.bfloat16) * 1.1)


make_tensor = flow.testing.make_tensor
DTYPES = "float16 float32 float64 complex64 complex128 int8 uint8 int64 bool".split()


@pytest.mark.parametrize("name", DTYPES)
def test_tensors_for_tests(name):
    dtype = getattr(flow, name)
    x = make_tensor((5, 7), dtype=dtype, device="cpu")
    assert x.shape == (5, 7) and x.dtype == dtype and x.is_contiguous()
    parts = flow.view_as_real(x) if x.is_complex() else x.double()
    assert parts.min() >= (0 if name in ("uint8", "bool") else -9) and parts.max() <= 9
    gaps = make_tensor(5, 7, dtype=dtype, device="cpu", noncontiguous=True)
    assert gaps.shape == (5, 7) and gaps.stride() == (14, 2)
    assert make_tensor((0, 3), dtype=dtype, device="cpu", noncontiguous=True).shape == (0, 3)
    assert make_tensor((), dtype=dtype, device="cpu").ndim == 0
    assert (make_tensor(50, dtype=dtype, device="cpu", low=0, exclude_zero=True) != 0).all()
    if x.is_floating_point():
        assert make_tensor(2, dtype=dtype, device="cpu", requires_grad=True).requires_grad
    flow.manual_seed(0)
    y = make_tensor(9, dtype=dtype, device="cpu")
    flow.manual_seed(0)
    assert flow.equal(y, make_tensor(9, dtype=dtype, device="cpu"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"low": 3, "high": 2}, "'low'"),
        ({"low": float("nan")}, "'low'"),
        ({"high": -1000}, "'low'"),
        ({"requires_grad": True}, "'requires_grad'"),
        ({"noncontiguous": True, "memory_format": flow.channels_last}, "'memory_format'"),
    ],
)
def test_bounds_that_enclose_nothing(words, text):
    with pytest.raises(ValueError, match=text):
        make_tensor(2, dtype=flow.int8, device="cpu", **words)


def test_assert_allclose():
    with pytest.warns(UserWarning, match="assert_close"):
        flow.testing.assert_allclose(flow.tensor([1.0, float("nan")]), [1.00005, float("nan")])
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="not close"):
        flow.testing.assert_allclose([1.0], [1.1])
