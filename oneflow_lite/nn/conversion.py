"""The part of `Module` that moves and converts its tensors: `to`, `cuda`, `double` and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.device import CPU, Device, as_device
from oneflow_lite.dtype import as_dtype, float16, float32, float64
from oneflow_lite.errors import ArgumentTypeError, DTypeError, bad_argument
from oneflow_lite.memory_format import check_memory_format
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor

if TYPE_CHECKING:
    from oneflow_lite.nn.module import Module


class Conversion:
    """Moves parameters and buffers in place: the module keeps its Parameter objects."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]

    if TYPE_CHECKING:

        def modules(self) -> Iterator[Module]: ...

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device and convert floating point and complex tensors to a dtype.

        Called as `to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`, positionally or
        by keyword. Integer and bool buffers keep their dtype. The module is changed and returned.

        Raises
        ------
        DTypeError
            When the dtype is neither floating point nor complex.
        DeviceError
            When the device is not there.
        ArgumentTypeError
            For any other argument.
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

    def type(self, dst_type: Any) -> Self:
        """Convert every parameter and buffer to a dtype."""
        dtype = as_dtype("type", dst_type)
        return self._apply(lambda tensor: tensor.to(dtype=dtype))

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._convert_floating(float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._convert_floating(float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._convert_floating(float16)

    def _convert_floating(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype=dtype) if t.is_floating_point() else t)

    def _apply(self, convert: Callable[[Tensor], Tensor]) -> Self:
        """Replace the data of every parameter, its gradient and every buffer by `convert` of it."""
        with no_grad():
            for module in self.modules():
                for parameter in module._parameters.values():
                    if parameter is not None:
                        _convert_parameter(parameter, convert)
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        module._buffers[name] = convert(buffer)
        return self


def _convert_parameter(parameter: Parameter, convert: Callable[[Tensor], Tensor]) -> None:
    old = parameter.data
    new = convert(old)
    if new is old:
        return
    grad = parameter.grad
    parameter.grad = None
    parameter.data = new
    if grad is not None:
        parameter.grad = convert(grad)


def _parse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Device | None, Any]:
    """Return the device and the dtype that the arguments of `to` ask for; None leaves either."""
    names = ("device", "dtype", "tensor", "non_blocking", "memory_format")
    check_memory_format("to", kwargs.get("memory_format"))
    unknown = [name for name in kwargs if name not in names]
    # A leading tensor or dtype stands alone; flags after them ask for asynchronous copies.
    given = [value for value in args if value is not None and not isinstance(value, bool)]
    if unknown or len(given) > 2:
        raise bad_argument(
            ArgumentTypeError,
            "to",
            unknown[0] if unknown else "args",
            expected="(device), (dtype), (device, dtype) or (tensor)",
            got=", ".join([*map(repr, args), *kwargs]),
            mend="pass a device, a dtype or both",
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
            raise bad_argument(
                DTypeError,
                "to",
                "dtype",
                expected="a floating point or complex dtype",
                got=dtype,
                mend="convert integer tensors one by one",
            )
    return (None if device is None else as_device(device)), dtype
