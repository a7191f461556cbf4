"""Fetching: making a batch of a sampler's indices, in the main process and in each worker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import to_device
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.utils.data._utils.collate import default_collate
from oneflow_lite.utils.data.dataset import Subset, TensorDataset

Fetch = Callable[[Any], Any]


def make_fetch(
    dataset: Any,
    streams: bool,
    auto_collation: bool,
    collate_fn: Callable[[Any], Any],
    drop_last: bool,
) -> Fetch:
    """Return a function from an index, with auto_collation from a list of indices, to the data.

    streams: whether the samples come one after the other, and not by their index.
    """
    if streams:
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
    """Return a function that takes as many samples as it gets indices, from a stream."""
    stream, ended = iter(dataset), False

    def fetch(index: Any) -> Any:
        nonlocal ended
        wanted = len(index) if auto_collation else 1
        samples = [] if ended else list(islice(stream, wanted))
        ended = len(samples) < wanted  # then it is not asked again: it might begin anew
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
    """Return the batch that `default_collate` would make, by one indexing for each tensor."""
    while type(dataset) is Subset:
        batch = [dataset.indices[index] for index in batch]
        dataset = dataset.dataset
    index = make_tensor(np.array(batch, dtype=np.int64))
    return [
        tensor[index if not tensor.is_cuda else make_tensor(to_device(index._data, tensor.device))]
        for tensor in dataset.tensors
    ]
