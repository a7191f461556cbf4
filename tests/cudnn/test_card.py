"""On a card with cuDNN: its results are those of CuPy's kernels, captured ones too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.nn import functional as F
from oneflow_lite.ops import cudnn
from tests.conftest import REAL_CARD
from tests.cudnn.calls import CALLS, run_call

pytestmark = pytest.mark.skipif(
    not (REAL_CARD and cudnn.is_available()), reason="there is no card, or no cuDNN"
)
TOLERANCE: dict[Any, float] = {np.float16: 1e-2, np.float32: 1e-4, np.float64: 1e-10}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_kernels(name: str, dtype: Any) -> None:
    cudnn._idle.clear()
    found = run_call(CALLS[name], dtype)
    plans = [plan for place in cudnn._idle.get(0) or [] for plan in place.plans.values()]
    if dtype is not np.float64 or "conv" in name:
        assert plans and None not in plans
    with flow.backends.cudnn.flags(enabled=False):
        right = run_call(CALLS[name], dtype)
    for a, b in zip(found, right, strict=True):
        scale = max(1, np.abs(b).max())
        assert np.allclose(a, b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


def test_a_captured_step() -> None:
    x, w = flow.randn(4, 8, 12, 12, device="cuda"), flow.randn(8, 8, 3, 3, device="cuda")

    def step(x: Any) -> Any:
        return F.layer_norm(F.conv2d(x, w, padding=1).relu(), (12, 12))

    compiled = flow.compile(step, mode="cuda_graph")
    for factor in (1, 2, 3, 4):
        assert flow.allclose(compiled(x * factor), step(x * factor), rtol=1e-4, atol=1e-5)
