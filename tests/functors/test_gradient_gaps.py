"""Cases that the mutations of gradient rules showed to be untested; see docs/testing.md."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.testing import Sample, check_op

F = flow.nn.functional
RNG = np.random.default_rng(0)
X = np.array([[-1.7, 0.4, 2.3], [1.2, -0.6, 3.1]])
Y = np.array([[1.1, -0.7, 0.9], [-2.2, 1.6, 0.8]])
ROW = np.array([0.6, -1.3, 2.2])
POSITIVE = np.array([[0.3, 1.4, 2.5], [0.9, 3.2, 0.6]])
Z = np.array([[0.5 + 1.2j, -0.8 + 0.3j], [1.1 - 0.7j, -0.4 - 1.5j]])


class Ops(flow.Interpreter):
    """Counts the ops that pass."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def apply(self, op_expr, inputs, attrs):
        self.calls[op_expr.op_type_name] += 1
        return self.inner.apply(op_expr, inputs, attrs)


# --- Arithmetic ---------------------------------------------------------------------------------

ARITHMETIC = [
    ("add", [(X, Y), (X, ROW), (X, 2.0)]),
    ("sub", [(X, Y), (ROW, X), (X, 2.0)]),
    ("mul", [(X, Y), (X, ROW), (X, 2.0)]),
    ("div", [(X, Y), (X, ROW), (ROW, X), (X, 2.0)]),
    ("pow", [(POSITIVE, Y), (POSITIVE, ROW), (POSITIVE, 1.5), (X, 3.0), (X, 0.0)]),
    ("neg", [(X,)]),
    ("abs", [(X,)]),
    ("square", [(X,)]),
    ("sqrt", [(POSITIVE,)]),
    ("rsqrt", [(POSITIVE,)]),
    ("reciprocal", [(X,)]),
    ("sign", [(X,)]),
    ("floor", [(X,)]),
    ("ceil", [(X,)]),
    ("trunc", [(X,)]),
    ("round", [(X,)]),
    ("frac", [(X,)]),
    ("floor_divide", [(X, Y), (Y, ROW)]),
    ("fmod", [(X, Y), (Y, ROW), (X, 0.7)]),
    ("remainder", [(X, Y), (Y, ROW), (X, 0.7)]),
    ("maximum", [(X, Y), (X, ROW)]),
    ("minimum", [(X, Y), (X, ROW)]),
    ("clamp_min", [(X, Y), (X, ROW), (X, 0.5)]),
    ("clamp_max", [(X, Y), (X, ROW), (X, 0.5)]),
    ("clamp", [(X, -1.0, 1.5), (X, -POSITIVE, POSITIVE)]),
    ("lerp", [(X, Y, 0.3), (X, ROW, POSITIVE)]),
    ("addcmul", [(X, Y, ROW)]),
    ("addcdiv", [(X, Y, POSITIVE)]),
    ("nan_to_num", [(X,)]),
    ("complex", [(X, Y)]),
]


@pytest.mark.slow(but=20)
@pytest.mark.parametrize(("name", "calls"), ARITHMETIC, ids=[name for name, _ in ARITHMETIC])
def test_arithmetic(name, calls, device):
    check_op(name, [Sample(*arguments) for arguments in calls], device=device)


def test_where(device):
    check_op("where", [Sample(X > 0, X, Y), Sample(X > 0, ROW, Y)], device=device)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign", "angle"])
def test_the_gradient_of_steps_is_zero_and_not_missing(name):
    x = flow.tensor(X, requires_grad=True)
    (dx,) = flow.autograd.grad(getattr(flow, name)(x).sum(), x)
    assert not dx.numpy().any()


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_rounded_division_is_flat(mode):
    check_op("div", [Sample(X, Y, rounding_mode=mode)])
    x, y = flow.tensor(X, requires_grad=True), flow.tensor(Y, requires_grad=True)
    for grad in flow.autograd.grad(flow.div(x, y, rounding_mode=mode).sum(), [x, y]):
        assert not grad.numpy().any()


@pytest.mark.parametrize("name", ["abs", "angle", "real", "imag", "conj"])
def test_parts_of_complex_numbers(name):
    check_op(name, [Sample(Z)])


def test_sign_of_complex_numbers():
    check_op("sgn", [Sample(Z)])


@pytest.mark.parametrize("name", ["square", "reciprocal", "sqrt", "rsqrt", "neg"])
def test_holomorphic(name):
    check_op(name, [Sample(Z)])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_two_complex_numbers(name):
    check_op(name, [Sample(Z, Z.T + 0.3), Sample(Z, POSITIVE[:, :2])])


