"""The same module in PyTorch and here, with the same numbers, compared in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

import oneflow_lite as flow


def array(value: Any) -> np.ndarray:
    """The values of a tensor of either library."""
    return np.array(value.detach().numpy())


def assert_close(ours: Any, theirs: Any, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    np.testing.assert_allclose(array(ours), array(theirs), rtol=rtol, atol=atol)


def give_numbers(ours: Any, theirs: Any) -> None:
    """Give both modules the same numbers, through the state dict that PyTorch's has."""
    import torch

    state = theirs.state_dict()
    generator = np.random.default_rng(3)
    for value in state.values():
        if torch.is_floating_point(value):
            value.copy_(torch.from_numpy(generator.uniform(0.2, 1.3, value.shape)))
    theirs.load_state_dict(state)
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({key: flow.tensor(array(value)) for key, value in state.items()})


def assert_same_state(ours: Any, theirs: Any, **tolerance: float) -> None:
    """Keys, their order, shapes, dtypes and values are equal."""
    mine, other = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(other)
    for key, value in other.items():
        assert str(mine[key].dtype) == str(value.dtype).removeprefix("torch."), key
        assert tuple(mine[key].shape) == tuple(value.shape), key
        assert_close(mine[key], value, **tolerance)


def assert_same_training(ours: Any, theirs: Any, *inputs: np.ndarray, **tolerance: float) -> None:
    """Outputs, gradients of inputs and parameters, and the state afterwards are equal."""
    import torch

    xs = [flow.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs]
    ts = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs]
    y, t = ours(*xs), theirs(*ts)
    assert_close(y, t, **tolerance)
    weights = np.random.default_rng(5).uniform(0.5, 1.5, t.shape)
    (y * flow.tensor(weights)).sum().backward()
    (t * torch.tensor(weights)).sum().backward()
    for a, b in zip(xs, ts, strict=True):
        if a.requires_grad:
            assert_close(a.grad, b.grad, **tolerance)
    named = dict(theirs.named_parameters())
    assert [name for name, _ in ours.named_parameters()] == list(named)
    for name, parameter in ours.named_parameters():
        assert (parameter.grad is None) == (named[name].grad is None), name
        if parameter.grad is not None:
            assert_close(parameter.grad, named[name].grad, **tolerance)
    assert_same_state(ours, theirs, **tolerance)
    ours.zero_grad()
    theirs.zero_grad()
