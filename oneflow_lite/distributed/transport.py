"""The transport of arrays between the ranks of a group: the interface, which serves a world of one.

Arrays are contiguous, of the device that the transport serves; ranks are those of the group. A
reduction is named "sum", "avg", "product", "min", "max", "band", "bor" or "bxor".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.distributed.work import DONE, Work

Array = Any


class Transport:
    """Moves arrays within a group of one rank, where each collective is a copy."""

    def __init__(self) -> None:
        self._sent: dict[int, list[Array]] = {}  # to itself, by tag

    def all_reduce(self, x: Array, out: Array, op: str) -> Work:
        """Put the reduction of all ranks' `x` into `out`, which may be `x`."""
        return self._copy(x, out)

    def reduce(self, x: Array, out: Array, dst: int, op: str) -> Work:
        """Put the reduction of all ranks' `x` into `out` of rank `dst`."""
        return self._copy(x, out)

    def broadcast(self, x: Array, src: int) -> Work:
        """Put `x` of rank `src` into the other ranks' `x`."""
        return DONE

    def all_gather(self, x: Array, out: Array) -> Work:
        """Put all ranks' `x` into `out`, in order of rank."""
        return self._copy(x, out)

    def gather(self, x: Array, out: Array | None, dst: int) -> Work:
        """Put all ranks' `x` into `out` of rank `dst`; all other ranks pass None."""
        return self._copy(x, out)

    def scatter(self, x: Array | None, out: Array, src: int) -> Work:
        """Give each rank a part of `x` of rank `src`, as large as `out`; other ranks pass None."""
        return self._copy(x, out)

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Work:
        """Reduce all ranks' `x`; put a part, as large as `out`, into each rank's `out`."""
        return self._copy(x, out)

    def all_to_all(self, x: Array, out: Array, sent: Sequence[int], got: Sequence[int]) -> Work:
        """Send each rank its share of `x`: `sent` and `got` count elements, by rank."""
        return self._copy(x, out)

    def send(self, x: Array, dst: int, tag: int) -> Work:
        """Send an array to one rank."""
        self._sent.setdefault(tag, []).append(x.copy())
        return DONE

    def recv(self, x: Array, src: int | None, tag: int) -> Work:
        """Receive an array from one rank; None stands for any rank."""
        return self._copy(self._sent[tag].pop(0), x)

    def barrier(self) -> Work:
        """Wait for all ranks."""
        return DONE

    def say_ended(self, why: str) -> None:
        """Tell the other ranks that this rank makes no more calls."""

    def close(self) -> None:
        """Give back what the transport holds."""

    def _copy(self, x: Array, out: Array | None) -> Work:
        if out is not None and x is not out:
            out.reshape(-1)[...] = x.reshape(-1)
        return DONE