def test_size_of_a_complex_zero_has_derivatives():
    z = flow.tensor(0j, requires_grad=True)
    (dz,) = flow.autograd.grad(flow.abs(z), z, create_graph=True)
    (ddz,) = flow.autograd.grad(dz.real, z, materialize_grads=True)
    assert (dz.item(), ddz.item()) == (0, 0)


def test_angle_of_a_complex_zero_is_flat():
    z = flow.tensor(0j, requires_grad=True)
    (dz,) = flow.autograd.grad(flow.angle(z), z)
    assert dz.item() == 0


def test_not_finite_numbers_are_replaced_by_constants():
    x = flow.tensor([np.nan, np.inf, -np.inf, 2.0], requires_grad=True)
    y = flow.nan_to_num(x, 0.0, 5.0, -5.0)
    (dx,) = flow.autograd.grad(y.square().sum(), x, create_graph=True)
    (ddx,) = flow.autograd.grad(dx.sum(), x)
    assert dx.tolist() == [0, 0, 0, 4]
    assert ddx.tolist() == [0, 0, 0, 2]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy remarks on every inf and nan
@pytest.mark.parametrize(("base", "slope"), [(0.0, 0.0), (2.0, np.log(2))])
def test_powers_with_an_exponent_of_zero(base, slope):
    x, y = flow.tensor(base, requires_grad=True), flow.tensor(0.0, requires_grad=True)
    dx, dy = flow.autograd.grad(flow.pow(x, y), [x, y])
    assert (dx.item(), dy.item()) == pytest.approx((0.0, slope))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy remarks on every inf and nan
def test_powers_of_zero_are_differentiable_twice():
    x, y = flow.tensor(0.0, requires_grad=True), flow.tensor(2.0, requires_grad=True)
    dx, dy = flow.autograd.grad(flow.pow(x, y), [x, y], create_graph=True)
    assert (dx.item(), dy.item()) == (0, 0)
    ddx, dxdy = flow.autograd.grad(dx, [x, y], retain_graph=True)
    assert (ddx.item(), dxdy.item()) == (2, 0)
    assert [g.item() for g in flow.autograd.grad(dy, [x, y], materialize_grads=True)] == [0, 0]


# --- What is written in place -------------------------------------------------------------------


def test_a_written_tensor_has_the_gradient_of_what_was_written():
    check_op(lambda x, value: (x * 1).copy_(value), [Sample(X, Y), Sample(X, ROW)])
    check_op(lambda x, value: (x * 1).fill_(value.sum()), [Sample(X, ROW)], degenerate=False)


WRITES = [
    lambda x: x.copy_(flow.ones(3, dtype=flow.float64)),
    lambda x: x.fill_(2.0),
    lambda x: x.zero_(),
    lambda x: x.uniform_(),
    lambda x: x.normal_(),
    lambda x: x.bernoulli_(),
]


@pytest.mark.parametrize("write", WRITES)
def test_a_tensor_that_is_overwritten_gets_no_gradient(write):
    x = flow.tensor(ROW, requires_grad=True)
    (dx,) = flow.autograd.grad(write(x * 1).sum(), x)
    assert dx.tolist() == [0, 0, 0]


def test_the_gradient_of_a_replaced_number_does_not_depend_on_what_arrives():
    x = flow.tensor([np.nan, np.inf, 2.0], requires_grad=True)
    dy = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (dx,) = flow.autograd.grad(flow.nan_to_num(x), x, dy, create_graph=True)
    (ddy,) = flow.autograd.grad(dx.sum(), dy)
    assert (dx.tolist(), ddy.tolist()) == ([0, 0, 3], [0, 0, 1])


def test_what_was_drawn_does_not_depend_on_the_probability():
    p = flow.tensor([0.2, 0.8], requires_grad=True)
    (dp,) = flow.autograd.grad(flow.bernoulli(p).sum(), p)
    assert dp.tolist() == [0, 0]


def test_dropout_scales_the_gradient_as_the_value():
    flow.manual_seed(0)
    x = flow.tensor(np.full(200, 3.0), requires_grad=True)
    y = F.dropout(x, 0.5)
    (dx,) = flow.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(dx.detach().numpy(), y.detach().numpy() / 3)
    assert set(dx.tolist()) == {0.0, 2.0}


