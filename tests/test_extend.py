"""Ops of one's own: `register_op` in ten lines, every form of gradient, and every mistake."""

import copy
import inspect
import pickle
import traceback

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    FlowError,
    GradientError,
    NotDifferentiableError,
    RegistrationError,
    ShapeError,
)
from oneflow_lite.extend import forget_op
from oneflow_lite.functors.declaring.samples import samples
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from oneflow_lite.testing import Sample, check_op


@pytest.fixture
def name(request):
    """A name for one test; what the test registers under it is forgotten afterwards."""
    chosen = f"own_{request.node.originalname}"
    yield chosen
    forget_op(chosen)


@pytest.fixture
def softsign(name):
    """The ten lines of the design, under another name."""

    @flow.register_op(name)
    def softsign(xp, x):
        return x / (1 + xp.abs(x))

    @softsign.grad(saves="x")
    def softsign_grad(F, ctx, dy):
        return dy / (1 + F.abs(ctx.x)) ** 2

    return softsign


class TestText:
    """The text of the functors that are made of declarations."""

    def test_of_a_functor_of_the_library(self):
        text = inspect.getsource(flow.relu)
        assert text.startswith("def relu(input, inplace=False):\n")
        assert "  return dispatch1(OP, input)\n" in text
        assert "  return instead(SELF, (input, ), {})\n" in text
        assert text.endswith("   refuse(NAME, PARAMETERS, error, locals())\n   raise\n")
        assert inspect.getsource(flow.relu_).startswith("def relu_(input):\n")

    def test_of_an_op_of_ones_own(self, softsign):
        assert inspect.getsource(softsign).startswith(f"def {softsign.__name__}(x):\n")

    def test_of_the_functor_that_has_the_name_now(self, name):
        for kernel in (lambda xp, x: x, lambda xp, x, y: x + y):
            functor = flow.register_op(name)(kernel)
            given = ", ".join(inspect.signature(functor).parameters)
            assert inspect.getsource(functor).startswith(f"def {name}({given}):\n")
            FUNCTORS.remove(name)
            KERNELS.remove(name)
            op_expr(name).forget()

    def test_in_a_traceback(self, softsign):
        with pytest.raises(FlowError) as caught:
            softsign("text")
        text = "".join(traceback.format_exception(caught.value))
        assert "x = as_tensor(NAME, x)\n" in text
        assert f", line 4, in {softsign.__name__}\n" in text


class TestTenLines:
    def test_eager(self, softsign, device):
        y = softsign(flow.tensor([-3.0, 1.0], device=device))
        assert y.cpu().tolist() == [-0.75, 0.5]
        assert y.device.type == device

    def test_gradients_of_any_order(self, softsign):
        at = np.array([-3.0, 1.0, 0.5])
        x = flow.tensor(at, requires_grad=True)
        y = softsign(x)
        assert y.grad_fn.name() == f"{softsign.__name__}_backward"
        s, d = np.sign(at), 1 + np.abs(at)
        expected = [1 / d**2, -2 * s / d**3, 6 / d**4, -24 * s / d**5]
        for value in expected:
            (y,) = flow.autograd.grad(y.sum(), x, create_graph=True)
            np.testing.assert_allclose(y.numpy(), value, rtol=1e-12)

    def test_backward_on_each_device(self, softsign, device):
        x = flow.tensor([-3.0, 1.0], device=device, requires_grad=True)
        softsign(x).sum().backward()
        assert x.grad.device == x.device
        assert x.grad.cpu().tolist() == [0.0625, 0.25]

    def test_is_certified(self, softsign):
        check_op(softsign, [Sample(np.array([[-3.0, 1.0], [0.5, 2.0]]))])
        check_op(softsign.__name__, [Sample(np.array([0.3]))])

    def test_an_interpreter_sees_it(self, softsign):
        seen = []

        class Names(flow.Interpreter):
            def apply(self, op_expr, inputs, attrs):
                seen.append(op_expr.op_type_name)
                return self.inner.apply(op_expr, inputs, attrs)

        with flow.push_interpreter(Names()):
            softsign(flow.ones(1))
        assert seen == ["full", softsign.__name__]

    def test_composes_with_other_ops(self, softsign):
        x = flow.tensor([1.0, -1.0], requires_grad=True)
        (softsign(x * 2) * 3).sum().backward()
        assert x.grad.tolist() == pytest.approx([6 / 9, 6 / 9])

    def test_is_reached_by_gradient_rules_through_f(self, softsign):
        @flow.register_op("own_second")
        def second(xp, x):
            return xp.abs(x)

        try:

            @second.grad(saves="x")
            def second_grad(F, ctx, dy):
                return dy * getattr(F, softsign.__name__)(ctx.x)

            x = flow.tensor(np.array([1.0]), requires_grad=True)
            (g,) = flow.autograd.grad(second(x), x, create_graph=True)
            assert g.item() == 0.5
            assert flow.autograd.grad(g, x)[0].item() == 0.25
        finally:
            for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
                registry.remove("own_second")

    def test_describes_itself(self, softsign):
        assert softsign.__name__ in repr(softsign)
        assert softsign.op_expr is op_expr(softsign.__name__)


