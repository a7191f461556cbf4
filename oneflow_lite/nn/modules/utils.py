"""One number for several dimensions: the helpers of that name in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that makes a tuple of a sequence, or of a number as many times.

    >>> from oneflow_lite.nn.modules.utils import _ntuple
    >>> _ntuple(3)(2), _ntuple(3)([1, 2, 3])
    ((2, 2, 2), (1, 2, 3))
    """

    def repeated(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return repeated


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))
