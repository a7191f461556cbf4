"""Devices, and the one place that imports CuPy: on first use of a CUDA device, never before."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Self

import numpy as np

from oneflow_lite.arrays.meta_arrays import MetaArray, meta_module, no_data_error, on_meta
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import ArgumentTypeError, DeviceError, DTypeError, arg_error

_INSTALL = "install CuPy with the extra 'cuda12' or 'cuda13': pip install 'oneflow_lite[cuda13]'"
# The types behind "meta" are PyTorch's: a name to compare with, where no tensor can be put.
_TYPES = frozenset("cpu cuda meta hip hpu ipu maia mps mtia vulkan xla xpu".split())


class Device:
    """A place for arrays: the CPU, one of the CUDA devices, or "meta", where tensors have no data.

    In a `with` block it is the device on which this thread makes tensors when none is named.

    >>> import oneflow_lite as flow
    >>> flow.device("cuda:1").type, flow.device("cuda:1").index, flow.device("cpu")
    ('cuda', 1, device(type='cpu'))
    >>> with flow.device("cpu"):
    ...     flow.ones(2).device
    device(type='cpu')
    """

    __slots__ = ("index", "type")

    def __init__(self, type: str, index: int | None = None) -> None:
        name, _, number = str(type).partition(":")
        if name not in _TYPES or (number and not number.isdigit()):
            raise arg_error(
                "device",
                "type",
                expected="'cpu', 'cuda', 'cuda:N' or 'meta'",
                got=repr(type),
                hint="name one of these",
                kind=DeviceError,
            )
        if number:
            index = int(number)
        self.type = name
        self.index = None if name in ("cpu", "meta") else index

    @guarded
    def put(self, array: Any) -> Any:
        """Copy an array of any device to this one."""
        return to_device(array, self)

    def __enter__(self) -> Self:
        found = as_device(self)
        _default.before.append(_default.device)
        _default.device = found
        return self

    def __exit__(self, *exc_info: object) -> None:
        _default.device = _default.before.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.type == other.type and (self.index == other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


CPU, META = Device("cpu"), Device("meta")


class _Default(threading.local):
    """The default device of a thread, and the devices that `with` blocks put back."""

    device: Device = CPU

    def __init__(self) -> None:
        self.before: list[Device] = []


_default = _Default()


def get_default_device() -> Device:
    """Return the device on which this thread makes tensors when none is named."""
    return _default.device


def set_default_device(device: DeviceLike | None) -> None:
    """Set the device on which this thread makes tensors when none is named; None is the CPU.

    A `with` block of a device sets it for the block.
    """
    _default.device = as_device("cpu" if device is None else device)


DeviceLike = Device | str | int  # as which users name a device


def as_device(value: Any) -> Device:
    """Return a Device for a Device, a name, a CUDA index, or None (the default, first the CPU).

    A CUDA device is checked here: `DeviceError` when CuPy or the device is missing.
    """
    if value is None:
        return _default.device
    if isinstance(value, int) and not isinstance(value, bool):
        value = Device("cuda", value)
    elif isinstance(value, str):
        value = Device(value)
    if not isinstance(value, Device):
        raise arg_error(
            "device",
            "device",
            expected="a device or its name",
            got=repr(value),
            hint="pass 'cpu', 'cuda' or 'cuda:1'",
            kind=ArgumentTypeError,
        )
    if value.type != "cuda":
        if value.type in ("cpu", "meta"):
            return CPU if value.type == "cpu" else META
        raise DeviceError(
            f"device '{value}' is not supported; use 'cpu', or 'cuda' where an NVIDIA GPU is"
        )
    cupy = require_cupy()
    count = _count(cupy)
    index = int(cupy.cuda.runtime.getDevice()) if value.index is None and count else value.index
    if index is None or index >= count:
        raise DeviceError(
            f"device '{value}' is not there: CuPy sees {count} CUDA device(s); "
            "use device='cpu' or a machine with an NVIDIA GPU"
        )
    return Device("cuda", index)


def require_cupy() -> Any:
    """Return the cupy module; raise `DeviceError` naming the extra when it is not installed."""
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceError(
            f"a CUDA device needs CuPy, which cannot be imported; {_INSTALL}"
        ) from error


def _count(cupy: Any) -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # CuPy raises CUDARuntimeError of its own where there is no driver
        return 0


def device_of(array: Any) -> Device:
    """Return the device of an array."""
    if type(array) is np.ndarray:
        return CPU
    if isinstance(array, np.ndarray):  # an array of a transform may stand for others on a device
        return getattr(array, "device_of_parts", CPU)
    if type(array) is MetaArray:
        return META
    return Device("cuda", int(array.device.id))


def array_module(device: Device) -> Any:
    """Return numpy, cupy, or the module that makes arrays without elements."""
    if device.type == "meta":
        return meta_module
    return np if device.type == "cpu" else require_cupy()


@contextlib.contextmanager
def on_device(device: Device) -> Iterator[Any]:
    """Make a device current and yield its array module."""
    if device.type != "cuda":
        yield array_module(device)
        return
    cupy = require_cupy()
    with cupy.cuda.Device(device.index):
        yield cupy


def to_device(array: Any, device: Device) -> Any:
    """Copy an array to another device."""
    if device.type == "meta":
        return on_meta(array)
    if type(array) is MetaArray:
        raise no_data_error("to")
    if device.type == "cpu":
        return array.get()
    if array.dtype.char == "E":
        raise DTypeError(
            "bfloat16 is for tensors on the CPU: CuPy has no such dtype; use .half() or .float()"
        )
    if not isinstance(array, np.ndarray):  # from another CUDA device, whose stream may be at work
        wait_for_stream(device, current_stream(device), device_of(array))
    with on_device(device) as cupy:
        copied = cupy.array(array)
    if not isinstance(array, np.ndarray):  # else its memory may be freed, and reused, too early
        source = device_of(array)
        wait_for_stream(source, current_stream(source), device)
    return copied


def to_host(array: Any, pinned: bool) -> np.ndarray[Any, Any]:
    """Copy an array of a CUDA device to the host, into pinned memory if wanted."""
    if not pinned:
        return array.get()  # type: ignore[no-any-return]
    out = importlib.import_module("cupyx").empty_pinned(array.shape, array.dtype)
    array.get(out=out)
    return out  # type: ignore[no-any-return]


def current_stream(device: Device) -> Any:
    """Return this thread's stream on a CUDA device; None for another device."""
    if device.type != "cuda":
        return None
    with on_device(device) as cupy:
        return cupy.cuda.get_current_stream()


