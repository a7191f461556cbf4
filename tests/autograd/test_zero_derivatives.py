"""Derivatives that are zero: zeros arrive, where PyTorch has zeros, and nothing where it has None.

A first gradient of pieces that are straight does not depend on the input. Its own gradient is zero
all the same, and not missing, so that weight decay goes on.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.ops.registry import FUNCTORS
from tests.functors.declared import calls, counterpart
from tests.functors.meant import meant

F = nn.functional
X = np.array([[0.3, -1.2, 2.1, 0.8], [1.5, 0.4, -0.7, -2.2]])
FLAT: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda F, x: F.relu(x),
    "relu6": lambda F, x: F.relu6(x),
    "leaky_relu": lambda F, x: F.leaky_relu(x),
    "hardtanh": lambda F, x: F.hardtanh(x, -4.0, 4.0),
    "hardshrink": lambda F, x: F.hardshrink(x),
    "softshrink": lambda F, x: F.softshrink(x),
    "threshold": lambda F, x: F.threshold(x, 0.5, 9.0),
    "rrelu": lambda F, x: F.rrelu(x),
    "max_pool1d": lambda F, x: F.max_pool1d(x, 2),
    "adaptive_max_pool1d": lambda F, x: F.adaptive_max_pool1d(x, 3),
    "avg_pool1d": lambda F, x: F.avg_pool1d(x, 2),
    "adaptive_avg_pool1d": lambda F, x: F.adaptive_avg_pool1d(x, 3),
    "pad": lambda F, x: F.pad(x, (1, 1), "reflect"),
    "l1_loss": lambda F, x: F.l1_loss(x, x * 0),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_penalty_reaches_all_that_the_net_is_made_of(name: str, device: str) -> None:
    """The gradient of a gradient by the bias is zero, and so is that by the input."""
    x = flow.tensor(X, device=device, requires_grad=True)
    weight = flow.tensor(X.T @ X, device=device, requires_grad=True)
    bias = flow.tensor(X[0] - 4, device=device, requires_grad=True)
    y = FLAT[name](F, F.linear(x, weight, bias))
    (g,) = flow.autograd.grad(y.sum(), x, create_graph=True)
    found = flow.autograd.grad(g[:, 0].sum(), [x, bias], retain_graph=True)
    assert not any(h.cpu().numpy().any() for h in found)
    g.square().sum().backward()
    assert bias.grad is not None and not bias.grad.cpu().numpy().any()
    assert weight.grad.cpu().numpy().any()


def test_third_order_goes_on_through_zeros() -> None:
    x = flow.tensor(X, requires_grad=True)
    weight = flow.tensor(X.T @ X, requires_grad=True)
    (g,) = flow.autograd.grad(F.relu(x @ weight).sum(), x, create_graph=True)
    (h,) = flow.autograd.grad(g.sum(), x, create_graph=True)
    (third,) = flow.autograd.grad(h.sum(), weight)
    assert not h.detach().numpy().any() and not third.numpy().any()


def test_zeros_pass_nodes_without_being_made() -> None:
    """The two products of the gradient run; the net's would turn zeros into zeros."""
    x = flow.tensor(X, requires_grad=True)
    weight = flow.tensor(X.T @ X, requires_grad=True)
    (g,) = flow.autograd.grad(F.relu(x @ weight).sum(), x, create_graph=True)

    class Products(flow.Interpreter):
        seen = 0

        def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
            self.seen += op_expr.op_type_name.startswith("matmul")
            return self.inner.apply(op_expr, inputs, attrs)

    with flow.push_interpreter(Products()) as products:
        found = flow.autograd.grad(g.sum(), [x, weight])
    assert products.seen == 2
    assert [h.numpy().any() for h in found] == [False, True]


def test_hooks_and_functions_of_users_see_zeros() -> None:
    seen: list[Any] = []

    class Doubled(flow.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            seen.append(("backward", dy.tolist()))
            return dy * 2

    x = flow.ones(2, requires_grad=True)
    y = Doubled.apply(x * 1)
    y.register_hook(lambda dy: seen.append(("hook", dy.tolist())))
    y.retain_grad()
    (g,) = flow.autograd.grad(F.relu(y).sum(), y, create_graph=True)
    seen.clear()
    g.sum().backward()
    assert seen == [("hook", [0, 0]), ("backward", [0, 0])]
    assert y.grad.tolist() == x.grad.tolist() == [0, 0]


def test_a_program_has_the_zeros_of_eager_code() -> None:
    main, startup = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, startup):
        x = flow.static.data("x", [2, 4])
        x.requires_grad = True
        y = F.max_pool1d(F.relu(nn.Linear(4, 4)(x)), 2)
        (g,) = flow.static.gradients(y.sum(), x)
        (h,) = flow.static.gradients(g[:, 0].sum(), x)
        pairs = flow.static.append_backward((g * g).sum())
    executor = flow.static.Executor()
    executor.run(startup)
    fetched = [h, *[dx for _, dx in pairs]]
    by_input, weight, bias = executor.run(main, feed={"x": X.astype("f")}, fetch_list=fetched)
    assert not by_input.any() and not bias.any() and weight.any()


