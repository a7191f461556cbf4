"""`testing.make_tensor` and `assert_allclose`."""

from __future__ import annotations

from typing import Any

import pytest

import oneflow_lite as flow

make_tensor = flow.testing.make_tensor
DTYPES = "float16 float32 float64 complex64 complex128 int8 uint8 int64 bool".split()


@pytest.mark.parametrize("name", DTYPES)
def test_tensors_for_tests(name: str) -> None:
    dtype = getattr(flow, name)
    x = make_tensor((5, 7), dtype=dtype, device="cpu")
    assert x.shape == (5, 7) and x.dtype == dtype and x.is_contiguous()
    parts = flow.view_as_real(x) if x.is_complex() else x.double()
    assert parts.min() >= (0 if name in ("uint8", "bool") else -9) and parts.max() <= 9
    gaps = make_tensor(5, 7, dtype=dtype, device="cpu", noncontiguous=True)
    assert gaps.shape == (5, 7) and gaps.stride() == (14, 2)
    assert make_tensor((0, 3), dtype=dtype, device="cpu", noncontiguous=True).shape == (0, 3)
    assert make_tensor((), dtype=dtype, device="cpu").ndim == 0
    assert (make_tensor(50, dtype=dtype, device="cpu", low=0, exclude_zero=True) != 0).all()
    if x.is_floating_point():
        assert make_tensor(2, dtype=dtype, device="cpu", requires_grad=True).requires_grad
    flow.manual_seed(0)
    y = make_tensor(9, dtype=dtype, device="cpu")
    flow.manual_seed(0)
    assert flow.equal(y, make_tensor(9, dtype=dtype, device="cpu"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"low": 3, "high": 2}, "'low'"),
        ({"low": float("nan")}, "'low'"),
        ({"high": -1000}, "'low'"),
        ({"requires_grad": True}, "'requires_grad'"),
        ({"noncontiguous": True, "memory_format": flow.channels_last}, "'memory_format'"),
    ],
)
def test_bounds_that_enclose_nothing(words: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_tensor(2, dtype=flow.int8, device="cpu", **words)


def test_assert_allclose() -> None:
    with pytest.warns(UserWarning, match="assert_close"):
        flow.testing.assert_allclose(flow.tensor([1.0, float("nan")]), [1.00005, float("nan")])
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="not close"):
        flow.testing.assert_allclose([1.0], [1.1])
