"""All code that the tests here compile for CUDA goes through NVRTC, too, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oneflow_lite.static.fusion.cuda_source import OPTIONS
from tests.static.fusion import nvrtc
from tests.strict_cupy import kernels


@pytest.fixture(autouse=True, scope="module")
def nvrtc_compiles_it() -> Iterator[None]:
    """Compile all sources of a module at its end, as one text."""
    before = set(kernels.texts)
    yield
    found = [text for text in kernels.texts if text not in before]
    assert all(kernels.texts[text] == OPTIONS for text in found)
    if found and nvrtc.library() is not None:
        assert nvrtc.problems(nvrtc.merged(found), OPTIONS) == ""