class TestArguments:
    @pytest.mark.parametrize("value", [[1.0, -3.0], (1.0, -3.0), np.array([1.0, -3.0], np.float32)])
    def test_lists_and_arrays_become_tensors(self, softsign, value):
        y = softsign(value)
        assert isinstance(y, flow.Tensor)
        assert y.tolist() == [0.5, -0.75]

    def test_numbers_become_tensors(self, softsign):
        y = softsign(1.0)
        assert isinstance(y, flow.Tensor) and y.shape == () and y.item() == 0.5

    def test_the_array_given_is_not_written_or_shared(self, name):
        op = flow.register_op(name)(lambda xp, x: x + 1)
        a = np.ones(2)
        y = op(a)
        y.zero_()
        assert a.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("bad", ["text", object(), {}, [[1.0], [2.0, 3.0]]])
    def test_what_is_no_tensor(self, softsign, bad):
        with pytest.raises(FlowError, match=softsign.__name__):
            softsign(bad)

    def test_two_operands_meet_in_one_dtype(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)
        assert op(flow.ones(2), flow.ones(2, dtype=flow.float64)).dtype == flow.float64
        assert op(flow.ones(2), 2.0).dtype == flow.float32
        assert op(3, flow.ones(2)).tolist() == [3.0, 3.0]
        assert op(flow.ones(2), np.float64(2)).dtype == flow.float32
        assert op(flow.ones(2), [1.0, 2.0]).tolist() == [1.0, 2.0]

    def test_three_operands_meet_in_one_dtype(self, name):
        op = flow.register_op(name)(lambda xp, x, y, z: x * y + z)
        result = op(flow.ones(2), flow.ones(2, dtype=flow.float64), flow.ones(2))
        assert result.dtype == flow.float64
        assert op(flow.ones(2), 2.0, [1.0, 2.0]).tolist() == [3.0, 4.0]

    def test_inputs_by_keyword(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x - y)
        assert op(x=flow.tensor([3.0]), y=flow.tensor([1.0])).tolist() == [2.0]
        assert op(flow.tensor([3.0]), y=flow.tensor([1.0])).tolist() == [2.0]
        assert op(y=flow.tensor([3.0]), x=flow.tensor([1.0])).tolist() == [-2.0]

    def test_attributes(self, name):
        op = flow.register_op(name)(lambda xp, x, *, by=2.0: x * by)
        op.grad()(lambda F, ctx, dy: dy * ctx.by)
        x = flow.tensor([1.0], requires_grad=True)
        assert op(x, by=3.0).tolist() == [3.0]
        op(x, by=3.0).backward()
        assert x.grad.tolist() == [3.0]

    def test_an_attribute_left_at_its_default_is_on_ctx_too(self, name):
        op = flow.register_op(name)(lambda xp, x, *, by=2.0: x * by)
        op.grad()(lambda F, ctx, dy: dy * ctx.by)
        x = flow.tensor([1.0], requires_grad=True)
        assert op(x).tolist() == [2.0]
        op(x).backward()
        assert x.grad.tolist() == [2.0]

    def test_too_many_inputs(self, softsign):
        with pytest.raises(TypeError, match=f"{softsign.__name__}.*takes 1 positional argument"):
            softsign(flow.ones(1), flow.ones(1))

    def test_too_few_inputs(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x - y)
        for call in (lambda: op(flow.ones(1)), op):
            with pytest.raises(TypeError) as caught:
                call()
            assert name in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))

    def test_an_unknown_attribute(self, softsign):
        with pytest.raises(TypeError) as caught:
            softsign(flow.ones(1), sharpness=2)
        text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
        assert softsign.__name__ in text and "sharpness" in text

    def test_indices_stay_integers_among_three(self, name):
        op = flow.register_op(name)(lambda xp, x, index, scale: x[index] * scale)
        y = op(flow.tensor([1.0, 2.0]), flow.tensor([1, 0]), flow.tensor(3.0, dtype=flow.float64))
        assert y.tolist() == [6.0, 3.0] and y.dtype == flow.float32
        assert op([1.0, 2.0], [1, 0], 3.0).tolist() == [6.0, 3.0]

    def test_shapes_that_do_not_broadcast(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x - y)
        with pytest.raises(ShapeError, match=name):
            op(flow.ones(2), flow.ones(3))

    def test_optional_inputs_may_be_none(self, name):
        @flow.register_op(name)
        def op(xp, x, weight, bias=None):
            y = x * weight
            return y if bias is None else y + bias

        @op.grad(saves="x, weight, bias")
        def op_grad(F, ctx, dy):
            assert (ctx.bias is None) == (not ctx.needs_input_grad[2])
            return dy * ctx.weight, dy * ctx.x, None if ctx.bias is None else dy

        x, w, b = (flow.tensor([v], requires_grad=True) for v in (2.0, 3.0, 4.0))
        op(x, w, None).backward()
        assert (x.grad.item(), w.grad.item(), b.grad) == (3, 2, None)
        op(x, w, b).backward()
        assert (x.grad.item(), w.grad.item(), b.grad.item()) == (6, 4, 1)
        assert op(x, w).item() == 6

    def test_any_number_of_inputs(self, name):
        @flow.register_op(name)
        def op(xp, *xs):
            return sum(x * (i + 1) for i, x in enumerate(xs))

        @op.grad(saves="xs.shape")
        def op_grad(F, ctx, dy):
            return tuple(dy * float(i + 1) for i in range(len(ctx.xs_shape)))

        xs = [flow.tensor([1.0], requires_grad=True) for _ in range(4)]
        y = op(*xs)
        assert y.tolist() == [10.0]
        y.backward()
        assert [x.grad.item() for x in xs] == [1, 2, 3, 4]

    def test_any_number_of_inputs_saved_and_differentiated_twice(self, name):
        @flow.register_op(name)
        def op(xp, *xs):
            return sum(x * x for x in xs)

        op.grad(saves="xs")(lambda F, ctx, dy: tuple(dy * 2.0 * x for x in ctx.xs))
        xs = [flow.tensor([float(i)], requires_grad=True) for i in range(3)]
        grads = flow.autograd.grad(op(*xs), xs, create_graph=True)
        assert [g.item() for g in grads] == [0, 2, 4]
        assert flow.autograd.grad(grads[1], xs[1])[0].item() == 2


