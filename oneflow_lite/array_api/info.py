"""The inspection API of the array API standard."""

from __future__ import annotations

from typing import Any

from oneflow_lite.array_api.functions import isdtype
from oneflow_lite.arrays.device import CPU, Device, array_module, as_device
from oneflow_lite.arrays.dtype import get_default_dtype
from oneflow_lite.arrays.dtype_object import dtype as DTypeObject, int64
from oneflow_lite.errors import DeviceError

NAMES = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
""".split()


class ArrayNamespaceInfo:
    """The abilities of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return the abilities: boolean indexing, shapes that depend on data, most dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device of created arrays."""
        return CPU

    def devices(self) -> list[Device]:
        """Return the CPU and the CUDA devices of the machine."""
        try:
            cupy = array_module(Device("cuda"))
            count = int(cupy.cuda.runtime.getDeviceCount())
        except DeviceError:
            return [CPU]
        except Exception:  # CuPy's own error where there is no driver
            return [CPU]
        return [CPU, *[as_device(i) for i in range(count)]]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DTypeObject]:
        """Return the dtypes of Python numbers and of indices."""
        real = get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DTypeObject]:
        """Return the dtypes of the standard by name, or only the dtypes of a kind."""
        every = {name: DTypeObject(name) for name in NAMES}
        if kind is None:
            return every
        return {name: dtype for name, dtype in every.items() if isdtype(dtype, kind)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Return the object to ask."""
    return ArrayNamespaceInfo()
