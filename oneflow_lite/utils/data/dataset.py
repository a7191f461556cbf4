"""Data sets: the sources of a DataLoader's samples, by index or in sequence."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    IndexRangeError,
    MissingMethodError,
    OptionError,
    arg_error,
)
from oneflow_lite.functors.declaring.checks import check_tensor
from oneflow_lite.functors.random import Generator, default_generator, randperm
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.shown import Shown
from oneflow_lite.tensors.tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

Sample = TypeVar("Sample", covariant=True)


class Dataset(Shown, Generic[Sample]):
    """Samples by index: a subclass defines `__getitem__` and `__len__`.

    A DataLoader asks `__getitems__`, where that is defined, for a whole batch: it takes a list of
    indices and returns a list of samples.

    >>> import oneflow_lite as flow
    >>> class Squares(flow.utils.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...
    ...     def __len__(self):
    ...         return 5
    >>> list(flow.utils.data.DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4]), tensor([ 9, 16])]
    """

    def __getitem__(self, index: Any) -> Sample:
        raise MissingMethodError(
            f"{type(self).__name__} does not define __getitem__(self, index); define it, or derive "
            "from IterableDataset and define __iter__"
        )

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample], Iterable[Sample]):
    """Samples in sequence: a subclass defines `__iter__`.

    With workers, each worker iterates over a copy: `get_worker_info` tells it which share to take.
    """

    def __iter__(self) -> Iterator[Sample]:
        raise MissingMethodError(f"{type(self).__name__} does not define __iter__(self); define it")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of one length: sample i is the tuple of their i-th entries.

    Raises
    ------
    OptionError
        When the first sizes differ.
    DimError
        When a tensor has no dimensions.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> data = flow.utils.data.TensorDataset(flow.arange(3), flow.tensor([1.0, 2.0, 3.0]))
    >>> data[1]
    (tensor(1), tensor(2.))
    """

    def __init__(self, *tensors: Tensor) -> None:
        for position, tensor in enumerate(tensors):
            argument = f"tensors[{position}]"
            if not check_tensor("TensorDataset", argument, tensor).ndim:
                expected, got, hint = "a dimension of samples", "a scalar", "give it one"
                raise arg_error("TensorDataset", argument, expected, got, hint, DimError)
            if tensor.shape[0] != tensors[0].shape[0]:
                raise arg_error(
                    "TensorDataset",
                    argument,
                    expected="one sample for each of the first tensor's, along dimension 0",
                    got=f"shape {tuple(tensor.shape)} beside {tuple(tensors[0].shape)}",
                    hint="give all tensors the same first size",
                    kind=OptionError,
                )
        if not tensors:
            raise arg_error(
                "TensorDataset",
                "tensors",
                expected="at least one tensor",
                got="none",
                hint="pass inputs and targets",
                kind=ArgumentError,
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Data sets of one length side by side: sample i is the tuple, or dict, of their i-th samples.

    Raises
    ------
    ArgumentError
        When the lengths differ, for data sets with and without a name together, or for none.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.utils.data.StackDataset(image=[1.0, 2.0], text=["one", "two"])[1]
    {'image': 2.0, 'text': 'two'}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        lengths = [_length(dataset) for dataset in [*args, *kwargs.values()]]
        if bool(args) == bool(kwargs) or len(set(lengths)) > 1:
            raise arg_error(
                "StackDataset",
                "datasets",
                expected="data sets of one length, all with a name or all without",
                got=f"{len(args)} without, {len(kwargs)} with a name, of lengths {lengths}",
                hint="pass at least one, and either positions or names",
                kind=ArgumentError,
            )
        self.datasets: Any = args or kwargs
        self._size = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Return several samples, by the data sets' own `__getitems__` where they have it."""
        if isinstance(self.datasets, dict):
            columns = [_several(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, s, strict=True)) for s in zip(*columns, strict=True)]
        columns = [_several(dataset, indices) for dataset in self.datasets]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return self._size


