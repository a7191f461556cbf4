"""Which variables may share memory: views with what they are views of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oneflow_lite.static.ir.program import OpDesc


def memory_roots(ops: Iterable[OpDesc]) -> dict[str, str]:
    """Return the variable in whose memory each variable lies: itself, unless a view op made it.

    A view op may have copied, as reshape does for some layouts; it is taken for a view here, which
    costs an edge or a longer life at most.
    """
    roots: dict[str, str] = {}
    for op in ops:
        for name in op.reads:
            roots.setdefault(name, name)
        viewed = op.viewed
        for name in op.new_outputs:
            roots[name] = name if viewed is None else roots[viewed]
    return roots
