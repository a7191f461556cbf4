"""Learning rate schedulers: each sets the `lr` of an optimizer's groups, epoch by epoch.

The optimizer reads `lr` at every step, so a scheduler needs to know nothing of the update.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, bad_argument
from oneflow_lite.exposure import old_names as _old_names
from oneflow_lite.functors.checks import check_int
from oneflow_lite.optim.optimizer import Group, Optimizer
from oneflow_lite.tensor import Tensor

__getattr__ = _old_names(__name__)


class LRScheduler:
    """Base of the schedulers: a subclass defines `_next(group, base_lr)`.

    Parameters
    ----------
    optimizer : Optimizer
        Its groups' `lr` is set, and `initial_lr` remembers where they began.
    last_epoch : int
        -1 to begin; the last finished epoch to go on, with `initial_lr` in every group.

    Attributes
    ----------
    last_epoch : int
        How often `step` was called.
    base_lrs : list of float
        The `initial_lr` of each group.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise bad_argument(
                ArgumentTypeError,
                type(self).__name__,
                "optimizer",
                expected="an Optimizer",
                got=type(optimizer).__name__,
                mend="pass the optimizer whose lr is to be scheduled",
            )
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group["initial_lr"] = _number(group["lr"])
            elif "initial_lr" not in group:
                raise bad_argument(
                    ArgumentError,
                    type(self).__name__,
                    "last_epoch",
                    expected=f"-1, or 'initial_lr' in group {position} to go on from",
                    got=last_epoch,
                    mend="load the optimizer's state first",
                )
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self._versions: list[int] | None = self._written()
        self._advance()

    def step(self) -> None:
        """Begin the next epoch: set each group's `lr`. Called after the optimizer's steps."""
        if self._versions is not None:
            if self._versions == self._written():
                warnings.warn(
                    "scheduler.step() was called before optimizer.step(): the first learning rate "
                    "is skipped; call optimizer.step() first",
                    UserWarning,
                    stacklevel=2,
                )
            self._versions = None
        self._advance()

    def _written(self) -> list[int]:
        """Return how often each parameter was written: unchanged means that no step was taken."""
        versions = [p._version for group in self.optimizer.param_groups for p in group["params"]]
        return [self.optimizer.steps_in_programs, *versions]

    def _advance(self) -> None:
        self.last_epoch += 1
        groups = self.optimizer.param_groups
        # All are computed before the first is set: a lambda that raises changes nothing.
        rates = [self._next(*pair) for pair in zip(groups, self.base_lrs, strict=False)]
        for group, lr in zip(groups, rates, strict=False):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self._last_lr = rates

    def _next(self, group: Group, base_lr: float) -> float:
        """Return the group's lr in epoch `last_epoch`; by default it stays."""
        return _number(group["lr"])

    def get_last_lr(self) -> list[float]:
        """Return the lr of each group as it was last set."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs to go on."""
        return {k: v for k, v in vars(self).items() if k not in ("optimizer", "_versions")}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the state of a scheduler of the same kind."""
        vars(self).update(state_dict)


class LambdaLR(LRScheduler):
    """lr = initial lr * lr_lambda(epoch).

    Parameters
    ----------
    optimizer : Optimizer
        Whose lr is set.
    lr_lambda : callable or list of callable
        Takes the epoch and returns a factor; a list has one for each group.
    last_epoch : int
        See `LRScheduler`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)
    >>> flow.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5).get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        listed = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas: list[Any] = list(lr_lambda) if listed else [lr_lambda] * len(groups)  # type: ignore[arg-type]
        if len(self.lr_lambdas) != len(groups):
            raise bad_argument(
                ArgumentError,
                "LambdaLR",
                "lr_lambda",
                expected=f"{len(groups)} functions, one for each group",
                got=len(self.lr_lambdas),
                mend="pass one function for all groups",
            )
        super().__init__(optimizer, last_epoch)

    def _next(self, group: Group, base_lr: float) -> float:
        position = next(i for i, g in enumerate(self.optimizer.param_groups) if g is group)
        return float(base_lr * self.lr_lambdas[position](self.last_epoch))

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs to go on; functions are no part of it."""
        return {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}


class StepLR(LRScheduler):
    """Multiplies lr by `gamma` every `step_size` epochs.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.ones(1, requires_grad=True)
    >>> optimizer = flow.optim.SGD([x], lr=1.0)
    >>> scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     x.grad = flow.ones(1)
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = check_int("StepLR", "step_size", step_size, 1)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, group: Group, base_lr: float) -> float:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return _number(group["lr"]) * (self.gamma if due else 1.0)


class MultiStepLR(LRScheduler):
    """Multiplies lr by `gamma` at each of the epochs `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, group: Group, base_lr: float) -> float:
        return _number(group["lr"]) * self.gamma ** self.milestones.count(self.last_epoch)


class ExponentialLR(LRScheduler):
    """Multiplies lr by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, group: Group, base_lr: float) -> float:
        return _number(group["lr"]) * (self.gamma if self.last_epoch > 0 else 1.0)


class LinearLR(LRScheduler):
    """Moves lr from `start_factor` to `end_factor` times its start, in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        for name, factor in (("start_factor", start_factor), ("end_factor", end_factor)):
            if not 0 <= factor <= 1 or (name == "start_factor" and factor == 0):
                raise bad_argument(
                    ArgumentError,
                    "LinearLR",
                    name,
                    expected="a factor from 0 to 1, not 0 at the start",
                    got=factor,
                    mend="choose the optimizer's lr as the largest one",
                )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def _next(self, group: Group, base_lr: float) -> float:
        # Relative to the lr as it is, so that schedulers can be chained.
        lr, epoch = _number(group["lr"]), self.last_epoch
        if epoch > self.total_iters:
            return lr
        return lr * self._factor(epoch) / (self._factor(epoch - 1) if epoch else 1.0)


class CosineAnnealingLR(LRScheduler):
    """Moves lr along half a cosine from its initial value to `eta_min` in `T_max` epochs, and back.

    eta_min + (initial lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2
    (Loshchilov and Hutter, 2017).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.ones(1, requires_grad=True)
    >>> optimizer = flow.optim.SGD([x], lr=1.0)
    >>> scheduler = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> x.grad = flow.ones(1)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = check_int("CosineAnnealingLR", "T_max", T_max, 1)
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def _next(self, group: Group, base_lr: float) -> float:
        # Relative to the lr as it is, so that schedulers can be chained; at the bottom of the
        # cosine there is nothing to be relative to.
        lr, epoch = _number(group["lr"]), self.last_epoch
        if epoch == 0:
            return lr
        if (epoch - 1) % (2 * self.T_max) == self.T_max:
            return lr + (base_lr - self.eta_min) * self._height(epoch)
        above = (lr - self.eta_min) * self._height(epoch) / self._height(epoch - 1)
        return self.eta_min + above


def _number(lr: Any) -> float:
    return float(lr.item()) if isinstance(lr, Tensor) else lr
