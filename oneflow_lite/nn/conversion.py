"""The part of `Module.to` and its kin that treats single tensors, and reads their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted, as_plain
from oneflow_lite.arrays.device import Device, as_device
from oneflow_lite.arrays.dtype import as_dtype
from oneflow_lite.arrays.memory_format import check_memory_format
from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.tensor import Tensor, make_tensor

if TYPE_CHECKING:
    pass


def convert_parameter(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    """Replace the data of a parameter, and of its gradient, by `fn` of it."""
    new = fn(parameter)
    if new is parameter:
        return
    grad = parameter.grad
    parameter.grad = None  # it would not fit the new data for a moment
    parameter.data = new
    if grad is not None:
        parameter.grad = fn(grad)


def shared(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor of the CPU in memory that is shared with forked processes."""
    if not tensor.is_cpu or not tensor.nbytes:
        return tensor
    import mmap  # absent in a browser

    memory = np.frombuffer(mmap.mmap(-1, tensor.nbytes), np.uint8)
    shared = make_tensor(adopted(memory.view(as_plain(tensor._data).dtype)).reshape(tensor.shape))
    shared.copy_(tensor)
    return shared


def parse_target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Device | None, Any]:
    """Return the device and the dtype in the arguments of `to`; None where it is to stay."""
    names = ("device", "dtype", "tensor", "non_blocking", "memory_format")
    check_memory_format("to", kwargs.get("memory_format"))
    unknown = [name for name in kwargs if name not in names]
    # A bool asks for an asynchronous copy, which has no effect here.
    given = [value for value in args if value is not None and not isinstance(value, bool)]
    if unknown or len(given) > 2:
        raise arg_error(
            "to",
            unknown[0] if unknown else "args",
            expected="(device), (dtype), (device, dtype) or (tensor)",
            got=", ".join([*map(repr, args), *kwargs]),
            hint="pass a device, a dtype or both",
            kind=ArgumentTypeError,
        )
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    tensor = kwargs.get("tensor")
    for value in given:
        if isinstance(value, Tensor):
            tensor = value
        elif isinstance(value, (Device, int)) or (
            isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda", "meta")
        ):
            device = value
        else:
            dtype = value
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if dtype is not None:
        dtype = as_dtype("to", dtype)
        if dtype.kind not in "fc":
            raise arg_error(
                "to",
                "dtype",
                expected="a floating point or complex dtype",
                got=dtype,
                hint="convert integer tensors one by one",
                kind=ArgumentTypeError,
            )
    return (None if device is None else as_device(device)), dtype