def test_a_factor_of_zero_has_a_gradient_of_zero() -> None:
    added = flow.tensor([np.nan], dtype=flow.float64, requires_grad=True)
    x = flow.tensor(X, requires_grad=True)
    y = flow.addmm(added, x, flow.tensor(X.T), beta=0)
    y.sum().backward()
    assert np.isfinite(y.detach().numpy()).all() and added.grad.tolist() == [0]


# --- Every op, beside PyTorch ---------------------------------------------------------------------

# Where one library has a zero and the other has nothing, and why.
DIFFERENT: dict[str, str] = {
    "prelu": "the gradient by the slope has no slope in it; PyTorch's node saves it all the same",
    "nn.functional.prelu": "as prelu",
    "polar": "the gradient by the radius has no radius in it; PyTorch's formula divides by it",
    "cat": "an empty tensor of another shape is left out",
    "matrix_power": "the power 0 is the identity, whatever the matrix",
    "linalg.matrix_power": "as matrix_power",
    "nn.functional.linear_cross_entropy chunked": "PyTorch differentiates it once",
    **dict.fromkeys(
        ("prod", "cumprod", "masked.cumprod", "logcumsumexp", "linalg_vander", "linalg.vander"),
        "PyTorch hands on a tensor of 0 or 1 elements, or powers below 2, as they are",
    ),
    **dict.fromkeys(
        ("linalg.det", "linalg.householder_product", "ormqr"),
        "PyTorch has a way of its own for matrices of size 0 or 1",
    ),
}
Table = list[tuple[str, ...]]


def second_gradients(lib: Any, function: Callable[..., Any], arrays: Any) -> Table | None:
    """Return for each input by which other inputs its gradient has a gradient, be it zero."""
    leaves = [lib.tensor(array).requires_grad_() for array in arrays]
    lib.manual_seed(0)
    result = function(*leaves)
    parts = result if isinstance(result, (tuple, list)) else (result,)
    outputs = [y for y in parts if isinstance(y, lib.Tensor) and y.requires_grad]
    if not outputs:
        return None
    first = lib.autograd.grad(
        outputs,
        leaves,
        [lib.ones_like(y, requires_grad=True) for y in outputs],
        create_graph=True,
        allow_unused=True,
    )
    table: Table = []
    for g in first:
        if g is None or not g.requires_grad:
            table.append(("no gradient" if g is None else "",) * len(leaves))
            continue
        total = (g.real if g.is_complex() else g).sum()
        if g.is_complex():
            total = total + g.imag.sum()
        second = lib.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
        table.append(tuple("" if h is None else "gradient" for h in second))
    return table


def compared(rows: Iterator[tuple[str, Any, Any, Any]], torch: Any) -> dict[str, str]:
    """Return the names of functions whose tables differ, with both tables."""
    found: dict[str, str] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, ours, theirs, arrays in rows:
            try:
                expected = second_gradients(torch, theirs, arrays)
            except (RuntimeError, TypeError, NotImplementedError, IndexError):
                continue  # PyTorch does not differentiate it twice
            table = second_gradients(flow, ours, arrays)
            if expected is not None and table != expected:
                found[name] = f"{table}, PyTorch {expected}"
    return found


def unexplained(found: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if name not in DIFFERENT}


@pytest.mark.slow
def test_declared_functors_have_the_zeros_of_pytorch() -> None:
    torch = pytest.importorskip("torch")

    def rows() -> Iterator[tuple[str, Any, Any, Any]]:
        for call in calls():
            name, theirs = call.declaration.name, counterpart(torch, call.declaration)
            if call.arrays and theirs is not None:
                ours, theirs = meant(name, FUNCTORS.get(name)), meant(name, theirs)
                ours = functools.partial(call.run, flow, ours)
                yield name, ours, functools.partial(call.run, torch, theirs), call.arrays

    assert unexplained(compared(rows(), torch)) == {}


@pytest.mark.slow
def test_the_operator_database_has_the_zeros_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from tests.functors.operator_database import entries

    def rows() -> Iterator[tuple[str, Any, Any, Any]]:
        for entry in entries():
            if entry.info.supports_gradgrad and entry.reason is None:
                yield from ((entry.name, *functions) for functions in entry.functions())

    found = compared(rows(), torch)
    assert unexplained(found) == {}
    assert {name for name in DIFFERENT if "." in name} <= set(found), "no longer different"
