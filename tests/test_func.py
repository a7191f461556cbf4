"""Histories of the results of functions of functions: by grad mode, nesting and argument."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import oneflow_lite as flow

torch = pytest.importorskip("torch")

Function = Callable[[Any], Any]


def modes(lib: Any) -> dict[str, Callable[[], Any]]:
    """Return the modes under which a function of functions may be called."""
    return {
        "as it is": contextlib.nullcontext,
        "enable_grad": lib.enable_grad,
        "no_grad": lib.no_grad,
        "inference_mode": lib.inference_mode,
    }


def double(lib: Any, value: float, requires_grad: bool = False) -> Any:
    return lib.tensor(value, dtype=lib.float64, requires_grad=requires_grad)


def transforms(lib: Any) -> dict[str, Callable[[Function, Any], Any]]:
    """Return one number of each result of each function of functions, for a scalar function."""
    func = lib.func

    def pushed(f: Function, x: Any, entry: int) -> Any:
        return func.jvp(f, (x,), (double(lib, 1.5),))[entry]

    return {
        "grad": lambda f, x: func.grad(f)(x),
        "grad_and_value, gradient": lambda f, x: func.grad_and_value(f)(x)[0],
        "grad_and_value, value": lambda f, x: func.grad_and_value(f)(x)[1],
        "grad, aux": lambda f, x: func.grad(lambda x: (f(x), f(x) * 2), has_aux=True)(x)[1],
        "vjp, value": lambda f, x: func.vjp(f, x)[0],
        "vjp, pull": lambda f, x: func.vjp(f, x)[1](double(lib, 1.5))[0],
        "jvp, value": lambda f, x: pushed(f, x, 0),
        "jvp, product": lambda f, x: pushed(f, x, 1),
        "jacrev": lambda f, x: func.jacrev(f)(x),
        "jacfwd": lambda f, x: func.jacfwd(f)(x),
        "hessian": lambda f, x: func.hessian(f)(x),
        "vmap": lambda f, x: func.vmap(f)(x.reshape(1))[0],
        "call": lambda f, x: f(x),
    }


ALL = list(transforms(flow))
INNER = ["grad", "vjp, pull", "jvp, product", "jacrev", "hessian", "vmap", "call"]
# PyTorch's forward mode looks through no_grad inside of the function; a history does not.
LOOKS_THROUGH = ("jvp, product", "jacfwd", "hessian")


def state(call: Callable[[], Any]) -> Any:
    """Return value, requires_grad and whether there is a node; None where PyTorch has a bug."""
    try:
        y = call()
    except RuntimeError as error:
        if "nference tensor" in str(error):
            return None
        raise
    return round(y.item(), 10), y.requires_grad, y.grad_fn is None


def nested(
    lib: Any, outer: str, first: str, inner: str, second: str | None, x_grad: bool, w_grad: bool
) -> Any:
    """Apply one function of functions to a function that calls another in a mode of its own."""
    x, w = double(lib, 1.3, x_grad), double(lib, 0.7, w_grad)

    def power(v: Any) -> Any:
        return v**4 * w

    def function(v: Any) -> Any:
        with modes(lib)[inner]():
            s = transforms(lib)[second](power, v)  # type: ignore[index]
        return s * v**2

    with modes(lib)[outer]():
        return transforms(lib)[first](power if second is None else function, x)


@pytest.mark.parametrize("outer", ["as it is", "no_grad", "inference_mode"])
@pytest.mark.parametrize("first", ALL)
def test_histories_agree_with_pytorch(first: str, outer: str) -> None:
    inside = [("as it is", None), *itertools.product(modes(flow), INNER)]
    compared = 0
    for (inner, second), *grads in itertools.product(inside, (False, True), (False, True)):
        if inner in ("no_grad", "inference_mode") and first in LOOKS_THROUGH:
            continue
        theirs = state(lambda: nested(torch, outer, first, inner, second, *grads))
        if theirs is None:  # its tensors of inference_mode do not go through its transforms
            theirs = state(lambda: nested(torch, outer, first, "no_grad", second, *grads))
        ours = state(lambda: nested(flow, outer, first, inner, second, *grads))
        assert ours == theirs, (inner, second, *grads)
        compared += 1
    assert compared > 50


def test_a_constant_of_no_grad_is_one_for_an_outer_gradient() -> None:
    def function(x: Any) -> Any:
        with flow.no_grad():
            slope = flow.func.grad(lambda v: v**3)(x)
        return x * slope

    assert flow.func.grad(function)(flow.tensor(2.0)).item() == 12.0
    assert flow.func.jacrev(function)(flow.tensor(2.0)).item() == 12.0
    # Forward mode looks through no_grad, here as in PyTorch.
    assert flow.func.jacfwd(function)(flow.tensor(2.0)).item() == 36.0


@pytest.mark.parametrize("pulled", ["enable_grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("made", ["enable_grad", "no_grad", "inference_mode"])
def test_the_mode_of_the_pullbacks_own_call_counts(made: str, pulled: str) -> None:
    def run(lib: Any, *needs: bool) -> Any:
        x, w, v = (double(lib, value, g) for value, g in zip((1.3, 0.7, 1.5), needs, strict=True))
        with modes(lib)[made]():
            y, pull = lib.func.vjp(lambda x: x**3 * w, x)
        with modes(lib)[pulled]():
            (product,) = pull(v)
        leaves = [z for z in (x, w, v) if z.requires_grad]
        found = []
        if product.requires_grad:
            found = [g.item() for g in lib.autograd.grad(product, leaves)]
        values = [round(value, 10) for value in (y.item(), product.item(), *found)]
        return values, y.requires_grad, product.requires_grad

    for needs in itertools.product((False, True), repeat=3):
        assert run(flow, *needs) == run(torch, *needs), needs


def test_tangents_give_products_a_history_and_values_none() -> None:
    def run(lib: Any) -> Any:
        x, v = double(lib, 1.3), double(lib, 1.5, requires_grad=True)
        value, product = lib.func.jvp(lambda x: x**3, (x,), (v,))
        return value.requires_grad, product.requires_grad, lib.autograd.grad(product, v)[0].item()

    assert run(flow) == pytest.approx(run(torch), rel=1e-12)


@pytest.mark.parametrize("argnums", list(itertools.product((0, 1), repeat=3)), ids=str)
def test_gradients_by_several_arguments_nest(argnums: tuple[int, ...]) -> None:
    def run(lib: Any, x_grad: bool, y_grad: bool) -> Any:
        f = lambda x, y: x**4 * y**5  # noqa: E731
        for n in argnums:
            f = lib.func.grad(f, argnums=n)
        return f(double(lib, 1.3, x_grad), double(lib, 0.7, y_grad))

    for grads in itertools.product((False, True), repeat=2):
        ours, theirs = (state(lambda lib=lib: run(lib, *grads)) for lib in (flow, torch))
        assert ours == theirs, grads


def test_inner_gradients_of_other_values_are_constants() -> None:
    def run(lib: Any) -> Any:
        other = double(lib, 0.7)

        def loss(x: Any) -> Any:
            slope = lib.func.grad(lambda y: y**3 * x)(other)
            fixed = lib.func.jacrev(lambda y: y**2)(other)
            return slope * fixed * x

        return lib.func.grad_and_value(loss)(double(lib, 1.3))

    for ours, theirs in zip(run(flow), run(torch), strict=True):
        assert state(lambda y=ours: y) == state(lambda y=theirs: y)


def test_the_graph_of_a_functional_training_loop_does_not_grow() -> None:
    def equation(w: Any, x: Any) -> Any:
        slope = flow.func.grad(lambda w, x: (w * x).sin(), argnums=1)(w, x)
        return (slope - w) ** 2

    w = flow.tensor(0.5)
    for _ in range(3):
        gradient, value = flow.func.grad_and_value(equation)(w, flow.tensor(1.0))
        w = w - 0.1 * gradient
        for tensor in (w, gradient, value):
            assert not tensor.requires_grad
            assert tensor.grad_fn is None


def test_a_function_that_raises_leaves_nothing_behind() -> None:
    def raises(x: Any) -> Any:
        raise ZeroDivisionError

    def recovers(x: Any) -> Any:
        with contextlib.suppress(ZeroDivisionError):
            flow.func.grad(raises)(x)
        return x**2

    found = flow.func.grad(recovers)(flow.tensor(3.0))
    assert (found.item(), found.requires_grad, flow.is_grad_enabled()) == (6.0, False, True)
