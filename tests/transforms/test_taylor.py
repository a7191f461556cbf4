"""Series: coefficients beside closed forms and nested first derivatives, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

func = flow.func
F = flow.nn.functional
Function = Callable[[Any], Any]
RNG = np.random.default_rng(7)
SQUARE = RNG.standard_normal((3, 3)) + 3 * np.eye(3)
VECTOR = RNG.uniform(0.3, 0.9, 4)


def double(value: Any) -> flow.Tensor:
    return flow.tensor(value, dtype=flow.float64)


def nested(function: Function, x: Any, v: Any, order: int) -> list[np.ndarray]:
    """Return the derivatives of function(x + t v) at 0 by nested first derivatives."""
    found, current = [function(x).numpy()], function
    for _ in range(order):
        current = (lambda g: lambda x: func.jvp(g, (x,), (v,))[1])(current)
        found.append(current(x).numpy())
    return found


# --- Closed forms ---------------------------------------------------------------------------------

CLOSED: dict[str, tuple[Function, float, Callable[[int], float]]] = {
    "exp": (flow.exp, 0.3, lambda k: math.exp(0.3) / math.factorial(k)),
    "log": (flow.log, 2.0, lambda k: -((-0.5) ** k) / k if k else math.log(2)),
    "sin": (flow.sin, 0.4, lambda k: math.sin(0.4 + k * math.pi / 2) / math.factorial(k)),
    "cos": (flow.cos, 0.4, lambda k: math.cos(0.4 + k * math.pi / 2) / math.factorial(k)),
    "reciprocal": (lambda x: 1 / x, 2.0, lambda k: (-1) ** k / 2 ** (k + 1)),
    "power": (lambda x: x**7, 2.0, lambda k: math.comb(7, k) * 2 ** (7 - k) if k < 8 else 0),
    "sqrt": (flow.sqrt, 1.0, lambda k: math.prod(0.5 - j for j in range(k)) / math.factorial(k)),
    "half power": (
        lambda x: x**2.5,
        1.0,
        lambda k: math.prod(2.5 - j for j in range(k)) / math.factorial(k),
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_coefficients_are_those_of_the_closed_form(name: str) -> None:
    function, at, coefficient = CLOSED[name]
    made = func.taylor(function, double(at), 10)
    expected = [coefficient(k) for k in range(11)]
    np.testing.assert_allclose([c.item() for c in made], expected, rtol=1e-12, atol=1e-12)


def test_whole_powers_have_series_at_zero() -> None:
    made = func.taylor(lambda x: x**3 + x**2, double(0.0), 4)
    assert [c.item() for c in made] == [0.0, 0.0, 1.0, 1.0, 0.0]


# --- Nested first derivatives ---------------------------------------------------------------------


def network(x: Any) -> Any:
    w = double(RNG_WEIGHTS[0])
    hidden = flow.tanh(x @ w)
    return F.silu(hidden @ double(RNG_WEIGHTS[1])).sum()


RNG_WEIGHTS = (RNG.standard_normal((4, 5)), RNG.standard_normal((5, 3)))

FUNCTIONS: dict[str, tuple[Function, Any]] = {
    "tanh": (flow.tanh, VECTOR),
    "sigmoid": (flow.sigmoid, VECTOR),
    "erf": (flow.erf, VECTOR),
    "gelu": (F.gelu, VECTOR),
    "softplus": (F.softplus, VECTOR),
    "elu": (F.elu, -VECTOR),
    "mish": (F.mish, VECTOR),
    "log_softmax": (lambda x: F.log_softmax(x, 0), VECTOR),
    "softmax": (lambda x: flow.softmax(x, 0), VECTOR),
    "logsumexp": (lambda x: flow.logsumexp(x, 0), VECTOR),
    "atan2": (lambda x: flow.atan2(x, 1 + x * x), VECTOR),
    "xlogy": (lambda x: flow.xlogy(x, x), VECTOR),
    "both powers": (lambda x: x**x, VECTOR),
    "prod": (lambda x: x.prod(), VECTOR),
    "cumprod": (lambda x: x.cumprod(0), VECTOR),
    "var": (lambda x: x.var(), VECTOR),
    "std": (lambda x: x.std(), VECTOR),
    "norm": (lambda x: x.norm(), VECTOR),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), VECTOR),
    "quotients": (lambda x: x / (1 + x.sum()) / x.flip(0), VECTOR),
    "inverse": (lambda x: flow.linalg.inv(x), SQUARE),
    "solve": (lambda x: flow.linalg.solve(x, x[0]), SQUARE),
    "cholesky": (lambda x: flow.linalg.cholesky(x @ x.mT), SQUARE),
    "determinant": (lambda x: flow.linalg.det(x), SQUARE),
    "slogdet": (lambda x: flow.linalg.slogdet(x)[1], SQUARE),
    "matmul": (lambda x: x @ x @ x.mT, SQUARE),
    "einsum": (lambda x: flow.einsum("ij,jk,ki->", x, x, x), SQUARE),
    "sorted": (lambda x: x.sort()[0] * x, VECTOR),
    "largest": (lambda x: x.max() * x.amax() + x.topk(2)[0].sum(), VECTOR),
    "clamped": (lambda x: (x * x).clamp(0.2, 0.5) * x, VECTOR),
    "relu": (lambda x: flow.relu(x - 0.5) ** 3, VECTOR),
    "where": (lambda x: flow.where(x > 0.5, x.exp(), x.sin()), VECTOR),
    "indexed": (lambda x: x[flow.tensor([0, 2, 2])] * x[:3], VECTOR),
    "network": (network, VECTOR),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_series_agree_with_nested_first_derivatives(name: str) -> None:
    function, at = FUNCTIONS[name]
    x, v = double(at), double(RNG.standard_normal(at.shape) * 0.4)
    made = func.taylor(function, x, 4, v)
    for k, theirs in enumerate(nested(function, x, v, 4)):
        scale = 1 + np.abs(theirs).max()
        ours = made[k].numpy() * math.factorial(k)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * scale, err_msg=f"order {k}")


def test_series_of_complex_numbers() -> None:
    x = flow.tensor([0.3 + 0.4j, -0.2 + 0.7j], dtype=flow.complex128)
    v = flow.tensor([1.0 - 0.5j, 0.25j], dtype=flow.complex128)
    for function in (flow.exp, flow.sin, lambda x: x**3 / (1 + x), flow.abs, flow.angle):
        made = func.taylor(function, x, 3, v)
        for k, theirs in enumerate(nested(function, x, v, 3)):
            np.testing.assert_allclose(made[k].numpy() * math.factorial(k), theirs, atol=1e-10)


# --- What it costs --------------------------------------------------------------------------------


class Count(flow.Interpreter):
    calls = 0

    def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
        self.calls += 1
        return super().apply(op_expr, inputs, attrs)


def ops_of(function: Function, x: Any, order: int) -> int:
    count = Count()
    with flow.push_interpreter(count):
        func.taylor(function, x, order)
    return count.calls


POLYNOMIAL = (
    "tanh sigmoid gelu softplus elu mish log_softmax softmax logsumexp prod cumprod var std "
    "quotients inverse solve cholesky matmul sorted clamped relu where network"
).split()


@pytest.mark.parametrize("name", POLYNOMIAL)
def test_the_number_of_ops_is_polynomial_in_the_order(name: str) -> None:
    function, at = FUNCTIONS[name]
    # Nested first derivatives take 2⁶ = 64 times as many ops for six orders more.
    low, high = (ops_of(function, double(at), order) for order in (6, 12))
    assert high <= 20 * low, (low, high)


# --- The functions themselves ---------------------------------------------------------------------


def test_jet_gives_derivatives_along_a_curve() -> None:
    # x(t) = 1 + t + t²: x' = 1, x'' = 2; of x³ the derivatives at 0 are 3, 6 + 6 = 12.
    value, derivatives = func.jet(lambda x: x**3, (double(1.0),), ((double(1.0), double(2.0)),))
    assert value.item() == 1.0
    assert [d.item() for d in derivatives] == [3.0, 12.0]


def test_jet_of_several_arguments_and_nested_results() -> None:
    x, y = double(2.0), double(3.0)
    value, derivatives = func.jet(
        lambda x, y: {"product": x * y, "sum": (x + y,)}, (x, y), ((1.0, 0.0), (1.0, 0.0))
    )
    assert value["product"].item() == 6.0
    assert [d.item() for d in derivatives["product"]] == [5.0, 2.0]
    assert [d.item() for d in derivatives["sum"][0]] == [2.0, 0.0]


def test_a_result_without_the_argument_is_constant() -> None:
    made = func.taylor(lambda x: flow.ones(2), double(1.0), 2)
    assert [c.tolist() for c in made] == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_order_zero_is_the_value() -> None:
    assert [c.item() for c in func.taylor(flow.exp, double(0.0), 0)] == [1.0]


def test_series_over_batches_and_gradients_of_series() -> None:
    xs = double([0.2, 0.5, 0.9])
    second = lambda x: func.taylor(flow.sin, x, 2)[2]  # noqa: E731
    np.testing.assert_allclose(flow.vmap(second)(xs).numpy(), -np.sin(xs.numpy()) / 2, rtol=1e-12)
    slopes = flow.vmap(func.grad(second))(xs)
    np.testing.assert_allclose(slopes.numpy(), -np.cos(xs.numpy()) / 2, rtol=1e-12)


def test_parameters_get_gradients_through_a_series() -> None:
    w = double([0.7, -0.3]).requires_grad_()
    third = func.taylor(lambda x: (w[0] * x).exp() * w[1], double(0.5), 3)[3]
    third.backward()
    a, b = 0.7, -0.3
    slope = b * math.exp(a * 0.5) * (3 * a**2 + 0.5 * a**3) / 6
    np.testing.assert_allclose(w.grad.numpy(), [slope, a**3 * math.exp(a * 0.5) / 6], rtol=1e-12)


def test_the_laplacian_and_the_divergence() -> None:
    x = double(VECTOR)
    made = func.laplacian(lambda x: (x**3).sum() * x.prod())(x)
    trace = np.trace(func.hessian(lambda x: (x**3).sum() * x.prod())(x).numpy())
    np.testing.assert_allclose(made.item(), trace, rtol=1e-10)
    field = lambda x: x * x.sum() + x.flip(0)  # noqa: E731
    trace = np.trace(func.jacrev(field)(x).numpy())
    np.testing.assert_allclose(func.divergence(field)(x).item(), trace, rtol=1e-12)


@pytest.mark.parametrize("estimator", ["rademacher", "gaussian"])
def test_estimators_are_unbiased(estimator: str) -> None:
    flow.manual_seed(4)
    x = double(VECTOR)
    square = lambda x: (x.sum() ** 2) + (x**2).sum()  # noqa: E731
    made = func.laplacian(square, estimator=estimator, samples=4000)(x).item()
    assert made == pytest.approx(2 * 4 + 2 * 4, rel=0.1)
    made = func.divergence(func.grad(square), estimator=estimator, samples=4000)(x).item()
    assert made == pytest.approx(2 * 4 + 2 * 4, rel=0.1)


def test_bad_arguments_are_named() -> None:
    x = double(1.0)
    with pytest.raises(flow.errors.ArgumentError, match=r"taylor.*'order'.*-1"):
        func.taylor(flow.exp, x, -1)
    with pytest.raises(flow.errors.ShapeError, match=r"taylor.*tangents"):
        func.taylor(flow.exp, x, 1, flow.ones(2))
    with pytest.raises(flow.errors.ArgumentError, match=r"jet.*'series'"):
        func.jet(flow.exp, (x,), ())
    with pytest.raises(flow.errors.GradientError, match=r"taylor.*float"):
        func.taylor(flow.exp, flow.tensor(1), 1)
    with pytest.raises(flow.errors.ArgumentError, match=r"laplacian.*'estimator'"):
        func.laplacian(flow.exp, estimator="exact")(x)
    with pytest.raises(flow.errors.ShapeError, match=r"divergence.*'func'"):
        func.divergence(lambda x: x.sum())(flow.ones(2))
