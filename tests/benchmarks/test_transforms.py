"""The works of transforms are the same on both sides, and their table says what was measured."""

from __future__ import annotations

import pytest

from tests.benchmarks import transforms
from tests.benchmarks.results import PAGE
from tests.benchmarks.works import difference, digests


@pytest.mark.slow(but=3)
@pytest.mark.filterwarnings("error:vmap")  # an op that runs once for each entry
@pytest.mark.parametrize("name", transforms.WORKS)
def test_both_sides_compute_the_same(name: str) -> None:
    pytest.importorskip("torch")
    ours, theirs = (transforms.build(side, name) for side in ("ours", "torch"))
    assert ours is not None
    assert theirs is not None
    got, expected = digests(ours, 1), digests(theirs, 1)
    assert any(d.norm > 1e-3 for d in expected)
    assert difference(got, expected) is None


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", transforms.WORKS)
def test_the_compiled_side_computes_the_same(name: str) -> None:
    ours, compiled = (transforms.build(side, name) for side in ("ours", "compiled"))
    assert ours is not None
    assert compiled is not None
    expected = digests(ours, 1)
    for _ in range(2):  # recorded, then replayed
        assert difference(digests(compiled, 1), expected) is None
    assert compiled.explain().hits > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", transforms.JAX_WORKS)
def test_jax_computes_the_same(name: str) -> None:
    pytest.importorskip("jax")
    ours, theirs = (transforms.build(side, name) for side in ("ours", "jax"))
    assert ours is not None
    assert theirs is not None
    assert difference(digests(theirs, 1), digests(ours, 1)) is None


def test_the_table_has_ratios_and_their_geometric_means() -> None:
    found = {
        "jacrev": {"ours": 0.001, "torch": 0.002},
        "jacfwd": {"ours": 0.004, "torch": 0.002},
        "derivative3": {"ours": 0.001, "torch": 0.01, "compiled": 0.0005, "jax": 0.001},
    }
    lines = transforms.report(found, ["ours", "torch", "compiled", "jax"]).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    assert cells[0] == ["", "ms", "/ PyTorch", "compiled, ms", "compiled / jax.jit"]
    assert [row[1:] for row in cells[2:]] == [
        ["1", "0.50", "-", "-"],
        ["4", "2.00", "-", "-"],
        ["1", "0.10", "0.5", "0.50"],
    ]
    assert lines[-1] == (
        "Geometric means: / PyTorch 1.00; "
        "of the derivatives of order k: / PyTorch 0.10, compiled / jax.jit 0.50."
    )


def test_the_page_has_a_place_for_the_table() -> None:
    page = PAGE.read_text("utf-8")
    assert page.count(transforms.START) == page.count(transforms.END) == 1
    text = transforms.section({"jacrev": {"ours": 1.0}}, ["ours"], 3, 0.5)
    assert text.startswith(transforms.START)
    assert text.endswith(transforms.END)


def test_a_part_of_the_works_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        transforms.main(["--works", "jacrev", "--write"])
    assert "whole run" in capsys.readouterr().err
