"""DistributedDataParallel: each rank has a share of the batch, and all get the mean gradient."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.distributed.algorithms.join import Join, Joinable, JoinHook
from oneflow_lite.distributed.process_group import ProcessGroup, check_group
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DistributedError, arg_error
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parallel.reducer import Reducer, check_alike, take_over
from oneflow_lite.nn.parameter import UninitializedParameter
from oneflow_lite.tensors.mode import is_grad_enabled
from oneflow_lite.tensors.tensor import Tensor

_MIB = 1 << 20
# MiB of a bucket, and of the first bucket, which is small so that its transfer begins early.
_CAP, _FIRST = 25.0, 1.0


class DistributedDataParallel(Module, Joinable):
    """Train a module on several ranks: each has its share of a batch, and all get one gradient.

    The parameters and buffers of rank 0 are taken over by all ranks at the start. After `backward`,
    `.grad` holds the mean of the ranks' gradients. Where the loss is a mean over equal shares, a
    step is therefore the same as a step of a single process with the whole batch. In a world of one
    it calls the module.

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
        When no parameter requires a gradient, or before `init_process_group`.
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
        device_ids: Sequence[int] | None = None,
        output_device: DeviceLike | None = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
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
        self._by_all_ranks = True
        self._reducer: Reducer | None = None
        if group.size() == 1:  # no reducer: a call is the module's own
            return
        if init_sync:
            tensors = [*named, *self._named_buffers()]
            check_alike(tensors, group)
            take_over([x for _, x in tensors], group)
        first = min(cap, _FIRST) if bucket_cap_mb is None else cap
        self._reducer = Reducer(
            trained,
            group.private(),  # gradients must not wait for the user's collectives, nor cross them
            math.ceil(cap * _MIB),
            math.ceil(first * _MIB),
            gradient_as_bucket_view,
        )

    def _named_buffers(self) -> list[tuple[str, Tensor]]:
        return [pair for pair in self.module.named_buffers() if pair[0] not in self._ignored]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; the next backward pass through its outputs reduces the gradients."""
        reducer = self._reducer
        if reducer is None:
            return self.module(*inputs, **kwargs)
        syncs, join = self.require_backward_grad_sync, self._join
        if syncs:
            if is_grad_enabled():
                Join.notify_join_context(self)
                reducer.settle()
            if self.broadcast_buffers and (join is None or is_grad_enabled()):
                source = 0 if join is None else int(join.active.argmax())
                take_over([x for _, x in self._named_buffers()], self.process_group, source)
            if join is not None and not self._by_all_ranks:
                reducer.divisor = int(join.active.sum())
        outputs = self.module(*inputs, **kwargs)
        if is_grad_enabled():
            if not syncs:
                reducer.ignore()
            elif self.find_unused_parameters or self.static_graph:
                reducer.expect_of(outputs)
            else:
                reducer.expect()
        return outputs

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients stay on each rank, and add up, in a `with` block.

        The first forward and backward pass after the block reduces the sums.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Let a function reduce the buckets: `hook(state, bucket)` returns a future of the mean.

        Gradients come as they are, not divided by the number of ranks. The hooks of
        `distributed.algorithms.ddp_comm_hooks.default_hooks` send float16 or bfloat16. Called once.

        Raises
        ------
        ArgumentTypeError
            When the hook is no function.
        DistributedError
            When the module has a hook already.
        """
        op = "register_comm_hook"
        if not callable(hook):
            got, hint = type(hook).__name__, "pass a function of a state and a bucket"
            raise arg_error(op, "hook", "a function", got, hint, ArgumentTypeError)
        if self._reducer is not None:
            if self._reducer.hook is not None:
                raise DistributedError(f"{op}(): there is a hook already; wrap the module anew")
            self._reducer.hook = (hook, state)

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Return the context for ranks with unequal numbers of batches: `with net.join():`.

        divide_by_initial_world_size: whether gradients are divided by the number of all ranks, or
          by the number of ranks that still have batches.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the work of a rank after its last batch."""
        return _Shadow(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return next(self.module.parameters()).device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The group over which gradients are reduced."""
        return self.process_group

    def state_dict(self, *args: Any, bare: bool = False, **kwargs: Any) -> Any:
        """Return the module's state; with `bare` under its own names, without "module."."""
        state_dict = self.module.state_dict if bare else super().state_dict
        return state_dict(*args, **kwargs)


class _Shadow(JoinHook):
    """The work that a rank does for `DistributedDataParallel` after its last batch."""

    def __init__(self, net: DistributedDataParallel, by_all_ranks: bool) -> None:
        self.net = net
        net._by_all_ranks = by_all_ranks

    def main_hook(self) -> None:
        """Take part in a forward and a backward pass with zeros."""
        net = self.net
        assert net._reducer is not None
        net._reducer.settle()
        if net.broadcast_buffers:
            source = int(self.join.active.argmax())
            take_over([x for _, x in net._named_buffers()], net.process_group, source)
        net._reducer.shadow(net.find_unused_parameters or net.static_graph)

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take over the parameters and buffers of a rank that had most batches."""
        net, group = self.net, self.net.process_group
        chosen = np.array([group.rank() if is_last_joiner else -1])
        group.transport(np).all_reduce(chosen, chosen, "max").wait()
        tensors = [*net.module.parameters(), *[x for _, x in net._named_buffers()]]
        take_over(tensors, group, int(chosen[0]))
        assert net._reducer is not None
        net._reducer.divisor, net._by_all_ranks = group.size(), True
