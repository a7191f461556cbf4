"""DataLoader: from a data set to batches, in this process or in worker processes."""

from __future__ import annotations

import copy
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any, Generic, TypeVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    MissingMethodError,
    OptionError,
    WorkerError,
    arg_error,
)
from oneflow_lite.functors.random import Generator
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.shown import Shown
from oneflow_lite.utils.data import _utils
from oneflow_lite.utils.data._utils.collate import default_collate, default_convert
from oneflow_lite.utils.data._utils.fetch import make_fetch
from oneflow_lite.utils.data._utils.worker import RESUME, End, Job, get_worker_info
from oneflow_lite.utils.data.dataset import IterableDataset
from oneflow_lite.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

Sample = TypeVar("Sample", covariant=True)
_FIXED = {
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
}  # fmt: skip


class _DatasetKind:
    """The two kinds of data sets: with an index, and iterable."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[None]):
    """A stand-in for the indices of an IterableDataset, which orders itself."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Shown, Generic[Sample]):
    """Iterates over a data set in batches; every `iter()` begins a new pass.

    With `num_workers`, processes make the batches ahead of time. The workers end with the pass (or
    with the loader, if they are persistent), when the loop is left, and when the program ends.

    Parameters
    ----------
    dataset : Dataset or IterableDataset
        Any object with `__getitem__` and `__len__` will do. A batch is asked of `__getitems__`
        where the data set has it.
    batch_size : int or None
        Samples in a batch; None passes single samples on.
    shuffle : bool, optional
        Whether every pass takes the samples in another order.
    sampler : Sampler or iterable, optional
        The order of the samples, instead of `shuffle`.
    batch_sampler : iterable of list, optional
        The batches themselves, instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    num_workers : int
        How many processes make batches; with 0 this process makes each batch on demand.
    collate_fn : callable, optional
        Makes a batch of a list of samples, `default_collate` by default; without batches, converts
        a single sample, `default_convert` by default.
    pin_memory, pin_memory_device
        Accepted for scripts written for PyTorch; they change nothing.
    drop_last : bool
        Whether a last, smaller batch is left out.
    timeout : float
        Seconds to wait for a worker's batch; 0 waits as long as the worker lives.
    worker_init_fn : callable, optional
        Called in each worker with its number, after seeding and before the first sample.
    multiprocessing_context : str or context of multiprocessing, optional
        How workers are started, as "fork" or "spawn"; by default as Python starts processes.
    generator : Generator, optional
        The generator of `shuffle` and of the workers' seeds, instead of the default one.
    prefetch_factor : int, optional
        Batches that each worker makes ahead; 2 by default.
    persistent_workers : bool
        Whether the workers stay for the next pass, with their copy of the data set.
    in_order : bool
        Whether the batches come in the order of the sampler; otherwise as they are made.

    Raises
    ------
    ArgumentError
        For options that exclude each other, and values out of range.
    WorkerError
        From `next`: when a worker dies, or does not answer in time. All workers are ended then.

    Notes
    -----
    Each pass draws a base seed, then the sampler draws its own. Worker i has seeded `random` and
    this library's default generator with the base seed + i, and `numpy.random` from both, before
    `worker_init_fn` runs. An exception in a worker is raised again by `next`, in the same class
    where that can be made from a message, with the worker's traceback in the text; the pass goes on
    with the batch after it.

    A worker has a copy of the data set, and its changes stay in the copy. It starts with grad mode
    on, whatever block the loop stands in. It may do all that a process may do, except to start
    processes through multiprocessing. Its samples have to be picklable and without gradient
    history, and should be on the CPU. Under fork it must not touch CUDA, since a context does not
    survive a fork, nor wait for a thread of the main process, since a fork copies no threads: pass
    "spawn" for that, define all it needs at the top of a module, and put the script's own work
    below `if __name__ == "__main__":`. NumPy's thread pools are as they were: workers that multiply
    matrices are better off with `OMP_NUM_THREADS=1`.

    Batches come through memory that both processes map, and are copied out of it once: they are
    ordinary tensors, and stay after the workers have ended.

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
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        for argument, least in (("num_workers", num_workers), ("timeout", timeout)):
            if least < 0:
                raise _bad_error(argument, "0 or more", least, "leave it out")
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
            argument = "persistent_workers" if persistent_workers else "prefetch_factor"
            got = persistent_workers or prefetch_factor
            raise _bad_error(
                argument, "none where num_workers=0", got, "pass num_workers, or drop it"
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise _bad_error("prefetch_factor", "1 or more", prefetch_factor, "leave it out")
        iterable = isinstance(dataset, IterableDataset)
        order = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for argument, value in order.items():
            if iterable and value is not None:
                hint = "let the data set order itself"
                raise _bad_error(argument, "none for an IterableDataset", value, hint)
        if sampler is not None and shuffle:
            raise _bad_error("sampler", "none where shuffle=True", sampler, "drop one of them")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                expected = "none beside batch_size, shuffle, sampler or drop_last"
                raise _bad_error(
                    "batch_sampler", expected, batch_sampler, "let the batch_sampler decide"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise _bad_error("drop_last", "False where batch_size=None", True, "drop one of them")
        indices: Any = sampler
        if sampler is None:
            if iterable:
                indices = _InfiniteConstantSampler()
            elif shuffle:
                indices = RandomSampler(dataset, generator=generator)
            else:
                indices = SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(indices, batch_size, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = indices
        self.batch_sampler: Any = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (
            default_collate if self._auto_collation else default_convert
        )
        self.persistent_workers = persistent_workers
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        self._IterableDataset_len_called: int | None = None  # as packages know it
        self._iterator: _BaseDataLoaderIter | None = None
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_iterator" in vars(self):
            expected, hint = "what it was made with", "make another DataLoader"
            raise _bad_error(name, expected, value, hint)
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_iterator": None}  # processes cannot be pickled

    @property
    def multiprocessing_context(self) -> Any:
        """The way in which workers are started; None for Python's default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        argument = "multiprocessing_context"
        if context is not None and not self.num_workers:
            raise _bad_error(argument, "none where num_workers=0", context, "pass num_workers")
        if context is None:
            self._context = None
            return
        import multiprocessing  # absent where no process can start

        if isinstance(context, str):
            methods = multiprocessing.get_all_start_methods()
            if context not in methods:
                raise _bad_error(argument, f"one of {methods}", repr(context), "name one of them")
            context = multiprocessing.get_context(context)
        if not isinstance(context, multiprocessing.context.BaseContext):
            hint = "call multiprocessing.get_context"
            raise _bad_error(argument, "a context, or its name", context, hint, ArgumentTypeError)
        self._context = context

    def check_worker_number_rationality(self) -> None:
        """Warn when there are more workers than cores that this process may use."""
        has = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if has else os.cpu_count() or 1
        if self.num_workers > cores:
            warn_caller(
                f"This DataLoader will create {self.num_workers} worker processes, more than the "
                f"{cores} cores of this process; they may be slower than fewer"
            )

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        kind = _MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter
        return kind(self)

    def __iter__(self) -> Iterator[Any]:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        count = len(self.dataset)
        if self.batch_size is not None:
            count = count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        self._IterableDataset_len_called = count
        return count


