"""Gradients summed over ranks while backward runs: the machinery of DistributedDataParallel.

Gradients travel in buckets. A hook on each parameter puts its gradient into a bucket as soon as it
is complete; a full bucket is reduced while the rest of the backward pass runs. The buckets begin in
one order on all ranks, on communicators of their own: it does not matter when each becomes full.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device, on_device
from oneflow_lite.distributed.collectives import broadcast
from oneflow_lite.distributed.objects import all_gather_object
from oneflow_lite.distributed.process_group import ProcessGroup
from oneflow_lite.distributed.work import progress
from oneflow_lite.errors import DistributedError
from oneflow_lite.functors.joining import cat
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.interpreter.stack import current_interpreter
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.mode import local, no_grad
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_ARRIVED, _REDUCED = op_expr("gradient_arrived"), op_expr("gradient_reduced_")


class _Bucket:
    """Gradients of the same dtype and device, in a row in one array."""

    def __init__(self, params: Sequence[int], reducer: Reducer) -> None:
        self.params = list(params)
        tensors = [reducer.params[i] for i in params]
        self.device: Device = tensors[0].device
        with on_device(self.device) as xp:
            self.flat = xp.zeros(sum(x.numel() for x in tensors), tensors[0]._data.dtype)
        ends = np.cumsum([x.numel() for x in tensors]).tolist()
        self.places = {
            i: self.flat[end - x.numel() : end].reshape(x.shape)
            for i, x, end in zip(params, tensors, ends, strict=True)
        }
        self.missing: set[int] = set()
        self.work: Any = None  # a Work, or the result of a communication hook


class GradBucket:
    """A bucket of gradients, as a communication hook sees it."""

    def __init__(self, bucket: _Bucket, index: int, reducer: Reducer) -> None:
        self._bucket, self._index, self._reducer = bucket, index, reducer
        self._buffer = make_tensor(bucket.flat)

    def index(self) -> int:
        """Return the number of the bucket, in the order in which they are reduced."""
        return self._index

    def is_last(self) -> bool:
        """Return whether it is the last bucket of a backward pass."""
        return self._index == len(self._reducer.buckets) - 1

    def buffer(self) -> Tensor:
        """Return all gradients in a row."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put other numbers in the place of the gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Return the gradients, which share memory with the buffer."""
        return [make_tensor(place) for place in self._bucket.places.values()]

    def parameters(self) -> list[Tensor]:
        """Return the parameters whose gradients the bucket holds."""
        return [self._reducer.params[i] for i in self._bucket.params]


