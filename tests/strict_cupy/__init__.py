"""A strict stand-in for CuPy: NumPy arrays behind CuPy's names, for machines that have no GPU.

It proves plumbing only, no numerics and no speed: every value comes from NumPy on the host, and
nothing here ever runs on a device. It does prove that code which passes on it takes the ways that
CuPy leaves open. It raises where CuPy raises (a host array mixed into a computation, an implicit
conversion, arrays of another device, functions and keywords that CuPy lacks), it answers with 0-d
arrays where NumPy answers with scalars, and it writes down every copy between host and device and
everything asked of devices, streams and events.

Within `watched()` it follows what each stream comes after, and says what is not ordered.

In two places it is stricter than CuPy: an array must be on the current device, as if no device had
peer access to another, and a host array is refused as an index, where CuPy copies it silently.

    from tests import strict_cupy

    with strict_cupy.installed(device_count=2):
        ...                                  # `import cupy` now finds the stand-in
        strict_cupy.clear_log()
        ...                                  # the code under test
        assert not strict_cupy.transfers("d2h")

Where a real device is present, `install` refuses: there the tests belong on the device.
"""

from tests.strict_cupy.installation import install, installed, real_device_present, uninstall
from tests.strict_cupy.races import watched
from tests.strict_cupy.record import Call, Transfer, clear_log, log, transfers

__all__ = [
    "Call",
    "Transfer",
    "clear_log",
    "install",
    "installed",
    "log",
    "real_device_present",
    "transfers",
    "uninstall",
    "watched",
]
