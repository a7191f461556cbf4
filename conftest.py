"""What every doctest may use without importing it: the package as `flow`, and NumPy as `np`."""

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace: dict[str, Any]) -> None:
    """Add the two names to the namespace in which doctests run."""
    doctest_namespace.update(flow=flow, np=np)
