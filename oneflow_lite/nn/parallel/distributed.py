"""DistributedDataParallel: each rank trains on its share of a batch, with the mean of all gradients.

Gradients travel in buckets. A hook on each parameter puts its gradient into a bucket as soon as it
is there; a full bucket is reduced while the rest of the backward pass runs. The buckets begin in
one order on all ranks, on communicators of their own: it does not matter when each becomes full.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.mode import is_grad_enabled, local
from oneflow_lite.device import Device, on_device
from oneflow_lite.distributed.collectives import broadcast
from oneflow_lite.distributed.objects import all_gather_object
from oneflow_lite.distributed.process_group import ProcessGroup, check_group
from oneflow_lite.distributed.work import Work, progress
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DistributedError, arg_error
from oneflow_lite.functors.joining import cat
from oneflow_lite.interpreter import current_interpreter
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import UninitializedParameter
from oneflow_lite.tensor import Tensor, make_tensor

_MIB = 1 << 20
_CAP, _FIRST = 25.0, 1.0  # MiB of a bucket, and of the first one


class _Bucket:
    """Gradients of one dtype and device, one after the other in one array."""

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
        self.work: Work | None = None


class Reducer:
    """Sums the gradients of some parameters over the ranks of a group.

    Parameters
    ----------
    named : sequence of (str, Parameter)
        Those that require a gradient, the same on all ranks.
    group : ProcessGroup
        Has an order of its own.
    cap, first : int
        Bytes of a bucket, and of the first one.
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
        self._make_buckets(range(len(self.params))[::-1])
        # A leaf's gradient comes late where it is used early, so the last ones come first.
        for i, param in enumerate(self.params):
            param.register_post_accumulate_grad_hook(functools.partial(self._arrived, i))

    def _make_buckets(self, order: Sequence[int]) -> None:
        """Fill buckets in this order, those of each dtype and device apart."""
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
        """Look whether the last backward pass is complete, and order the buckets by it, once."""
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

    def prepare(self, outputs: Any = None) -> None:
        """Expect gradients; those that `outputs`, if given, do not depend on are not waited for."""
        self._order.clear()
        self._expects, self._next, self._task = True, 0, None
        for bucket in self.buckets:
            bucket.missing = set(bucket.params)
            bucket.work = None
        self._unused = None if outputs is None else self._not_reached(outputs)

    def expect(self) -> None:
        """Do what a call does to the reducer, before one that is replayed."""
        self.settle()
        self.prepare()

    def ignore(self) -> None:
        """Let the gradients of the next backward pass stay on this rank."""
        self._expects = False

    def _not_reached(self, outputs: Any) -> frozenset[int]:
        """Return the parameters that lead to no tensor in a nest of containers."""
        todo = [x._edge[0] for x in _tensors(outputs) if x._edge is not None]
        seen = set(todo)
        while todo:
            for node, _ in todo.pop().edges:
                if node is not None and node not in seen:
                    seen.add(node)
                    todo.append(node)
        return frozenset(i for i, x in enumerate(self.params) if x.grad_fn_node not in seen)

    # During it

    def _arrived(self, i: int, param: Any) -> None:
        """Take in a gradient; this is the hook on each parameter."""
        if not self._expects:
            return
        if local.state.interpreter is not None:  # what is recorded would reduce nothing again
            current_interpreter().read("DistributedDataParallel", param)
        task = local.task
        if task is not self._task:
            self._task = task
            task.callbacks = (*task.callbacks, functools.partial(self._finish, task))
            for j in self._unused or ():
                self._fill(j)
        if i not in self._bucket_of[i].missing:
            raise DistributedError(
                f"DistributedDataParallel: a second gradient arrived for {self.names[i]} after one "
                "forward call; call the module again, or use no_sync() for all passes but the last"
            )
        self._order.append(i)
        self._fill(i)
        self._begin()

    def _fill(self, i: int) -> None:
        """Put a gradient's share of the mean into its bucket."""
        bucket = self._bucket_of[i]
        place, grad = bucket.places[i], self.params[i].grad
        bucket.missing.discard(i)
        with on_device(bucket.device) as xp:
            if grad is None:
                place[...] = 0
            else:
                share = place.dtype.type(1 / self.group.size())
                xp.multiply(grad._data, share, out=place)

    def _begin(self) -> None:
        """Begin to reduce the full buckets, in order; let those go on that have begun."""
        while self._next < len(self.buckets) and not self.buckets[self._next].missing:
            bucket = self.buckets[self._next]
            with on_device(bucket.device) as xp:
                bucket.work = self.group.transport(xp).all_reduce(bucket.flat, bucket.flat, "sum")
            self._next += 1
        progress()

    # After it

    def _finish(self, task: Any) -> None:
        """Wait for the sums and give them to the parameters."""
        complete = self._next == len(self.buckets)
        if not complete and task.depth:
            return  # a pass inside another one, as of a checkpoint: the rest comes later
        used = self._used_anywhere() if self._unused is not None and complete else None
        for bucket in self.buckets:
            if bucket.work is None:
                continue
            bucket.work.wait()
            bucket.work = None
            for i, place in bucket.places.items():
                if used is None or used[i]:
                    self._give(i, place)
        if complete:
            self._expects = False

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
            grad._data[...] = place
            (grad._storage or grad.memory).version += 1

    def _become_view(self, i: int, values: Any) -> None:
        """Let a parameter's gradient be a part of its bucket, with these values."""
        place = self._bucket_of[i].places[i]
        if values is not place:
            place[...] = values
        self.params[i].grad = make_tensor(place)