def test_a_moved_tensor_gets_its_gradient_back(device):
    x = flow.tensor(ROW, requires_grad=True)
    for create_graph in (False, True):
        moved = (x * x).to(device)
        (dx,) = flow.autograd.grad(
            moved, x, flow.tensor([1.0, 2.0, 3.0], dtype=flow.float64, device=device),
            create_graph=create_graph,
        )  # fmt: skip
        assert dx.device == x.device
        np.testing.assert_allclose(dx.detach().numpy(), 2 * ROW * [1, 2, 3])
    (ddx,) = flow.autograd.grad(dx.sum(), x)
    np.testing.assert_allclose(ddx.numpy(), [2, 4, 6])


# --- Families whose tests look elsewhere --------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_extremum_along_a_dimension_of_a_0d_tensor(name, keepdim):
    check_op(lambda x: getattr(flow, name)(x, 0, keepdim)[0], [Sample(np.array(1.5))])


@pytest.mark.parametrize(("stride", "dilation"), [(2, 2), (1, 1), (3, 2), (2, 1)])
def test_windows_of_max_pool_that_share_an_element(stride, dilation):
    # Two windows choose the 9 where dilation makes them meet.
    x = np.array([[[1.0, 0.5, 9.0, 0.2, 3.0, 0.1, 7.0, 0.4]]])
    samples = [Sample(x, 2, stride, 0, dilation)]
    check_op(lambda *a: F.max_pool1d(*a), samples, degenerate=False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy remarks on every inf and nan
def test_x_log_y_where_x_is_0():
    x = flow.tensor([0.0, 0.0, 0.0, 1.0, 2.0], requires_grad=True)
    y = flow.tensor([-1.0, 0.0, 2.0, -1.0, 3.0], requires_grad=True)
    dx, _ = flow.autograd.grad(flow.xlogy(x, y).sum(), [x, y], create_graph=True)
    expected = [0, 0, np.log(2), np.nan, np.log(3)]
    np.testing.assert_allclose(dx.detach().numpy(), expected, rtol=1e-6)


def test_masked_scatter_of_nothing():
    mask = np.zeros((2, 3), bool)
    check_op("masked_scatter", [Sample(X, mask, np.zeros(0)), Sample(X, mask, ROW)])


def test_the_mean_of_half_precision_numbers_is_differentiated_in_their_dtype():
    """batch_norm computes it in float32."""
    x = flow.tensor(X, dtype=flow.float16, requires_grad=True)
    attrs = {"groups": (*x.shape, 1), "channels": (*x.shape, 1), "eps": 1e-5}
    outputs = dispatch(op_expr("batch_norm"), (x, None, None), attrs)
    (dx,) = flow.autograd.grad(outputs[4].sum(), x)
    assert (dx.dtype, dx.tolist()) == (flow.float16, [[0.5] * 3] * 2)


def test_a_frozen_weight_of_rms_norm_costs_nothing():
    """Its gradient, one product, is not computed."""

    def products(frozen):
        x = flow.tensor(X, requires_grad=True)
        weight = flow.tensor(ROW, requires_grad=not frozen)
        y = F.rms_norm(x, (3,), weight)
        with flow.push_interpreter(Ops()) as ops:
            y.sum().backward()
        return ops.calls["mul"]

    assert products(frozen=True) == products(frozen=False) - 1


@pytest.mark.parametrize("needs", [(1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1)])
@pytest.mark.parametrize("name", ["layer_norm", "batch_norm"])
def test_frozen_parameters_of_a_normalization_cost_nothing(name, needs):
    """The kernel of the gradient gives those that are needed, and no others."""
    x = X if name == "layer_norm" else X.reshape(3, 2)
    size = x.shape[1]
    arrays = x, np.ones(size), np.ones(size)
    x, weight, bias = [
        flow.tensor(array, requires_grad=bool(need))
        for array, need in zip(arrays, needs, strict=True)
    ]
    if name == "layer_norm":
        y = F.layer_norm(x, (size,), weight, bias)
    else:
        y = F.batch_norm(x, None, None, weight, bias, training=True)

    class Outputs(flow.Interpreter):
        made = None

        def apply(self, op_expr, inputs, attrs):
            outputs = self.inner.apply(op_expr, inputs, attrs)
            if op_expr.op_type_name == "affine_norm_grad":
                self.made = outputs
            return outputs

    with flow.push_interpreter(Outputs()) as outputs:
        y.sum().backward()
    assert (len(outputs.made) if isinstance(outputs.made, tuple) else 1) == sum(needs)
    assert [leaf.grad is not None for leaf in (x, weight, bias)] == list(map(bool, needs))
