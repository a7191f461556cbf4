"""One number for several dimensions: the helpers of that name in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def _reverse_repeat_tuple(t: Sequence[int], n: int) -> tuple[int, ...]:
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"expected an input of more than {len(out_size)} dimensions")
    known = defaults[-len(out_size) :]
    return [d if v is None else v for v, d in zip(out_size, known, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the keys of a state dict, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
