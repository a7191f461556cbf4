"""Transforms inside of transforms, in every order, and over the rest of the library."""

from __future__ import annotations

import gc
import itertools
import math
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.transforms.levels import LevelArray

func = flow.func
Function = Callable[[Any], Any]


def double(value: Any) -> flow.Tensor:
    return flow.tensor(value, dtype=flow.float64)


# --- All orders of three, of a scalar function whose derivatives are known ------------------------

ONE = double(1.0)


def _over_batch(f: Function) -> Function:
    return lambda x: flow.vmap(f)(flow.stack([x, x + 1, x - 1]))[0]


# Each takes a function of a scalar to one of its derivatives; the number says which.
TRANSFORMS: dict[str, tuple[Callable[[Function], Function], int]] = {
    "grad": (func.grad, 1),
    "vjp": (lambda f: lambda x: func.vjp(f, x)[1](ONE)[0], 1),
    "jvp": (lambda f: lambda x: func.jvp(f, (x,), (ONE,))[1], 1),
    "jacrev": (func.jacrev, 1),
    "jacfwd": (func.jacfwd, 1),
    "linearize": (lambda f: lambda x: func.linearize(f, x)[1](ONE), 1),
    "hessian": (func.hessian, 2),
    "jet": (lambda f: lambda x: func.jet(f, (x,), ((1.0, 0.0),))[1][1], 2),
    "laplacian": (func.laplacian, 2),
    "vmap": (_over_batch, 0),
    "value": (lambda f: lambda x: func.grad_and_value(f)(x)[1], 0),
    "functional": (
        lambda f: lambda x: flow.autograd.functional.jvp(f, x, ONE, create_graph=True)[1],
        1,
    ),
}


def base(x: Any) -> Any:
    return (x * 0.7).exp() * 2 + x**5


def truth(order: int, x: float) -> float:
    power = math.prod(5 - j for j in range(order)) * x ** (5 - order) if order <= 5 else 0
    return 2 * 0.7**order * math.exp(0.7 * x) + power


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_transforms_nest_in_every_order(outer: str) -> None:
    for names in itertools.product([outer], TRANSFORMS, TRANSFORMS):
        function, order = base, 0
        for name in reversed(names):
            transform, more = TRANSFORMS[name]
            function, order = transform(function), order + more
        made = function(double(1.3))
        assert made.item() == pytest.approx(truth(order, 1.3), rel=1e-11), names
        assert "functional" in names or not made.requires_grad, names
        assert not isinstance(made._data, LevelArray), names


# --- Perturbations stay apart ---------------------------------------------------------------------


def test_an_inner_derivative_does_not_see_the_outer_variable() -> None:
    # d/dx [x · d/dy (x + y)] = 1, the example of perturbation confusion (Siskind and Pearlmutter).
    for outer, inner in itertools.product(
        ["grad", "jvp", "jacrev", "jacfwd", "linearize"], repeat=2
    ):
        slope = lambda f, name=inner: TRANSFORMS[name][0](f)  # noqa: E731
        function = lambda x: x * slope(lambda y: x + y)(double(1.0))  # noqa: E731
        assert TRANSFORMS[outer][0](function)(double(1.0)).item() == 1.0, (outer, inner)


