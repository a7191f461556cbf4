"""Messages from a worker to the main process, large messages through memory that both map.

A message is pickled with its arrays out of band. Small arrays go through the connection. Large
arrays are copied into a slot, a file without a name (in memory, on Linux): its descriptor is sent
once, and both sides keep it mapped. The main process copies the arrays out, into memory of their
own, and says with its next task that the slot is free. So a batch is copied twice, at the speed of
memory, without new pages and without system calls that grow with it. No name of a file can be left
behind, and a received batch outlives the worker.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import pickle
import socket
import tempfile
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from oneflow_lite.errors import GradientError
from oneflow_lite.tensors.tensor import Tensor

_SMALL = 32 << 10  # bytes; a few such messages fit into the connection's own memory
_ALIGNED = 64  # bytes, a cache line


def _memory_file() -> int:
    """Return the descriptor of an empty file that has no name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("oneflow_lite.data", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class _End:
    """One end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        # It passes descriptors. Windows has no such sockets: all goes through the connection.
        self.socket: socket.socket | None = None
        if hasattr(socket, "send_fds"):
            self.socket = socket.socket(fileno=os.dup(connection.fileno()))

    def close(self) -> None:
        """Let go of this process's copy of the end."""
        if self.socket is not None:
            self.socket.close()
        self.connection.close()


class _Pickler(ForkingPickler):
    """Refuses tensors whose gradient would end at the border of the process."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and not obj.is_leaf:
            raise GradientError(
                f"DataLoader: a worker returned a tensor with history ({obj.grad_fn!r}), and no "
                "gradient comes back to its process; return x.detach()"
            )
        return NotImplemented


class Sender(_End):
    """The worker's side."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.slots: list[mmap.mmap] = []
        self.free: list[int] = []  # numbers of slots

    def send(self, value: Any) -> None:
        """Send a value; raise before anything is sent when it cannot be pickled."""
        stream, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
        _Pickler(stream, 5, True, buffers.append).dump(value)
        parts = [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]
        sizes = [part.nbytes for part in parts]
        starts, total = [], 0
        for size in sizes:
            starts.append(total)
            total += -(-size // _ALIGNED) * _ALIGNED
        if self.socket is None or total <= _SMALL:
            memory: Any = bytearray(total)
            _fill(memory, starts, parts)
            self.connection.send((sizes, memory, None, 0))
            return
        number, file = self._slot(total)
        _fill(self.slots[number], starts, parts)
        self.connection.send((sizes, None, number, 0 if file is None else len(self.slots[number])))
        if file is not None:
            socket.send_fds(self.socket, [b"\0"], [file])
            os.close(file)

    def _slot(self, size: int) -> tuple[int, int | None]:
        """Return the number of a free slot; and its file, if no slot was large enough."""
        for number in self.free:
            if len(self.slots[number]) >= size:
                self.free.remove(number)
                return number, None
        file = _memory_file()
        capacity = 1 << (size - 1).bit_length()  # unwritten pages take no memory
        os.ftruncate(file, capacity)
        memory = mmap.mmap(file, capacity)
        if self.free:  # the new memory replaces a slot that was too small
            number = self.free.pop()
            self.slots[number].close()
            self.slots[number] = memory
        else:
            number = len(self.slots)
            self.slots.append(memory)
        return number, file


def _fill(memory: Any, starts: list[int], parts: list[memoryview]) -> None:
    with memoryview(memory) as target:
        for start, part in zip(starts, parts, strict=True):
            target[start : start + part.nbytes] = part


class Receiver(_End):
    """The main process's side."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.slots: dict[int, mmap.mmap] = {}
        self.free: list[int] = []  # slots that the next task reports as free

    def send(self, task: Any) -> None:
        """Send a task, and the numbers of the slots that are free again."""
        free, self.free = self.free, []
        self.connection.send((task, free))

    def receive(self) -> Any:
        """Return the next value.

        EOFError or OSError: when the worker is gone.
        """
        sizes, memory, number, capacity = self.connection.recv()
        if capacity and self.socket is not None:
            _, (file, *_), _, _ = socket.recv_fds(self.socket, 1, 1)
            self.slots[number] = mmap.mmap(file, capacity)
            os.close(file)
        parts, start = [], 0
        with memoryview(self.slots[number] if memory is None else memory) as source:
            for size in sizes:
                parts.append(bytearray(source[start : start + size]))
                start += -(-size // _ALIGNED) * _ALIGNED
        if memory is None:
            self.free.append(number)
        return pickle.loads(parts[0], buffers=parts[1:])

    def hang_up(self) -> None:
        """End the connection for the worker, even where a fork holds a copy of this end."""
        if self.socket is not None:
            with contextlib.suppress(OSError):  # the worker ended first
                self.socket.shutdown(socket.SHUT_RDWR)
        self.close()
