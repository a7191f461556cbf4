"""Counts the bytes that one iteration of a work allocates, where its side allocates its arrays.

NumPy takes every array's data from the handler set by ``PyDataMem_SetHandler`` (NEP 49), PyTorch
every CPU tensor's from one allocator, whose calls its profiler records. So both sides are asked
the same: how many bytes of array data were asked for, arrays that their libraries make inside
included. Neither count holds the scratch memory that BLAS or oneDNN take for themselves, nor
Python objects.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from numpy._core import _multiarray_umath

Step = Callable[[], list[Any]]


class Allocations(NamedTuple):
    """Bytes asked for in one iteration, those of them alive after it, and the highest level."""

    total: int
    alive: int
    peak: int

    @property
    def transient(self) -> int:
        return self.total - self.alive


class _Count:
    """Adds up allocations and frees; it leaves out the end of a block older than itself."""

    def __init__(self) -> None:
        self.total = self.peak = self.level = 0
        self.sizes: dict[int, int] = {}

    def allocated(self, address: int, size: int) -> None:
        self.total += size
        self.level += size
        self.peak = max(self.peak, self.level)
        self.sizes[address] = size

    def freed(self, address: int) -> None:
        self.level -= self.sizes.pop(address, 0)

    def result(self) -> Allocations:
        return Allocations(self.total, self.level, self.peak)


_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p
_MALLOC = ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE)
_CALLOC = ctypes.CFUNCTYPE(_POINTER, _POINTER, _SIZE, _SIZE)
_REALLOC = ctypes.CFUNCTYPE(_POINTER, _POINTER, _POINTER, _SIZE)
_FREE = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _SIZE)
_SET_HANDLER_INDEX = (
    304  # PyDataMem_SetHandler's place in NumPy's table of C functions, part of its ABI
)


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", _POINTER),
        ("malloc", _MALLOC),
        ("calloc", _CALLOC),
        ("realloc", _REALLOC),
        ("free", _FREE),
    )


class NumpyCounter:
    """Counts NumPy's array data on this thread inside a ``with`` block.

    Every array made in the block calls back into this object when it is freed: the counter has to
    live longer than those arrays.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        libc.malloc.argtypes, libc.malloc.restype = [_SIZE], _POINTER
        libc.calloc.argtypes, libc.calloc.restype = [_SIZE, _SIZE], _POINTER
        libc.realloc.argtypes, libc.realloc.restype = [_POINTER, _SIZE], _POINTER
        libc.free.argtypes, libc.free.restype = [_POINTER], None
        self._count = count = _Count()

        def malloc(_: int, size: int) -> int:
            address: int = libc.malloc(size)
            count.allocated(address, size)
            return address

        def calloc(_: int, number: int, size: int) -> int:
            address: int = libc.calloc(number, size)
            count.allocated(address, number * size)
            return address

        def realloc(_: int, old: int, size: int) -> int:
            address: int = libc.realloc(old, size)
            count.freed(old)
            count.allocated(address, size)
            return address

        def free(_: int, address: int, __: int) -> None:
            count.freed(address)
            libc.free(address)

        functions = _MALLOC(malloc), _CALLOC(calloc), _REALLOC(realloc), _FREE(free)
        self._handler = _Handler(b"counting", 1, None, *functions)
        python = ctypes.pythonapi
        python.PyCapsule_New.argtypes = [_POINTER, ctypes.c_char_p, _POINTER]
        python.PyCapsule_New.restype = ctypes.py_object
        python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        python.PyCapsule_GetPointer.restype = _POINTER
        self._capsule = python.PyCapsule_New(ctypes.byref(self._handler), b"mem_handler", None)
        table = python.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None)
        address = ctypes.cast(table, ctypes.POINTER(_POINTER))[_SET_HANDLER_INDEX]
        self._set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)

    def __enter__(self) -> NumpyCounter:
        self._previous = self._set_handler(self._capsule)
        return self

    def __exit__(self, *_: object) -> None:
        self._set_handler(self._previous)

    def result(self) -> Allocations:
        return self._count.result()


def _status(field: str) -> int | None:
    """Return a field of this process's status in bytes; None where there is no such thing."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return int(lines[field].split()[0]) << 10


def resident() -> int | None:
    """Return the bytes of this process that are in memory now."""
    return _status("VmRSS")


def give_back() -> None:
    """Let the C library return freed memory, without an import of ours on another side."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def peak_resident(step: Step, iterations: int = 5) -> int | None:
    """Return the most bytes of this process that are in memory during some iterations.

    None where the system does not count them, or does not forget an older peak.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is from now on
    except OSError:
        return None
    for _ in range(iterations):
        step()
    return _status("VmHWM")


_counters: list[NumpyCounter] = []  # kept to the end of the process, as their arrays may be


def numpy_allocations(step: Step) -> Allocations:
    """Return what ``step`` allocates as NumPy array data."""
    counter = NumpyCounter()
    _counters.append(counter)
    with counter:
        step()
    return counter.result()


def torch_allocations(step: Step) -> Allocations:
    """Return what ``step`` allocates through PyTorch's CPU allocator."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    count = _Count()
    memory = [event for event in events if event.get("name") == "[memory]"]
    for event in sorted(memory, key=lambda event: event["ts"]):
        size, address = event["args"]["Bytes"], event["args"]["Addr"]
        if size > 0:
            count.allocated(address, size)
        else:
            count.freed(address)
    return count.result()
