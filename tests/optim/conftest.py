"""Fixtures that the tests of optimizers share."""

from types import ModuleType

import pytest


@pytest.fixture
def torch() -> ModuleType:
    """PyTorch, or the test is skipped."""
    return pytest.importorskip("torch")
