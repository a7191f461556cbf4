"""Averages of weights: copies of a model that average its parameters, and the lr for it."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, OptionError, arg_error
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.normalization import _BatchNorm
from oneflow_lite.ops.exposure import expose
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.optim.lr_scheduler import LRScheduler, _check_choice, _for_each_group
from oneflow_lite.optim.optimizer import AT_LEAST_0, Optimizer, is_number
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage = Callable[[list[Tensor], list[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function decay * averaged + (1 - decay) * current, of one parameter."""
    if not (is_number(decay) and 0 <= decay <= 1):
        op, expected, hint = "get_ema_avg_fn", "a number from 0 to 1", "the default is 0.999"
        raise arg_error(op, "decay", expected, repr(decay), hint, ArgumentError)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return ema_param * decay + current_param * (1 - decay)

    return ema_update


def get_swa_avg_fn() -> Average:
    """Return the function that averages all models equally, of one parameter."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            moved: Tensor = averaged_param + (current_param - averaged_param) / (num_averaged + 1)
            return moved

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return a function that writes decay * averaged + (1 - decay) * current into a list."""
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return a function that writes the average of all models into a list of parameters."""
    return _of_lists(get_swa_avg_fn())


def _of_lists(average: Average) -> MultiAverage:
    def update(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        with no_grad():
            for x, y in zip(averaged, current, strict=True):
                x.copy_(average(x, y, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages (Izmailov et al., 2018).

    Parameters
    ----------
    model : Module
        Copied.
    device : device, optional
        The device of the averages.
    avg_fn : callable, optional
        Takes the averaged parameter, the present parameter and the number of models so far, and
        returns the new average; by default all models count equally.
    multi_avg_fn : callable, optional
        Takes lists of both instead, of a common device and dtype, and writes into the first list.
    use_buffers : bool
        Whether buffers are averaged, too; otherwise they are copied from the present model.

    Raises
    ------
    OptionError
        An `AssertionError`, when both functions are given.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> net = flow.nn.Linear(1, 1, bias=False)
    >>> averaged = flow.optim.swa_utils.AveragedModel(net)
    >>> for value in (1.0, 2.0, 6.0):
    ...     with flow.no_grad():
    ...         _ = net.weight.fill_(value)
    ...     averaged.update_parameters(net)
    >>> averaged.module.weight.item(), averaged.n_averaged.item()
    (3.0, 3)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: DeviceLike | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise arg_error(
                "AveragedModel", "multi_avg_fn", "None with avg_fn", "both", "drop one", OptionError
            )
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        count = FUNCTORS.get("zeros")((), dtype="int64", device=device)
        self.register_buffer("n_averaged", count)
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the averages."""
        own, present = _tensors(self.module, self.use_buffers), _tensors(model, self.use_buffers)
        pairs = [(x, y.detach().to(x.device)) for x, y in zip(own, present, strict=False)]
        with no_grad():
            if self.avg_fn is None and self.multi_avg_fn is None:
                where, average = FUNCTORS.get("where"), get_swa_avg_fn()
                for x, y in pairs:  # what decides is a tensor: flow.compile can replay it
                    count = self.n_averaged.to(x.device)
                    mean = average(x.detach(), y, count).to(y.dtype)
                    x.copy_(where(count == 0, y, mean))
            elif self.n_averaged.item() == 0:
                for x, y in pairs:
                    x.copy_(y)
            elif self.multi_avg_fn is not None:
                groups: dict[Any, list[tuple[Tensor, Tensor]]] = {}
                for x, y in pairs:
                    groups.setdefault((x.device, x.dtype), []).append((x.detach(), y))
                for (device, _), group in groups.items():
                    mine, theirs = ([pair[i] for pair in group] for i in (0, 1))
                    self.multi_avg_fn(mine, theirs, self.n_averaged.to(device))
            else:
                assert self.avg_fn is not None
                for x, y in pairs:
                    x.copy_(self.avg_fn(x.detach(), y, self.n_averaged.to(x.device)))
            if not self.use_buffers:
                for x, y in zip(self.module.buffers(), model.buffers(), strict=True):
                    x.copy_(y.detach().to(x.device))
            self.n_averaged += 1


def _tensors(model: Module, buffers: bool) -> Iterator[Tensor]:
    return itertools.chain(model.parameters(), model.buffers() if buffers else ())


def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike | None = None) -> None:
    """Compute the running statistics of a model's batch norms anew, over all of a loader.

    Parameters
    ----------
    loader : iterable
        Of inputs, or of lists and tuples that begin with an input.
    model : Module
        Run in training mode, without gradients; has its mode and momenta back afterwards.
    device : device, optional
        The device to which inputs are moved.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the average of all batches
    try:
        with no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Moves lr to `swa_lr` in `anneal_epochs` epochs, and keeps it there.

    Parameters
    ----------
    optimizer : Optimizer
        Whose lr is set.
    swa_lr : float or list of float
        The last lr, for all groups or for each.
    anneal_epochs : int
        Epochs on the way, at least 0.
    anneal_strategy : {"cos", "linear"}
        The way.
    last_epoch : int
        See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: Any = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        swa_lrs = _for_each_group(self, "swa_lr", swa_lr, AT_LEAST_0)
        _check_choice(self, "anneal_strategy", anneal_strategy, ("cos", "linear"))
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            expected = "an int of at least 0"
            raise arg_error(
                "SWALR", "anneal_epochs", expected, anneal_epochs, "pass 10", ArgumentError
            )
        for group, lr in zip(optimizer.param_groups, swa_lrs, strict=True):
            group["swa_lr"] = lr
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Return the share of the way that the lr has moved after some steps, 0 to 1."""
        share = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return share if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2

    def get_lr(self) -> list[Any]:
        """Return the lr of each group; called by `step`."""
        self._check_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._lrs(), strict=True):
            end = group["swa_lr"]
            # The start follows from the present lr, which other schedulers may have moved.
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates


guard_all(globals())
