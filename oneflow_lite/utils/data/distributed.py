"""The sampler of one process among several that train on the same data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributed.process_group import get_rank, get_world_size, is_initialized
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.random import Generator, randperm
from oneflow_lite.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[Any]):
    """Every num_replicas-th sample, beginning at `rank`: a share that no other rank has.

    All shares are of one size: the first samples are taken twice to fill up the last round, or with
    `drop_last` the last samples are left out. When the shares are shuffled, call `set_epoch` before
    each pass, or all passes have one order.

    Parameters
    ----------
    dataset : sized
        The data set, the same in each process.
    num_replicas : int
        How many processes there are; by default the ranks of the world.
    rank : int
        The number of this process, from 0; by default its rank in the world.
    shuffle : bool
        Whether the samples are shuffled before they are shared out.
    seed : int
        The same in each process; the epoch is added to it.
    drop_last : bool
        Whether the last samples are left out where the ranks would get unequal shares.

    Raises
    ------
    ArgumentError
        When `num_replicas` or `rank` is missing and there is no world, or the rank is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> list(flow.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        op = "DistributedSampler"
        if num_replicas is None or rank is None:
            argument = "num_replicas" if num_replicas is None else "rank"
            if not is_initialized():
                expected = "an int: there is no world"
                hint = "call flow.distributed.init_process_group(), or pass it"
                raise arg_error(op, argument, expected, None, hint, ArgumentError)
            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            expected, hint = f"0 to {num_replicas - 1}", "count the processes from 0"
            raise arg_error(op, "rank", expected, rank, hint, ArgumentError)
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[Any]:
        order = range(len(self.dataset))
        if self.shuffle:
            # All ranks draw the same order from the same seed, and each takes its share.
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(len(self.dataset), generator=generator).tolist()
        return islice(cycle(order), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which is added to the seed of the next pass."""
        self.epoch = epoch


guard_all(globals())
