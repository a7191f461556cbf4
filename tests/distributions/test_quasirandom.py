"""Sobol's sequences beside PyTorch's."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

torch = pytest.importorskip("torch")
SobolEngine = flow.quasirandom.SobolEngine


@pytest.mark.parametrize("dimension", [1, 3, 200])
def test_unscrambled_points_are_pytorchs(dimension: int) -> None:
    mine, theirs = SobolEngine(dimension), torch.quasirandom.SobolEngine(dimension)
    steps: list[tuple[str, Any]] = [
        ("draw", (1,)),
        ("draw", (5,)),
        ("fast_forward", (3,)),
        ("draw", ()),
        ("reset", ()),
        ("fast_forward", (3,)),
        ("draw", (5,)),
        ("draw_base2", (3,)),
    ]
    for name, args in steps:
        x, y = getattr(mine, name)(*args), getattr(theirs, name)(*args)
        assert mine.num_generated == theirs.num_generated
        if name.startswith("draw"):
            np.testing.assert_array_equal(x.numpy(), y.numpy())
    assert repr(mine) == repr(theirs)


def test_scrambled_points_are_even_and_follow_a_seed() -> None:
    engine = SobolEngine(2, scramble=True, seed=1)
    x = engine.draw(64, dtype=flow.float64)
    assert x.dtype == flow.float64 and flow.equal(x, engine.reset().draw(64, dtype=flow.float64))
    assert flow.equal(x, SobolEngine(2, True, 1).draw(64, dtype=flow.float64))
    for column in (x * 64).long().T:  # one point in each of 64 slices
        assert sorted(column.tolist()) == list(range(64))
    flow.manual_seed(0)
    y = SobolEngine(2, True).draw(4)
    flow.manual_seed(0)
    other = SobolEngine(2, True)
    assert flow.equal(y, copy.deepcopy(other).draw(4)) and repr(other).endswith("scramble=True)")
    out = flow.empty(0)
    assert other.draw(4, out=out) is out and flow.equal(out, y)


@pytest.mark.parametrize("dimension", [0, 21202])
def test_errors(dimension: int) -> None:
    with pytest.raises(ValueError, match="21201"):
        SobolEngine(dimension)
    engine = SobolEngine(1)
    engine.draw(3)
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(2)
    with pytest.raises(ValueError, match="'n'"):
        engine.draw(0)
