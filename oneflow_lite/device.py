"""Devices, and the one place that imports CuPy: on first use of a CUDA device, never before."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, DeviceError, bad_argument

_INSTALL = "install CuPy with the extra 'cuda12' or 'cuda13': pip install 'oneflow_lite[cuda13]'"


class Device:
    """Where an array lives.

    >>> import oneflow_lite as flow
    >>> flow.device("cuda:1").type, flow.device("cuda:1").index, flow.device("cpu")
    ('cuda', 1, device(type='cpu'))
    """

    __slots__ = ("index", "type")

    def __init__(self, type: str, index: int | None = None) -> None:
        name, _, number = str(type).partition(":")
        if name not in ("cpu", "cuda") or (number and not number.isdigit()):
            raise bad_argument(
                DeviceError,
                "device",
                "type",
                expected="'cpu', 'cuda' or 'cuda:N'",
                got=repr(type),
                mend="name one of these",
            )
        if number:
            index = int(number)
        self.type = name
        self.index = index if name == "cuda" else None

    def put(self, array: Any) -> Any:
        """Copy an array of any device to this one."""
        return to_device(array, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.type == other.type and (self.index == other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


CPU = Device("cpu")


def as_device(value: Any) -> Device:
    """Return a Device for a Device, a name, a CUDA index, or None (the CPU).

    A CUDA device is checked here: `DeviceError` when CuPy or the device is missing.
    """
    if value is None:
        return CPU
    if isinstance(value, int) and not isinstance(value, bool):
        value = Device("cuda", value)
    elif isinstance(value, str):
        value = Device(value)
    if not isinstance(value, Device):
        raise bad_argument(
            ArgumentTypeError,
            "device",
            "device",
            expected="a device or its name",
            got=repr(value),
            mend="pass 'cpu', 'cuda' or 'cuda:1'",
        )
    if value.type == "cpu":
        return CPU
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
    return CPU if isinstance(array, np.ndarray) else Device("cuda", int(array.device.id))


def array_module(device: Device) -> Any:
    """Return numpy or cupy."""
    return np if device.type == "cpu" else require_cupy()


@contextlib.contextmanager
def on_device(device: Device) -> Iterator[Any]:
    """Make a device current and yield its array module."""
    if device.type == "cpu":
        yield np
        return
    cupy = require_cupy()
    with cupy.cuda.Device(device.index):
        yield cupy


def to_device(array: Any, device: Device) -> Any:
    """Copy an array to another device."""
    if device.type == "cpu":
        return array.get()
    with on_device(device) as cupy:
        return cupy.array(array)


def make_cuda_module() -> ModuleType:
    """Build `flow.cuda`: `is_available`, `device_count`, `synchronize`, `current_device`."""
    module = ModuleType("oneflow_lite.cuda", "CUDA devices, through CuPy.")

    def device_count() -> int:
        """Return the number of CUDA devices; 0 without CuPy."""
        try:
            return _count(require_cupy())
        except DeviceError:
            return 0

    def is_available() -> bool:
        """Return whether CuPy is installed and sees a device."""
        return device_count() > 0

    def synchronize(device: Any = None) -> None:
        """Wait until all work on a device is done."""
        with on_device(as_device("cuda" if device is None else device)) as cupy:
            cupy.cuda.Device().synchronize()

    def current_device() -> int:
        """Return the index of the current CUDA device."""
        index = as_device("cuda").index
        assert index is not None
        return index

    for function in (device_count, is_available, synchronize, current_device):
        function.__module__ = module.__name__
        setattr(module, function.__name__, function)
    return module
