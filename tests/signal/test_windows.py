"""The windows of `signal.windows` beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

torch = pytest.importorskip("torch")

WORDS: dict[str, list[dict[str, Any]]] = {
    "exponential": [{}, {"tau": 2.0}, {"center": 1.5, "sym": False}],
    "gaussian": [{"std": 0.5}],
    "kaiser": [{}, {"beta": 0.0}],
    "general_cosine": [{"a": [0.4, 0.3, 0.2]}],
    "general_hamming": [{"alpha": 0.3}],
}


@pytest.mark.parametrize("name", flow.signal.windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
def test_windows(name: str, sym: bool) -> None:
    for words in WORDS.get(name, [{}]):
        options = {"sym": sym, **words}
        for length in (0, 1, 2, 5, 8):
            mine = getattr(flow.signal.windows, name)(length, dtype=flow.float64, **options)
            theirs = getattr(torch.signal.windows, name)(length, dtype=torch.float64, **options)
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-12)
    assert getattr(flow.signal.windows, name)(3, **words).dtype == flow.float32


@pytest.mark.parametrize(
    ("name", "words", "text"),
    [
        ("hann", {"M": -1}, "'M'"),
        ("exponential", {"tau": 0}, "'tau'"),
        ("exponential", {"center": 1}, "'center'"),
        ("gaussian", {"std": 0}, "'std'"),
        ("kaiser", {"beta": -1}, "'beta'"),
        ("general_cosine", {"a": []}, "'a'"),
        ("hann", {"dtype": flow.int64}, "'dtype'"),
        ("hann", {"dtype": flow.float16}, "'dtype'"),
        ("hann", {"layout": flow.sparse_coo}, "'layout'"),
    ],
)
def test_errors(name: str, words: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=text):
        getattr(flow.signal.windows, name)(**{"M": 3, **words})


def test_requires_grad() -> None:
    assert flow.signal.windows.hann(3, requires_grad=True).requires_grad
