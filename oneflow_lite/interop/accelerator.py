"""`accelerator`: the CUDA devices of the machine."""

from __future__ import annotations

from typing import Any

from oneflow_lite.arrays.device import Device
from oneflow_lite.interop import cuda
from oneflow_lite.interop.cuda import (
    empty_cache as empty_cache,
    is_available as is_available,
    set_device,
)


def current_accelerator(check_available: bool = False) -> Device | None:
    """Return the type of the CUDA devices; None on a machine without them."""
    return Device("cuda") if is_available() else None


def device_count() -> int:
    """Return the number of CUDA devices."""
    return int(cuda.device_count())


def current_device_index() -> int:
    """Return the index of the current CUDA device."""
    return int(cuda.current_device())


def set_device_index(device: Any) -> None:
    """Make a CUDA device current."""
    set_device(device)


def synchronize(device: Any = None) -> None:
    """Wait until all work on a device is done."""
    cuda.synchronize(device)