class TestRules:
    def test_several_outputs(self, name):
        @flow.register_op(name)
        def op(xp, x):
            return x * x, x * x * x

        @op.grad(saves="x")
        def op_grad(F, ctx, da, db):
            return da * 2 * ctx.x + db * 3 * ctx.x**2

        x = flow.tensor([2.0], requires_grad=True)
        a, b = op(x)
        assert (a.output_nr, b.output_nr) == (0, 1)
        assert a.grad_fn is b.grad_fn
        assert flow.autograd.grad(a, x, retain_graph=True)[0].item() == 4
        assert flow.autograd.grad(b, x, retain_graph=True)[0].item() == 12
        (g,) = flow.autograd.grad(a + b, x, create_graph=True)
        assert g.item() == 16
        assert flow.autograd.grad(g, x)[0].item() == 2 + 12
        check_op(op, [Sample(np.array([0.5, -2.0]))])

    @pytest.mark.parametrize("materialize", [True, False])
    def test_a_missing_gradient_of_an_output(self, name, materialize):
        @flow.register_op(name)
        def op(xp, x):
            return x * 2, x * 3

        seen = []

        @op.grad(materialize=materialize)
        def op_grad(F, ctx, da, db):
            seen.append(db)
            return da * 2 if db is None else da * 2 + db * 3

        x = flow.tensor([1.0, 2.0], requires_grad=True)
        op(x)[0].sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        if materialize:
            assert np.asarray(seen[0]).tolist() == [0.0, 0.0]
        else:
            assert seen == [None]

    def test_an_integer_output_gets_no_gradient(self, name):
        @flow.register_op(name)
        def op(xp, x):
            return x * 2, xp.argsort(x)

        @op.grad()
        def op_grad(F, ctx, dy, d_order):
            assert d_order is None
            return dy * 2

        x = flow.tensor([2.0, 1.0], requires_grad=True)
        y, order = op(x)
        assert not order.requires_grad
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_one_rule_per_input_runs_only_where_it_is_needed(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)
        ran = []

        @op.grad(wrt="x", saves="y")
        def by_x(F, ctx, dz):
            ran.append("x")
            return dz * ctx.y

        @op.grad(wrt="y", saves="x")
        def by_y(F, ctx, dz):
            ran.append("y")
            return dz * ctx.x

        x, y = flow.tensor([2.0], requires_grad=True), flow.tensor([3.0])
        z = op(x, y)
        assert [t.tolist() for t in z.grad_fn.saved_tensors] == [[3.0]]
        z.backward()
        assert ran == ["x"] and x.grad.item() == 3
        y.requires_grad_()
        assert len(op(x, y).grad_fn.saved_tensors) == 2
        assert flow.autograd.grad(op(x, y), y)[0].item() == 2
        assert ran == ["x", "y"]

    def test_one_rule_for_all_knows_which_are_needed(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)
        needs = []

        @op.grad(saves="x, y")
        def rule(F, ctx, dz):
            needs.append(ctx.needs_input_grad)
            return dz * ctx.y, dz * ctx.x

        x, y = flow.tensor([2.0], requires_grad=True), flow.tensor([3.0])
        op(x, y).backward()
        op(y, x).backward()
        assert needs == [(True, False), (False, True)]

    @pytest.mark.parametrize(
        ("saves", "names"), [("y", ["y"]), ("out", ["out"]), ("x, y", ["x", "y"])]
    )
    def test_saved_inputs_and_outputs_by_name(self, name, saves, names):
        op = flow.register_op(name)(lambda xp, x: xp.exp(x))

        @op.grad(saves=saves)
        def rule(F, ctx, dy):
            for n in names:
                assert np.asarray(getattr(ctx, n).detach()) == pytest.approx(
                    1.0 if n != "x" else 0.0
                )
            return dy * getattr(ctx, names[-1])

        x = flow.tensor([0.0], requires_grad=True)
        op(x).backward()
        assert x.grad.item() == 1

    def test_outputs_by_number(self, name):
        op = flow.register_op(name)(lambda xp, x: (xp.exp(x), xp.sin(x)))

        @op.grad(saves="y0, x")
        def rule(F, ctx, da, db):
            return da * ctx.y0 + db * F.cos(ctx.x)

        check_op(op, [Sample(np.array([0.3, 1.1]))])

    def test_shape_and_dtype_without_the_data(self, name):
        op = flow.register_op(name)(lambda xp, x: x.sum())

        @op.grad(saves="x.shape, x.dtype")
        def rule(F, ctx, dy):
            assert ctx.x_dtype == np.float32
            return F.expand(dy, shape=ctx.x_shape)

        x = flow.ones(2, 3, requires_grad=True)
        y = op(x)
        assert y.grad_fn.saved_tensors == ()
        y.backward()
        assert x.grad.tolist() == [[1.0] * 3] * 2

    def test_a_gradient_is_summed_to_a_broadcast_input(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x + y)
        op.grad()(lambda F, ctx, dz: (dz, dz))
        x, y = flow.ones(2, 3, requires_grad=True), flow.ones(3, requires_grad=True)
        op(x, y).sum().backward()
        assert y.grad.tolist() == [2.0, 2.0, 2.0]

    def test_none_is_no_gradient(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x + y)
        op.grad()(lambda F, ctx, dz: (dz, None))
        x, y = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
        op(x, y).sum().backward()
        assert x.grad is not None and y.grad is None

    def test_registered_after_the_first_use(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        x = flow.tensor([2.0], requires_grad=True)
        y = op(x)
        with pytest.raises(NotDifferentiableError):
            y.backward()
        op.grad()(lambda F, ctx, dy: dy * 3)
        op(x).backward()
        assert x.grad.item() == 3

    def test_a_second_rule_registered_after_the_first_use(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)
        op.grad(wrt="x", saves="y")(lambda F, ctx, dz: dz * ctx.y)
        x, y = flow.tensor([2.0], requires_grad=True), flow.tensor([3.0], requires_grad=True)
        assert flow.autograd.grad(op(x, y.detach()), x)[0].item() == 3
        op.grad(wrt="y", saves="x")(lambda F, ctx, dz: dz * ctx.x)
        assert flow.autograd.grad(op(x, y), y)[0].item() == 2


class TestMissingGradients:
    """A derivative that does not exist raises; it is never zero."""

    def test_without_a_gradient_function(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        x = flow.tensor([2.0], requires_grad=True)
        y = op(x)
        assert y.requires_grad  # it does depend on x
        for call in (
            lambda: (y * 1).backward(retain_graph=True),
            lambda: flow.autograd.grad(y, x, retain_graph=True),
            lambda: flow.autograd.grad(y, x, create_graph=True),
            lambda: flow.autograd.grad(y, x, retain_graph=True, materialize_grads=True),
        ):
            with pytest.raises(
                NotDifferentiableError, match=f"(?s){name}.*register_grad_func"
            ) as caught:
                call()
            assert isinstance(caught.value, RuntimeError)
        assert x.grad is None

    def test_with_two_inputs(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)
        x = flow.tensor([2.0], requires_grad=True)
        with pytest.raises(NotDifferentiableError, match=name):
            op(x, flow.ones(1)).backward()
        with pytest.raises(NotDifferentiableError, match=name):
            op(flow.ones(1), x).backward()

    def test_with_a_rule_for_another_input(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)
        op.grad(wrt="x", saves="y")(lambda F, ctx, dz: dz * ctx.y)
        x, y = flow.tensor([2.0], requires_grad=True), flow.tensor([3.0], requires_grad=True)
        with pytest.raises(NotDifferentiableError, match=f"{name}.*'y'"):
            op(x, y).backward()
        assert x.grad is None and y.grad is None
        assert flow.autograd.grad(op(x, y), x)[0].item() == 3  # the other is not asked for

    def test_of_the_gradient(self, name):
        """A rule may use an op that has no gradient: the second derivative raises."""
        helper = f"{name}_helper"
        flow.register_kernel(helper)(lambda xp, x: 2 * x)
        try:
            op = flow.register_op(name)(lambda xp, x: x * x)
            op.grad(saves="x")(lambda F, ctx, dy: dy * getattr(F, helper)(ctx.x))
            x = flow.tensor([3.0], requires_grad=True)
            (g,) = flow.autograd.grad(op(x), x, create_graph=True)
            assert g.item() == 6
            with pytest.raises(NotDifferentiableError, match=helper):
                flow.autograd.grad(g, x)
        finally:
            KERNELS.remove(helper)

    def test_an_irregular_one_without_apply(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)

        @flow.register_grad_func(name)
        class Grad(flow.OpExprGradFunction):
            pass

        x = flow.tensor([2.0], requires_grad=True)
        with pytest.raises(NotDifferentiableError, match=name):
            op(x).backward()


class TestMistakes:
    def test_a_name_that_is_taken(self, softsign):
        with pytest.raises(RegistrationError, match=softsign.__name__):
            flow.register_op(softsign.__name__)(lambda xp, x: x)
        assert softsign([1.0]).tolist() == [0.5]

    @pytest.mark.parametrize("taken", ["relu", "linear", "zero_", "relu_grad"])
    def test_a_name_of_the_library(self, taken):
        kernel, functor = KERNELS.find(taken), FUNCTORS.find(taken)
        with pytest.raises(RegistrationError, match=taken):
            flow.register_op(taken)(lambda xp, x: x)
        assert KERNELS.find(taken) is kernel
        assert FUNCTORS.find(taken) is functor

    def test_two_gradients(self, softsign):
        with pytest.raises(RegistrationError, match=softsign.__name__):
            softsign.grad(saves="x")(lambda F, ctx, dy: dy)
        with pytest.raises(RegistrationError, match=softsign.__name__):
            flow.register_grad_func(softsign.__name__, wrt="x")(lambda F, ctx, dy: dy)

    @pytest.mark.parametrize("saves", ["z", "x, z", "y.strides", "yy", "xs", "x.data", "yout"])
    def test_saves_names_nothing(self, name, saves):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        x = flow.tensor([2.0], requires_grad=True)
        with pytest.raises(RegistrationError) as caught:
            op.grad(saves=saves)(lambda F, ctx, dy: dy)
            op(x)
        assert name in str(caught.value) and saves.split(", ")[-1] in str(caught.value)

    def test_wrt_names_nothing(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        with pytest.raises(RegistrationError, match=f"{name}.*'z'"):
            op.grad(wrt="z")(lambda F, ctx, dy: dy)
            op(flow.tensor([2.0], requires_grad=True))

    def test_saving_an_output_that_is_not_there(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        with pytest.raises(FlowError, match=name):
            op.grad(saves="y3")(lambda F, ctx, dy: dy)
            op(flow.tensor([2.0], requires_grad=True))

    @pytest.mark.parametrize(
        ("rule", "what"),
        [
            (lambda F, ctx, dy: F.reshape(dy, shape=(2, 1)), "shape"),
            (lambda F, ctx, dy: F.cast(dy, dtype=flow.float64), "dtype"),
            (lambda F, ctx, dy: (dy, dy), "2 gradient"),
            (lambda F, ctx, dy: (), "0 gradient"),
        ],
    )
    @pytest.mark.parametrize("create_graph", [False, True])
    def test_a_rule_that_returns_something_else(self, name, rule, what, create_graph):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        op.grad()(rule)
        x = flow.ones(2, requires_grad=True)
        y = op(x)
        with pytest.raises(GradientError, match=f"{name}_backward.*{what}"):
            flow.autograd.grad(y.sum(), x, create_graph=create_graph)

    @pytest.mark.parametrize("create_graph", [False, True])
    def test_an_added_dimension_is_summed_away(self, name, create_graph):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        op.grad()(lambda F, ctx, dy: F.expand(dy, shape=(4, 2)))
        x = flow.ones(2, requires_grad=True)
        (g,) = flow.autograd.grad(op(x).sum(), x, create_graph=create_graph)
        assert g.tolist() == [4.0, 4.0]

    def test_what_a_rule_does_not_return(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        op.grad()(lambda F, ctx, dy: "text")
        x = flow.ones(2, requires_grad=True)
        with pytest.raises(Exception) as caught:
            op(x).sum().backward()
        text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
        assert name in text

    def test_an_exception_in_a_kernel_keeps_its_type(self, name):
        class Mine(Exception):
            pass

        @flow.register_op(name)
        def op(xp, x):
            raise Mine("from the kernel")

        with pytest.raises(Mine, match="from the kernel") as caught:
            op(flow.ones(2, 3))
        (note,) = caught.value.__notes__
        assert name in note and "(2, 3)" in note

    def test_an_exception_in_a_rule_keeps_its_type(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)

        @op.grad()
        def rule(F, ctx, dy):
            raise KeyError("from the rule")

        x = flow.ones(2, requires_grad=True)
        with pytest.raises(KeyError, match="from the rule") as caught:
            op(x).sum().backward()
        assert any(name in note for note in getattr(caught.value, "__notes__", []))
        assert x.grad is None

    def test_an_attribute_that_ctx_does_not_have(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        op.grad()(lambda F, ctx, dy: dy * ctx.x)
        with pytest.raises(AttributeError, match="x"):
            op(flow.ones(2, requires_grad=True)).sum().backward()

    def test_an_op_that_f_does_not_have(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)
        op.grad()(lambda F, ctx, dy: F.no_such_op_at_all(dy))
        x = flow.ones(2, requires_grad=True)
        for create_graph in (False, True):
            with pytest.raises(FlowError, match="no_such_op_at_all"):
                flow.autograd.grad(op(x).sum(), x, create_graph=create_graph)

    def test_a_failed_registration_leaves_nothing(self, name):
        with pytest.raises(RegistrationError):
            flow.register_op(name, mutates="z")(lambda xp, x: x)
        assert name not in KERNELS and name not in FUNCTORS
        assert flow.register_op(name)(lambda xp, x: x + 1)([1.0]).tolist() == [2.0]


class TestFlags:
    def test_mutates(self, name):
        @flow.register_op(name, mutates="x")
        def op(xp, x):
            x *= 2
            return x

        x = flow.ones(2)
        version = x._version
        y = op(x)
        assert y is x
        assert x.tolist() == [2.0, 2.0]
        assert x._version == version + 1

    def test_a_leaf_is_not_written(self, name):
        @flow.register_op(name, mutates="x")
        def op(xp, x):
            x *= 2
            return x

        x = flow.ones(2, requires_grad=True)
        with pytest.raises(FlowError, match=f"{name}.*leaf"):
            op(x)
        assert x.tolist() == [1.0, 1.0]
        with flow.no_grad():
            op(x)
        assert x.tolist() == [2.0, 2.0]

    def test_mutates_with_a_gradient(self, name):
        @flow.register_op(name, mutates="x")
        def op(xp, x):
            x *= 2
            return x

        op.grad()(lambda F, ctx, dy: dy * 2)
        leaf = flow.ones(2, requires_grad=True)
        x = leaf + 0
        op(x)
        assert x.grad_fn.name() == f"{name}_backward"
        x.sum().backward()
        assert leaf.grad.tolist() == [2.0, 2.0]

    def test_view_of(self, name):
        op = flow.register_op(name, view_of="x")(lambda xp, x: x[::2])
        x = flow.tensor([1.0, 2.0, 3.0])
        y = op(x)
        assert y.is_view() and y._base is x
        assert y.memory is x.memory
        y.zero_()
        assert x.tolist() == [0.0, 2.0, 0.0]
        assert x._version == 1

    def test_view_of_that_copied_is_no_view(self, name):
        op = flow.register_op(name, view_of="x")(lambda xp, x: x.copy())
        x = flow.ones(2)
        assert not op(x).is_view()

    def test_a_kernel_for_each_device(self, name, device):
        @flow.register_op(name)
        def op(xp, x):
            return x + 1

        flow.register_kernel(name, device="cuda")(lambda xp, x: x + 10)
        y = op(flow.ones(2, device=device))
        assert y.cpu().tolist() == ([2.0, 2.0] if device == "cpu" else [11.0, 11.0])

    def test_a_scalar_result_becomes_an_array(self, name):
        op = flow.register_op(name)(lambda xp, x: x.max())
        y = op(flow.tensor([1.0, 2.0]))
        assert type(y._data) is np.ndarray and y.shape == ()


class TestIrregular:
    @pytest.fixture
    def calls(self):
        return []

    @pytest.fixture
    def op(self, name, calls):
        op = flow.register_op(name)(lambda xp, x, y, *, power: (x * y) ** power)

        @flow.register_grad_func(name)
        class Grad(flow.OpExprGradFunction):
            def init(self, op):
                calls.append(("init", op.op_type_name))

            def capture(self, state, inputs, outputs, attrs):
                calls.append(("capture", state.needs_input_grad, len(inputs), len(outputs)))
                state.power = attrs["power"]
                state.save_for_backward(*inputs)

            def apply(self, F, state, out_grads):
                calls.append(("apply", state.needs_input_grad))
                x, y = state.saved_tensors
                (dz,) = out_grads
                common = dz * float(state.power)
                for _ in range(state.power - 1):
                    common = common * (x * y)
                return common * y, common * x

        return op

    def test_init_capture_apply(self, op, name, calls):
        x = flow.tensor([2.0], requires_grad=True)
        y = flow.tensor([3.0])
        z = op(x, y, power=3)
        assert z.tolist() == [216.0]
        assert calls[0] == ("init", name)
        assert ("capture", (True, False), 2, 1) in calls
        z.backward()
        assert calls[-1] == ("apply", (True, False))
        assert x.grad.item() == 3 * 36 * 3
        op(x, y, power=3)
        assert [c[0] for c in calls].count("init") == 1

    def test_saved_tensors(self, op):
        x = flow.tensor([2.0], requires_grad=True)
        node = op(x, flow.tensor([3.0]), power=2).grad_fn
        assert [t.tolist() for t in node.saved_tensors] == [[2.0], [3.0]]

    def test_any_order(self, op):
        check_op(
            lambda x, y: op(x, y, power=3),
            [Sample(np.array([0.7, 1.5]), np.array([1.2, 0.4]))],
            degenerate=False,
        )

    def test_a_saved_tensor_that_was_written(self, op, name):
        x, y = flow.tensor([2.0], requires_grad=True), flow.tensor([3.0])
        z = op(x, y, power=2)
        y.zero_()
        with pytest.raises(flow.errors.StaleTensorError, match=name):
            z.backward()

    def test_a_tensor_that_is_set_on_state_is_saved_like_the_others(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)

        @flow.register_grad_func(name)
        class Grad(flow.OpExprGradFunction):
            def capture(self, state, inputs, outputs, attrs):
                state.save_for_backward(inputs[0])
                state.y, state.power = inputs[1], 1

            def apply(self, F, state, out_grads):
                (x,) = state.saved_tensors
                return out_grads[0] * state.y**state.power, out_grads[0] * x

        check_op(op, [Sample(np.array([0.7, 1.5]), np.array([1.2, 0.4]))])
        x, y = flow.ones(1, requires_grad=True), flow.ones(1)
        z = op(x, y)
        assert len(z.grad_fn.saved_tensors) == 2
        y.zero_()
        with pytest.raises(flow.errors.StaleTensorError, match="'y'"):
            z.backward()

    def test_nothing_is_captured_without_a_gradient(self, op, calls):
        op(flow.ones(1), flow.ones(1), power=2)
        with flow.no_grad():
            op(flow.ones(1, requires_grad=True), flow.ones(1), power=2)
        assert "capture" not in [c[0] for c in calls]

    def test_a_second_backward(self, op):
        x = flow.tensor([2.0], requires_grad=True)
        z = op(x, flow.tensor([3.0]), power=2)
        z.backward()
        with pytest.raises(flow.errors.FreedGraphError):
            z.backward()

    def test_saves_an_output(self, name):
        op = flow.register_op(name)(lambda xp, x: xp.exp(x))

        @flow.register_grad_func(name)
        class Grad(flow.OpExprGradFunction):
            def capture(self, state, inputs, outputs, attrs):
                state.save_for_backward(outputs[0])

            def apply(self, F, state, out_grads):
                (y,) = state.saved_tensors
                return out_grads[0] * y

        check_op(op, [Sample(np.array([0.5, 1.5]))])

    def test_saves_neither_input_nor_output(self, name):
        """A tensor that is computed at capture carries no gradient, but it is kept and checked."""
        op = flow.register_op(name)(lambda xp, x: x * 4)

        @flow.register_grad_func(name)
        class Grad(flow.OpExprGradFunction):
            def capture(self, state, inputs, outputs, attrs):
                state.save_for_backward(flow.full((1,), 4.0))

            def apply(self, F, state, out_grads):
                return out_grads[0] * state.saved_tensors[0]

        x = flow.tensor([2.0], requires_grad=True)
        op(x).backward()
        assert x.grad.item() == 4

    def test_of_several_outputs(self, name):
        op = flow.register_op(name)(lambda xp, x: (x * 2, x * 5))

        @flow.register_grad_func(name)
        class Grad(flow.OpExprGradFunction):
            def apply(self, F, state, out_grads):
                da, db = out_grads
                return da * 2 + db * 5

        x = flow.tensor([2.0], requires_grad=True)
        a, b = op(x)
        b.backward()
        assert x.grad.item() == 5


def test_an_op_is_declared_like_those_of_the_library(name):
    """An op of one's own can have all that a declaration derives."""

    @flow.register_op(name, out=True, twin=True, on="Tensor", samples="pos(2, 3), by=2.0")
    def power(xp, x, *, by=1.0):
        """Return x to the power `by`.

        by: the exponent.
        """
        return x**by

    power.grad(saves="x")(lambda F, ctx, dy: dy * ctx.by * ctx.x ** (ctx.by - 1))
    parameters = inspect.signature(power).parameters
    assert [*parameters] == ["x", "by", "out"] and parameters["by"].default == 1.0
    assert "The exponent." in power.__doc__ and "Receives the result." in power.__doc__
    out = flow.empty(1)
    assert power(flow.tensor([3.0]), by=2.0, out=out) is out and out.item() == 9
    x = flow.tensor([3.0], requires_grad=True)
    y = x * 1
    FUNCTORS.get(f"{name}_")(y, by=2.0).backward()
    assert y.item() == 9 and x.grad.item() == 6
    check_op(power, samples(name))
    FUNCTORS.remove(f"{name}_")


def test_two_inputs_and_two_outputs(name):
    op = flow.register_op(name)(lambda xp, x, y: (x + y, x * y))
    op.grad(saves="x, y")(lambda F, ctx, da, db: (da + db * ctx.y, da + db * ctx.x))
    check_op(op, [Sample(np.array([0.5, 2.0]), np.array([1.5, -1.0]))])


def test_an_op_is_copied_and_pickled_by_name_or_not_at_all(softsign):
    assert copy.copy(softsign)([1.0]).tolist() == [0.5]
    try:
        restored = pickle.loads(pickle.dumps(softsign))
    except (pickle.PicklingError, AttributeError, TypeError):
        return
    assert restored([1.0]).tolist() == [0.5]


class TestDtypesOfInputs:
    """Floats meet in one dtype; integers and bools are indices and masks."""

    def test_indices(self, name):
        op = flow.register_op(name)(lambda xp, x, index: x[index])

        @op.grad(wrt="x", saves="x.shape, index")
        def op_dx(F, ctx, dy):
            return F.zeros(ctx.x_shape, dtype=dy.dtype).index_add(0, ctx.index, dy)

        check_op(op, [Sample(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]))])
        assert op(flow.tensor([1.0, 2.0, 4.0]), [2, 0]).tolist() == [4.0, 1.0]

    @pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "bool"])
    @pytest.mark.parametrize("inputs", [2, 3])
    def test_they_keep_their_own(self, name, dtype, inputs):
        seen = []

        @flow.register_op(name)
        def two(xp, x, y):
            seen[:] = [x.dtype, y.dtype]
            return x * 1

        @flow.register_op(f"{name}_3")
        def three(xp, x, y, z):
            seen[:] = [x.dtype, y.dtype]
            return x * z

        x, y = flow.ones(2), flow.ones(2, dtype=getattr(flow, dtype))
        for first, second in ((x, y), (y, x)):
            two(first, second) if inputs == 2 else three(first, second, 2.0)
            assert seen == [first.dtype, second.dtype]
        forget_op(f"{name}_3")

    def test_a_mask_and_a_segment(self, name):
        op = flow.register_op(name)(lambda xp, x, mask: xp.where(mask, x, 0 * x))
        assert op(flow.tensor([1.0, 2.0]), [True, False]).tolist() == [1.0, 0.0]
        count = flow.register_op(f"{name}_2")(
            lambda xp, weights, at: xp.bincount(at, weights).astype(weights.dtype)
        )
        assert count(flow.tensor([1.0, 2.0, 3.0]), flow.tensor([1, 0, 1])).tolist() == [2.0, 4.0]
        forget_op(f"{name}_2")

    def test_unless_the_op_says_otherwise(self, name):
        op = flow.register_op(name, promotes=True)(lambda xp, x, y: x * y)
        assert op(flow.ones(2), flow.arange(2)).dtype == flow.float32
        assert op(flow.ones(2), flow.tensor([True, False])).tolist() == [1.0, 0.0]
        three = flow.register_op(f"{name}_3", promotes=True)(lambda xp, x, y, z: x * y + z)
        assert three(flow.ones(2), flow.arange(2), flow.arange(2)).dtype == flow.float32
        forget_op(f"{name}_3")

    def test_in_a_program_and_compiled(self, name):
        op = flow.register_op(name)(lambda xp, x, index: x[index])
        x, index = flow.tensor([1.0, 2.0, 4.0]), flow.tensor([2, 0])
        step = flow.compile(lambda x, index: op(x, index) * 2)
        for _ in range(3):
            assert step(x, index).tolist() == [8.0, 2.0]


class TestRegistration:
    @pytest.mark.parametrize("bad", [None, 3, "", "two words", "a.b", "lambda", b"x"])
    def test_names(self, bad):
        with pytest.raises(RegistrationError, match="takes the op's name, an identifier"):
            flow.register_op(bad)

    @pytest.mark.parametrize(
        "kernel",
        [
            lambda x: x,
            lambda: 1,
            lambda x, y: x + y,
            lambda *xs: xs,
            lambda xp, x, **options: x,
            lambda *, xp: xp,
            np.sin,
            "text",
        ],
    )
    def test_what_is_no_kernel(self, name, kernel):
        for register in (flow.register_op, flow.register_kernel):
            with pytest.raises(RegistrationError, match="has to be a function kernel"):
                register(name)(kernel)
            assert name not in KERNELS and name not in FUNCTORS

    @pytest.mark.parametrize("saves", [("x", "y"), ["x", "y"], "x, y", "x,y"])
    def test_saves_as_text_or_sequence(self, name, saves):
        op = flow.register_op(name)(lambda xp, x: x * x)
        op.grad(saves=saves)(lambda F, ctx, dz: dz * (ctx.x + ctx.y / ctx.x))
        check_op(op, [Sample(np.array([0.5, 2.0]))], degenerate=False)

    def test_wrong_names_are_refused_at_once_and_leave_nothing(self, name):
        op = flow.register_op(name)(lambda xp, x, y: x * y)
        for options in ({"wrt": "q"}, {"saves": "q"}, {"wrt": "x", "saves": ("y", "q")}):
            with pytest.raises(RegistrationError, match="'q'"):
                op.grad(**options)(lambda F, ctx, dz: dz)
        assert name not in GRAD_FUNCS
        op.grad(wrt="x", saves="y")(lambda F, ctx, dz: dz * ctx.y)
        with pytest.raises(RegistrationError, match="'q'"):
            op.grad(wrt="y", saves="q")(lambda F, ctx, dz: dz)
        op.grad(wrt="y", saves="x")(lambda F, ctx, dz: dz * ctx.x)
        check_op(op, [Sample(np.array([0.5]), np.array([2.0]))])

    def test_a_written_input_is_not_saved(self, name):
        op = flow.register_op(name, mutates="x")(lambda xp, x: xp.multiply(x, x, out=x))
        with pytest.raises(RegistrationError, match="the kernel writes x"):
            op.grad(saves="x")(lambda F, ctx, dy: dy * 2 * ctx.x)
        op.grad(saves="x.shape, y")(lambda F, ctx, dy: dy * 2 * F.sqrt(ctx.y))
        check_op(op, [Sample(np.array([0.5, 2.0]))])

    def test_grad_without_parentheses(self, name):
        op = flow.register_op(name)(lambda xp, x: x * 3)

        @op.grad
        def rule(F, ctx, dy):
            return dy * 3

        check_op(op, [Sample(np.array([0.5]))])
        assert rule.__name__ == "rule"

    @pytest.mark.parametrize(
        "value", [flow.ones(2), [1.0, flow.ones(())], (flow.ones(1, requires_grad=True),)]
    )
    def test_a_tensor_is_no_attribute(self, name, value):
        for kernel in (lambda xp, x, *, by: x, lambda xp, x, y, z, *, by: x * y):
            op = flow.register_op(name)(kernel)
            inputs = [flow.ones(2)] * len(op.op_expr.schema.inputs)
            with pytest.raises(flow.errors.ArgumentTypeError, match=f"{name}.*'by'.*an input"):
                op(*inputs, by=value)
            forget_op(name)

    def test_methods(self, name):
        """`on="Tensor"` gives a method, a name that Tensor has is refused, and it can go."""
        op = flow.register_op(name, on=f"Tensor flow.{name}_too", twin=True)(lambda xp, x: x * 3)
        op.grad()(lambda F, ctx, dy: dy * 3)
        x = flow.tensor([2.0], requires_grad=True)
        getattr(x, name)().backward()
        assert x.grad.tolist() == [3.0]
        y = flow.ones(1)
        assert getattr(y, f"{name}_")() is y and y.tolist() == [3.0]
        forget_op(name)
        assert not hasattr(flow.Tensor, name) and not hasattr(flow.Tensor, f"{name}_")
        with pytest.raises(RegistrationError, match="Tensor has an attribute 'relu'"):
            flow.register_op(name, on="Tensor.relu Tensor")(lambda xp, x: x * 3)
        assert name not in KERNELS and name not in FUNCTORS


class TestNotebook:
    """A cell that runs again replaces its op; in a file a second op of a name is an error."""

    CELL = """
@flow.register_op({name!r})
def kernel(xp, x):
    return x * {factor}
@kernel.grad()
def rule(F, ctx, dy):
    return dy * {factor}
"""

    def run(self, name, factor, text=CELL, file="<cell>", scope=None):
        scope = {"flow": flow, "__name__": "__main__"} if scope is None else scope
        exec(compile(text.format(name=name, factor=factor), file, "exec"), scope)
        return scope["kernel"]

    def test_the_newer_cell_counts(self, name):
        old = self.run(name, 2.0)
        x = flow.tensor([1.0], requires_grad=True)
        y = old(x)
        new = self.run(name, 3.0)
        assert new(x).item() == 3.0 and flow.autograd.grad(new(x), x)[0].item() == 3.0
        assert flow.autograd.grad(y, x)[0].item() == 2.0  # recorded before
        assert flow.func.grad(new)(flow.tensor(1.0)).item() == 3.0

    def test_the_rule_alone(self, name):
        scope = {"flow": flow, "__name__": "__main__"}
        op = self.run(name, 2.0, scope=scope)
        x = flow.tensor([1.0], requires_grad=True)
        assert flow.autograd.grad(op(x), x)[0].item() == 2.0
        rule = self.CELL.partition("    return x * {factor}")[2]
        self.run(name, 5.0, rule, scope=scope)
        assert flow.autograd.grad(op(x), x)[0].item() == 5.0

    def test_a_compiled_function_sees_the_new_op(self, name):
        scope = {"flow": flow, "__name__": "__main__"}
        self.run(name, 2.0, scope=scope)
        step = flow.compile(lambda x: scope["kernel"](x) + 1)
        x = flow.ones(1)
        assert [step(x).item() for _ in range(3)] == [3.0] * 3
        self.run(name, 3.0, scope=scope)
        assert [step(x).item() for _ in range(3)] == [4.0] * 3

    def test_classes_and_kernels(self, name):
        text = """
@flow.register_op({name!r})
def kernel(xp, x):
    return x * {factor}
@flow.register_grad_func({name!r})
class Rule(flow.OpExprGradFunction):
    def apply(self, F, state, out_grads):
        return getattr(F, {name!r} + "_grad")(out_grads[0])
@flow.register_kernel({name!r} + "_grad")
def kernel_grad(xp, dy):
    return dy * {factor}
"""
        for factor in (2.0, 3.0):
            op = self.run(name, factor, text)
            x = flow.tensor([1.0], requires_grad=True)
            assert flow.autograd.grad(op(x), x)[0].item() == factor
        KERNELS.remove(f"{name}_grad")

    def test_another_function_or_a_file(self, name):
        self.run(name, 2.0)
        with pytest.raises(RegistrationError, match="already"):
            flow.register_op(name)(lambda xp, x: x)
        with pytest.raises(RegistrationError, match="already"):
            self.run(name, 3.0, scope={"flow": flow, "__name__": "other"})
        with pytest.raises(RegistrationError, match="already"):
            self.run(name, 3.0, file=__file__)


class TestRulesGetTensors:
    """All that works on tensors works in a rule, whether the backward pass is recorded or not."""

    RULES = {
        "functor with defaults": lambda F, ctx, dy: F.sum(dy) * F.softmax(ctx.x, 0),
        "method": lambda F, ctx, dy: dy.sum() * ctx.x.softmax(dim=0),
        "function of the library": lambda F, ctx, dy: flow.sum(dy) * flow.softmax(ctx.x, dim=0),
        "index": lambda F, ctx, dy: (dy[..., None] * ctx.x.softmax(-1)[None, :]).sum(0),
        "list": lambda F, ctx, dy: F.cat([dy[:1], dy[1:]]).sum() * F.softmax(ctx.x, dim=0),
        "positional": lambda F, ctx, dy: F.sum(dy, 0) * ctx.x.exp() / F.sum(ctx.x.exp(), 0),
    }

    @pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
    def test_of_logsumexp(self, name, rule):
        """The derivative is softmax(x) for each of the equal outputs."""

        @flow.register_op(name)
        def op(xp, x):
            return xp.log(xp.exp(x).sum()) + xp.zeros_like(x)

        op.grad(saves="x")(rule)
        check_op(op, [Sample(np.array([0.5, -1.0, 2.0]))], degenerate=False)

    @pytest.mark.parametrize("create_graph", [False, True])
    def test_an_integer_that_is_saved(self, name, create_graph):
        """int64 times float32 is float32 on tensors; on NumPy's arrays it is float64."""
        op = flow.register_op(name)(lambda xp, x, n: x * n.astype(x.dtype))
        op.grad(wrt="x", saves="n")(lambda F, ctx, dy: dy * ctx.n)
        x = flow.ones(2, requires_grad=True)
        (g,) = flow.autograd.grad(op(x, flow.arange(2)).sum(), x, create_graph=create_graph)
        assert g.tolist() == [0.0, 1.0] and g.dtype == flow.float32

    @pytest.mark.parametrize("create_graph", [False, True])
    @pytest.mark.parametrize("what", ["dy", "ctx.x"])
    def test_a_write_is_noticed(self, name, create_graph, what):
        op = flow.register_op(name)(lambda xp, x: x * x)

        @op.grad(saves="x")
        def rule(F, ctx, dy):
            (dy if what == "dy" else ctx.x).mul_(2)
            return dy

        x = flow.ones(2, requires_grad=True) * 1
        with pytest.raises(FlowError, match=f"wrote into .*{'gradient' if what == 'dy' else what}"):
            flow.autograd.grad(op(x), x, flow.ones(2), create_graph=create_graph)

    @pytest.mark.parametrize("returned", [2.0, "text", np.ones(2)])
    def test_something_else_than_tensors_is_returned(self, name, returned):
        op = flow.register_op(name)(lambda xp, x: x * 2)
        op.grad()(lambda F, ctx, dy: returned)
        x = flow.ones(2, requires_grad=True)
        for create_graph in (False, True):
            with pytest.raises(GradientError, match=f"{name}.*{type(returned).__name__}"):
                flow.autograd.grad(op(x).sum(), x, create_graph=create_graph)
