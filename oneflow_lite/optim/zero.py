"""ZeroRedundancyOptimizer: each rank keeps the optimizer's state of its share of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.distributed.collectives import broadcast
from oneflow_lite.distributed.objects import gather_object
from oneflow_lite.distributed.process_group import ProcessGroup, check_group
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DistributedError, arg_error
from oneflow_lite.files.sharded_files import Shares
from oneflow_lite.functors.joining import cat
from oneflow_lite.optim.optimizer import Group, Optimizer, Parameters
from oneflow_lite.tensors.mode import enable_grad, no_grad
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """Shard an optimizer over ranks: each updates its share of the parameters and sends it.

    So each rank keeps the state of its share only, and computes only its updates. All ranks begin
    with the same parameters and gradients, as under `DistributedDataParallel`. After a step, all
    have the parameters of the plain optimizer, to the bit (Rajbhandari et al., 2020, stage 1).

    Parameters
    ----------
    params : iterable
        As any optimizer takes them, in the same order on all ranks.
    optimizer_class : type
        The optimizer to shard.
    process_group : ProcessGroup, optional
        The world by default.
    parameters_as_bucket_view : bool
        For PyTorch's scripts; without effect.
    overlap_with_ddp : bool
        False: updates follow after all gradients.
    **defaults
        Options of the optimizer.

    Raises
    ------
    ArgumentTypeError
        When `optimizer_class` is no optimizer.
    ArgumentError
        Before `init_process_group`, or when `overlap_with_ddp` is set.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> x = flow.ones(2, requires_grad=True)
    >>> adam = flow.distributed.optim.ZeroRedundancyOptimizer([x], flow.optim.Adam, lr=0.5)
    >>> x.sum().backward()
    >>> adam.step()
    >>> x
    tensor([0.5000, 0.5000], requires_grad=True)
    >>> flow.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Parameters,
        optimizer_class: Any,
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        op = "ZeroRedundancyOptimizer"
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            expected, hint = "an optimizer's class", "pass flow.optim.Adam"
            kind = ArgumentTypeError
            raise arg_error(op, "optimizer_class", expected, optimizer_class, hint, kind)
        if overlap_with_ddp:
            hint = "leave it out: gradients overlap with backward in any case"
            raise arg_error(op, "overlap_with_ddp", "False", True, hint, ArgumentError)
        self.process_group = check_group(op, process_group)
        self._gathered: dict[str, Any] | None = None
        self._class, self._options = optimizer_class, defaults
        plain = optimizer_class(params, **defaults)
        super().__init__([{**group} for group in plain.param_groups], plain.defaults)
        self._share()

    def _share(self) -> None:
        """Deal out the parameters, the largest first, to the rank that has the least so far."""
        size = self.process_group.size()
        loads = [0] * size
        params = [param for group in self.param_groups for param in group["params"]]
        self._owner: dict[int, int] = {}
        for param in sorted(params, key=lambda x: -x.numel()):  # stable: all ranks deal alike
            rank = loads.index(min(loads))
            loads[rank] += param.numel()
            self._owner[id(param)] = rank
        here = self.process_group.rank()
        groups = [
            {**group, "params": [x for x in group["params"] if self._owner[id(x)] == here]}
            for group in self.param_groups
        ]
        self.optim: Optimizer | None = None
        if any(group["params"] for group in groups):
            for group in groups:
                group.pop("param_names", None)
            self.optim = self._class(groups, **self._options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, and deal all parameters out again.

        DistributedError: after a step, because its state would have to move.
        """
        inner: Optimizer | None = getattr(self, "optim", None)
        if inner is not None and inner.state:
            raise DistributedError(
                "ZeroRedundancyOptimizer.add_param_group(): after a step the state would have to "
                "move between ranks; add groups before the first step"
            )
        super().add_param_group(param_group)
        if hasattr(self, "_owner"):
            self._share()

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's parameters, and receive the parameters of the other ranks."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._gathered = None
        if self.optim is not None:
            self._copy_options(self.param_groups, self.optim.param_groups)
            self.optim.step(**kwargs)
            self._copy_options(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    def _copy_options(self, source: list[Group], target: list[Group]) -> None:
        for given, taken in zip(source, target, strict=True):
            taken.update({k: v for k, v in given.items() if k not in ("params", "param_names")})

    @no_grad()
    def _exchange(self) -> None:
        """Send the updated parameters to all ranks, parameters of the same dtype together."""
        if self.process_group.size() == 1:
            return
        alike: dict[Any, list[Tensor]] = {}
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    key = (self._owner[id(param)], param.dtype.name, str(param.device))
                    alike.setdefault(key, []).append(param.detach())
        works = []
        for key in sorted(alike):  # in one order on all ranks, or broadcasts would cross
            listed = alike[key]
            flat = listed[0] if len(listed) == 1 else cat([x.reshape(-1) for x in listed])
            work = broadcast(flat, group=self.process_group, group_src=key[0], async_op=True)
            works.append((work, flat, listed, key[0]))
        here = self.process_group.rank()
        for work, flat, listed, owner in works:
            if work is not None:
                work.wait()
            if len(listed) > 1 and owner != here:
                parts = flat.split([x.numel() for x in listed])
                for x, part in zip(listed, parts, strict=True):
                    x.copy_(part.reshape(x.shape))

    # State

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all ranks to rank `to` of the group, for its `state_dict`."""
        numbered = self._numbered()
        here = self.process_group.rank() == to
        parts: list[Any] | None = [None] * self.process_group.size() if here else None
        gather_object(numbered, parts, group=self.process_group, group_dst=to)
        self._gathered = None
        if parts is not None:
            self._gathered = {k: v for part in parts for k, v in part.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all ranks, in the format of the plain optimizer.

        DistributedError: unless `consolidate_state_dict` has brought it here since the last step.
        """
        if self._gathered is None:
            raise DistributedError(
                "ZeroRedundancyOptimizer.state_dict(): each rank has a share of the state; all "
                "ranks call consolidate_state_dict(to=rank) first, after the last step"
            )
        return {**super().state_dict(), "state": self._gathered}

    def owns(self, number: int) -> bool:
        """Return whether this rank updates the parameter of this number in `state_dict`."""
        params = [param for group in self.param_groups for param in group["params"]]
        return self._owner[id(params[number])] == self.process_group.rank()

    def shard_state_dict(self) -> dict[str, Any]:
        """Return this rank's share of the state, as `distributed.checkpoint.save` keeps it."""
        return {**super().state_dict(), "state": Shares(self._numbered())}

    def _numbered(self) -> dict[int, Any]:
        params = [param for group in self.param_groups for param in group["params"]]
        mine = {} if self.optim is None else self.optim.state
        return {i: dict(mine[x]) for i, x in enumerate(params) if x in mine}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over this rank's share of the state that `state_dict` returned, on all ranks."""
        if self.optim is not None:
            params = [param for group in self.param_groups for param in group["params"]]
            whole = self._class([{**group} for group in self.param_groups], **self._options)
            whole.load_state_dict(state_dict)
            here = self.process_group.rank()
            self.optim.state.clear()
            for param in params:
                if self._owner[id(param)] == here and param in whole.state:
                    self.optim.state[param] = whole.state[param]
            self._copy_options(whole.param_groups, self.param_groups)
            self._copy_options(whole.param_groups, self.optim.param_groups)
        self._gathered = None