class _BaseDataLoaderIter(Shown):
    """One pass over a loader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._begin(loader)
        self._base_seed = draw_seed(loader.generator)

    def _begin(self, loader: DataLoader[Any]) -> None:
        # A copy, which has no iterator: else a persistent iterator and its loader hold each other.
        self._loader = copy.copy(loader)
        self._sampler_iter = iter(self._loader._index_sampler)
        self._yielded, self._said_length = 0, loader._IterableDataset_len_called

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        data = self._next_data()
        self._yielded += 1
        said = self._said_length
        if said is not None and self._yielded > said:
            warn_caller(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {said}, but "
                f"{self._yielded} samples have been fetched; with workers, let each of them take "
                "its share by get_worker_info()"
            )
        return data

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Begin another pass."""
        type(self).__init__(self, loader)

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise MissingMethodError(
            f"{type(self).__name__} cannot be pickled: it has processes; pickle its DataLoader"
        )


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout:
            hint = "pass num_workers, or leave it out"
            raise _bad_error("timeout", "0 where num_workers=0", loader.timeout, hint, OptionError)
        self._fetch = make_fetch(
            loader.dataset,
            loader._dataset_kind == _DatasetKind.Iterable,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )

    def _next_data(self) -> Any:
        return self._fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Gives indices to workers, and takes batches from them."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            hint = "leave it out"
            raise _bad_error(
                "prefetch_factor", "1 or more", loader.prefetch_factor, hint, OptionError
            )
        job = Job(
            dataset=loader.dataset,
            streams=loader._dataset_kind == _DatasetKind.Iterable,
            auto_collation=loader._auto_collation,
            collate_fn=loader.collate_fn,
            drop_last=loader.drop_last,
            init_fn=loader.worker_init_fn,
            base_seed=self._base_seed,
            num_workers=loader.num_workers,
        )
        self._ahead: int = loader.prefetch_factor
        try:
            from oneflow_lite.utils.data._utils.workers import Workers
        except ImportError as error:
            got = f"{loader.num_workers}, and {error}"
            raise _bad_error("num_workers", "0 here", got, "leave it out", WorkerError) from None
        self._workers = Workers(job, loader.multiprocessing_context)
        # Called when the iterator is dropped, and at the latest when the program ends.
        self._close = weakref.finalize(self, self._workers.close)
        self._start(loader)

    @property
    def ended(self) -> bool:
        """Whether the workers have ended."""
        return self._workers.closed

    def _shutdown_workers(self) -> None:
        """End the workers, as packages ask for it."""
        if "_close" in vars(self):  # else none was started
            self._close()

    __del__ = _shutdown_workers

    def _start(self, loader: DataLoader[Any]) -> None:
        """Begin a pass: give each worker the tasks that it works ahead."""
        self._begin(loader)
        count = self._loader.num_workers
        self._given: deque[int] = deque()  # the worker of each task without an answer
        self._at_work = [True] * count  # False once a worker's stream has ended
        self._turns = cycle(range(count))
        for _ in range(self._ahead * count):
            self._give()

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Begin another pass with the same workers, after their tasks of the last one are done."""
        if self.ended:
            super()._reset(loader)
            return
        while self._given:  # else answers of the last pass would mix with the new pass
            self._receive()
        for number in range(self._loader.num_workers):
            self._workers.give(number, RESUME)
        self._start(loader)

    def _give(self) -> None:
        """Give the next indices to the worker whose turn it is."""
        # Out of order, a slow worker would pile up tasks that idle workers could take.
        most = self._ahead * self._loader.num_workers // max(1, sum(self._at_work))
        for _ in self._at_work:
            number = next(self._turns)
            busy = not self._loader.in_order and self._given.count(number) >= most
            if self._at_work[number] and not busy:
                break
        else:
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        self._workers.give(number, (index,))
        self._given.append(number)

    def _receive(self) -> tuple[int, Any]:
        """Take the answer to the oldest task, or out of order the first answer."""
        if self.ended:
            raise WorkerError("the workers of this DataLoader have ended; begin another pass")
        among = {self._given[0]} if self._loader.in_order else set(self._given)
        try:
            number, reply = self._workers.receive(among, self._loader.timeout)
        except KeyboardInterrupt:  # a message may be half read, so the connections are of no use
            self._close()
            raise
        self._given.remove(number)
        return number, reply

    def _next_data(self) -> Any:
        while self._given:
            number, reply = self._receive()
            if not isinstance(reply, End):
                self._give()
                if isinstance(reply, _utils.ExceptionWrapper):
                    reply.reraise()
                return reply
            if self._at_work[number]:
                self._at_work[number] = False
                self._give()
        if not self._loader.persistent_workers:
            self._close()
        raise StopIteration


def _bad_error(
    argument: str, expected: str, got: object, hint: str, kind: type[FlowError] = ArgumentError
) -> FlowError:
    return arg_error("DataLoader", argument, expected, got, hint, kind)


guard_all(globals())
