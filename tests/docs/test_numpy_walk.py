"""The table in docs/numpy.md says what the walk finds, and the walk finds all that HIPS has."""

from __future__ import annotations

import importlib

import pytest

from tests import numpy_walk


def test_the_table_is_up_to_date() -> None:
    text = numpy_walk.PAGE.read_text("utf-8")
    if numpy_walk.versions() not in text:
        pytest.skip(f"the table is not of {numpy_walk.versions()}")
    assert text == numpy_walk.page(), "run `python -m tests.numpy_walk --write`"


@pytest.mark.parametrize("place", numpy_walk.HIPS)
def test_functions_of_hips_are_recorded(place: str) -> None:
    outcomes = numpy_walk.walk(place)
    names = numpy_walk.HIPS[place].split()
    missing = [name for name in names if outcomes[name] != numpy_walk.RECORDED]
    assert missing == (numpy_walk.NO_UFUNCS if place == "scipy.special" else [])


# Helpers of HIPS that NumPy does not have.
OWN = {"array_from_args", "concatenate_args", "make_diagonal", "truncate_pad"}


@pytest.mark.parametrize("place", numpy_walk.HIPS)
def test_the_list_of_hips_is_whole(place: str) -> None:
    core = pytest.importorskip("autograd.core")
    module = importlib.import_module(f"autograd.{place}")
    found = {
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and value in core.primitive_vjps
    }
    assert found - OWN <= set(numpy_walk.HIPS[place].split())
