"""Custom Functions against PyTorch and against finite differences: `function_cases.py`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from tests.autograd.function_cases import CASES, TRUE, Case, function


def weighted(values: Any) -> Any:
    """Return a number that depends on every element of the tensors in another way."""
    values = values if isinstance(values, (tuple, list)) else (values,)
    total = 0
    for k, v in enumerate(values):
        if v is None or not v.requires_grad:
            continue
        weights = np.cos(np.arange(v.numel()) + k).reshape(tuple(v.shape))
        total = total + (v * type(v)(weights.tolist()).to(v.dtype)).sum()
    return total


def arrays_of(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 2.0, shape) for shape in case.shapes]


def derivatives(lib: Any, case: Case, arrays: list[np.ndarray]) -> list[list[list[float]]]:
    """Return the weighted result and its derivatives, each with weights for the next."""
    f = case.build(lib)
    inputs = [lib.tensor(a.tolist(), dtype=lib.float64, requires_grad=True) for a in arrays]
    total = weighted(f(*inputs))
    found = [[total.tolist()]]
    for _ in range(case.order):
        grads = lib.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
        found.append([[] if g is None else g.tolist() for g in grads])
        total = weighted(grads)
        if not getattr(total, "requires_grad", False):
            break
    return found


@pytest.mark.parametrize("name", CASES)
def test_values_and_three_derivatives_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    case = CASES[name]
    arrays = arrays_of(case)
    ours, theirs = derivatives(flow, case, arrays), derivatives(torch, case, arrays)
    assert len(ours) == len(theirs) > 1
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)  # type(v)(list) is of single precision


@pytest.mark.parametrize("name", TRUE)
def test_first_and_second_derivatives_are_finite_differences(name: str) -> None:
    case = CASES[name]
    inputs = tuple(flow.tensor(a, requires_grad=True) for a in arrays_of(case))
    f = case.build(flow)
    assert flow.autograd.gradcheck(f, inputs, check_batched_grad=True)
    assert flow.autograd.gradgradcheck(f, inputs)


def raised(lib: Any, build: Any) -> BaseException:
    """Return what a case of bad use raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            build(lib, lib.tensor([1.0, 2.0], requires_grad=True))
        except Exception as error:
            return error
    pytest.fail(f"nothing was raised with {lib.__name__}")


def run(lib: Any, x: Any, backward: Any, forward: Any = None, *args: Any) -> None:
    """Run a backward pass through a Function of x."""
    forward = forward or (lambda ctx, x, *args: x * 2)
    function(lib, forward, backward).apply(x, *args).sum().backward()


