"""Data sets: where a DataLoader gets samples from, by index or one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexRangeError,
    MissingMethodError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.random import randperm
from oneflow_lite.tensor import Tensor

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by index: a subclass defines `__getitem__` and `__len__`.

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


class IterableDataset(Dataset[Sample]):
    """Samples one after the other: a subclass defines `__iter__`."""

    def __iter__(self) -> Iterator[Sample]:
        raise MissingMethodError(f"{type(self).__name__} does not define __iter__(self); define it")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of one length: sample i is the tuple of their i-th entries.

    Raises
    ------
    ShapeError
        When the first sizes differ.

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
            check_tensor("TensorDataset", argument, tensor)
            if tensor.shape[:1] != tensors[0].shape[:1] or not tensor.ndim:
                raise bad_argument(
                    ShapeError,
                    "TensorDataset",
                    argument,
                    expected="one sample for each of the first tensor's, along dimension 0",
                    got=f"shape {tuple(tensor.shape)} beside {tuple(tensors[0].shape)}",
                    mend="give all tensors the same first size",
                )
        if not tensors:
            raise bad_argument(
                ArgumentError,
                "TensorDataset",
                "tensors",
                expected="at least one tensor",
                got="none",
                mend="pass inputs and targets",
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class ConcatDataset(Dataset[Any]):
    """Data sets one behind the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(d, IterableDataset) for d in self.datasets):
            raise bad_argument(
                ArgumentError,
                "ConcatDataset",
                "datasets",
                expected="at least one data set, all of them with indices",
                got=[type(d).__name__ for d in self.datasets],
                mend="chain iterable ones with itertools.chain",
            )
        self.cumulative_sizes = list(itertools.accumulate(map(_length, self.datasets)))

    def __getitem__(self, index: int) -> Any:
        position = _from_zero("ConcatDataset", index, len(self))
        part = bisect.bisect_right(self.cumulative_sizes, position)
        before = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][position - before]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class Subset(Dataset[Any]):
    """Some samples of another data set, by their indices there."""

    def __init__(self, dataset: Dataset[Any], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[Any], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset]:
    """Divide a data set at random into parts that do not overlap.

    Parameters
    ----------
    dataset : Dataset
        With a length.
    lengths : sequence of int or of float
        The sizes of the parts, or their shares when they add up to 1; samples that rounding leaves
        over go to the first parts, one each.
    generator : Generator, optional
        Drawn from instead of the default one.

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
    if all(0 <= size <= 1 for size in sizes) and math.isclose(sum(sizes), 1) and total != 1:
        shares = sizes
        sizes = [math.floor(total * share) for share in shares]
        for position in range(total - int(sum(sizes))):
            sizes[position % len(sizes)] += 1
    if sum(sizes) != total or any(size < 0 or size != int(size) for size in sizes):
        raise bad_argument(
            ArgumentError,
            "random_split",
            "lengths",
            expected=f"sizes that add up to {total}, or shares that add up to 1",
            got=list(lengths),
            mend="correct one of them",
        )
    order = randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(map(int, sizes))
    return [
        Subset(dataset, order[end - int(size) : end]) for size, end in zip(sizes, ends, strict=True)
    ]


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except TypeError:
        raise ArgumentTypeError(
            f"a data set of type {type(dataset).__name__} has no length; define __len__(self)"
        ) from None


def _from_zero(op: str, index: int, length: int) -> int:
    if -length <= index < length:
        return index + length if index < 0 else index
    raise bad_argument(
        IndexRangeError,
        op,
        "index",
        expected=f"{-length} to {length - 1}",
        got=index,
        mend="look at len(dataset)",
    )
