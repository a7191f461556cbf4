"""Samplers: in which order, and in which batches, the samples of a data set are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_int
from oneflow_lite.functors.random import randint, randperm

Index = TypeVar("Index", covariant=True)


class Sampler(Generic[Index]):
    """Base of the samplers: a subclass defines `__iter__` and usually `__len__`."""

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[Index]:
        return iter(())


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... to the end of a data set."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The samples in random order, or with `replacement` drawn independently.

    Parameters
    ----------
    data_source : sized
        The data set.
    replacement : bool
        Whether a sample can come again before all have come.
    num_samples : int, optional
        How many are drawn; by default as many as there are.
    generator : Generator, optional
        Drawn from instead of the default one.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> sorted(flow.utils.data.RandomSampler(range(5)))
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = (
            None
            if num_samples is None
            else check_int("RandomSampler", "num_samples", num_samples, 1)
        )

    @property
    def num_samples(self) -> int:
        """How many samples one pass draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        left, count = self.num_samples, len(self.data_source)
        if self.replacement and left:
            yield from randint(0, count, (left,), generator=self.generator).tolist()
            return
        while left > 0:
            order = randperm(count, generator=self.generator).tolist()
            yield from order[:left]
            left -= count

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler.

    Parameters
    ----------
    sampler : iterable of int
        Yields single indices.
    batch_size : int
        The length of a batch.
    drop_last : bool
        Whether a last, shorter batch is left out.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> list(flow.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = check_int("BatchSampler", "batch_size", batch_size, 1)
        if not isinstance(drop_last, bool):
            raise bad_argument(
                ArgumentError,
                "BatchSampler",
                "drop_last",
                expected="a bool",
                got=repr(drop_last),
                mend="pass True or False",
            )
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)
