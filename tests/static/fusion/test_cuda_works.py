"""The sources that the benchmark's works get on CUDA: NVRTC compiles them all (see conftest)."""

import pytest

import oneflow_lite as flow
from oneflow_lite.static.runtime.takeover import TakesOver
from tests.benchmarks import cuda_works
from tests.benchmarks.works import WORKS
from tests.conftest import REAL_CARD
from tests.static.fusion import nvrtc
from tests.strict_cupy import emulation, kernels

pytestmark = [
    pytest.mark.unjudged("nothing is replayed"),
    pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed"),
    pytest.mark.skipif(REAL_CARD, reason="a real card compiles them when it runs the works"),
]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("work", [name for name in WORKS if name != "chain20000"])
def test_the_groups_of_a_work_have_sources(work, cuda, monkeypatch):
    monkeypatch.setattr(emulation, "COMPILER", "none is needed")
    monkeypatch.setattr(emulation, "compiled", lambda source: None)
    try:
        with flow.use_jit(True):
            step = cuda_works.build("compiled", work)
            for _ in range(2):
                step()
    finally:
        flow.set_default_device("cpu")
    assert not step.explain().fallbacks
    loops = []
    for recording in step._recordings:
        runner = recording.core.runner
        if isinstance(runner, TakesOver):
            plan = runner._fused(None)
            assert not plan.refused
            loops += plan.loops
    assert loops or work in ("lstm_layers", "gru_layers")  # each of those layers is one op
    assert all(loop.source in kernels.texts for loop in loops)