class Reducer:
    """Sums the gradients of some parameters over the ranks of a group.

    Parameters
    ----------
    named : sequence of (str, Parameter)
        Parameters that require a gradient, the same on all ranks.
    group : ProcessGroup
        Has an order of its own.
    cap, first : int
        Bytes of a bucket, and of the first bucket.
    views : bool
        Whether `.grad` is a part of a bucket.
    """

    def __init__(
        self,
        named: Sequence[tuple[str, Any]],
        group: ProcessGroup,
        cap: int,
        first: int,
        views: bool,
    ) -> None:
        self.names = [name for name, _ in named]
        self.params = [param for _, param in named]
        self.group, self.views = group, views
        self._cap, self._first = cap, first
        self._order: list[int] = []  # in which gradients arrived
        self._follow = True  # whether the next buckets are made in that order
        self._expects = False
        self._next = 0
        self._unused: frozenset[int] | None = None  # None: all take part
        self._task: Any = None
        self.divisor = group.size()
        self.hook: Any = None  # a function and its state
        self._make_buckets(range(len(self.params))[::-1])
        # A leaf's gradient comes late where it is used early, so the last parameters come first.
        for i, param in enumerate(self.params):
            param.register_post_accumulate_grad_hook(functools.partial(self._arrived, i))

    def _make_buckets(self, order: Sequence[int]) -> None:
        """Fill buckets in this order, with separate buckets for each dtype and device."""
        filled: dict[Any, tuple[list[int], int]] = {}
        made: list[list[int]] = []
        for i in order:
            x = self.params[i]
            key = (x._data.dtype, x.device)
            listed, nbytes = filled.get(key, ([], 0))
            if not listed:
                made.append(listed)
            listed.append(i)
            nbytes += x._data.nbytes
            full = nbytes >= (self._first if len(made) == 1 else self._cap)
            filled[key] = ([], 0) if full else (listed, nbytes)
        self.buckets = [_Bucket(params, self) for params in made]
        self._bucket_of = {i: bucket for bucket in self.buckets for i in bucket.params}

    # Before a backward pass

    def settle(self) -> None:
        """Check that the last backward pass is complete, and order the buckets by it, once."""
        if self._expects and self._order and any(bucket.missing for bucket in self.buckets):
            names = [self.names[i] for bucket in self.buckets for i in sorted(bucket.missing)]
            self._expects = False
            raise DistributedError(
                "DistributedDataParallel: no gradient arrived in the last backward pass for "
                f"{', '.join(names)} on rank {self.group.rank()}; pass "
                "find_unused_parameters=True, or let all outputs take part in the loss"
            )
        if self._follow and len(self._order) == len(self.params):
            self._follow = False
            order = np.array(self._order, np.int64)
            self.group.transport(np).broadcast(order, 0).wait()  # one order for all ranks
            before = self._bucket_of
            self._make_buckets(order.tolist())
            if self.views:
                for i, param in enumerate(self.params):
                    grad = param.grad
                    if grad is not None and grad._data is before[i].places[i]:
                        self._become_view(i, grad._data)

    def expect(self) -> None:
        """Expect the gradients of a call, of all parameters."""
        self._on_each_run(self._expect_again)
        self._prepare(None)

    def expect_of(self, outputs: Any) -> None:
        """Expect the gradients of the parameters that some outputs depend on."""
        for x in _tensors(outputs):
            current_interpreter().read("find_unused_parameters", x)  # a replay has another graph
        self._prepare(self._not_reached(outputs))

    def ignore(self) -> None:
        """Let the gradients of the next backward pass stay on this rank."""
        self._on_each_run(self.ignore)
        self._expects = False

    def _on_each_run(self, callback: Callable[[], None]) -> None:
        """Have a call repeated before each replay, while a call is being recorded."""
        if local.state.interpreter is not None:
            current_interpreter().before_run(callback)

    def _expect_again(self) -> None:
        self.settle()
        self._prepare(None)

    def _prepare(self, unused: frozenset[int] | None) -> None:
        self._order.clear()
        self._expects, self._next, self._task = True, 0, None
        for bucket in self.buckets:
            bucket.missing = set(bucket.params)
            bucket.work = None
        self._unused = unused

    def _not_reached(self, outputs: Any) -> frozenset[int]:
        """Return the parameters that no tensor in a nest of containers depends on."""
        todo = [x._edge[0] for x in _tensors(outputs) if x._edge is not None]
        seen = set(todo)
        while todo:
            for node, _ in todo.pop().edges:
                if node is not None and node not in seen:
                    seen.add(node)
                    todo.append(node)
        return frozenset(i for i, x in enumerate(self.params) if x.grad_fn_node not in seen)

    # During a backward pass

    def _arrived(self, i: int, param: Any) -> None:
        """Take in a gradient; this is the hook on each parameter."""
        if not self._expects:
            return
        recorded = local.state.interpreter is not None
        plain = self.hook is None and self._unused is None and not self.views
        if recorded and not plain:
            current_interpreter().read("DistributedDataParallel, with these options,", param)
        task = local.task
        if task is not self._task:
            self._task = task
            task.callbacks = (*task.callbacks, functools.partial(self._finish, task))
            for j in self._unused or ():
                grad = self.params[j].grad
                self._fill(j, None if grad is None else grad._data)
        if i not in self._bucket_of[i].missing:
            raise DistributedError(
                f"DistributedDataParallel: a second gradient arrived for {self.names[i]} after one "
                "forward call; call the module again, or use no_sync() for all passes but the last"
            )
        if recorded:
            dispatch(_ARRIVED, (param.grad,), {"reducer": self, "number": i})
        else:
            self.take_in(i, param.grad._data)

    def take_in(self, i: int, grad: Any) -> None:
        """Take in the array of a gradient."""
        self._order.append(i)
        self._fill(i, grad)
        self._begin()

    def _fill(self, i: int, grad: Any) -> None:
        """Put a gradient's share of the mean into its bucket."""
        bucket = self._bucket_of[i]
        place = bucket.places[i]
        bucket.missing.discard(i)
        with on_device(bucket.device) as xp:
            if grad is None:
                place[...] = 0
            else:
                share = place.dtype.type(1 if self.hook is not None else 1 / self.divisor)
                xp.multiply(grad, share, out=place)

    def _begin(self) -> None:
        """Begin to reduce the full buckets, in order; let buckets go on that have begun."""
        while self._next < len(self.buckets) and not self.buckets[self._next].missing:
            bucket = self.buckets[self._next]
            if self.hook is not None:
                function, state = self.hook
                with no_grad():
                    bucket.work = function(state, GradBucket(bucket, self._next, self))
            else:
                with on_device(bucket.device) as xp:
                    flat = bucket.flat
                    bucket.work = self.group.transport(xp).all_reduce(flat, flat, "sum")
            self._next += 1
        progress()

    # After a backward pass

    def _finish(self, task: Any) -> None:
        """Wait for the sums and give them to the parameters."""
        complete = self._next == len(self.buckets)
        if not complete and task.depth:
            return  # a nested backward pass, as of a checkpoint: the rest comes later
        if local.state.interpreter is not None:
            for i, param in enumerate(self.params):
                if self._bucket_of[i].work is not None:
                    dispatch(_REDUCED, (param.grad,), {"reducer": self, "number": i})
            return
        used = self._used_anywhere() if self._unused is not None and complete else None
        for bucket in self.buckets:
            if bucket.work is None:
                continue
            self._wait(bucket)
            for i, place in bucket.places.items():
                if used is None or used[i]:
                    self._give(i, place)
        if complete:
            self._expects = False

    def _wait(self, bucket: _Bucket) -> None:
        """Wait for the mean of a bucket."""
        found = bucket.work.wait()
        bucket.work = None
        if isinstance(found, Tensor) and found._data is not bucket.flat:
            bucket.flat[...] = found._data.reshape(bucket.flat.shape)

    def shadow(self, walks: bool) -> None:
        """Take part in a backward pass of other ranks, with zeros."""
        self.settle()
        self._prepare(frozenset(range(len(self.params))) if walks else None)
        for i in range(len(self.params)):
            self._order.append(i)
            self._fill(i, None)
        self._begin()
        if walks:
            self._used_anywhere()
        for bucket in self.buckets:
            self._wait(bucket)
        self._expects = False

    def mean_of(self, i: int) -> Any:
        """Return the mean of the ranks' gradients of a parameter."""
        bucket = self._bucket_of[i]
        assert bucket.work is not None
        bucket.work.wait()
        self._expects = False
        return bucket.places[i]

    def _used_anywhere(self) -> Any:
        """Return for each parameter whether any rank used it."""
        assert self._unused is not None
        used = np.array([i not in self._unused for i in range(len(self.params))], np.uint8)
        self.group.transport(np).all_reduce(used, used, "max").wait()
        return used

    def _give(self, i: int, place: Any) -> None:
        grad = self.params[i].grad
        if grad is not None and grad._data is place:
            (grad._storage or grad.memory).version += 1
        elif self.views:
            self._become_view(i, place)
        elif grad is None:
            self.params[i].grad = make_tensor(place.copy())
        else:
            (grad._storage or grad.memory).version += 1
            grad._data[...] = place

    def _become_view(self, i: int, values: Any) -> None:
        """Let a parameter's gradient be a part of its bucket, with these values."""
        place = self._bucket_of[i].places[i]
        if values is not place:
            place[...] = values
        self.params[i].grad = make_tensor(place)


