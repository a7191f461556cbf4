"""How samples become a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oneflow_lite.dtype import float64
from oneflow_lite.errors import ArgumentTypeError, ShapeError, bad_argument
from oneflow_lite.functors.creation import as_tensor, tensor
from oneflow_lite.functors.joining import stack
from oneflow_lite.tensor import Tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Join samples along a new first dimension, going into tuples, lists and dicts.

    Tensors and arrays are stacked, numbers become a tensor (floats of float64), strings stay a
    list. Tuples of a sample become a list of batches, named tuples and dicts keep their kind.

    Raises
    ------
    ArgumentTypeError
        For samples of another type.
    ShapeError
        When tensors or sequences are not of one size.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch))
    if isinstance(first, np.ndarray) and first.dtype.kind not in "SUO":
        return stack([as_tensor(array) for array in batch])
    if isinstance(first, np.generic) and first.dtype.kind not in "SUO":
        return as_tensor(np.array(batch))
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):  # bool, too
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([s[key] for s in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise bad_argument(
                ShapeError,
                "default_collate",
                "batch",
                expected=f"samples of {len(first)} entries each",
                got=[len(sample) for sample in batch],
                mend="pad them, or pass a collate_fn of your own",
            )
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*columns)
        return columns if isinstance(first, tuple) else _like(first, columns)
    raise bad_argument(
        ArgumentTypeError,
        "default_collate",
        "batch",
        expected="tensors, arrays, numbers, strings, or tuples, lists and dicts of these",
        got=f"samples of type {type(first).__name__}",
        mend="pass a collate_fn of your own",
    )


def _like(sample: Any, batch: Any) -> Any:
    """Return `batch` as the type of `sample`, where that type can be made from it."""
    try:
        return type(sample)(batch)
    except TypeError:
        return batch