def test_hessians_of_several_arguments_in_both_orders() -> None:
    f = lambda x, y: (x * y.sin()).sum() * x[0]  # noqa: E731
    x, y = double([0.3, -0.7]), double([1.1, 0.4])
    made = [
        outer(inner(f, argnums=(0, 1)), argnums=(0, 1))(x, y)
        for outer, inner in itertools.product((func.jacrev, func.jacfwd), repeat=2)
    ]
    for other in made[1:]:
        for row, theirs in zip(made[0], other, strict=True):
            for a, b in zip(row, theirs, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


# --- Modules, and gradients by their parameters ---------------------------------------------------


class Net(flow.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = flow.nn.Linear(3, 8).double()
        self.norm = flow.nn.LayerNorm(8).double()
        self.last = flow.nn.Linear(8, 2).double()

    def forward(self, x: Any) -> Any:
        return self.last(flow.tanh(self.norm(self.first(x))))


@pytest.fixture
def net() -> Net:
    flow.manual_seed(0)
    return Net()


def test_per_sample_gradients_are_those_of_a_loop(net: Net) -> None:
    x, y = flow.randn(5, 3, dtype=flow.float64), flow.randn(5, 2, dtype=flow.float64)
    weights = dict(net.named_parameters())

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return ((func.functional_call(net, weights, (x,)) - y) ** 2).sum()

    made = flow.vmap(func.grad(loss), (None, 0, 0))(weights, x, y)
    for k in range(5):
        net.zero_grad()
        loss(weights, x[k], y[k]).backward()
        for name, parameter in net.named_parameters():
            np.testing.assert_allclose(
                made[name][k].detach().numpy(), parameter.grad.numpy(), rtol=1e-10, atol=1e-12
            )


def test_backward_through_a_vmapped_function_reaches_captured_parameters(net: Net) -> None:
    x = flow.randn(5, 3, dtype=flow.float64)
    flow.vmap(lambda v: net(v).square().sum())(x).sum().backward()
    made = {name: p.grad.clone() for name, p in net.named_parameters()}
    net.zero_grad()
    net(x).square().sum().backward()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(made[name].numpy(), p.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_a_second_derivative_through_a_vmapped_function() -> None:
    x = double([0.2, 0.5]).requires_grad_()
    y = flow.vmap(lambda v: v**3)(x).sum()
    (first,) = flow.autograd.grad(y, x, create_graph=True)
    (second,) = flow.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), 6 * x.detach().numpy())


def test_an_ensemble_is_a_batch_of_modules() -> None:
    nets = [Net() for _ in range(4)]
    parameters, buffers = func.stack_module_state(nets)
    x = flow.randn(6, 3, dtype=flow.float64)
    call = lambda p, b: func.functional_call(nets[0], (p, b), (x,))  # noqa: E731
    made = flow.vmap(call)(parameters, buffers)
    for k, each in enumerate(nets):
        np.testing.assert_allclose(made[k].detach().numpy(), each(x).detach().numpy(), rtol=1e-12)


def test_gradients_by_adaptation_over_tasks() -> None:
    w = double([0.5, -0.3])
    xs, ys = flow.randn(4, 2, dtype=flow.float64), flow.randn(4, dtype=flow.float64)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return ((w * x).sum().sin() - y) ** 2

    def adapted(w: Any, x: Any, y: Any) -> Any:
        return loss(w - 0.1 * func.grad(loss)(w, x, y), x, y)

    made = func.grad(lambda w: flow.vmap(adapted, (None, 0, 0))(w, xs, ys).mean())(w)
    rows = [func.grad(adapted)(w, x, y).numpy() for x, y in zip(xs, ys, strict=True)]
    np.testing.assert_allclose(made.numpy(), np.mean(rows, 0), rtol=1e-10)


# --- Writes, views, hooks, checkpoints, random numbers --------------------------------------------


def written(x: Any) -> Any:
    """Square by writes: in place, through views, and into a new tensor."""
    y = x.clone()
    y.mul_(x)
    y[0] = y[0] * 2
    y[1:].add_(x[1:])
    z = flow.zeros_like(x)
    z[:2] = y[:2]
    z[2:].copy_(y[2:] * 3)
    return z


def plainly(x: Any) -> Any:
    y = x * x
    y = flow.cat([y[:1] * 2, y[1:] + x[1:]])
    return flow.cat([y[:2], y[2:] * 3])


@pytest.mark.parametrize("name", ["jacrev", "jacfwd", "hessian", "vmap", "both"])
def test_writes_in_place_are_followed(name: str) -> None:
    apply: dict[str, Callable[[Function], Any]] = {
        "jacrev": lambda f: func.jacrev(f)(double([0.3, 0.5, 0.7, 0.9])),
        "jacfwd": lambda f: func.jacfwd(f)(double([0.3, 0.5, 0.7, 0.9])),
        "hessian": lambda f: func.hessian(lambda x: f(x).prod())(double([0.3, 0.5, 0.7, 0.9])),
        "vmap": lambda f: flow.vmap(f)(flow.arange(12, dtype=flow.float64).reshape(3, 4)),
        "both": lambda f: flow.vmap(func.jacfwd(f))(
            flow.arange(12, dtype=flow.float64).reshape(3, 4)
        ),
    }
    ours, theirs = apply[name](written), apply[name](plainly)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_hooks_see_gradients_of_one_entry() -> None:
    shapes: list[tuple[int, ...]] = []

    def slope(x: Any) -> Any:
        def f(x: Any) -> Any:
            y = x * 2
            y.register_hook(lambda g: shapes.append(tuple(g.shape)) or g * 10)
            return (y**2).sum()

        return func.grad(f)(x)

    made = flow.vmap(slope)(double([[1.0, 2.0], [3.0, 4.0]]))
    assert shapes == [(2,)]
    np.testing.assert_allclose(made.numpy(), [[80, 160], [240, 320]])


def test_a_checkpoint_inside_of_transforms() -> None:
    part = lambda x: (x.sin() * x).sum()  # noqa: E731
    checked = lambda x: flow.utils.checkpoint.checkpoint(part, x, use_reentrant=False)  # noqa: E731
    xs = double([[0.3, 0.7], [1.1, -0.4]])
    ours, theirs = (flow.vmap(func.grad(f))(xs) for f in (checked, part))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)
    ours, theirs = (func.hessian(f)(xs[0]) for f in (checked, part))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_dropout_draws_as_vmap_is_told() -> None:
    x = flow.ones(50, 20)
    drop = lambda v: flow.nn.functional.dropout(v, 0.5)  # noqa: E731
    flow.manual_seed(1)
    same = flow.vmap(drop, randomness="same")(x).numpy()
    assert (same == same[0]).all()
    flow.manual_seed(1)
    assert (drop(flow.ones(20)).numpy() == same[0]).all()
    other = flow.vmap(drop, randomness="different")(x).numpy()
    assert not (other == other[0]).all()
    with pytest.raises(flow.errors.TransformError, match="randomness"):
        flow.vmap(drop)(x)
    flow.manual_seed(1)
    value, tangent = func.jvp(drop, (flow.ones(20),), (flow.ones(20),))
    np.testing.assert_allclose(value.numpy(), tangent.numpy())


