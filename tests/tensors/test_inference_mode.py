"""`inference_mode` beside PyTorch's: what is recorded, what is marked, what may be used later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

torch = pytest.importorskip("torch")


def names(t: Any) -> dict[str, Any]:
    """Return the names of a program: `x` a leaf, `h` made of it, `n` and the marked `y` are not."""
    x = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
    modes: list[Any] = []

    def mode() -> Any:
        modes.append((t.is_inference_mode_enabled(), t.is_grad_enabled()))
        return modes[-1]

    class Twice(t.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            mode()
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    @t.inference_mode()  # type: ignore[untyped-decorator]
    def steps() -> Any:
        yield mode()
        yield mode()

    with t.inference_mode():
        y = t.tensor([1.0, 2.0], dtype=t.float64) * 1
    n = t.tensor([3.0, 4.0], dtype=t.float64)
    told = lambda a: (a.requires_grad, a.is_inference(), a.grad_fn is None)  # noqa: E731
    made = {"t": t, "np": np, "mode": mode, "modes": modes, "twice": Twice.apply, "steps": steps}
    return {**made, "x": x, "h": x * 1, "n": n, "y": y, "told": told}


def result(lib: Any, program: str) -> Any:
    """Run a program and return its `out`."""
    space = names(lib)
    exec(program, space)
    return space["out"]


def programs(text: str) -> list[str]:
    """Split programs, which blank lines part; each begins with its own first line."""
    return [block.strip() for block in text.strip().split("\n\n")]


AGREE = """
with t.inference_mode(): out = mode(), told(x * 2)

with t.inference_mode(), t.inference_mode(False): out = mode(), told(x * 2)

with t.no_grad(), t.inference_mode(False): out = mode(), told(x * 2)

with t.inference_mode(), t.no_grad(): out = mode(), told(x * 2)

with t.inference_mode(), t.inference_mode(False), t.no_grad(): out = mode(), told(x * 2)

with t.enable_grad(), t.inference_mode(): out = mode(), told(x * 2)

with t.inference_mode(), t.enable_grad(): out = told(x * 2), told(t.cat([x, x])), told(x.exp())

with t.inference_mode(), t.set_grad_enabled(True): out = told(x * 2)

with t.inference_mode(), t.enable_grad():
    with t.inference_mode(False): a = told(x * 2)
    out = a, told(x * 2)

with t.inference_mode():
    before = t.is_grad_enabled()
    t.set_grad_enabled(True)
    out = told(x * 2)
    t.set_grad_enabled(before)

with t.inference_mode(), t.autograd.detect_anomaly(): out = told(x * 2)

with t.inference_mode(), t.autograd.detect_anomaly(), t.enable_grad(): out = told(x * 2)

out = t.inference_mode()(mode)(), t.inference_mode(mode)(), t.inference_mode(False)(mode)(), mode()

made = steps(); out = next(made), mode(), next(made), mode()

guard = t.inference_mode(); out = mode()

with t.inference_mode() as guard: out = guard

try:
    with t.inference_mode(): 1 / 0
except ZeroDivisionError:
    out = mode()

with t.inference_mode(): out = told(n.view(2)), n.view(2)._base is n, n.view(2).is_leaf

with t.inference_mode(): a = x.view(2); out = a.is_inference(), a.grad_fn is None, a._base is x

with t.inference_mode(): a = h.view(2); out = a.is_inference(), a.grad_fn is None, a._base is h

with t.inference_mode(): a = h.view(2)[0]; out = a.is_inference(), a._base is h

with t.inference_mode(): out = told(n[0]), told(n.T), told(n.expand(3, 2)), told(n.unsqueeze(0))

with t.inference_mode(): out = [told(a) for a in (*n.split(1), *(n * 2).split(1))]

with t.inference_mode(): out = [told(a) for a in n.max(0)], told(n.long()), told(t.zeros_like(n))

with t.inference_mode():
    a = t.ones(2, 3)
    out = told(a.t().contiguous()), told(a.contiguous()), told(a.reshape(6)), told(a.flatten())

a = t.ones(2, 3)
with t.inference_mode(): out = told(a.t().reshape(6)), told(a.reshape(6)), told(a.contiguous())

with t.inference_mode(): out = told(x.detach()), told(x.data), told(x.clone()), n.to(n.dtype) is n

with t.inference_mode(): out = told(t.from_numpy(np.ones(2))), told(t.asarray(np.ones(2)))

with t.inference_mode(): out = told(t.tensor(1.0)), told(t.rand(2)), told(t.arange(3))

out = told(y), told(y * 2), told(y.clone()), told(y.detach()), told(y.data), told(t.zeros_like(y))

out = told(y.view(2)), told(y[0]), told(y.T), told(y.view(2)[:1]), [told(a) for a in y.split(1)]

out = told(y.detach().clone().requires_grad_()), told(y + x), told(t.cat([y, x])), told(x.add(y))

with t.inference_mode(): a = n.view(2); a.mul_(2)
out = n._version, a._version, n.tolist(), told(a)

with t.inference_mode(): a = n.view(2)
a.mul_(2); out = n._version, told(a), told(a * x)

with t.inference_mode(): n.mul_(2); n[0] = 5.0; n.copy_(n * 2)
out = n._version, told(n), n.tolist()

with t.inference_mode(): a = h.view(2); a.mul_(2)
out = h._version, a._version, h.requires_grad

with t.inference_mode(): h.mul_(2)
h.sum().backward(); out = h._version, told(h)[:2], h.is_leaf, x.grad.tolist()

with t.inference_mode(): h[0] = 5.0; x.mul_(2)
out = h._version, told(h)[:2], x._version, told(x), x.tolist()

with t.inference_mode(): a = x.detach(); a.mul_(2)
out = x._version, x.tolist()

with t.inference_mode(): a = h.view(2)
h.mul_(2); out = a.tolist()

with t.inference_mode(): t.add(n, n, out=n); t.add(n, n, out=y)
out = n._version, told(n), told(y), y.tolist()

n.mul_(y); n.copy_(y); h.copy_(y); out = told(n), told(h)[:2], n.tolist()

out = told(y.requires_grad_(False)), told(y.detach_())

with t.inference_mode(): out = told(y.requires_grad_()), told(y * 2)

with t.inference_mode(): a = t.ones(2, requires_grad=True); out = told(a), a.is_leaf, told(a * 2)

with t.inference_mode(): a = t.ones(2, requires_grad=True)
(a + 2).sum().backward(); out = a.grad.tolist()

with t.inference_mode(): n.requires_grad_(); x.requires_grad_(False)
out = told(n), told(x), told(n * 2)

with t.inference_mode(): out = told(twice(x)), modes[-1]

out = told(twice(y)), modes[-1], told(twice(x)), modes[-1]

with t.inference_mode(): x.register_hook(lambda g: g * 2); h.register_hook(lambda g: g * 3)
h.sum().backward(); out = x.grad.tolist()

with t.inference_mode(): h.retain_grad()
h.sum().backward(); out = h.grad.tolist()

s = (x**3).sum(); seen = []; x.register_hook(lambda g: seen.append(mode()))
with t.inference_mode():
    (g,) = t.autograd.grad(s, x, retain_graph=True)
    s.backward()
out = seen, g.tolist(), x.grad.tolist(), g.requires_grad

s = (x**3).sum(); seen = []; x.register_hook(lambda g: seen.append(mode()[0]))
with t.inference_mode(): (g,) = t.autograd.grad(s, x, create_graph=True)
out = seen, told(g)

h.backward(y); out = x.grad.tolist(), x.grad.is_inference()

x.grad = y; out = x.grad is y

layer = t.nn.Linear(2, 2).double(); seen = []
layer.register_forward_hook(lambda m, i, o: seen.append(told(o)))
layer.register_full_backward_hook(lambda m, i, o: seen.append(1))
with t.inference_mode(): layer(n)
layer(n).sum().backward(); out = [seen[0], seen[1][:2], seen[2]]

layer = t.nn.BatchNorm1d(2).double()
with t.inference_mode(): layer(n.expand(3, 2))
out = told(layer.running_mean), layer.num_batches_tracked.item()

seen = []
with t.autograd.graph.saved_tensors_hooks(seen.append, lambda a: a), t.inference_mode(): x.exp()
out = seen

with t.inference_mode(): out = t.func.grad(lambda a: (a**2).sum())(n).tolist()

out = t.func.grad(lambda a: (a**2).sum())(y).tolist()

with t.inference_mode(): out = told(t.utils.checkpoint.checkpoint(t.exp, x, use_reentrant=False))

with t.inference_mode():
    x.grad = t.ones(2, dtype=t.float64); t.optim.SGD([x], 0.5).step()
out = told(x), x.tolist(), x._version
"""


@pytest.mark.parametrize("program", programs(AGREE))
def test_like_pytorchs(program: str) -> None:
    assert result(flow, program) == result(torch, program)


@pytest.mark.parametrize(
    "program",
    programs("""
with t.inference_mode(): (x * 2).sum().backward()

with t.inference_mode(), t.enable_grad(): (x * 2).sum().backward()

with t.inference_mode(): (x * 2).register_hook(print)

y.register_hook(print)

y.retain_grad()

a = x.exp()
with t.inference_mode(): a.mul_(2)
a.sum().backward()

a = x.exp()
with t.inference_mode(): a.view(2).mul_(2)
a.sum().backward()

with t.inference_mode(): a = h.view(2)
a.mul_(2)