class DistributedDataParallel(Module):
    """Train a module on several ranks: each has its share of a batch, and all get one gradient.

    The parameters and buffers of rank 0 are taken over by all ranks at the start. `backward`
    leaves in `.grad` the mean of the ranks' gradients, so that a step is the one that a single
    process takes with the whole batch, where the loss is a mean over equal shares. In a world of
    one it calls the module.

    Parameters
    ----------
    module : Module
        The same on all ranks.
    device_ids, output_device, dim
        For PyTorch's scripts: the module stays on the device where it is.
    broadcast_buffers : bool
        Whether each forward call begins with the buffers of rank 0.
    process_group : ProcessGroup, optional
        The world by default.
    bucket_cap_mb : float, optional
        MiB of gradients that travel together, 25 by default; the first bucket has 1 at most.
    find_unused_parameters : bool
        Whether parameters may take no part in some outputs; the graph is walked at each call.
    gradient_as_bucket_view : bool
        Whether `.grad` shares the memory of the buckets, which saves a copy of all gradients.
    static_graph : bool
        Whether the parameters that take part are always those of the first call.
    init_sync : bool
        Whether parameters are compared, and taken from rank 0, at the start.
    check_reduction, delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision,
    device_mesh, skip_all_reduce_unused_params
        For PyTorch's scripts; without effect.

    Raises
    ------
    ArgumentError
        When no parameter requires a gradient, or there is no world.
    DistributedError
        On all ranks, when their parameters differ in number, shape or dtype.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> net = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(2, 1))
    >>> net(flow.ones(4, 2)).sum().backward()
    >>> net.module.weight.grad
    tensor([[4., 4.]])
    >>> list(net.state_dict()), list(net.state_dict(bare=True))
    (['module.weight', 'module.bias'], ['weight', 'bias'])
    >>> flow.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        op = "DistributedDataParallel"
        super().__init__()
        if not isinstance(module, Module):
            got, hint = type(module).__name__, "pass an nn.Module"
            raise arg_error(op, "module", "a Module", got, hint, ArgumentTypeError)
        group = check_group(op, process_group)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [pair for pair in module.named_parameters() if pair[0] not in ignored]
        if any(isinstance(param, UninitializedParameter) for _, param in named):
            expected, hint = "parameters with a shape", "call the module once before"
            raise arg_error(op, "module", expected, "lazy ones", hint, ArgumentError)
        trained = [(name, param) for name, param in named if param.requires_grad]
        if not trained:
            expected, hint = "a parameter that requires a gradient", "call the module itself"
            raise arg_error(op, "module", expected, "none", hint, ArgumentError)
        cap = _CAP if bucket_cap_mb is None else bucket_cap_mb
        if not cap > 0:
            hint = "leave it out for 25"
            raise arg_error(op, "bucket_cap_mb", "more than 0", cap, hint, ArgumentError)
        self.module = module
        self.dim, self.device_ids, self.output_device = dim, None, None
        self.process_group = group
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self._ignored = ignored
        self._reducer: Reducer | None = None
        if group.size() == 1:
            return
        if init_sync:
            self._check_alike([*named, *self._named_buffers()], group)
            self._take_over([x for _, x in [*named, *self._named_buffers()]])
        first = min(cap, _FIRST) if bucket_cap_mb is None else cap
        self._reducer = Reducer(
            trained,
            group.private(),
            math.ceil(cap * _MIB),
            math.ceil(first * _MIB),
            gradient_as_bucket_view,
        )

    def _named_buffers(self) -> list[tuple[str, Tensor]]:
        return [pair for pair in self.module.named_buffers() if pair[0] not in self._ignored]

    def _check_alike(self, named: Sequence[tuple[str, Tensor]], group: ProcessGroup) -> None:
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

    def _take_over(self, tensors: Sequence[Tensor]) -> None:
        """Give all ranks what rank 0 has, tensors of one dtype and device together."""
        alike: dict[Any, list[Tensor]] = {}
        for x in tensors:
            alike.setdefault((x.dtype, x.device), []).append(x.detach())
        for listed in alike.values():
            if len(listed) == 1:
                broadcast(listed[0], group=self.process_group, group_src=0)
                continue
            flat = cat([x.reshape(-1) for x in listed])
            broadcast(flat, group=self.process_group, group_src=0)
            parts = flat.split([x.numel() for x in listed])
            for x, part in zip(listed, parts, strict=True):
                x.copy_(part.reshape(x.shape))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; gradients of what it returns will be reduced."""
        reducer = self._reducer
        if reducer is None:
            return self.module(*inputs, **kwargs)
        syncs = self.require_backward_grad_sync
        if syncs:
            if is_grad_enabled():
                reducer.settle()
            if self.broadcast_buffers:
                self._take_over([x for _, x in self._named_buffers()])
        outputs = self.module(*inputs, **kwargs)
        if is_grad_enabled():
            self._after(outputs if syncs else None, syncs)
        return outputs

    def _after(self, outputs: Any, syncs: bool) -> None:
        """Expect the gradients of this call."""
        reducer = self._reducer
        assert reducer is not None
        walks = syncs and (self.find_unused_parameters or self.static_graph)
        if local.state.interpreter is not None:
            if walks:  # a replay has another graph
                for x in _tensors(outputs):
                    current_interpreter().read("find_unused_parameters", x)
            current_interpreter().before_run(reducer.expect if syncs else reducer.ignore)
        if not syncs:
            reducer.ignore()
        else:
            reducer.prepare(outputs if walks else None)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients stay on each rank, and add up, in a `with` block.

        The first forward and backward pass after it reduces what has added up.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def state_dict(self, *args: Any, bare: bool = False, **kwargs: Any) -> Any:
        """Return the module's state; with `bare` under its own names, without "module."."""
        return (self.module if bare else super()).state_dict(*args, **kwargs)


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