def dirty_leaf(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def dirty_not_returned(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2) * 1


def dirty_beside_another(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2), x * 1


def saves(*tensors: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, *tensors)
        return x * 2

    return forward


def same(ctx: Any, *grads: Any) -> Any:
    return grads[0]


def written_after_saving(lib: Any, x: Any) -> None:
    a = x * 1
    y = function(lib, saves(), lambda ctx, dy: dy * ctx.saved_tensors[0]).apply(a)
    a.mul_(2)
    y.sum().backward()


def write_result(lib: Any, x: Any, forward: Any) -> None:
    result = function(lib, forward, same).apply(x * 1)
    (result[0] if isinstance(result, tuple) else result).mul_(2)


def write_argument(lib: Any, x: Any, forward: Any) -> None:
    a = x * 1
    y = function(lib, forward, same).apply(a)
    a.mul_(2)
    (y * 1).sum().backward()


def twice_through_once(lib: Any, x: Any) -> None:
    backward = lib.autograd.function.once_differentiable(lambda ctx, dy: dy * 2)
    y = function(lib, lambda ctx, x: x * 2, backward).apply(x)
    (dx,) = lib.autograd.grad((y**2).sum(), x, create_graph=True)
    dx.sum().backward()


def backward_twice(lib: Any, x: Any) -> None:
    y = function(lib, saves(), lambda ctx, dy: dy * ctx.saved_tensors[0]).apply(x).sum()
    y.backward()
    y.backward()


def read_after_release(lib: Any, x: Any) -> None:
    y = function(lib, saves(), same).apply(x)
    y.sum().backward()
    y.grad_fn.saved_tensors  # noqa: B018


ARGUMENT = (
    r"CustomBackward: backward returned a wrong gradient for argument {}.*expected {}.*got {}"
)
BAD = {
    "too few": (
        lambda lib, x: run(lib, x, lambda ctx, dy: dy, None, 5),
        r"CustomBackward: backward returned 1 gradient\(s\), expected 2",
    ),
    "too many": (
        lambda lib, x: run(lib, x, lambda ctx, dy: (dy, None, dy)),
        r"CustomBackward: backward returned 3 gradient\(s\), expected 1",
    ),
    "for no tensor": (
        lambda lib, x: run(lib, x, lambda ctx, dy: (dy, dy), None, 5),
        ARGUMENT.format(1, "None", "Tensor"),
    ),
    "shape": (
        lambda lib, x: run(lib, x, lambda ctx, dy: lib.ones(3)),
        ARGUMENT.format(0, r"shape \(2,\)", r"\(3,\)"),
    ),
    "too small": (
        lambda lib, x: run(lib, x, lambda ctx, dy: dy.sum()),
        ARGUMENT.format(0, r"shape \(2,\)", r"\(\)"),
    ),
    "a number": (
        lambda lib, x: run(lib, x, lambda ctx, dy: 1.0),
        ARGUMENT.format(0, "a Tensor or None", "float"),
    ),
    "an array": (
        lambda lib, x: run(lib, x, lambda ctx, dy: dy.numpy()),
        ARGUMENT.format(0, "a Tensor or None", "ndarray"),
    ),
    "a list": (
        lambda lib, x: run(lib, x, lambda ctx, dy: [dy]),
        ARGUMENT.format(0, "a Tensor or None", "list"),
    ),
    "text for a constant tensor": (
        lambda lib, x: run(lib, x, lambda ctx, dy: (dy, "s"), None, lib.ones(2)),
        ARGUMENT.format(1, "a Tensor or None", "str"),
    ),
    "complex for real": (
        lambda lib, x: run(lib, x, lambda ctx, dy: dy * 1j),
        ARGUMENT.format(0, "dtype float32", "complex64"),
    ),
    "no backward": (lambda lib, x: run(lib, x, None), "static method backward"),
    "no forward": (
        lambda lib, x: function(lib, None, None).apply(x),
        "static method forward",
    ),
    "backward and vjp": (
        lambda lib, x: (
            function(lib, lambda ctx, x: x * 2, same, vjp=same).apply(x).sum().backward()
        ),
        "Custom: defines backward and vjp",
    ),
    "an instance called": (lambda lib, x: function(lib, None, None)()(x), "Custom.apply"),
    "saving a number": (lambda lib, x: run(lib, x, same, saves(3)), r"tensors\[1\].*got int"),
    "marking a number dirty": (
        lambda lib, x: run(lib, x, same, lambda ctx, x: ctx.mark_dirty(3) or x),
        r"mark_dirty\(\).*tensors\[0\].*got int",
    ),
    "marking a number non-differentiable": (
        lambda lib, x: run(lib, x, same, lambda ctx, x: ctx.mark_non_differentiable(3) or x),
        r"mark_non_differentiable\(\).*tensors\[0\].*got int",
    ),
    "dirty leaf": (lambda lib, x: run(lib, x, same, dirty_leaf), "Custom: mark_dirty.*a leaf"),
    "dirty view of a leaf": (
        lambda lib, x: run(lib, x[:1], same, dirty_leaf),
        "a view of such a leaf",
    ),
    "dirty, not returned": (
        lambda lib, x: run(lib, x * 1, same, dirty_not_returned),
        r"Custom: an argument \(shape \(2,\)\) is marked dirty and not returned",
    ),
    "dirty view beside another result": (
        lambda lib, x: run(lib, (x * 1)[:1], same, dirty_beside_another),
        "Custom: forward writes to a view",
    ),
    "written after saving": (
        written_after_saving,
        r"CustomBackward: .*saved_tensors\[0\].*shape \(2,\).*version 1.*version 0",
    ),
    "write to a returned argument": (
        lambda lib, x: write_result(lib, x, lambda ctx, x: x),
        r"mul_\(\).*custom Function",
    ),
    "write to a returned view": (
        lambda lib, x: write_result(lib, x, lambda ctx, x: x[:1]),
        r"mul_\(\).*custom Function",
    ),
    "write to one of two returned views": (
        lambda lib, x: write_result(lib, x, lambda ctx, x: (x[:1], x[1:])),
        r"mul_\(\).*custom Function",
    ),
    "write to a view of something within": (
        lambda lib, x: write_result(lib, x, lambda ctx, x: (x * 2)[:1]),
        r"mul_\(\).*custom Function",
    ),
    "write to the base of a returned view": (
        lambda lib, x: write_argument(lib, x, lambda ctx, x: x[:1]),
        "custom Function is out of date",
    ),
    "write to an argument that was returned": (
        lambda lib, x: write_argument(lib, x, lambda ctx, x: x),
        "custom Function is out of date",
    ),
    "twice through once_differentiable": (
        twice_through_once,
        "CustomBackward: .*once_differentiable",
    ),
    "backward twice": (backward_twice, "CustomBackward were released"),
    "read after release": (read_after_release, "CustomBackward: .*were released"),
    "unknown keyword": (
        lambda lib, x: function(lib, lambda ctx, x: x, same).apply(x, k=2),
        r"Custom.apply\(\): .*'k'",
    ),
    "keyword-only": (
        lambda lib, x: function(lib, lambda ctx, x, *, k: x, same).apply(x, k=2),
        r"Custom.apply\(\): argument 'k'",
    ),
    "keyword after a gap": (
        lambda lib, x: function(lib, lambda ctx, x, a=1, b=2: x, same).apply(x, b=2),
        r"Custom.apply\(\): argument 'b'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_raises_in_pytorch_raises_by_name(name: str) -> None:
    build, text = BAD[name]
    ours = raised(flow, build)
    assert isinstance(ours, flow.errors.FlowError)
    with pytest.raises(type(ours), match=text):
        raise ours
    torch = pytest.importorskip("torch")
    theirs = raised(torch, build)
    assert isinstance(ours, type(theirs)), theirs
