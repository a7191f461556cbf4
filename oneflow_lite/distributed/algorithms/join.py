"""Join: training where the ranks have unequal numbers of batches.

A rank that has run out of batches goes on joining the exchanges of the ranks that still train, and
adds nothing to their sums, until every rank has run out.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from oneflow_lite.distributed.process_group import ProcessGroup
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DistributedError, arg_error


class JoinHook:
    """The work of a rank after its last batch.

    join : Join
        The context, which knows the ranks that still have batches: `join.active`.
    """

    join: Join

    def main_hook(self) -> None:
        """Take part in a step of the ranks that still train; called for each step."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish, once all ranks have ended; called once."""


class Joinable:
    """An object whose steps exchange tensors: `DistributedDataParallel`, or a user's class.

    It calls `Join.notify_join_context(self)` before the first exchange of each step.
    """

    _join: Join | None = None

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the work of a rank after its last batch; `kwargs` come from `Join`."""
        raise NotImplementedError(f"{type(self).__name__} has no join_hook(); define one")

    @property
    def join_device(self) -> Any:
        """The device of the tensors that it exchanges."""
        from oneflow_lite.arrays.device import CPU

        return CPU

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group whose ranks exchange the tensors."""
        raise NotImplementedError(
            f"{type(self).__name__} has no join_process_group; define the property"
        )


class Join:
    """Let ranks with fewer batches take part until all have ended: `with Join([net]):`.

    Parameters
    ----------
    joinables : list of Joinable
        Of one process group.
    enable : bool
        False makes the context do nothing, where all ranks have equal numbers of batches.
    throw_on_early_termination : bool
        Whether all ranks raise as soon as one has ended.
    **kwargs
        For the joinables' `join_hook`.

    Raises
    ------
    DistributedError
        On all ranks, when one has ended and `throw_on_early_termination` is set.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> net = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(1, 1))
    >>> with flow.distributed.algorithms.Join([net]):
    ...     for batch in range(3 + flow.distributed.get_rank()):
    ...         net(flow.ones(1, 1)).sum().backward()
    >>> flow.distributed.destroy_process_group()
    """

    def __init__(
        self,
        joinables: list[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables or not all(isinstance(each, Joinable) for each in joinables):
            hint = "pass modules under DistributedDataParallel"
            got = [type(each).__name__ for each in joinables]
            expected = "a list of Joinable"
            raise arg_error("Join", "joinables", expected, got, hint, ArgumentTypeError)
        groups = {id(each.join_process_group): each.join_process_group for each in joinables}
        if len(groups) > 1:
            hint = "use a Join for each group"
            got = list(groups.values())
            raise arg_error("Join", "joinables", "one process group", got, hint, ArgumentError)
        (self.group,) = groups.values()
        self._joinables, self._throws = joinables, throw_on_early_termination
        self._enabled = enable and self.group.size() > 1
        self._hooks = [each.join_hook(**kwargs) for each in joinables]
        for hook in self._hooks:
            hook.join = self
        self.active = np.ones(self.group.size(), np.int64)

    def __enter__(self) -> Join:
        if self._enabled:
            for each in self._joinables:
                each._join = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in self._joinables:
            each._join = None
        # After an error the ranks are no longer in step: a count would wait in vain.
        if not self._enabled or kind is not None:
            return
        # Each count is a step of the ranks that still train; zero ends the loop on all ranks.
        last = True
        while self._count(0):
            last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)

    def _count(self, active: int) -> int:
        """Tell all ranks whether this rank has a batch; return the number of ranks that have."""
        size, rank = self.group.size(), self.group.rank()
        self.active = np.zeros(size, np.int64)
        self.active[rank] = active
        self.group.transport(np).all_reduce(self.active, self.active, "sum").wait()
        count = int(self.active.sum())
        if self._throws and 0 < count < size:
            ended = np.flatnonzero(self.active == 0).tolist()
            raise DistributedError(
                f"Join: rank(s) {ended} have no more batches, and throw_on_early_termination is "
                "set; give all ranks equal numbers of batches, or leave it out"
            )
        return count

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Say that this rank takes another step; the first of several joinables does it."""
        join = joinable._join
        if join is not None and joinable is join._joinables[0]:
            join._count(1)
