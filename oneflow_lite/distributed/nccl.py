"""NCCL through CuPy: moves arrays of a CUDA device between ranks.

Transfers are launched on a stream of their own, behind the work of the current stream. To wait for
a transfer is to let the current stream wait; the host goes on. MPI still carries the messages
between hosts: it makes the communicators, and compares the ranks' calls before each launch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.arrays.device import Device, current_stream, on_device, wait_for_stream
from oneflow_lite.distributed.mpi import MpiTransport
from oneflow_lite.distributed.work import Work
from oneflow_lite.errors import DistributedError, DTypeError

Array = Any
_TYPES = {
    "b": "NCCL_INT8",
    "B": "NCCL_UINT8",
    "?": "NCCL_UINT8",
    "i": "NCCL_INT32",
    "I": "NCCL_UINT32",
    "l": "NCCL_INT64",
    "L": "NCCL_UINT64",
    "q": "NCCL_INT64",
    "Q": "NCCL_UINT64",
    "f": "NCCL_FLOAT32",
    "d": "NCCL_FLOAT64",
    "F": "NCCL_FLOAT32",  # two numbers each
    "D": "NCCL_FLOAT64",
}
_OPS = {"sum": "SUM", "avg": "SUM", "product": "PROD", "min": "MIN", "max": "MAX"}
_OF_BOOL = {"sum": "MAX", "product": "MIN", "bor": "MAX", "band": "MIN"}


def nccl() -> Any:
    """Return CuPy's module of NCCL.

    Raises
    ------
    DistributedError
        When CuPy has none.
    """
    try:
        module = importlib.import_module("cupy.cuda.nccl")
    except ImportError as error:
        raise DistributedError(f"tensors on CUDA devices travel by NCCL: {error}") from error
    if not module.available:
        raise DistributedError(
            "tensors on CUDA devices travel by NCCL, which CuPy does not find; install "
            "nvidia-nccl-cu12 or nvidia-nccl-cu13"
        )
    return module


class NcclTransport(MpiTransport):
    """Moves arrays of this rank's CUDA device within one group."""

    _device: Device | None = None

    def _communicator(self, x: Array) -> Any:
        """Return the communicator of the array's device, made by all ranks at their first call."""
        device = Device("cuda", int(x.device.id))
        if self._device is None:
            module = nccl()
            mine = module.get_unique_id() if self.rank == 0 else None
            self.agree("the first transfer by NCCL")
            name = self.control.bcast(mine, 0)
            with on_device(device) as cupy:
                self._nccl = module.NcclCommunicator(self.size, name, self.rank)
                self._stream = cupy.cuda.Stream(non_blocking=True)
            self._device = device
        elif self._device != device:
            raise DistributedError(
                f"rank {self.rank} of {self.name} uses {self._device}, the tensor is on {device}; "
                "keep to one device in each process"
            )
        return self._nccl

    def _launched(self, x: Array, launch: Callable[[Any, int], None]) -> Callable[[], Any]:
        """Return a function that launches a transfer on this transport's stream."""
        communicator = self._communicator(x)
        device = self._device
        assert device is not None
        before = current_stream(device)  # of this call: `begin` may run later, under another stream

        def begin() -> _Launched:
            with on_device(device):
                wait_for_stream(device, self._stream, device, before)
                launch(communicator, self._stream.ptr)
                return _Launched(device, self._stream)

        return begin

    def all_reduce(self, x: Array, out: Array, op: str) -> Work:
        reduction = self._reduction(x, op)
        sent, got, finish = self._wide(x, out, op)

        def launch(comm: Any, stream: int) -> None:
            kind, count = _kind(sent)
            comm.allReduce(sent.data.ptr, got.data.ptr, count, kind, reduction, stream)

        return self._work("all_reduce", x, op, self._launched(x, launch), finish)

    def reduce(self, x: Array, out: Array, dst: int, op: str) -> Work:
        reduction = self._reduction(x, op)
        sent, got, finish = self._wide(x, out, op)

        def launch(comm: Any, stream: int) -> None:
            kind, count = _kind(sent)
            comm.reduce(sent.data.ptr, got.data.ptr, count, kind, reduction, dst, stream)

        here = self.rank == dst
        detail = f"{op}, dst={dst}"
        return self._work("reduce", x, detail, self._launched(x, launch), finish if here else None)

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Work:
        reduction = self._reduction(x, op)
        sent, got, finish = self._wide(x, out, op)

        def launch(comm: Any, stream: int) -> None:
            kind, count = _kind(got)
            comm.reduceScatter(sent.data.ptr, got.data.ptr, count, kind, reduction, stream)

        return self._work("reduce_scatter", x, op, self._launched(x, launch), finish)

    def broadcast(self, x: Array, src: int) -> Work:
        def launch(comm: Any, stream: int) -> None:
            comm.bcast(x.data.ptr, x.nbytes, nccl().NCCL_INT8, src, stream)

        return self._work("broadcast", x, f"src={src}", self._launched(x, launch))

    def all_gather(self, x: Array, out: Array) -> Work:
        def launch(comm: Any, stream: int) -> None:
            comm.allGather(x.data.ptr, out.data.ptr, x.nbytes, nccl().NCCL_INT8, stream)

        return self._work("all_gather", x, "", self._launched(x, launch))

    def gather(self, x: Array, out: Array | None, dst: int) -> Work:
        n = x.nbytes
        sent = [n if rank == dst else 0 for rank in range(self.size)]
        got = [n if self.rank == dst else 0] * self.size
        launch = self._exchange(x, x if out is None else out, sent, got, [0] * self.size)
        return self._work("gather", x, f"dst={dst}", self._launched(x, launch))

    def scatter(self, x: Array | None, out: Array, src: int) -> Work:
        n = out.nbytes
        sent = [n if self.rank == src else 0] * self.size
        got = [n if rank == src else 0 for rank in range(self.size)]
        launch = self._exchange(out if x is None else x, out, sent, got)
        return self._work("scatter", out, f"src={src}", self._launched(out, launch))

    def all_to_all(self, x: Array, out: Array, sent: Sequence[int], got: Sequence[int]) -> Work:
        width = x.dtype.itemsize
        launch = self._exchange(x, out, [width * n for n in sent], [width * n for n in got])
        begin = self._launched(x, launch)
        return self._work("all_to_all", x.reshape(-1)[:0], "", begin, shares=(sent, got))

    def _exchange(
        self,
        x: Array,
        out: Array,
        sent: Sequence[int],
        got: Sequence[int],
        sent_from: Sequence[int] | None = None,
    ) -> Callable[[Any, int], None]:
        """Return a function that sends each rank some bytes of `x` and receives into `out`.

        sent_from: the offset of each rank's bytes in `x`; by default one after another.
        """
        starts = _starts(sent) if sent_from is None else sent_from
        ends = _starts(got)

        def launch(comm: Any, stream: int) -> None:
            module = nccl()
            module.groupStart()  # ungrouped, each send would block until its receiver's turn
            for rank in range(self.size):
                if sent[rank]:
                    where = x.data.ptr + starts[rank]
                    comm.send(where, sent[rank], module.NCCL_INT8, rank, stream)
                if got[rank]:
                    where = out.data.ptr + ends[rank]
                    comm.recv(where, got[rank], module.NCCL_INT8, rank, stream)
            module.groupEnd()

        return launch

    def send(self, x: Array, dst: int, tag: int) -> Work:
        def launch(comm: Any, stream: int) -> None:
            comm.send(x.data.ptr, x.nbytes, nccl().NCCL_INT8, dst, stream)

        what = f"send(to rank {dst}) of {x.dtype} {x.shape}"
        return Work(what, self._launched(x, launch), queue=self._apart(dst))

    def recv(self, x: Array, src: int | None, tag: int) -> Work:
        if src is None:
            raise DistributedError("recv(): NCCL receives from a rank that is named; pass src")

        def launch(comm: Any, stream: int) -> None:
            comm.recv(x.data.ptr, x.nbytes, nccl().NCCL_INT8, src, stream)

        what = f"recv(from rank {src}) of {x.dtype} {x.shape}"
        return Work(what, self._launched(x, launch), queue=self._apart(src))

    # Reductions

    def _reduction(self, x: Array, op: str) -> Any:
        name = (_OF_BOOL if x.dtype.kind == "b" else _OPS).get(op, _OPS.get(op))
        if name is None or (x.dtype.kind == "c" and name != "SUM"):
            raise DTypeError(
                f"NCCL has no reduction {op!r} of {x.dtype}; move the tensor to the CPU for it"
            )
        return getattr(nccl(), f"NCCL_{name}")

    def _wide(
        self, x: Array, out: Array, op: str
    ) -> tuple[Array, Array, Callable[[Any], None] | None]:
        """Return the array to send, the array that receives, and a function that fills `out`."""
        half = x.dtype.char == "e"
        small = x.dtype.char in "hH"  # NCCL has no integers of 16 bits
        if not half and not small:
            sent, got = x, out
        else:
            wide = "float32" if half else "int32"
            sent = x.astype(wide)
            got = sent if x is out else out.astype(wide)
        if got is out and op != "avg":
            return sent, got, None

        def finish(_: Any) -> None:
            mean = got / got.dtype.type(self.size) if op == "avg" else got
            out[...] = mean.astype(out.dtype)

        return sent, got, finish

    def close(self) -> None:
        if self._device is not None:
            self._nccl.destroy()
            self._device = None
        super().close()


class _Launched:
    """A transfer that a stream has been given."""

    def __init__(self, device: Device, stream: Any) -> None:
        self._device, self._event, self._joined = device, stream.record(), False

    def Test(self) -> bool:
        """Return whether the current stream may go on with the result."""
        if not self._joined and self._event.done:
            self.join()  # no real wait; tools that follow streams alone see the order
        return self._joined

    def join(self) -> None:
        """Let the current stream wait."""
        with on_device(self._device):
            current_stream(self._device).wait_event(self._event)
        self._joined = True


def _kind(x: Array) -> tuple[int, int]:
    """Return NCCL's number of an array's dtype, and its elements; a complex number is two."""
    name = _TYPES.get(x.dtype.char)
    if name is None:
        raise DTypeError(f"NCCL does not know {x.dtype}; convert the tensor")
    return getattr(nccl(), name), x.size * (2 if x.dtype.kind == "c" else 1)


def _starts(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[:i]) for i in range(len(sizes))]
