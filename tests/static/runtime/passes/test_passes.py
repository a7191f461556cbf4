"""run_passes: by name, in one order, with a report of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oneflow_lite.errors import ArgumentError
from oneflow_lite.static.runtime import passes
from oneflow_lite.static.runtime.passes import BUILDING, DEFAULT_PASSES, PASSES
from tests.static.build import Builder


def test_all_run_in_their_own_order() -> None:
    b = Builder()
    plan = b.plan(b.op("neg", b.feed("x", np.ones(3))), passes=None)
    assert tuple(report.name for report in plan.reports) == DEFAULT_PASSES
    assert tuple(name for name in PASSES if name not in BUILDING) == DEFAULT_PASSES
    plan = b.plan("neg_0", passes=DEFAULT_PASSES[::-1])
    assert tuple(report.name for report in plan.reports) == DEFAULT_PASSES


def test_each_can_be_left_out() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", np.ones(3)))
    for name in DEFAULT_PASSES:
        (report,) = b.plan(y, passes=[name]).reports
        assert report.name == name
    assert b.plan(y, passes=()).reports == []


def test_each_has_a_file_and_a_test_of_its_name() -> None:
    folder = Path(passes.__file__).parent
    for name in DEFAULT_PASSES:
        assert (folder / f"{name}.py").is_file()
        assert Path(__file__).with_name(f"test_{name}.py").is_file()


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match="dead_code.*got 'dead_cod', 'jit'"):
        Builder().plan(passes=["jit", "dead_cod", "inplace"])
