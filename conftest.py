"""Names that doctests use without an import: the package as `flow`, and NumPy as `np`."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

if find_spec("numba") is None:  # without the extra `jit`, these cannot be imported
    collect_ignore = [
        f"oneflow_lite/static/fusion/{name}.py" for name in ("elementary", "machine", "parts")
    ]


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace: dict[str, Any]) -> None:
    """Add the two names to the namespace in which doctests run."""
    doctest_namespace.update(flow=flow, np=np)
