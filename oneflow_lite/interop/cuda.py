"""The rest of `flow.cuda`, without the devices: streams, events, memory, seeds, through CuPy.

Without a CUDA device, functions that count, empty or seed do nothing, as in PyTorch; a function
that needs the device raises `DeviceError`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from oneflow_lite.arrays.device import (
    Device,
    as_device,
    current_device as current_device,
    device_count as device_count,
    is_available as is_available,
    on_device,
    require_cupy,
    synchronize as synchronize,
)
from oneflow_lite.errors import DeviceError, OutOfMemoryError as OutOfMemoryError
from oneflow_lite.functors.random import default_generator
from oneflow_lite.tensors.tensor import Tensor

has_half = True
CudaError = DeviceError


def cupy() -> Any:
    """Return the module cupy; raise `DeviceError` without a CUDA device."""
    as_device("cuda")
    return require_cupy()


def init() -> None:
    """Do nothing; raise `DeviceError` without a CUDA device."""
    cupy()


def is_initialized() -> bool:
    """Return whether the machine has a CUDA device."""
    return is_available()


class device:
    """Make a CUDA device current for a `with` block; None and negative ints do nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else device
        if not isinstance(self.idx, int):
            place = Device(str(device))
            self.idx = -1 if place.index is None else place.index
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> device:
        if self.idx >= 0:
            self._stack.enter_context(on_device(as_device(self.idx)))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()


def device_of(obj: Tensor) -> device:
    """Make the device of a tensor current for a `with` block; the CPU changes nothing."""
    return device(obj.device.index)


def set_device(device: Any) -> None:
    """Make a CUDA device current."""
    require_cupy().cuda.Device(as_device(device).index).use()


class _Properties(NamedTuple):
    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: Any = None) -> Any:
    """Return name, major, minor, total_memory and multi_processor_count of a CUDA device."""
    index = as_device("cuda" if device is None else device).index
    found = require_cupy().cuda.runtime.getDeviceProperties(index)
    name = found["name"].decode()
    sizes = [int(found[k]) for k in ("major", "minor", "totalGlobalMem", "multiProcessorCount")]
    return _Properties(name, *sizes)


def get_device_name(device: Any = None) -> str:
    """Return the name of a CUDA device."""
    return str(get_device_properties(device).name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a CUDA device."""
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """Return the architectures of compiled kernels: the device's own."""
    return [f"sm_{''.join(map(str, get_device_capability()))}"] if is_available() else []


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: CuPy has no bfloat16."""
    return False


# --- Memory ---------------------------------------------------------------------------------------


def empty_cache() -> None:
    """Give memory that CuPy keeps back to the device."""
    if is_available():
        require_cupy().get_default_memory_pool().free_all_blocks()


def _pool(count: str) -> int:
    if not is_available():
        return 0
    return int(getattr(require_cupy().get_default_memory_pool(), count)())


def memory_allocated(device: Any = None) -> int:
    """Return the bytes in use."""
    return _pool("used_bytes")


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that CuPy holds, in use or free; no maximum is kept."""
    return _pool("total_bytes")


memory_cached = max_memory_allocated = max_memory_reserved = max_memory_cached = memory_reserved


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the bytes in use and the bytes held, under PyTorch's keys."""
    return {
        "allocated_bytes.all.current": memory_allocated(),
        "reserved_bytes.all.current": memory_reserved(),
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the counts as text."""
    return "\n".join([f"{name}: {count}" for name, count in memory_stats().items()])


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total memory of a CUDA device, in bytes."""
    with on_device(as_device("cuda" if device is None else device)) as xp:
        free, total = xp.cuda.runtime.memGetInfo()
    return int(free), int(total)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: no maximum is kept."""


reset_accumulated_memory_stats = reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_cached = ipc_collect = reset_peak_memory_stats


# --- Random numbers: one generator serves all devices ---------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the random numbers of CUDA devices, which come from the default generator.

    Without a CUDA device this does nothing: a script that seeds CUDA must not change the CPU's
    numbers.
    """
    if is_available():
        default_generator.manual_seed(seed)


def seed() -> None:
    """Seed the random numbers of CUDA devices with a number of the system's."""
    if is_available():
        default_generator.seed()


manual_seed_all, seed_all = manual_seed, seed


def initial_seed() -> int:
    """Return the seed."""
    cupy()
    return default_generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of the generator."""
    cupy()
    return default_generator.get_state()


def get_rng_state_all() -> list[Any]:
    """Return the state of the generator, once for each device."""
    return [get_rng_state()] * device_count()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the generator."""
    cupy()
    default_generator.set_state(new_state)


def set_rng_state_all(new_states: Sequence[Any]) -> None:
    """Set the state of the generator."""
    for state in new_states[:1]:
        set_rng_state(state)


# --- Streams and events ---------------------------------------------------------------------------


class Event:
    """A mark in a stream's work, which can be waited for and timed."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._event = cupy().cuda.Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the present work of a stream, by default the current stream."""
        self._event.record(None if stream is None else stream.cupy_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the mark."""
        target = require_cupy().cuda.get_current_stream() if stream is None else stream.cupy_stream
        target.wait_event(self._event)

    def query(self) -> bool:
        """Return whether the work before the mark is done."""
        return bool(self._event.done)

    def synchronize(self) -> None:
        """Wait until the work before the mark is done."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between two marks."""
        return float(require_cupy().cuda.get_elapsed_time(self._event, end_event._event))


class Stream:
    """A queue of work on a CUDA device; `with stream:` makes it current."""

    def __init__(self, device: Any = None, priority: int = 0, cupy_stream: Any = None) -> None:
        self.device = as_device("cuda" if device is None else device)
        with on_device(self.device) as xp:
            # Non-blocking as PyTorch's: it does not wait for the device's default stream.
            self.cupy_stream = cupy_stream or xp.cuda.Stream(non_blocking=True)
        self._entered: list[contextlib.ExitStack] = []

    def __enter__(self) -> Stream:
        stack = contextlib.ExitStack()
        stack.enter_context(on_device(self.device))
        stack.enter_context(self.cupy_stream)
        self._entered.append(stack)
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().close()

    def query(self) -> bool:
        """Return whether all work is done."""
        return bool(self.cupy_stream.done)

    def synchronize(self) -> None:
        """Wait until all work is done."""
        self.cupy_stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark behind the present work of the stream."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Wait, on the device, for a mark."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Wait, on the device, for the present work of another stream."""
        self.wait_event(stream.record_event())


def current_stream(device: Any = None) -> Stream:
    """Return this thread's stream on a CUDA device."""
    place = as_device("cuda" if device is None else device)
    with on_device(place) as xp:
        return Stream(place, cupy_stream=xp.cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the stream that a CUDA device has by itself."""
    place = as_device("cuda" if device is None else device)
    return Stream(place, cupy_stream=require_cupy().cuda.Stream.null)


def set_stream(stream: Stream) -> None:
    """Make a stream current in this thread."""
    stream.cupy_stream.use()


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Make a stream current for a `with` block; None does nothing."""
    with contextlib.nullcontext() if stream is None else stream:
        yield
