"""The stand-in for `cupy.cuda.nccl`: host memory behind the pointers, moved by MPI at once.

It takes what CuPy 14's communicator takes: addresses, counts and streams as integers, the numbers
of dtypes and reductions. It refuses a stream that was never made, and what NCCL does not know.
"""

import ctypes
import itertools
import types
from typing import Any

import numpy as np

from tests.strict_cupy.record import Call, log

_DTYPES = {0: "b", 1: "B", 2: "i", 3: "I", 4: "q", 5: "Q", 6: "e", 7: "f", 8: "d"}
_NAMES = "INT8 UINT8 INT32 UINT32 INT64 UINT64 FLOAT16 FLOAT32 FLOAT64 BFLOAT16".split()
_OPS = ("SUM", "PROD", "MAX", "MIN")
_ids = itertools.count(1)
_grouped: list[Any] | None = None


class NcclError(RuntimeError):
    """The error that CuPy raises for a call that NCCL refuses."""


def _memory(pointer: int, count: int, kind: int) -> Any:
    if type(pointer) is not int or type(count) is not int or kind not in _DTYPES:
        raise NcclError("NCCL_ERROR_INVALID_ARGUMENT: invalid argument")
    dtype = np.dtype(_DTYPES[kind])
    raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(raw, dtype)


class NcclCommunicator:
    """Ranks of MPI that call themselves ranks of NCCL."""

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        members = MPI.COMM_WORLD.group.Incl(list(commId[1:]))
        self._comm = MPI.COMM_WORLD.Create_group(members, commId[0])
        if (self._comm.size, self._comm.rank) != (ndev, rank):
            raise NcclError("NCCL_ERROR_INVALID_USAGE: ranks differ")
        log.append(Call("NcclCommunicator", (ndev, rank)))

    def _op(self, op: int) -> Any:
        if op not in range(len(_OPS)):
            raise NcclError("NCCL_ERROR_INVALID_ARGUMENT: invalid reduction")
        return getattr(self._mpi, _OPS[op])

    def _log(self, name: str, stream: int) -> None:
        if type(stream) is not int or stream <= 0:
            raise NcclError("transfers have a stream of their own here")
        log.append(Call(f"nccl.{name}", (stream,)))

    def allReduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
    ) -> None:
        self._log("allReduce", stream)
        sent = _memory(sendbuf, count, datatype).copy()
        self._comm.Allreduce(sent, _memory(recvbuf, count, datatype), self._op(op))

    def reduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int
    ) -> None:
        self._log("reduce", stream)
        sent = _memory(sendbuf, count, datatype).copy()
        got = _memory(recvbuf, count, datatype) if self._comm.rank == root else None
        self._comm.Reduce(sent, got, self._op(op), root)

    def bcast(self, buff: int, count: int, datatype: int, root: int, stream: int) -> None:
        self._log("bcast", stream)
        self._comm.Bcast(_memory(buff, count, datatype), root)

    def reduceScatter(
        self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int
    ) -> None:
        self._log("reduceScatter", stream)
        sent = _memory(sendbuf, recvcount * self._comm.size, datatype).copy()
        self._comm.Reduce_scatter_block(sent, _memory(recvbuf, recvcount, datatype), self._op(op))

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self._log("allGather", stream)
        got = _memory(recvbuf, count * self._comm.size, datatype)
        self._comm.Allgather(_memory(sendbuf, count, datatype).copy(), got)

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._log("send", stream)
        self._begin(self._comm.Isend(_memory(sendbuf, count, datatype).copy(), peer))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._log("recv", stream)
        self._begin(self._comm.Irecv(_memory(recvbuf, count, datatype), peer))

    def _begin(self, request: Any) -> None:
        if _grouped is None:
            request.Wait()
        else:
            _grouped.append(request)

    def destroy(self) -> None:
        self._comm.Free()


def _group_start() -> None:
    global _grouped
    _grouped = []


def _group_end() -> None:
    global _grouped
    for request in _grouped or ():
        request.Wait()
    _grouped = None


def _unique_id() -> tuple[int, ...]:
    """Return a number and the ranks: the stand-in knows worlds of all ranks alone."""
    from mpi4py import MPI

    return (next(_ids), *range(MPI.COMM_WORLD.size))


def make_module() -> types.ModuleType:
    """The module that `cupy.cuda.nccl` names."""
    module = types.ModuleType("cupy.cuda.nccl")
    module.__dict__.update(
        available=True,
        NcclCommunicator=NcclCommunicator,
        NcclError=NcclError,
        get_unique_id=_unique_id,
        groupStart=_group_start,
        groupEnd=_group_end,
        **{f"NCCL_{name}": number for number, name in enumerate(_NAMES)},
        **{f"NCCL_{name}": number for number, name in enumerate(_OPS)},
    )
    return module
