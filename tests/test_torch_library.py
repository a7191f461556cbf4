"""`torch.library`: custom ops of PyTorch's form give what PyTorch gives."""

from __future__ import annotations

import importlib
from typing import Any, List, Optional, Tuple  # noqa: UP035  (older scripts spell types so)

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import mock_torch
from oneflow_lite.compatibility import library
from oneflow_lite.errors import RegistrationError, UnknownOpError
from oneflow_lite.extend import forget_op


def sine(torch: Any) -> list[Any]:
    """A kernel on NumPy's arrays, an attribute, a gradient of two orders, a fake."""

    @torch.library.custom_op("lib_test::sine", mutates_args=())
    def op(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.numpy()) * np.float32(scale))

    @op.register_fake
    def _(x: Any, scale: float = 1.0) -> Any:
        return torch.empty_like(x)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.scale = inputs
        ctx.save_for_backward(x)

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.cos() * ctx.scale, None

    op.register_autograd(backward, setup_context=setup)
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    y = op(x, 2.0)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    other = torch.ops.lib_test.sine.default(x, scale=3.0)
    torch.library.opcheck(op, (x.detach().requires_grad_(),))
    return [y, g, h, other, torch.ops.lib_test.sine(x)]


def written(torch: Any) -> list[Any]:
    """An op that writes an argument and returns nothing."""

    @torch.library.custom_op("lib_test::added", mutates_args={"out"})
    def op(x: torch.Tensor, out: torch.Tensor) -> None:
        out.add_(x)

    out = torch.zeros(2)
    assert op(torch.ones(2), out) is None and out._version > 0
    return [out]


def lists(torch: Any) -> list[Any]:
    """A list of tensors, an optional tensor behind it, and what needs a gradient."""
    needs = []

    @torch.library.custom_op("lib_test::total", mutates_args=())
    def op(xs: List[torch.Tensor], w: Optional[torch.Tensor] = None) -> torch.Tensor:  # noqa: UP006, UP045
        total = sum(x.sum() for x in xs)
        return total * (1 if w is None else w.sum())

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        xs, w = inputs
        ctx.count, ctx.weighted = len(xs), w is not None
        ctx.save_for_backward(*xs, *([w] if ctx.weighted else []))

    def backward(ctx: Any, g: Any) -> Any:
        needs.append(ctx.needs_input_grad)
        xs = ctx.saved_tensors[: ctx.count]
        w = ctx.saved_tensors[ctx.count]
        total = sum(x.sum() for x in xs)
        return [g * w.sum() * torch.ones_like(x) for x in xs], g * total * torch.ones_like(w)

    op.register_autograd(backward, setup_context=setup)
    a, b = torch.ones(2, requires_grad=True), torch.ones(3)
    w = torch.full((2,), 2.0, requires_grad=True)
    op([a, b], w).backward()
    given = [[bool(n) for n in each[0]] + [bool(each[1])] for each in needs]
    assert given == [[True, False, True]]
    return [a.grad, w.grad, op([a, b], None)]


def pair(torch: Any) -> list[Any]:
    """Two outputs of two dtypes, registered by name."""

    @torch.library.custom_op("lib_test::pair", mutates_args=(), device_types="cpu")
    def op(x: torch.Tensor, k: int) -> Tuple[torch.Tensor, torch.Tensor]:  # noqa: UP006
        return x * k, x.sum().to(torch.int64)

    torch.library.register_autograd(
        "lib_test::pair",
        lambda ctx, g, h: (g * ctx.k, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
    )
    x = torch.ones(2, requires_grad=True)
    y, count = op(x, 3)
    y.sum().backward()
    assert y.requires_grad and not count.requires_grad
    return [y, count, x.grad]


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    for name in ("sine", "added", "total", "pair"):
        forget_op(f"lib_test_{name}")
        library._OPS.pop(f"lib_test::{name}", None)


@pytest.mark.parametrize("scenario", [sine, written, lists, pair])
def test_as_in_pytorch(scenario: Any) -> None:
    theirs = pytest.importorskip("torch")
    globals()["torch"] = theirs  # the annotations name it
    expected = [y.detach().tolist() for y in scenario(theirs)]
    with mock_torch.enable():
        globals()["torch"] = ours = importlib.import_module("torch")
        assert ours is not theirs
        found = [y.detach().tolist() for y in scenario(ours)]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_aten_is_the_functors() -> None:
    x = flow.tensor([-1.0, 2.0])
    assert library.ops.aten.relu(x).tolist() == [0.0, 2.0]
    assert library.ops.aten.add.Tensor(x, x).tolist() == [-2.0, 4.0]


def test_bad_registrations() -> None:
    def untyped(x: Any, y) -> Any:  # type: ignore[no-untyped-def]
        return x

    with pytest.raises(RegistrationError, match="'namespace::name'"):
        library.custom_op("alone", lambda x: x, mutates_args=())
    with pytest.raises(RegistrationError, match="parameter y needs a type"):
        library.custom_op("lib_test::untyped", untyped, mutates_args=())
    with pytest.raises(UnknownOpError, match="lib_test::absent"):
        library.register_autograd("lib_test::absent", lambda ctx, g: g)
    with pytest.raises(AttributeError, match="lib_test::absent"):
        _ = library.ops.lib_test.absent


def test_an_alias_is_copied() -> None:
    @library.custom_op("lib_test::pair", mutates_args=())
    def op(x: flow.Tensor) -> flow.Tensor:
        return x

    x = flow.ones(2)
    with pytest.warns(UserWarning, match="shares memory"):
        op(x).zero_()
    assert x.tolist() == [1.0, 1.0]


def test_a_kernel_for_a_device() -> None:
    @library.custom_op("lib_test::pair", mutates_args=())
    def op(x: flow.Tensor) -> flow.Tensor:
        return x * 2

    @library.register_kernel("lib_test::pair", ["cuda", "cpu"])
    def on_device(x: flow.Tensor) -> flow.Tensor:
        return x * 3

    assert op(flow.ones(1)).tolist() == [3.0]


def test_a_list_without_its_optional_tensor() -> None:
    @library.custom_op("lib_test::total", mutates_args=())
    def op(xs: list[flow.Tensor], w: flow.Tensor | None = None) -> flow.Tensor:
        return sum(x.sum() for x in xs) * (1 if w is None else w.sum())

    op.register_autograd(lambda ctx, g: ([g * flow.ones(2)] * 2, None))
    a, b = (flow.ones(2, requires_grad=True) for _ in range(2))
    op([a, b]).backward()
    assert a.grad.tolist() == b.grad.tolist() == [1.0, 1.0]


def test_a_wrong_number_of_gradients() -> None:
    @library.custom_op("lib_test::pair", mutates_args=())
    def op(x: flow.Tensor, k: int) -> flow.Tensor:
        return x * k

    op.register_autograd(lambda ctx, g: g)
    with pytest.raises(flow.errors.ArgumentError, match="2 gradients, one or None for each"):
        op(flow.ones(2, requires_grad=True), 2).sum().backward()
