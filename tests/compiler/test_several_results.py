"""Several results of a call, which the caller differentiates or writes in any order.

The results of a replay behave as those of the function itself: gradients, versions and errors
are the same after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import FlowError, FreedGraphError

pytestmark = pytest.mark.filterwarnings("ignore:backward.create_graph")

Tensors = Sequence[Any]


def trunk(x: Any, w: Any, v: Any) -> Tensors:
    h = (x * w).tanh()
    return (h * h).sum(), (h * v).exp().sum(), h * 2


def one_from_other(x: Any, w: Any, v: Any) -> Tensors:
    y = x * w * v
    return y, (y * y).sum()


def chain(x: Any, w: Any, v: Any) -> Tensors:
    a = x * w
    b = a * v
    return a, b, (b * b).sum()


def view_of_the_other(x: Any, w: Any, v: Any) -> Tensors:
    y = x * w * v
    return y, y[:2]


def views_of_one(x: Any, w: Any, v: Any) -> Tensors:
    y = (x * w * v).exp()
    return y[:2], y[1:]


def trunk_that_saves_nothing(x: Any, w: Any, v: Any) -> Tensors:
    h = w + v
    return (h * h).sum(), (h * h * x).sum()


def saved_output(x: Any, w: Any, v: Any) -> Tensors:
    e = (x * w).exp()
    return e, (e * v).sum()


FUNCTIONS: dict[str, Callable[..., Tensors]] = {
    "one": lambda x, w, v: ((x * w * w).sum(),),
    "independent": lambda x, w, v: ((x * w * w).sum(), (v * v * x).sum()),
    "of one leaf": lambda x, w, v: ((x * w * w).sum(), (w * w * w).sum()),
    "three": lambda x, w, v: ((x * w * w).sum(), (v * v).sum(), (x * x * v * w).sum()),
    "vectors": lambda x, w, v: (x * w * w, v * v * x),
    "twice the same": lambda x, w, v: (y := x * w * v, y),
    "detached": lambda x, w, v: (y := x * w * v, y.detach()),
    "parts": lambda x, w, v: tuple((x * w * v).unbind(0)),
    "two of an op": lambda x, w, v: tuple((x * w * v).topk(2)),
    "view of a leaf": lambda x, w, v: (w[:2], (w * v * v).sum()),
    **{
        f.__name__: f
        for f in (
            trunk, one_from_other, chain, view_of_the_other, views_of_one,
            trunk_that_saves_nothing, saved_output,
        )
    },
}  # fmt: skip


def backward(i: int, **options: Any) -> Any:
    def act(results: list[Any], *leaves: Any) -> None:
        y = results[i % len(results)]
        y.backward(flow.ones_like(y), **options)

    return act


def grad(i: int, which: Sequence[int], **options: Any) -> Any:
    def act(results: list[Any], *leaves: Any) -> Any:
        y, inputs = results[i % len(results)], [leaves[k] for k in which]
        return flow.autograd.grad(y.sum(), inputs, allow_unused=True, **options)

    return act


def second(i: int) -> Any:
    def act(results: list[Any], x: Any, w: Any, v: Any) -> Any:
        first = grad(i, (1, 2), create_graph=True)(results, x, w, v)
        total = sum((g * g).sum() for g in first if g is not None)
        found = flow.autograd.grad(total, (w, v), allow_unused=True)
        return [g if g is None else g.round(decimals=4) for g in found]  # added in another order

    return act


def between(i: int, j: int) -> Any:
    def act(results: list[Any], *leaves: Any) -> Any:
        y, z = results[i % len(results)], results[j % len(results)]
        return flow.autograd.grad(y.sum(), z, allow_unused=True, retain_graph=True)

    return act


def summed(results: list[Any], *leaves: Any) -> None:
    sum(y.sum() for y in results).backward()


def together(results: list[Any], *leaves: Any) -> None:
    ys = [y for y in results if y.requires_grad]
    flow.autograd.backward(ys, [flow.ones_like(y) for y in ys])


def write(i: int, how: str) -> Any:
    def act(results: list[Any], *leaves: Any) -> None:
        y = results[i % len(results)]
        with flow.set_grad_enabled(how != "no_grad"):
            (y.detach() if how == "detached" else y).mul_(2)

    return act


def write_leaf(which: int) -> Any:
    def act(results: list[Any], *leaves: Any) -> None:
        with flow.no_grad():
            leaves[which].mul_(1.5)

    return act


def on(i: int, what: str, *args: Any) -> Any:
    return lambda results, *leaves: getattr(results[i % len(results)], what)(*args) and None


def forget(i: int) -> Any:
    return lambda results, *leaves: results.insert(i, results.pop(i).detach())


B0, B1, B2 = backward(0), backward(1), backward(2)
KEEP0, KEEP1 = backward(0, retain_graph=True), backward(1, retain_graph=True)
SEQUENCES: dict[str, list[Any]] = {
    "0": [B0], "1": [B1], "0 1": [B0, B1], "1 0": [B1, B0], "0 0": [B0, B0], "1 1": [B1, B1],
    "0 1 2": [B0, B1, B2], "2 1 0": [B2, B1, B0], "1 2 0": [B1, B2, B0],
    "kept 0, 0": [KEEP0, B0], "kept 0, 1, 0": [KEEP0, B1, B0],
    "kept 0, kept 1, 0, 1": [KEEP0, KEEP1, B0, B1],
    "sum": [summed], "sum, 0": [summed, B0], "0, sum": [B0, summed], "together": [together],
    "create_graph 0, 1": [backward(0, create_graph=True), B1],
    "w of 0, w of 1": [grad(0, [1]), grad(1, [1])], "w of 1, v of 0": [grad(1, [1]), grad(0, [2])],
    "w of 0, kept; v of 0": [grad(0, [1], retain_graph=True), grad(0, [2])],
    "both of 1; 0": [grad(1, [1, 2]), B0], "second of 0": [second(0)], "second of 1": [second(1)],
    "1 by 0": [between(1, 0)], "0 by 1": [between(0, 1)], "1 by 0; 0": [between(1, 0), B0],
    "retain_grad 0, 1": [on(0, "retain_grad"), B1],
    "retain_grad 0, 0, 1": [on(0, "retain_grad"), B0, B1],
    "hook on 0, 0, 1": [on(0, "register_hook", lambda g: g * 3), B0, B1],
    "hook on 1, 0, 1": [on(1, "register_hook", lambda g: g * 3), B0, B1],
    "detach_ 0, 1": [on(0, "detach_"), B1], "without 0: 1": [forget(0), B1],
}  # fmt: skip
for i in (0, 1):
    for how in ("grad", "no_grad", "detached"):
        for first, other in ((B0, B1), (B1, B0)):
            name = f"write {i} ({how})"
            number = 0 if first is B0 else 1
            SEQUENCES[f"{name}, {number}, other"] = [write(i, how), first, other]
            SEQUENCES[f"{number}, {name}, other"] = [first, write(i, how), other]
for i, name in enumerate("xwv"):
    for number, (first, other) in enumerate(((B0, B1), (B1, B0))):
        SEQUENCES[f"write {name}, {number}, other"] = [write_leaf(i), first, other]
        SEQUENCES[f"{number}, write {name}, other"] = [first, write_leaf(i), other]


def content(tensor: Any) -> Any:
    """Return what is compared of a tensor; zeros have no sign."""
    if tensor is None:
        return None
    try:
        array = np.asarray(tensor.detach()) + 0
        grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    except FlowError as error:
        return type(error).__name__
    return (array.dtype, array.shape, array.tobytes(), tensor.requires_grad, tensor.is_leaf,
            tensor._version, content(grad))  # fmt: skip


def leaves(needs_grad: bool) -> list[Any]:
    values = [0.3, 0.6, -0.2], [1.0, 2.0, 3.0], [0.5, -1.0, 2.0]
    return [flow.tensor(v, requires_grad=needs_grad or i > 0) for i, v in enumerate(values)]


def run(function: Any, acts: Sequence[Any], needs_grad: bool) -> list[Any]:
    """Return what is seen after each step."""
    given = leaves(needs_grad)
    results = list(function(*given))
    seen: list[Any] = [list(map(content, results))]
    for act in acts:
        try:
            found = act(results, *given)
            seen.append([] if found is None else list(map(content, found)))
        except FlowError:  # which of two obstacles is named is another matter
            seen.append("an error")
        seen.append(list(map(content, [*results, *given])))
    return seen


def check(name: str, sequences: Sequence[str], needs_grad: bool) -> None:
    compiled = flow.compile(FUNCTIONS[name])
    for _ in range(2):
        compiled(*leaves(needs_grad))
    for sequence in sequences:
        acts = SEQUENCES[sequence]
        assert run(compiled, acts, needs_grad) == run(FUNCTIONS[name], acts, needs_grad), sequence
    assert compiled.explain().captures == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_differentiated_in_any_order(name: str) -> None:
    check(name, list(SEQUENCES)[::3], False)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_differentiated_in_any_order_at_length(name: str) -> None:
    for needs_grad in (False, True):
        check(name, list(SEQUENCES), needs_grad)


def test_each_loss_may_have_a_backward_pass_of_its_own() -> None:
    compiled = flow.compile(FUNCTIONS["independent"])
    for _ in range(3):
        x, w, v = leaves(False)
        first, other = compiled(x, w, v)
        first.backward()
        other.backward()
        assert np.allclose(w.grad.numpy(), 2 * x.numpy() * w.detach().numpy())
        assert np.allclose(v.grad.numpy(), 2 * x.numpy() * v.detach().numpy())
    assert compiled.explain().hits == 2
    with pytest.raises(FreedGraphError):
        other.backward()
