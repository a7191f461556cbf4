"""MPI through mpi4py: moves arrays of the CPU between ranks, from and to their own memory.

A group has three communicators. Transfers are on the first. On the second the ranks compare, before
a transfer, a number made of the call: that costs one short message, and calls that differ never
begin. The third carries the ranks' reports of errors.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype_object import HALVES
from oneflow_lite.distributed import debug
from oneflow_lite.distributed.transport import Transport
from oneflow_lite.distributed.work import Queue, Work, user_line
from oneflow_lite.errors import DistributedError

Array = np.ndarray[Any, Any]
_ENDED, _HEADER = 1, 2  # tags of the third communicator
_last_words: list[Any] = []  # they are on their way after their communicator was given back
_REDUCTIONS = {
    "sum": "SUM",
    "avg": "SUM",
    "product": "PROD",
    "min": "MIN",
    "max": "MAX",
    "band": "BAND",
    "bor": "BOR",
    "bxor": "BXOR",
}
_OF_BOOL = {"sum": "MAX", "product": "MIN"}
_TEXT = 512  # bytes of a call's description in debug mode
_AT = ", at "
Shares = tuple[Sequence[int], Sequence[int]]  # elements that are sent to, and got from, each rank


def mpi() -> Any:
    """Return mpi4py's module MPI; importing it starts MPI.

    Raises
    ------
    DistributedError
        When mpi4py or the MPI library cannot be imported.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise DistributedError(
            "init_process_group(): several processes need mpi4py and an MPI library, which cannot "
            f"be imported ({error}); pip install 'oneflow_lite[distributed]'"
        ) from error
    return MPI


