"""Layers of bfloat16 beside PyTorch's: dtypes, results and gradients within bfloat16's rounding."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from tests.nn.twins import give_numbers

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")


def _sine(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape)) * 7 % 11).reshape(shape).astype(np.float32)


_INDEX = np.array([[0, 3, 1], [2, 2, 4]])
_LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], list[np.ndarray]]] = [
    ("Linear", (16, 8), {}, [_sine(4, 16)]),
    ("Bilinear", (5, 6, 4), {}, [_sine(4, 5), _sine(4, 6)]),
    ("Conv1d", (4, 8, 3), {"padding": 1}, [_sine(2, 4, 10)]),
    ("Conv2d", (4, 8, 3), {"stride": 2, "groups": 2}, [_sine(2, 4, 9, 9)]),
    ("Conv2d", (4, 4, 3), {"padding": 1, "groups": 4}, [_sine(2, 4, 9, 9)]),
    ("ConvTranspose2d", (4, 3, 3), {"stride": 2}, [_sine(2, 4, 5, 5)]),
    ("Embedding", (10, 6), {"padding_idx": 0}, [_INDEX]),
    ("EmbeddingBag", (10, 6), {}, [_INDEX]),
    ("LSTM", (5, 7, 2), {"bidirectional": True}, [_sine(6, 3, 5)]),
    ("GRU", (5, 7), {}, [_sine(6, 3, 5)]),
    ("RNN", (5, 7), {}, [_sine(6, 3, 5)]),
    ("LSTMCell", (5, 7), {}, [_sine(3, 5)]),
    ("MultiheadAttention", (8, 2), {"batch_first": True}, [_sine(2, 5, 8)] * 3),
    ("TransformerEncoderLayer", (8, 2, 16, 0.0), {}, [_sine(2, 5, 8)]),
    ("BatchNorm2d", (4,), {}, [_sine(3, 4, 5, 5)]),
    ("LayerNorm", (8,), {}, [_sine(3, 8)]),
    ("GroupNorm", (2, 4), {}, [_sine(3, 4, 5)]),
    ("RMSNorm", (8,), {}, [_sine(3, 8)]),
]


def _results(lib: Any, layer: Any, inputs: list[np.ndarray], dtype: Any) -> list[Any]:
    """Return outputs, gradients and buffers, as names of dtypes and arrays."""
    layer = layer.to(dtype)
    given = [torch.tensor(a) if lib is torch else flow.tensor(a) for a in inputs]
    given = [x.to(dtype).requires_grad_() if x.is_floating_point() else x for x in given]
    found: list[Any] = []

    def flatten(value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for each in value:
                flatten(each)
        elif value is not None:
            found.append(value)

    flatten(layer(*given))
    weights = [lib.arange(float(y.numel())).sin().reshape(y.shape) for y in found]
    sum((y * w.to(y.dtype)).sum() for y, w in zip(found, weights, strict=True)).backward()
    leaves = [x for x in (*layer.parameters(), *given) if x.requires_grad]
    found += [*[leaf.grad for leaf in leaves], *[b for b in layer.buffers() if b.ndim]]
    return [(str(x.dtype).removeprefix("torch."), x.detach().double().numpy()) for x in found]


@pytest.mark.parametrize("name, sizes, options, inputs", _LAYERS, ids=[n for n, *_ in _LAYERS])
def test_layers(name, sizes, options, inputs):
    theirs = getattr(torch.nn, name)(*sizes, **options)
    ours = getattr(flow.nn, name)(*sizes, **options)
    give_numbers(ours, theirs)
    exact = _results(torch, copy.deepcopy(theirs), inputs, torch.float64)
    expected = _results(torch, theirs, inputs, torch.bfloat16)
    found = _results(flow, ours, inputs, flow.bfloat16)
    assert [dtype for dtype, _ in found] == [dtype for dtype, _ in expected]
    for (_, x), (_, y), (_, true) in zip(found, expected, exact, strict=True):
        size = np.abs(true).max()
        assert np.abs(x - true).max() <= 2 * np.abs(y - true).max() + 0.02 * size + 1e-3
