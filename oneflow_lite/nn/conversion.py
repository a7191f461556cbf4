"""The part of `Module` that moves and converts its tensors: `to`, `cuda`, `double` and the like."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.bfloat16_arrays import adopted, as_plain
from oneflow_lite.device import CPU, Device, as_device
from oneflow_lite.dtype import as_dtype, float16, float32, float64
from oneflow_lite.errors import ArgumentTypeError, DeviceError, arg_error
from oneflow_lite.functors.creation import empty_like
from oneflow_lite.memory_format import check_memory_format
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor, make_tensor

if TYPE_CHECKING:
    from oneflow_lite.nn.module import Module


class Conversion:
    """Moves parameters and buffers in place: the module keeps its Parameter objects."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]

    if TYPE_CHECKING:

        def children(self) -> Iterator[Module]: ...

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device and convert floating point and complex tensors to a dtype.

        Called as `to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`, positionally or
        by keyword. Integer and bool buffers keep their dtype. The module is changed and returned.

        Raises
        ------
        ArgumentTypeError
            When the dtype is neither floating point nor complex, and for any other argument.
        DeviceError
            When the device is not there.
        """
        device, dtype = _parse(args, kwargs)

        def convert(tensor: Tensor) -> Tensor:
            inexact = tensor.is_floating_point() or tensor.is_complex()
            converted: Tensor = tensor.to(
                device=tensor.device if device is None else device,
                dtype=dtype if inexact and dtype is not None else tensor.dtype,
            )
            return converted

        return self._apply(convert)

    def cuda(self, device: Any = None) -> Self:
        """Move to a CUDA device, by default the current one."""
        return self.to(device=as_device("cuda" if device is None else device))

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self.to(device=CPU)

    def xpu(self, device: Any = None) -> Self:
        """Raise `DeviceError`, as `mtia` and `ipu` do: the CPU and CUDA are all there is."""
        return self._absent("xpu", device)

    def mtia(self, device: Any = None) -> Self:
        """Raise `DeviceError`."""
        return self._absent("mtia", device)

    def ipu(self, device: Any = None) -> Self:
        """Raise `DeviceError`."""
        return self._absent("ipu", device)

    def _absent(self, kind: str, device: Any) -> Self:
        where = kind if device is None else f"{kind}:{device}"
        raise DeviceError(f"{kind}(): device '{where}' is not there; use cpu() or cuda()")

    def type(self, dst_type: Any) -> Self:
        """Convert every parameter and buffer to a dtype, or one named 'torch.FloatTensor'."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._convert_floating(float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._convert_floating(float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._convert_floating(float16)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16, which needs ml_dtypes."""
        return self._convert_floating(as_dtype("bfloat16", "bfloat16"))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without copying: parameters and buffers hold anything afterwards."""
        target = as_device(device)
        return self._apply(lambda tensor: empty_like(tensor, device=target), recurse)

    def share_memory(self) -> Self:
        """Put parameters and buffers on the CPU where processes forked afterwards share them.

        What one of the processes writes, all of them see. A process that is spawned, or gets the
        module through a pickle, has a copy of its own.
        """
        return self._apply(_shared)

    def _convert_floating(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype=dtype) if t.is_floating_point() else t)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, its gradient and every buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is not None:
                    _convert_parameter(parameter, fn)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self


def _convert_parameter(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    new = fn(parameter)
    if new is parameter:
        return
    grad = parameter.grad
    parameter.grad = None
    parameter.data = new
    if grad is not None:
        parameter.grad = fn(grad)


def _shared(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor of the CPU in memory that is shared with forked processes."""
    if tensor.is_cuda or not tensor.nbytes:
        return tensor
    memory = np.frombuffer(mmap.mmap(-1, tensor.nbytes), np.uint8)
    shared = make_tensor(adopted(memory.view(as_plain(tensor._data).dtype)).reshape(tensor.shape))
    shared.copy_(tensor)
    return shared


def _parse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Device | None, Any]:
    """Return the device and the dtype that the arguments of `to` ask for; None leaves either."""
    names = ("device", "dtype", "tensor", "non_blocking", "memory_format")
    check_memory_format("to", kwargs.get("memory_format"))
    unknown = [name for name in kwargs if name not in names]
    # A leading tensor or dtype stands alone; flags after them ask for asynchronous copies.
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
            isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda")
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
