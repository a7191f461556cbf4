"""Samplers: the order and the batches in which the samples of a data set are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from oneflow_lite.arrays.dtype import float64
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    MissingMethodError,
    arg_error,
)
from oneflow_lite.functors.creation import as_tensor
from oneflow_lite.functors.random import (
    Generator,
    check_generator,
    multinomial,
    randint,
    randperm,
)
from oneflow_lite.tensors.shown import Shown

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

Index = TypeVar("Index", covariant=True)
_DRAWN_AT_ONCE = 32  # with replacement


def draw_seed(generator: Any = None) -> int:
    """Draw a seed, an integer from 0 to 2**63 - 1, as `random_` does, but not as an op."""
    stream = check_generator("DataLoader", "generator", generator).stream(np)
    return int(stream.integers(0, 2**63 - 1, endpoint=True))


class Sampler(Shown, Generic[Index]):
    """Base of the samplers: a subclass defines `__iter__` and usually `__len__`."""

    def __iter__(self) -> Iterator[Index]:
        raise MissingMethodError(f"{type(self).__name__} does not define __iter__(self); define it")


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

    Each pass draws a seed, and from that seed its samples, when they are asked for.

    Parameters
    ----------
    data_source : sized
        The data set.
    replacement : bool
        Whether a sample can come again before all samples have come.
    num_samples : int, optional
        How many samples are drawn; by default the size of the data set.
    generator : Generator, optional
        Gives the samples directly, without a seed in between.

    Raises
    ------
    ArgumentError
        When `num_samples`, or the size of the data set without it, is not a positive int.
    ArgumentTypeError
        When `replacement` is no bool.

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
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = _flag("RandomSampler", "replacement", replacement, ArgumentTypeError)
        self._num_samples = num_samples
        self.generator = generator
        _positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of samples that one pass draws."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, generator = len(self.data_source), self.generator
        if generator is None:
            generator = Generator().manual_seed(draw_seed())
        step = _DRAWN_AT_ONCE if self.replacement else count
        rounds, rest = divmod(self.num_samples, step)
        for number in range(rounds + 1):
            size = step if number < rounds else rest
            if self.replacement:
                yield from randint(0, count, (size,), generator=generator).tolist()
            else:
                yield from randperm(count, generator=generator).tolist()[:size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with the probabilities weights / sum(weights).

    Parameters
    ----------
    weights : sequence of float
        One for each sample, at least 0.
    num_samples : int
        How many are drawn.
    replacement : bool
        Whether one sample can be drawn several times.
    generator : Generator, optional
        Used instead of the default generator.

    Raises
    ------
    ArgumentError
        When `num_samples` is not a positive int, `replacement` no bool, or `weights` has not one
        dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> list(flow.utils.data.WeightedRandomSampler([0.0, 3.0, 0.0], 2))
    [1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        op = "WeightedRandomSampler"
        self.num_samples = _positive(op, "num_samples", num_samples)
        self.replacement = _flag(op, "replacement", replacement)
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            got, hint = f"shape {self.weights.shape}", "flatten them"
            raise arg_error(op, "weights", "one dimension", got, hint, ArgumentError)
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


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

    Raises
    ------
    ArgumentError
        When `batch_size` is not a positive int, or `drop_last` no bool.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> list(flow.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = _positive("BatchSampler", "batch_size", batch_size)
        self.drop_last = _flag("BatchSampler", "drop_last", drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)


def _positive(op: str, argument: str, value: Any) -> int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value > 0:
        return int(value)
    expected, hint = "a positive int", "pass how many"
    raise arg_error(op, argument, expected, repr(value), hint, ArgumentError)


def _flag(op: str, argument: str, value: Any, kind: type[FlowError] = ArgumentError) -> bool:
    if isinstance(value, bool):
        return value
    raise arg_error(op, argument, "a bool", repr(value), "pass True or False", kind)


guard_all(globals())
