"""The suite on CUDA: what runs without a card, and the works on the stand-in."""

import pytest

import oneflow_lite as flow
from oneflow_lite.static.runtime import takeover
from tests import strict_cupy
from tests.benchmarks import cuda, cuda_works
from tests.benchmarks.works import COMPILED, OURS
from tests.conftest import REAL_CARD
from tests.strict_cupy import emulation

pytestmark = [
    pytest.mark.unjudged("what is fused may differ in its last bits"),
    pytest.mark.skipif(REAL_CARD, reason="`make bench-cuda` does this on a real card"),
]


def test_without_a_card_it_says_so_and_writes_nothing(tmp_path, monkeypatch, capsys):
    page = tmp_path / "benchmarks.md"
    page.write_text("as it was")
    monkeypatch.setattr(cuda, "PAGE", page)
    assert cuda.main(["--write"]) == 1
    assert capsys.readouterr().out.startswith("No CUDA device is at hand")
    assert page.read_text() == "as it was"


@pytest.mark.slow
@pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler to emulate kernels with")
def test_the_table(tmp_path, monkeypatch, capsys):
    """With the stand-in in this process: eager and compiled, and what computes something else."""
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Benchmarks\n{cuda.START}{cuda.END}\n")
    monkeypatch.setattr(cuda, "PAGE", page)
    monkeypatch.setattr(cuda, "installed", lambda side: side in (OURS, COMPILED))
    monkeypatch.setattr(cuda_works, "POINTWISE", 512)
    for each in ("_AT_LEAST", "_AT_MOST"):
        monkeypatch.setattr(takeover, each, 4)

    def here(side, work, budget):
        try:
            found = cuda.measured(side, work, 0.01)
        finally:
            flow.set_default_device("cpu")
        return found if work in ("relu2", "copy", "pointwise") else {**found, "digests": []}

    monkeypatch.setattr(cuda, "in_process", here)
    monkeypatch.setitem(cuda.OTHERS, "copy", lambda side: cuda_works.copying(side, 512))
    monkeypatch.setitem(cuda.OTHERS, "pointwise", lambda side: cuda_works.pointwise(side, 512))
    with strict_cupy.installed(), flow.use_jit(True):
        for _ in range(2):  # the second time it takes the first one's place
            assert cuda.main(["--works", "copy,pointwise,relu2", "--rounds", "1", "--write"]) == 0
    text = page.read_text()
    assert text.startswith("# Benchmarks\n") and text.count("## On a CUDA device") == 1
    assert "Measured on strict stand-in for CuPy" in text
    assert "A copy moves" in text and "The fused pointwise work reaches" in text
    assert text.partition("\n")[2].strip() in capsys.readouterr().out


def test_a_side_that_computes_something_else_is_left_out(capsys):
    def run(side, work):
        return {"seconds": 1.0, "digests": [((2,), 1.0 if side == "a" else 2.0, 0.0)]}

    assert cuda.measure(["a", "b"], ["relu2"], 2, run) == {"relu2": {"a": 1.0}}
    assert "b computes something else" in capsys.readouterr().err