@contextlib.contextmanager
def on_stream(device: Device, stream: Any) -> Iterator[Any]:
    """Make a device and one of its streams current and yield the array module."""
    with on_device(device) as xp, contextlib.nullcontext() if stream is None else stream:
        yield xp


def wait_for_stream(device: Device, stream: Any, source: Device, produced: Any = None) -> None:
    """Let a stream wait, on the device, for the work that stream `produced` has been given so far.

    `produced` is by default this thread's stream on the device `source`.
    """
    with on_device(source) as cupy:
        produced = cupy.cuda.get_current_stream() if produced is None else produced
        if source == device and produced == stream:
            return
        event = produced.record()
    with on_device(device):
        stream.wait_event(event)


def cuda_place() -> Callable[[], None]:
    """Return a function that gives another thread this thread's CUDA device and streams."""
    if "cupy" not in sys.modules or not _count(require_cupy()):
        return lambda: None
    cupy = require_cupy()
    now = as_device("cuda")
    others = [Device("cuda", index) for index in range(_count(cupy)) if index != now.index]
    # The current device comes last, so that it is current in the other thread, too.
    streams = [(device, current_stream(device)) for device in [*others, now]]

    def take_place() -> None:
        for device, stream in streams:
            cupy.cuda.Device(device.index).use()
            stream.use()

    return take_place


def device_count() -> int:
    """Return the number of CUDA devices; 0 without CuPy."""
    try:
        return _count(require_cupy())
    except DeviceError:
        return 0


def is_available() -> bool:
    """Return whether CuPy is installed and sees a device."""
    return device_count() > 0


def synchronize(device: DeviceLike | None = None) -> None:
    """Wait until all work on a device is done."""
    with on_device(as_device("cuda" if device is None else device)) as cupy:
        cupy.cuda.Device().synchronize()


def current_device() -> int:
    """Return the index of the current CUDA device."""
    index = as_device("cuda").index
    assert index is not None
    return index


def make_cuda_module() -> ModuleType:
    """Build `flow.cuda`: `is_available`, `device_count`, `synchronize`, `current_device`."""
    module = ModuleType("oneflow_lite.cuda", "CUDA devices, through CuPy.")
    sys.modules[module.__name__] = module  # where pickle looks for these
    for function in (device_count, is_available, synchronize, current_device):
        function.__module__ = module.__name__
        setattr(module, function.__name__, function)
    return module


def is_array(value: Any) -> bool:
    """Return whether a value is a NumPy array, or a CuPy one."""
    if isinstance(value, np.ndarray):
        return True
    cupy = sys.modules.get("cupy")  # no array is CuPy's before somebody imported it
    return cupy is not None and isinstance(value, cupy.ndarray)
