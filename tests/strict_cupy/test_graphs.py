"""Capturing a stream: nothing runs until the launch, and every launch runs everything."""

from typing import Any

import numpy as np
import pytest

from tests.strict_cupy.modules import cupy


@pytest.fixture
def stream() -> Any:
    with cupy.cuda.Stream(non_blocking=True) as stream:
        yield stream


def test_a_launch_runs_what_was_captured(stream: Any, x: Any) -> None:
    total = cupy.zeros(3)
    stream.begin_capture()
    assert stream.is_capturing()
    y = cupy.exp(x) + x[0]
    total += y.T[:, 0]
    x[1] = 0.0
    cupy.maximum(x, 2.0, out=x)
    picked = y[cupy.zeros(1, int)]
    graph = stream.end_capture()
    assert not stream.is_capturing()
    assert np.array_equal(x.get(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert not total.get().any()
    for launch in (1, 2):
        first = x.get()
        graph.launch()
        right = np.exp(first) + first[0]
        assert np.allclose(y.get(), right) and np.allclose(picked.get(), right[:1])
        assert np.array_equal(x.get(), [[2.0, 2.0, 3.0], [2.0, 2.0, 2.0]])
        if launch == 1:
            before = right[0]
    assert np.allclose(total.get(), before + right[0])


def test_what_cannot_be_captured(stream: Any, x: Any) -> None:
    stream.begin_capture()
    for refused in (x.get, x.sum().item, lambda: bool(x[0, 0]), lambda: cupy.asarray([1.0])):
        with pytest.raises(RuntimeError, match="capturing"):
            refused()
    with pytest.raises(RuntimeError, match="capturing"):
        stream.synchronize()
    for library in (lambda: x @ x.T, lambda: cupy.einsum("ij->i", x), lambda: x[0].dot(x[1])):
        with pytest.raises(NotImplementedError, match="cuBLAS"):
            library()
    assert stream.end_capture().kernels
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        stream.end_capture()
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        cupy.cuda.Stream.null.begin_capture()
