"""DataLoader: from a data set to batches, in this process and this thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from oneflow_lite.device import to_device
from oneflow_lite.errors import ArgumentError, FlowError, bad_argument
from oneflow_lite.functors.checks import check_int
from oneflow_lite.tensor import Tensor, make_tensor
from oneflow_lite.utils.data.collate import default_collate
from oneflow_lite.utils.data.dataset import IterableDataset, Subset, TensorDataset
from oneflow_lite.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


class DataLoader:
    """Iterates over a data set in batches; every `iter()` begins a new pass.

    Parameters
    ----------
    dataset : Dataset or IterableDataset
        Any object with `__getitem__` and `__len__` will do.
    batch_size : int or None
        Samples in a batch; None passes single samples on as they are.
    shuffle : bool, optional
        Whether every pass takes the samples in another order.
    sampler : Sampler or iterable of int, optional
        The order of the samples, instead of `shuffle`.
    batch_sampler : iterable of list of int, optional
        The batches themselves, instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    num_workers : int
        Must be 0: batches are made where they are asked for.
    collate_fn : callable, optional
        Makes a batch of a list of samples; `default_collate` by default.
    pin_memory : bool
        Accepted for scripts written for PyTorch; changes nothing.
    drop_last : bool
        Whether a last, smaller batch is left out.
    generator : Generator, optional
        What `shuffle` draws from instead of the default one.

    Raises
    ------
    ArgumentError
        For options that exclude each other.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> data = flow.utils.data.TensorDataset(flow.arange(5), flow.arange(5) * 10)
    >>> for x, y in flow.utils.data.DataLoader(data, batch_size=2):
    ...     print(x.tolist(), y.tolist())
    [0, 1] [0, 10]
    [2, 3] [20, 30]
    [4] [40]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        *,
        generator: Any = None,
    ) -> None:
        if num_workers:
            raise _conflict("num_workers", "0", num_workers, "leave it out; batches are made here")
        if batch_size is not None:
            check_int("DataLoader", "batch_size", batch_size, 1)
        if isinstance(dataset, IterableDataset) and (shuffle or sampler or batch_sampler):
            raise _conflict(
                "shuffle", "no order for an IterableDataset", "one", "let the data set order itself"
            )
        if sampler is not None and shuffle:
            raise _conflict("sampler", "none where shuffle=True", sampler, "drop one of them")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise _conflict(
                    "batch_sampler",
                    "none beside batch_size, shuffle, sampler or drop_last",
                    batch_sampler,
                    "let the batch_sampler decide",
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise _conflict("drop_last", "False where batch_size=None", True, "drop one of them")
        self.dataset = dataset
        self.num_workers = 0
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.generator = generator
        self.batch_size = batch_size
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        if not isinstance(dataset, IterableDataset):
            if sampler is None and batch_sampler is None:
                self.sampler = (
                    RandomSampler(dataset, generator=generator)
                    if shuffle
                    else SequentialSampler(dataset)
                )
            if batch_sampler is None and batch_size is not None:
                self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self._joins = collate_fn is None
        self.collate_fn = collate_fn or default_collate

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            return self._in_turn(self.dataset)
        if self.batch_sampler is None:
            return self._single(self.dataset[index] for index in self.sampler)
        if self._joins and _holds_tensors(self.dataset):
            return (_gather(self.dataset, batch) for batch in self.batch_sampler)
        return (
            self.collate_fn([self.dataset[index] for index in batch])
            for batch in self.batch_sampler
        )

    def _single(self, samples: Iterable[Any]) -> Iterator[Any]:
        return iter(samples) if self._joins else map(self.collate_fn, samples)

    def _in_turn(self, samples: Iterable[Any]) -> Iterator[Any]:
        """Cut a stream of samples into batches."""
        if self.batch_size is None:
            yield from self._single(samples)
            return
        stream = iter(samples)
        while batch := list(islice(stream, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


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


def _conflict(argument: str, expected: str, got: object, mend: str) -> FlowError:
    return bad_argument(
        ArgumentError, "DataLoader", argument, expected=expected, got=got, mend=mend
    )
