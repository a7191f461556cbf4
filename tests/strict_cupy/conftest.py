"""The stand-in is installed for each of its own tests, unless a real device is here."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests import strict_cupy
from tests.strict_cupy.modules import cupy


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    if strict_cupy.real_device_present():
        pytest.skip("a real device is here, and the stand-in is not used")
    with strict_cupy.installed(device_count=2):
        yield


@pytest.fixture
def x() -> Any:
    array = cupy.asarray(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    strict_cupy.clear_log()
    return array
