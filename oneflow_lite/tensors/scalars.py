"""Numbers as 0-d tensors, kept in a cache: `x * 2.5` makes no new array for the 2.5."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.device import CPU, Device, to_device
from oneflow_lite.arrays.dtype import SUPPORTED, DType, float16, scalar_dtype
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.tensors.tensor import Tensor, as_constant, make_constant, make_tensor

scalars: dict[tuple[Any, DType], Tensor] = {}
_SCALARS_KEPT = 1024
INT_RANGE = {d: (int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in SUPPORTED if d.kind in "iu"}


def _wrapped(value: Any, dtype: DType, device: Device) -> Any:
    """Wrap a negative number around into an unsigned dtype, as PyTorch does; refuse the rest."""
    low, high = INT_RANGE[dtype]
    if low == 0 and -high <= value < 0:
        array = np.array(value % (high + 1), dtype=dtype)
        return array if device is CPU else to_device(array, device)
    raise arg_error(
        "scalar",
        "value",
        expected=f"a number from {low} to {high}, for a tensor of dtype {dtype}",
        got=value,
        hint="convert the tensor to a wider dtype first",
        kind=ArgumentError,
    )


def is_half(value: Any) -> bool:
    """Return whether float16 holds a number without rounding."""
    with np.errstate(over="ignore"):
        return bool(float(np.float16(value)) == value or value != value)


def number_tensor(value: Any, dtype: DType | None = None, device: Device = CPU) -> Tensor:
    """Return a 0-d tensor for a number; on the CPU from a bounded cache, with a read-only array.

    The cache keeps no zeros, because 0.0 == -0.0, and no NaN, which does not equal itself. Nor
    does it keep a number that float16 rounds: some ops compute with the number itself.
    """
    if dtype is None:
        dtype = scalar_dtype(value)
    if dtype.kind in "iu" and not INT_RANGE[dtype][0] <= value <= INT_RANGE[dtype][1]:
        return make_constant(_wrapped(value, dtype, device))
    if device is not CPU:
        return make_constant(to_device(np.array(value, dtype=dtype), device))
    if not value or value != value:
        return make_constant(adopted(np.array(value, dtype=dtype)))
    tensor = scalars.get((value, dtype))
    if tensor is None:
        array = adopted(np.array(value, dtype=dtype))
        if dtype is float16 and not is_half(value):
            return make_constant(array)
        array.flags.writeable = False  # many expressions share it
        if len(scalars) >= _SCALARS_KEPT:
            scalars.clear()
        tensor = scalars[value, dtype] = make_tensor(array)
    return as_constant(tensor)