with t.inference_mode(): a = x.view(2)
a.mul_(2)
"""),
)
def test_refused_as_by_pytorch(program: str) -> None:
    for library in (flow, torch):
        with pytest.raises(RuntimeError):
            exec(program, names(library))


# PyTorch gives up versions in inference_mode, and has to refuse; they are counted here.
@pytest.mark.parametrize(
    ("program", "meant"),
    [
        ("y.mul_(2); y.add_(1); out = y.tolist(), y._version, y.is_inference()", "[3, 5], 2, True"),
        ("y[0] = 7.0; y += n; out = y.tolist()", "[10, 6]"),
        ("t.add(n, n, out=y); out = y.tolist()", "[6, 8]"),
        ("y.unsqueeze_(0); out = tuple(y.shape)", "(1, 2)"),
        ("(x * y).sum().backward(); out = x.grad.tolist()", "[1, 2]"),
        ("h.mul_(y); h.sum().backward(); out = x.grad.tolist()", "[1, 2]"),
        ("y.requires_grad_(); (y * y).sum().backward(); out = y.grad.tolist()", "[2, 4]"),
        ("a = t.nn.Parameter(y); (a * a).sum().backward(); out = a.grad.tolist()", "[2, 4]"),
        ("x.grad = y; h.sum().backward(); out = y.tolist()", "[2, 3]"),
        (
            "with t.inference_mode(): i = (y - 1).long()\n"
            "x[i].sum().backward(); out = x.grad.tolist()",
            "[1, 1]",
        ),
    ],
)
def test_used_later_where_pytorch_refuses(program: str, meant: str) -> None:
    with pytest.raises(RuntimeError, match=r"inference tensor|InferenceMode|Inference tensors"):
        result(torch, program)
    assert result(flow, program) == eval(meant)


def test_a_stale_value_is_noticed_where_pytorch_refuses_to_save() -> None:
    space = names(flow)
    product = space["x"] * space["y"]
    with flow.inference_mode():
        space["y"].mul_(2)
    with pytest.raises(flow.errors.StaleTensorError):
        product.sum().backward()


def test_grad_mode_says_whether_operations_are_recorded() -> None:
    with flow.inference_mode(), flow.enable_grad():
        assert not flow.is_grad_enabled()  # PyTorch says that it is on, and records nothing
    assert flow.is_grad_enabled()


@pytest.mark.parametrize(
    "derivative",
    [
        lambda x: flow.func.grad(lambda x: (x**3).sum())(x),
        lambda x: flow.func.vjp(lambda x: (x**3).sum(), x)[1](flow.tensor(1.0))[0],
        lambda x: flow.func.jvp(lambda x: x**3, (x,), (flow.ones(2),))[1],
        lambda x: flow.autograd.functional.vjp(lambda x: (x**3).sum(), x)[1],
        lambda x: flow.autograd.functional.jvp(lambda x: x**3, x, flow.ones(2))[1],
        lambda x: flow.autograd.functional.jacobian(lambda x: (x**3).sum(), x),
        lambda x: flow.autograd.functional.hessian(lambda x: (x**4).sum() / 4, x).sum(0),
    ],
)
def test_functions_of_functions_differentiate_inside(derivative: Callable[..., Any]) -> None:
    x = flow.tensor([1.0, 2.0])
    expected = [3.0, 12.0]
    for leaf in (x, x.clone().requires_grad_()):
        with flow.inference_mode():
            assert derivative(leaf).tolist() == expected
        with flow.inference_mode(), flow.no_grad():
            assert derivative(leaf).tolist() == expected


def test_values_that_a_distribution_keeps_have_a_gradient_later() -> None:
    probs = flow.tensor(0.3, requires_grad=True)
    coin = flow.distributions.Bernoulli(probs)
    with flow.inference_mode():
        assert not coin.entropy().requires_grad
    coin.logits.backward()
    assert probs.grad.item() == pytest.approx(1 / (0.3 * 0.7))


def test_numbers_that_are_kept_are_not_marked() -> None:
    x = flow.ones(2)
    with flow.inference_mode():
        x * 7.125
    seen: list[Any] = []

    class Look(flow.Interpreter):
        def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
            seen.extend(inputs)
            assert self.inner is not None
            return self.inner.apply(op_expr, inputs, attrs)

    with flow.push_interpreter(Look()):
        x * 7.125
    assert len(seen) == 2
    assert not any(tensor.is_inference() for tensor in seen)


def test_compiled() -> None:
    def body(x: Any) -> Any:
        return x * 2, x[:1], (x + 1)[:1], (x * 3).detach(), x.t().reshape(6)

    compiled = flow.compile(body)
    x = flow.ones(2, 3, requires_grad=True)
    for _ in range(3):
        with flow.inference_mode():
            assert [y.is_inference() for y in compiled(x)] == [y.is_inference() for y in body(x)]
        assert not any(y.is_inference() for y in compiled(x))
    assert compiled.explain().captures == 2
    assert not compiled.explain().fallbacks

    @flow.compile
    def inside(x: Any) -> Any:
        with flow.inference_mode():
            y = x * 2
            return y, y[:1], x[:1]

    for _ in range(3):
        assert [y.is_inference() for y in inside(x)] == [True, True, False]
    assert inside.explain().captures == 1
    assert not inside.explain().fallbacks

    views = flow.compile(lambda y: (y[:1], y * 2))
    with flow.inference_mode():
        y = flow.ones(2)
    for _ in range(3):
        assert [y.is_inference() for y in views(y)] == [True, False]
    assert views.explain().captures == 1
    assert not views.explain().fallbacks
