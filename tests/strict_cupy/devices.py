"""The stand-in for `cupy.cuda`: devices, streams and events that record what was asked of them."""

import contextlib
import itertools
import threading
import time
import types
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from tests.strict_cupy import nccl, races
from tests.strict_cupy.graphs import Graph, no_sync
from tests.strict_cupy.record import Call, log

_device_count = 2


class CUDARuntimeError(RuntimeError):
    """The error that CuPy raises for a device that is not there."""


class _PerThread(threading.local):
    """A new thread begins on device 0 and on its default stream, as in CUDA."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.device = 0
        self.entered_devices: list[int] = []
        self.streams: dict[int, Stream] = {}
        self.entered_streams: list[Stream] = []


def set_device_count(count: int) -> None:
    """Say how many devices there are, and begin again on device 0 (in this thread)."""
    global _device_count
    _device_count = count
    _now.reset()


def current_device() -> int:
    return _now.device


def _switch(device: int) -> None:
    if not 0 <= device < _device_count:
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
    _now.device = device


class Device:
    """A device by number; a context manager that makes it the current one for a while."""

    def __init__(self, device: "int | Device | None" = None) -> None:
        self.id = current_device() if device is None else int(device)

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash((Device, self.id))

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> Self:
        """Make this the current device of the thread."""
        _switch(self.id)
        log.append(Call("Device.use", (self.id,)))
        return self

    def __enter__(self) -> Self:
        before = current_device()
        _switch(self.id)
        _now.entered_devices.append(before)
        log.append(Call("Device.enter", (self.id,)))
        return self

    def __exit__(self, *exception: object) -> None:
        _now.device = _now.entered_devices.pop()
        log.append(Call("Device.exit", (self.id,)))

    def synchronize(self) -> None:
        log.append(Call("Device.synchronize", (self.id,)))

    @property
    def mem_info(self) -> tuple[int, int]:
        """Bytes free and bytes in total; the stand-in has none of its own to count."""
        return (1 << 30, 1 << 30)


class Event:
    """A mark in a stream."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.recorded_on: Stream | None = None
        self.clock: races.Clock = {}
        self.timing = not disable_timing
        self.time = 0.0

    @property
    def done(self) -> bool:
        return True

    def record(self, stream: "Stream | None" = None) -> None:
        self.recorded_on = stream or get_current_stream()
        self.recorded_on._check_device()
        self.time = time.perf_counter()
        log.append(Call("Event.record", (self, self.recorded_on)))
        if races.watch is not None:
            self.clock = races.watch.recorded(self.recorded_on._key())

    def synchronize(self) -> None:
        log.append(Call("Event.synchronize", (self,)))


def get_elapsed_time(start: Event, end: Event) -> float:
    """Return the milliseconds between two events that were recorded."""
    if not (start.timing and end.timing and start.recorded_on and end.recorded_on):
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return 1e3 * (end.time - start.time)


