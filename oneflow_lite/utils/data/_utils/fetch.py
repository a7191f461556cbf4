"""Fetching: making a batch of a sampler's indices, in the main process and in each worker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import to_device
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.utils.data._utils.collate import default_collate
from oneflow_lite.utils.data.dataset import IterableDataset, Subset, TensorDataset

Fetch = Callable[[Any], Any]


def make_fetch(
    dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
) -> Fetch:
    """Return the function from an index, or a list of them with auto_collation, to the data."""
    if isinstance(dataset, IterableDataset):
        return _stream(dataset, auto_collation, collate_fn, drop_last)
    if not auto_collation:
        return lambda index: collate_fn(dataset[index])
    if collate_fn is default_collate and _holds_tensors(dataset):
        return lambda batch: _gather(dataset, batch)
    if getattr(dataset, "__getitems__", None):
        return lambda batch: collate_fn(dataset.__getitems__(batch))
    return lambda batch: collate_fn([dataset[index] for index in batch])


def _stream(
    dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
) -> Fetch:
    """Return a function that takes as many samples as are asked for, whatever their indices."""
    stream, ended = iter(dataset), False

    def fetch(index: Any) -> Any:
        nonlocal ended
        wanted = len(index) if auto_collation else 1
        samples = [] if ended else list(islice(stream, wanted))
        ended = len(samples) < wanted  # what ended once is not asked again
        if not samples or (ended and drop_last):
            raise StopIteration
        return collate_fn(samples if auto_collation else samples[0])

    return fetch


def _holds_tensors(dataset: Any) -> bool:
    """Return whether a batch can be gathered from whole tensors, with the same result."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset


def _gather(dataset: Any, batch: list[int]) -> list[Tensor]:
    """Return what `default_collate` makes of the samples, by one indexing for each tensor."""
    while type(dataset) is Subset:
        batch = [dataset.indices[index] for index in batch]
        dataset = dataset.dataset
    index = make_tensor(np.array(batch, dtype=np.int64))
    return [
        tensor[index if not tensor.is_cuda else make_tensor(to_device(index._data, tensor.device))]
        for tensor in dataset.tensors
    ]