class MpiTransport(Transport):
    """Moves arrays of the CPU within one group.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Of the ranks of the group; it is copied.
    name : str
        The group, as errors name it.
    ranks : sequence of int
        The members' ranks in the world.
    timeout : float
        Seconds that a wait may take.
    trusted : bool
        Whether calls are compared in debug mode only, because they follow from compared calls.
    """

    def __init__(
        self, comm: Any, name: str, ranks: Sequence[int], timeout: float, trusted: bool = False
    ) -> None:
        super().__init__()
        self.mpi = mpi()
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.name, self.trusted, self._ranks = name, trusted, tuple(ranks)
        self.queue = Queue(f"rank {self.rank} of {name}", timeout, lambda work: "")
        self.comm, self.checks, self.control = [self._copy_of(comm, name) for _ in range(3)]
        self.queue.look_around = self._gone
        self._calls = 0
        self._ended: dict[int, tuple[str, int]] = {}

    def _copy_of(self, comm: Any, name: str) -> Any:
        """Copy a communicator; unlike its `Dup`, this waits no longer than the timeout."""
        copied, request = comm.Idup()
        Work(f"making {name}", lambda: request, queue=self.queue).wait()
        return copied

    def agree(self, what: str) -> None:
        """Wait until all ranks are about to do the same."""
        self._work(what, None, "", lambda: self.mpi.REQUEST_NULL).wait()

    # Collectives

    def all_reduce(self, x: Array, out: Array, op: str) -> Work:
        send, recv, finish = self._reducible(x, out, op)
        reduction = self._reduction(x, op)
        return self._work(
            "all_reduce", x, op, lambda: self.comm.Iallreduce(send, recv, reduction), finish
        )

    def reduce(self, x: Array, out: Array, dst: int, op: str) -> Work:
        here = self.rank == dst
        reduction = self._reduction(x, op)
        send, recv, finish = self._reducible(x, out if here else np.empty_like(x), op)
        if not here and send is self.mpi.IN_PLACE:  # means something on rank dst alone
            send = recv
        return self._work(
            "reduce",
            x,
            f"{op}, dst={dst}",
            lambda: self.comm.Ireduce(send, recv, reduction, dst),
            finish if here else None,
        )

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Work:
        reduction = self._reduction(x, op)
        if x.dtype.char in HALVES:
            send: Array = _flat(x).astype(np.float32)
            recv: Array = np.empty(out.size, np.float32)
        else:
            send, recv = _numbers(x), _numbers(out)
        finish = self._finish(recv, out, op)
        return self._work(
            "reduce_scatter",
            x,
            op,
            lambda: self.comm.Ireduce_scatter_block(send, recv, reduction),
            finish,
        )

    def broadcast(self, x: Array, src: int) -> Work:
        return self._work("broadcast", x, f"src={src}", lambda: self.comm.Ibcast(_bytes(x), src))

    def all_gather(self, x: Array, out: Array) -> Work:
        return self._work("all_gather", x, "", lambda: self.comm.Iallgather(_bytes(x), _bytes(out)))

    def gather(self, x: Array, out: Array | None, dst: int) -> Work:
        recv = None if self.rank != dst or out is None else _bytes(out)
        return self._work(
            "gather", x, f"dst={dst}", lambda: self.comm.Igather(_bytes(x), recv, dst)
        )

    def scatter(self, x: Array | None, out: Array, src: int) -> Work:
        send = None if self.rank != src or x is None else _bytes(x)
        return self._work(
            "scatter", out, f"src={src}", lambda: self.comm.Iscatter(send, _bytes(out), src)
        )

    def all_to_all(self, x: Array, out: Array, sent: Sequence[int], got: Sequence[int]) -> Work:
        width, byte = x.dtype.itemsize, self.mpi.BYTE

        def sides(array: Array, counts: Sequence[int]) -> list[Any]:
            starts = [width * sum(counts[:i]) for i in range(len(counts))]
            return [_bytes(array), [width * n for n in counts], starts, byte]

        return self._work(
            "all_to_all",
            x.reshape(-1)[:0],  # sizes may differ from rank to rank
            "",
            lambda: self.comm.Ialltoallv(sides(x, sent), sides(out, got)),
            shares=(sent, got),
        )

    def barrier(self) -> Work:  # also of a transport for devices, whose streams keep their order
        return self._work("barrier()", None, "", self.comm.Ibarrier)

    # From one rank to another

    def send(self, x: Array, dst: int, tag: int) -> Work:
        what = f"send(to rank {dst}, tag={tag}) of {_described(x)}"
        header = self._header(x, dst, tag)

        def begin() -> Any:
            return self.comm.Isend(_bytes(x), dst, tag)

        return Work(what, begin, lambda _: header, queue=self._apart(dst))

    def recv(self, x: Array, src: int | None, tag: int) -> Work:
        sender = "any rank" if src is None else f"rank {src}"
        what = f"recv(from {sender}, tag={tag}) of {_described(x)}"
        receipt = _Receipt(self, x, src, tag, what)
        work = Work(what, receipt.begin, receipt.finish, queue=self._apart(src))
        work.source = receipt  # type: ignore[attr-defined]
        return work

    def _apart(self, peer: int | None) -> Queue:
        """Return a queue for a single message, which waits for one rank or for any rank."""
        gone = functools.partial(self._gone, peer=peer)
        return Queue(self.queue.name, self.queue.timeout, gone)

    def _header(self, x: Array, dst: int, tag: int) -> Any:
        if not debug.detail():
            return None
        return self.control.isend((tag, _described(x), user_line()), dst, _HEADER)

    # What goes with every transfer

    def _work(
        self,
        name: str,
        x: Array | None,
        detail: str,
        begin: Callable[[], Any],
        finish: Callable[[Any], None] | None = None,
        shares: Shares | None = None,
    ) -> Work:
        what = name if x is None else _call(name, x.dtype, x.shape, detail)
        self._calls += 1
        if debug.detail():
            what = f"call {self._calls}: {what}"
        compared = not self.trusted or debug.detail()
        check = _Check(self, what, shares) if compared else None
        return Work(what, begin, finish, check, self.queue, self._calls)

    def _reduction(self, x: Array, op: str) -> Any:
        name = _REDUCTIONS[op]
        if x.dtype.kind == "b":
            name = _OF_BOOL.get(op, name)
        return getattr(self.mpi, name)

    def _reducible(
        self, x: Array, out: Array, op: str
    ) -> tuple[Any, Array, Callable[[Any], None] | None]:
        """Return the array to send, the array that receives, and a function that fills `out`."""
        if x.dtype.char in HALVES:  # MPI knows no halves, and sums of them would lose digits
            wide = _flat(x).astype(np.float32)
            return self.mpi.IN_PLACE, wide, self._finish(wide, out, op)
        recv = _numbers(out)
        send = self.mpi.IN_PLACE if x is out else _numbers(x)
        return send, recv, self._finish(recv, out, op)

    def _finish(self, recv: Array, out: Array, op: str) -> Callable[[Any], None] | None:
        if op != "avg" and out.dtype.char not in HALVES:
            return None

        def finish(_: Any) -> None:
            if op == "avg":
                np.divide(recv, recv.dtype.type(self.size), out=recv)
            if out.dtype.char in HALVES:
                _flat(out)[...] = recv.astype(out.dtype)

        return finish

    # Faults

    def say_ended(self, why: str) -> None:
        """Tell the other ranks that this rank makes no more calls, and how many it has made."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        _last_words.extend([self.control.isend((why, self._calls), r, _ENDED) for r in others])

    def _gone(self, work: Work, peer: int | None = None) -> str:
        """Say why a rank for which a work waits will never answer, or "".

        A rank that has made the call is waited for no more: ranks end a call at different times.
        """
        status = self.mpi.Status()
        while self.control.Iprobe(self.mpi.ANY_SOURCE, _ENDED, status):
            source = status.Get_source()
            self._ended[source] = self.control.recv(source=source, tag=_ENDED)
        if work.call:
            gone = [rank for rank, (_, calls) in self._ended.items() if calls < work.call]
        elif peer is not None:
            gone = [peer] if peer in self._ended else []
        else:
            gone = list(self._ended) if len(self._ended) == self.size - 1 else []
        if not gone:
            return ""
        return (
            f"rank {self.rank} of {self.name} waits in {work.what}, but rank "
            f"{self._ranks[gone[0]]} of the world {self._ended[gone[0]][0]}; let all ranks make "
            "the same calls"
        )

    def close(self) -> None:
        for comm in (self.comm, self.checks, self.control):
            comm.Free()


class _Check:
    """Compares the calls of the ranks of a group before a transfer.

    Each rank makes a number of its call: the calls are equal when the smallest number is the
    largest. In debug mode the ranks exchange the calls themselves, with their lines. Where shares
    differ from rank to rank, a second message compares the shares sent with the shares expected.
    """

    def __init__(self, transport: MpiTransport, what: str, shares: Shares | None) -> None:
        self._transport, self._what, self._shares = transport, what, shares
        self._detail = debug.detail()
        self._all_shares: Array | None = None
        comm, MPI = transport.checks, transport.mpi
        if self._detail:
            text = f"{what}{_AT}{user_line()}".encode()[:_TEXT].ljust(_TEXT, b"\0")
            self._texts = np.empty((transport.size, _TEXT), np.uint8)
            self._request = comm.Iallgather(np.frombuffer(text, np.uint8), self._texts)
        else:
            # The smallest number is minus the largest of the negatives: one MAX finds both.
            number = _number(what)
            self._numbers = np.array([number, -number], np.int64)
            self._request = comm.Iallreduce(MPI.IN_PLACE, self._numbers, MPI.MAX)

    def Test(self) -> bool:
        """Return whether the ranks have compared their calls; go on with their shares."""
        if not self._request.Test():
            return False
        if self._shares is None or self._all_shares is not None:
            return True
        self._agree_on_calls()  # only then does everybody have shares
        mine = np.array(self._shares, np.int64)
        self._all_shares = np.empty((self._transport.size, *mine.shape), np.int64)
        self._request = self._transport.checks.Iallgather(mine, self._all_shares)
        return bool(self._request.Test())

    def agree(self) -> None:
        """Raise, on all ranks alike, when their calls differ."""
        if self._all_shares is None:
            self._agree_on_calls()
            return
        sent, got = self._all_shares[:, 0], self._all_shares[:, 1]
        for i, j in np.argwhere(sent != got.T).tolist():
            raise DistributedError(
                f"all_to_all(): rank {i} of {self._transport.name} sends {sent[i, j]} elements to "
                f"rank {j}, which expects {got[j, i]}; make the splits of both fit"
            )

    def _agree_on_calls(self) -> None:
        if self._detail:
            texts = [bytes(text).rstrip(b"\0").decode(errors="replace") for text in self._texts]
            if len({text.partition(_AT)[0] for text in texts}) > 1:
                self._disagree(texts)
        elif self._numbers[0] != -self._numbers[1]:
            self._disagree(self._transport.control.allgather(self._what))

    def _disagree(self, calls: Sequence[str]) -> None:
        ranks: dict[str, list[str]] = {}
        for rank, call in enumerate(calls):
            ranks.setdefault(call, []).append(str(rank))
        said = "; ".join(
            f"rank{'s' if len(who) > 1 else ''} {', '.join(who)}: {call}"
            for call, who in ranks.items()
        )
        raise DistributedError(
            f"the ranks of {self._transport.name} make different calls: {said}; let all ranks make "
            "the same calls in the same order, with equal shapes and dtypes"
        )


class _Receipt:
    """A message that is awaited: its size or description is compared with the expected one."""

    def __init__(
        self, transport: MpiTransport, x: Array, src: int | None, tag: int, what: str
    ) -> None:
        self._transport, self._x, self._src, self._tag, self._what = transport, x, src, tag, what
        self.rank = -1 if src is None else src
        self._message: Any = None
        self._request: Any = None

    def begin(self) -> _Receipt:
        return self

    def Test(self) -> bool:
        """Look for the message, then receive it."""
        transport = self._transport
        if self._request is None:
            source = transport.mpi.ANY_SOURCE if self._src is None else self._src
            status = transport.mpi.Status()
            message = transport.comm.Improbe(source, self._tag, status)
            if message is None:
                return False
            self.rank = status.Get_source()
            self._compare(status.Get_count(transport.mpi.BYTE), message)
            self._request = message.Irecv(_bytes(self._x))
        return bool(self._request.Test())

    def finish(self, _: Any) -> None:
        self._request = None

    def _compare(self, nbytes: int, message: Any) -> None:
        transport = self._transport
        came, expected = f"{nbytes} bytes", f"{self._x.nbytes} bytes"
        if debug.detail():
            _, came, line = transport.control.recv(source=self.rank, tag=_HEADER)
            expected, came = _described(self._x), f"{came}, sent at {line}"
            fits = came.startswith(f"{expected},")
        else:
            fits = nbytes == self._x.nbytes
        if not fits:
            rest = np.empty(nbytes, np.uint8)
            message.Recv(rest)  # or the next recv() would get it
            raise DistributedError(
                f"rank {transport.rank} of {transport.name} expects {expected} in {self._what}, "
                f"but rank {self.rank} sent {came}; send and receive equal shapes and dtypes"
            )


def _described(x: Array) -> str:
    return f"{x.dtype.name} {x.shape}"


@functools.lru_cache(maxsize=1024)
def _call(name: str, dtype: Any, shape: tuple[int, ...], detail: str) -> str:
    return f"{name}({dtype.name} {shape}{', ' if detail else ''}{detail})"


@functools.lru_cache(maxsize=1024)
def _number(what: str) -> int:
    return zlib.crc32(what.encode())


def _flat(x: Array) -> Array:
    return x.reshape(-1)


def _bytes(x: Array) -> Array:
    """Return the memory of an array."""
    return np.asarray(x.reshape(-1).view(np.ndarray)).view(np.uint8)


def _numbers(x: Array) -> Array:
    """Return an array as one that MPI can calculate with."""
    flat = _flat(x)
    return flat.view(np.uint8) if x.dtype.kind == "b" else flat