class ConcatDataset(Dataset[Any]):
    """Data sets joined end to end; indices go through.

    Raises
    ------
    OptionError
        For no data set, or an IterableDataset.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(d, IterableDataset) for d in self.datasets):
            raise arg_error(
                "ConcatDataset",
                "datasets",
                expected="at least one data set, all of them with indices",
                got=[type(d).__name__ for d in self.datasets],
                hint="chain iterable ones with ChainDataset",
                kind=OptionError,
            )
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the running sums of the lengths of data sets."""
        return list(itertools.accumulate(map(_length, sequence)))

    @property
    def cummulative_sizes(self) -> list[int]:
        """The old spelling of `cumulative_sizes`."""
        warn_caller("cummulative_sizes is cumulative_sizes now", FutureWarning)
        return self.cumulative_sizes

    def __getitem__(self, idx: int) -> Any:
        position = idx + len(self) if idx < 0 else idx
        if not 0 <= position < len(self):
            raise arg_error(
                "ConcatDataset",
                "idx",
                expected=f"{-len(self)} to {len(self) - 1}",
                got=idx,
                hint="look at len(dataset)",
                kind=IndexRangeError if idx >= 0 else ArgumentError,
            )
        part = bisect.bisect_right(self.cumulative_sizes, position)
        before = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][position - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Iterable data sets in sequence; each is checked when its turn comes.

    Raises
    ------
    OptionError
        When a data set is no IterableDataset.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise arg_error(
                    "ChainDataset",
                    "datasets",
                    expected="an IterableDataset each",
                    got=type(dataset).__name__,
                    hint="join those with indices by ConcatDataset",
                    kind=OptionError,
                )
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._checked())

    def __len__(self) -> int:
        return sum(map(_length, self._checked()))


class Subset(Dataset[Any]):
    """Some samples of another data set, by their indices in it.

    Raises
    ------
    MissingMethodError
        For a subclass that overrides `__getitem__` alone: a DataLoader asks `__getitems__`.
    """

    def __init__(self, dataset: Dataset[Any], indices: Sequence[int]) -> None:
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise MissingMethodError(
                f"{own.__name__} overrides __getitem__ and not __getitems__, which a DataLoader "
                "asks for a batch; define __getitems__(self, indices), as a list of the samples"
            )
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[position] for position in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Return several samples, by the data set's own `__getitems__` where it has it."""
        return _several(self.dataset, [self.indices[position] for position in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[Any], lengths: Sequence[int | float], generator: Generator = default_generator
) -> list[Subset]:
    """Divide a data set at random into parts that do not overlap.

    Parameters
    ----------
    dataset : Dataset
        With a length.
    lengths : sequence of int or of float
        The sizes of the parts, or their shares when they add up to 1; samples that rounding leaves
        over go to the first parts, one each. A share that is too small for a sample warns.
    generator : Generator, optional
        The generator that draws the order.

    Raises
    ------
    ArgumentError
        When the sizes do not add up to the data set's.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> train, test = flow.utils.data.random_split(range(10), [0.7, 0.3])
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (7, 3, True)
    """
    total = _length(dataset)
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1 and all(0 <= size <= 1 for size in sizes):
        sizes = [math.floor(total * share) for share in lengths]
        for position in range(total - int(sum(sizes))):
            sizes[position % len(sizes)] += 1
        if not all(sizes):
            message = f"random_split(): parts of lengths {sizes} leave some without a sample"
            warn_caller(message)
    if sum(sizes) != total or any(size < 0 or size != int(size) for size in sizes):
        raise arg_error(
            "random_split",
            "lengths",
            expected=f"sizes that add up to {total}, or shares that add up to 1",
            got=list(lengths),
            hint="correct one of them",
            kind=ArgumentError,
        )
    order = randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(map(int, sizes))
    return [
        Subset(dataset, order[end - int(size) : end]) for size, end in zip(sizes, ends, strict=True)
    ]


def _several(dataset: Any, indices: list[Any]) -> list[Any]:
    """Return samples, by `__getitems__` where the data set has it."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    samples: list[Any] = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ArgumentError(
            f"__getitems__ of {type(dataset).__name__} returned {len(samples)} samples for "
            f"{len(indices)} indices; return one for each"
        )
    return samples


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError:
        raise ArgumentTypeError(
            f"a data set of type {type(dataset).__name__} has no length; define __len__(self)"
        ) from None


guard_all(globals())
