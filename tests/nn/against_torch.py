"""Builds a module in both libraries with one set of weights, and compares what they compute."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import oneflow_lite as flow


def numbers(*shape: int, seed: int = 0) -> Any:
    """Return uniform numbers from -1 to 1."""
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


def pair(torch: ModuleType, name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return PyTorch's module and ours, in double precision, alike in text, state and weights."""
    theirs = getattr(torch.nn, name)(*args, **options, dtype=torch.float64)
    ours = getattr(flow.nn, name)(*args, **options, dtype=flow.float64)
    return loaded(theirs, ours)


def loaded(theirs: Any, ours: Any) -> tuple[Any, Any]:
    """Give our module the weights of PyTorch's, after a look at text, names, order and shapes."""
    assert repr(ours) == repr(theirs)
    state = {name: x.detach().numpy() for name, x in theirs.state_dict().items()}
    own = {name: x.shape for name, x in ours.state_dict().items()}
    assert list(own.items()) == [(name, x.shape) for name, x in state.items()]
    names = [name for name, _ in theirs.named_parameters()]
    assert [name for name, _ in ours.named_parameters()] == names
    ours.load_state_dict({name: flow.tensor(x) for name, x in state.items()})
    return theirs, ours


def _flat(found: Any) -> list[Any]:
    if isinstance(found, (tuple, list)):
        return [y for each in found for y in _flat(each)]
    return [] if found is None else [found]


def agree(
    torch: ModuleType,
    modules: tuple[Any, Any],
    call: Callable[..., Any],
    *arrays: Any,
    orders: int = 2,
    rtol: float = 1e-8,
) -> None:
    """Compare the results of `call(library, module, *tensors)` and their derivatives.

    Those are by the arrays and all parameters, up to an order, in both modes of the rules.
    """
    found = []
    for lib, module in zip((torch, flow), modules, strict=True):
        tensors = [lib.tensor(x) for x in arrays]
        wanted = [x.requires_grad_() for x in tensors if x.dtype == lib.float64]
        wanted += module.parameters()
        # PyTorch's other ways to attend have no second derivative.
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            results = values = _flat(call(lib, module, *tensors))
        values = [y for y in values if y.dtype == lib.float64]
        for order in range(orders):
            weights = [numbers(*y.shape, seed=10 * order + i) for i, y in enumerate(values)]
            total = sum((y * lib.tensor(w)).sum() for y, w in zip(values, weights, strict=True))
            options = {"create_graph": order + 1 < orders, "allow_unused": True}
            grads = lib.autograd.grad(total, wanted, retain_graph=True, **options)
            if lib is flow and options["create_graph"]:  # the other mode of the rules
                again = flow.autograd.grad(total, wanted, retain_graph=True, allow_unused=True)
                for raw, grad in zip(again, grads, strict=True):
                    assert (raw is None) == (grad is None)
                    if raw is not None:
                        np.testing.assert_allclose(raw.numpy(), grad.detach().numpy(), 1e-9, 1e-11)
            results += [
                lib.zeros_like(x) if g is None else g for g, x in zip(grads, wanted, strict=True)
            ]
            values = [g for g in grads if g is not None and g.requires_grad]
            if not values:
                break
        found.append([y.detach().numpy() for y in results])
    for theirs, ours in zip(*found, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol, 1e-10)


def signature(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a function with their defaults, in order."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}


def draws(torch: ModuleType, monkeypatch: Any, make: Callable[[Any], Any]) -> Any:
    """Make a module in both libraries; return what each drew: kind, shape and the two numbers."""
    logs: dict[str, list[Any]] = {"theirs": [], "ours": []}

    def logged(log: list[Any], kind: str) -> Callable[..., Any]:
        def draw(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
            log.append((kind, tuple(tensor.shape), round(a, 9), round(b, 9)))
            return tensor

        return draw

    for kind in ("uniform_", "normal_"):
        monkeypatch.setattr(torch.Tensor, kind, logged(logs["theirs"], kind))
        monkeypatch.setattr(flow.nn.init, kind, logged(logs["ours"], kind))
    make(torch.nn)
    make(flow.nn)
    return logs["theirs"], logs["ours"]
