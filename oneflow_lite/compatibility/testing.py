"""The rest of `torch.testing`: tensors for tests, and the older `assert_allclose`."""

from __future__ import annotations

import math
from typing import Any

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, FlowError, arg_error
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.testing import assert_close

_LOOSE = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of numbers drawn evenly between low and high, for tests.

    low, high: by default -9 and 9, for integers up to 9, for bools either; both are clamped to what
        the dtype holds.
    noncontiguous: leave a gap after each element.
    exclude_zero: put 1 for 0, or the smallest normal floating number.

    Raises `ArgumentError` for bounds that enclose nothing, and arguments that exclude each other.

    >>> import oneflow_lite as flow
    >>> flow.testing.make_tensor(2, 3, dtype=flow.int64, device="cpu", low=4, high=5)
    tensor([[4, 4, 4],
            [4, 4, 4]])
    """

    def error(argument: str, expected: str, got: Any, hint: str) -> FlowError:
        return arg_error("make_tensor", argument, expected, got, hint, ArgumentError)

    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        (shape,) = shape
    made = flow.empty(*shape[:-1], *[2 * n if noncontiguous else n for n in shape[-1:]],
                      dtype=dtype, device=device)  # fmt: skip
    floating = made.is_floating_point() or made.is_complex()
    if noncontiguous and memory_format is not None:
        raise error("memory_format", "None beside noncontiguous", memory_format, "drop one")
    if requires_grad and not floating:
        raise error("requires_grad", f"False for {dtype}", True, "take a floating dtype")
    whole = made.dtype == flow.bool
    limits = flow.finfo(dtype) if floating else None if whole else flow.iinfo(dtype)
    least, most = (0, 1) if limits is None else (limits.min, limits.max)
    end = most if floating or made.dtype == flow.int64 else most + 1
    first = (0 if whole else -9) if low is None else low
    last = (2 if whole else 9 if floating else 10) if high is None else high
    if not (first < last or (first == last and floating)) or last < least or first >= end:
        raise error("low", f"a number below high={last}, within {least} to {most}", first,
                    "leave both out")  # fmt: skip
    first, last = max(first, least), min(last, end)
    if floating:
        (flow.view_as_real(made) if made.is_complex() else made).uniform_(first, last)
    else:
        made = flow.randint(math.ceil(first), math.ceil(last), made.shape, device=device).to(dtype)
    if noncontiguous and made.ndim:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = flow.finfo(dtype).tiny if floating else 1
    return made.requires_grad_(requires_grad)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Do what `assert_close` does, with older tolerances, for any dtypes; deprecated."""
    warn_caller("testing.assert_allclose() is deprecated; use testing.assert_close()")
    actual = flow.as_tensor(actual)
    expected = (
        expected if isinstance(expected, Tensor) else flow.tensor(expected, dtype=actual.dtype)
    )
    if rtol is None and atol is None:
        known = [_LOOSE.get(str(x._data.dtype), (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*known, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip
