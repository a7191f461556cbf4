"""Large planes and groups go in pieces that threads share: the same as in one piece."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.kernels import normalization, pieces

F = flow.nn.functional
X = np.random.default_rng(0).standard_normal((5, 6, 12, 12)).astype(np.float32)
W, B = np.linspace(1, 2, 6, dtype=np.float32), np.linspace(-1, 1, 6, dtype=np.float32)
CALLS = {
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), ()),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 1, 1), ()),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), ()),
    "antialiased": (lambda x: F.interpolate(x, (5, 7), mode="bicubic", antialias=True), ()),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (W, B)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), (W, B)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (12,), w), (np.linspace(1, 2, 12, dtype="f"),)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (12,), w), (np.linspace(1, 2, 12, dtype="f"),)),
    "instance_norm": (F.instance_norm, ()),
}


def _run(function, arrays):
    given = [flow.tensor(a, requires_grad=True) for a in arrays]
    y = function(*given)
    weights = flow.arange(y.numel(), dtype=flow.float32).reshape(y.shape).cos()
    return [y.detach(), *flow.autograd.grad(y, given, weights)]


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_pieces_make_the_same(name, nan, monkeypatch):
    function, scales = CALLS[name]
    x = X.copy()
    if nan:
        x[1, 2, 3, 4] = np.nan
    whole = _run(function, (x, *scales))
    cut = []
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(pieces, "BYTES", 2000)
    monkeypatch.setattr(pieces, "LARGE", 1)
    monkeypatch.setattr(pieces, "_FEW", 1)
    monkeypatch.setattr(normalization, "LARGE", 1)
    monkeypatch.setattr(normalization, "_SHORT_LINE", 1)
    seen = pieces.take_turns
    monkeypatch.setattr(pieces, "take_turns", lambda *given: (cut.append(given[2]), seen(*given)))
    for made, wanted in zip(_run(function, (x, *scales)), whole, strict=True):
        np.testing.assert_allclose(made.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
    assert 2 in cut
