"""Putting the stand-in where `import cupy` looks, and taking it away again."""

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator

from tests.strict_cupy import devices, modules
from tests.strict_cupy.record import clear_log

_replaced: dict[str, types.ModuleType | None] = {}


def real_device_present() -> bool:
    """Return whether the real CuPy is installed and finds a device."""
    if _replaced:
        return False  # `install` looked before it put the stand-in in place
    try:
        cupy = importlib.import_module("cupy")
        return bool(cupy.cuda.is_available())
    except ImportError:
        return False


def install(device_count: int = 2) -> None:
    """Make `import cupy` and `import cupyx` find the stand-in.

    Raises RuntimeError where the real CuPy finds a device, and where it is installed already.
    """
    if _replaced:
        raise RuntimeError("the stand-in for CuPy is installed already")
    if real_device_present():
        raise RuntimeError("a CUDA device is present: run on it, not on the stand-in")
    for name, module in modules.BY_NAME.items():
        _replaced[name] = sys.modules.get(name)
        sys.modules[name] = module
    devices.set_device_count(device_count)
    clear_log()


def uninstall() -> None:
    """Put back what `install` replaced; arrays made in between stay usable."""
    for name, module in _replaced.items():
        if module is None:
            del sys.modules[name]
        else:
            sys.modules[name] = module
    _replaced.clear()


@contextlib.contextmanager
def installed(device_count: int = 2) -> Iterator[None]:
    """Have the stand-in installed for a `with` block."""
    install(device_count)
    try:
        yield
    finally:
        uninstall()