def test_complex_numbers_and_half_precision() -> None:
    z = flow.tensor([0.3 + 0.4j, 1.0 - 2.0j], dtype=flow.complex128)
    slopes = flow.vmap(func.jacfwd(lambda z: z**3))(z)
    np.testing.assert_allclose(slopes.numpy(), 3 * z.numpy() ** 2)
    x = flow.tensor([0.5, 1.5], dtype=flow.bfloat16)
    made = flow.vmap(func.grad(lambda x: x**2))(x)
    assert made.dtype == flow.bfloat16
    assert made.float().tolist() == [1.0, 3.0]


# --- Modes, threads, and nothing left behind ------------------------------------------------------


def test_a_gradient_under_no_grad_is_a_constant_outside() -> None:
    def function(x: Any) -> Any:
        with flow.no_grad():
            slope = func.grad(lambda v: v**3)(x)
        return x * slope

    assert func.grad(function)(double(2.0)).item() == 12.0
    with flow.no_grad():
        assert func.grad(function)(double(2.0)).item() == 12.0
        assert func.hessian(lambda v: v**3)(double(2.0)).item() == 12.0


def test_results_carry_no_history_of_the_transform() -> None:
    made = func.grad(func.grad(lambda x, y: x**2 * y**3, argnums=1), argnums=1)
    assert made(double(2.0), double(3.0)).grad_fn is None
    x = double(2.0).requires_grad_()
    for _ in range(3):
        slope = func.grad(lambda v: v**2)(x.detach())
        assert slope.grad_fn is None


def test_the_graph_of_a_training_loop_does_not_grow() -> None:
    w = double([0.5, 0.7])
    nodes: list[weakref.ref[Any]] = []

    def loss(w: Any) -> Any:
        y = flow.vmap(lambda s: (w * s).sum() ** 2)(w).sum()
        nodes.append(weakref.ref(y.grad_fn))
        return y

    for _ in range(4):
        w = w - 0.1 * func.grad(loss)(w)
        assert w.grad_fn is None
        gc.collect()
        assert [node for node in nodes if node() is not None] == []


def test_each_thread_has_levels_of_its_own() -> None:
    results: dict[int, Any] = {}
    ready = threading.Barrier(4)

    def work(k: int) -> None:
        ready.wait()
        for _ in range(20):
            made = flow.vmap(func.grad(lambda x: (x**k).sum()))(double([[1.0], [2.0]]))
        results[k] = made.tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {k: [[float(k)], [k * 2.0 ** (k - 1)]] for k in range(1, 5)}


def test_a_tensor_that_was_kept_says_where_it_comes_from() -> None:
    kept = []
    flow.vmap(lambda x: kept.append(x) or x)(double([1.0, 2.0]))
    with pytest.raises(flow.errors.TransformError, match="vmap that has returned"):
        kept[0] * 2
    func.jvp(lambda x: kept.append(x) or x, (double(1.0),), (double(1.0),))
    assert (kept[1] * 2).item() == 2.0  # its tangent is gone
    x = double([1.0]).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_an_error_inside_leaves_nothing_open() -> None:
    for transform in (flow.vmap, func.grad, func.jacfwd, func.hessian):
        with pytest.raises(ZeroDivisionError):
            transform(lambda x: 1 / 0)(double([1.0, 2.0]))
    assert flow.vmap(lambda x: x * 2)(double([1.0, 2.0])).tolist() == [2.0, 4.0]
    from oneflow_lite.transforms.levels import active

    assert active.levels == []
