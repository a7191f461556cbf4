"""Finds the variables that may share memory: views and their bases."""

from __future__ import annotations

from collections.abc import Iterable

from oneflow_lite.static.ir.program import OpDesc


def memory_roots(ops: Iterable[OpDesc]) -> dict[str, str]:
    """Return for each variable the one in whose memory it lies: itself, unless a view op made it.

    A view op may copy, as reshape does for some layouts. Its output counts as a view all the same,
    which costs at most an edge or a longer life.
    """
    roots: dict[str, str] = {}
    for op in ops:
        for name in op.reads:
            roots.setdefault(name, name)
        viewed = op.viewed
        for name in op.new_outputs:
            roots[name] = name if viewed is None else roots[viewed]
    return roots
