"""CuPy's stand-in, and one for cuDNN's frontend, for each test here that asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from tests import strict_cupy
from tests.strict_cupy import cudnn


@pytest.fixture
def cuda() -> Iterator[None]:
    if strict_cupy.real_device_present():
        pytest.skip("a real device is here, and the stand-in is not used")
    with strict_cupy.installed():
        yield


@pytest.fixture
def library(cuda: None) -> Iterator[ModuleType]:
    with cudnn.installed() as module:
        yield module