@no_grad()
def take_over(tensors: Sequence[Tensor], group: ProcessGroup, source: int = 0) -> None:
    """Copy tensors of a rank to all ranks, tensors of the same dtype and device together."""
    alike: dict[Any, list[Tensor]] = {}
    for x in tensors:
        alike.setdefault((x.dtype, x.device), []).append(x.detach())
    for listed in alike.values():
        if len(listed) == 1:
            broadcast(listed[0], group=group, group_src=source)
            continue
        flat = cat([x.reshape(-1) for x in listed])
        broadcast(flat, group=group, group_src=source)
        parts = flat.split([x.numel() for x in listed])
        for x, part in zip(listed, parts, strict=True):
            x.copy_(part.reshape(x.shape))


def check_alike(named: Sequence[tuple[str, Tensor]], group: ProcessGroup) -> None:
    """Raise, on all ranks, where a rank's tensors differ from those of rank 0."""
    mine = [f"{name} {x.dtype} {tuple(x.shape)} {x.requires_grad}" for name, x in named]
    everyone: list[Any] = [None] * group.size()
    all_gather_object(everyone, mine, group)
    for rank, theirs in enumerate(everyone):
        if theirs != everyone[0]:
            count = max(len(theirs), len(everyone[0]))
            pairs = [
                [each[i] if i < len(each) else "nothing" for each in (everyone[0], theirs)]
                for i in range(count)
            ]
            here, there = next(pair for pair in pairs if pair[0] != pair[1])
            raise DistributedError(
                "DistributedDataParallel: the ranks have different modules: rank 0 has "
                f"{here}, rank {rank} has {there}; build the same module on all ranks"
            )


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a nest of containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "__dict__"):
        for each in vars(value).values():
            if isinstance(each, (Tensor, list, tuple, dict)):
                yield from _tensors(each)
