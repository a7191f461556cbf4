"""Finds what streams do unordered: reads before a write has ended, memory freed while it is read.

Each stream has a clock, which says how much of every stream's work it comes after. Kernels, events
and waits move it, as they order work on a device. Stricter than CUDA: the null stream waits for no
other, and memory that is freed counts as used again at once by the stream it was made on.
"""

import contextlib
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

Key = tuple[int, int]  # device and pointer of a stream
Clock = dict[Key, int]


class Memory:
    """One allocation: the stream it was made on, who wrote it last, and who read it when."""

    def __init__(self, made_on: Key) -> None:
        self.made_on = made_on
        self.written: tuple[Key, int] | None = None
        self.read: Clock = {}


class Watch:
    """A record of what happened while races were looked for; `found` says what was not ordered."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.kernels: list[tuple[str, Key]] = []
        self._clocks: dict[Key, Clock] = defaultdict(dict)
        self._host: Clock = {}  # what the host has waited for: all that it launches comes after
        self._memories: dict[int, Memory] = {}
        self._lock = threading.RLock()

    def kernel(self, name: str, key: Key, reads: list[Any], writes: list[Any]) -> None:
        """A kernel was given to a stream; `reads` and `writes` are allocations on the host."""
        with self._lock:
            clock = self._clocks[key]
            _merge(clock, self._host)
            clock[key] = clock.get(key, 0) + 1
            self.kernels.append((name, key))
            for owner in reads:
                memory = self._memory(owner, key)
                self._after(f"{name} on {key} reads", clock, memory.written)
                memory.read[key] = clock[key]
            for owner in writes:
                memory = self._memory(owner, key)
                self._after(f"{name} on {key} writes", clock, memory.written)
                for reader in memory.read.items():
                    self._after(f"{name} on {key} writes", clock, reader)
                memory.written, memory.read = (key, clock[key]), {}

    def _memory(self, owner: Any, key: Key) -> Memory:
        memory = self._memories.get(id(owner))
        if memory is None:
            memory = self._memories[id(owner)] = Memory(key)
            weakref.finalize(owner, self._freed, id(owner)).atexit = False
        return memory

    def _freed(self, identity: int) -> None:
        with self._lock:
            memory = self._memories.pop(identity)
            clock = self._clocks[memory.made_on]
            _merge(clock, self._host)
            for use in [*memory.read.items(), *([memory.written] if memory.written else [])]:
                self._after(f"memory of {memory.made_on} is freed", clock, use)

    def _after(self, what: str, clock: Clock, use: tuple[Key, int] | None) -> None:
        if use is not None and clock.get(use[0], 0) < use[1]:
            self.found.append(f"{what}, and nothing orders that after the use on {use[0]}")

    def recorded(self, key: Key) -> Clock:
        """Return what an event that is recorded now stands for."""
        with self._lock:
            _merge(self._clocks[key], self._host)
            return dict(self._clocks[key])

    def waited(self, key: Key, event: Clock) -> None:
        """A stream waits for an event."""
        with self._lock:
            _merge(self._clocks[key], event)

    def synchronized(self, key: Key) -> None:
        """The host waited for a stream."""
        with self._lock:
            _merge(self._host, self._clocks[key])


def _merge(clock: Clock, other: Clock) -> None:
    for key, time in other.items():
        clock[key] = max(clock.get(key, 0), time)


watch: Watch | None = None


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """Look for races in a `with` block."""
    global watch
    watch = Watch()
    try:
        yield watch
    finally:
        watch = None
