"""`nn.grad`: gradients of convolutions as functions, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("words", [{}, {"stride": 2, "padding": 1, "groups": 2}, {"dilation": 2}])
def test_gradients_of_convolutions(spatial: int, words: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, *[5] * spatial))
    w = rng.standard_normal((6, 4 // words.get("groups", 1), *[2] * spatial))
    conv = getattr(torch.nn.functional, f"conv{spatial}d")
    dy = rng.standard_normal(conv(torch.tensor(x), torch.tensor(w), **words).shape)
    found = []
    for lib in (flow, torch):
        a, b, c = leaves = [lib.tensor(v, requires_grad=True) for v in (x, w, dy)]
        dx = getattr(lib.nn.grad, f"conv{spatial}d_input")(a.shape, b, c, **words)
        dw = getattr(lib.nn.grad, f"conv{spatial}d_weight")(a, b.shape, c, **words)
        seconds = lib.autograd.grad((dx**2).sum() + (dw**2).sum(), leaves)
        found.append([t.detach().numpy() for t in (dx, dw, *seconds)])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_without_recording_and_with_wrong_sizes() -> None:
    w = flow.ones(1, 1, 3, requires_grad=True)
    with flow.no_grad():
        assert not flow.nn.grad.conv1d_input((1, 1, 3), w, flow.ones(1, 1, 1)).requires_grad
    with pytest.raises(RuntimeError, match="shape"):
        flow.nn.grad.conv1d_input((1, 1, 5), w, flow.ones(1, 1, 1))