class Stream:
    """A stream of the device that is current when it is made."""

    null: "Stream"
    _pointers = itertools.count(1)

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: int | None = None,
    ) -> None:
        self.ptr = 0 if null else next(self._pointers)
        self.device_id = -1 if null else current_device()
        self.non_blocking = non_blocking
        self.graph: Graph | None = None  # while it captures

    def __eq__(self, other: object) -> bool:
        return self.ptr == other.ptr if isinstance(other, Stream) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __repr__(self) -> str:
        return f"<Stream {self.ptr} (device {self.device_id})>"

    def _check_device(self) -> None:
        if self.device_id not in (-1, current_device()):
            raise RuntimeError(
                f"This stream was not created on the current device: stream "
                f"{self.device_id}, current {current_device()}"
            )

    def _key(self, device: int | None = None) -> races.Key:
        return (current_device() if device is None else device, self.ptr)

    def use(self) -> Self:
        """Make this the current stream of the thread on the current device."""
        self._check_device()
        _now.streams[current_device()] = self
        log.append(Call("Stream.use", (self,)))
        return self

    def __enter__(self) -> Self:
        self._check_device()
        _now.entered_streams.append(get_current_stream())
        _now.streams[current_device()] = self
        log.append(Call("Stream.enter", (self,)))
        return self

    def __exit__(self, *exception: object) -> None:
        _now.streams[current_device()] = _now.entered_streams.pop()
        log.append(Call("Stream.exit", (self,)))

    @property
    def done(self) -> bool:
        return True

    def begin_capture(self, mode: int | None = None) -> None:
        """Take down what the stream is given from now on, instead of running it."""
        if not self.non_blocking:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not a non-blocking stream")
        self.graph = Graph()

    def end_capture(self) -> Graph:
        """Return what was taken down."""
        if self.graph is None:
            raise CUDARuntimeError("cudaErrorIllegalState: the stream is not capturing")
        graph, self.graph = self.graph, None
        return graph

    def is_capturing(self) -> bool:
        return self.graph is not None

    def synchronize(self) -> None:
        no_sync(self.graph)
        log.append(Call("Stream.synchronize", (self,)))
        if races.watch is not None:
            races.watch.synchronized(self._key())

    def record(self, event: Event | None = None) -> Event:
        """Record an event in this stream, a new one if none is given, and return it."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        self._check_device()
        log.append(Call("Stream.wait_event", (self, event)))
        if races.watch is not None:
            races.watch.waited(self._key(), event.clock)


_now = _PerThread()
Stream.null = Stream(null=True)


def get_current_stream(device_id: int = -1) -> Stream:
    """The thread's stream on a device, by default the current device."""
    return _now.streams.get(current_device() if device_id < 0 else device_id, Stream.null)


def get_device_id() -> int:
    return current_device()


def is_available() -> bool:
    return _device_count > 0


def _get_device_count() -> int:
    """Like the CUDA runtime, an error rather than a 0 where there is no device."""
    if _device_count == 0:
        raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return _device_count


def _device_synchronize() -> None:
    log.append(Call("Device.synchronize", (current_device(),)))


class MemoryPool:
    """A pool of memory; the stand-in takes NumPy's."""

    def malloc(self, size: int) -> None:
        raise NotImplementedError("the stand-in gives out no memory")


def get_allocator() -> Any:
    """Return the function that gives memory to this thread."""
    return MemoryPool().malloc


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    """Take memory from an allocator, in this thread and for a `with` block."""
    yield


# The arrays whose pointers were read, by pointer, while a library is imitated that takes pointers.
pointers: dict[int, np.ndarray[Any, Any]] | None = None


class MemoryPointer:
    """Where an array's data begin, in which allocation, and on which device."""

    def __init__(self, host: np.ndarray[Any, Any], device: int) -> None:
        self.mem: Any = host
        while getattr(self.mem, "base", None) is not None:
            self.mem = self.mem.base
        self.ptr = int(host.__array_interface__["data"][0])
        self.device_id = device
        self.device = Device(device)
        if pointers is not None:
            pointers[self.ptr] = host

    def __int__(self) -> int:
        return self.ptr


def make_module() -> types.ModuleType:
    """The module that `cupy.cuda` names."""
    runtime = types.ModuleType("cupy.cuda.runtime")
    runtime.__dict__.update(
        CUDARuntimeError=CUDARuntimeError,
        deviceSynchronize=_device_synchronize,
        getDevice=current_device,
        getDeviceCount=_get_device_count,
        getDeviceProperties=lambda device: {"name": b"strict stand-in for CuPy", "id": device},
        setDevice=lambda device: Device(device).use() and None,
    )
    cuda = types.ModuleType("cupy.cuda")
    cuda.__dict__.update(
        Device=Device,
        Event=Event,
        Graph=Graph,
        MemoryPointer=MemoryPointer,
        MemoryPool=MemoryPool,
        Stream=Stream,
        get_allocator=get_allocator,
        get_current_stream=get_current_stream,
        get_device_id=get_device_id,
        get_elapsed_time=get_elapsed_time,
        is_available=is_available,
        nccl=nccl.make_module(),
        runtime=runtime,
        using_allocator=using_allocator,
    )
    return cuda
