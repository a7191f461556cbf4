"""Fixtures for the tests of Programs and of what runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from oneflow_lite.arrays.device import as_device
from tests import strict_cupy
from tests.conftest import REAL_CARD


@pytest.fixture
def cuda() -> Iterator[Any]:
    """A CUDA place, with CuPy or the stand-in for it."""
    if REAL_CARD:
        yield as_device("cuda")
        return
    with strict_cupy.installed():
        yield as_device("cuda")
