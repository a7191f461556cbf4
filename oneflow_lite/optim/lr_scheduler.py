"""Learning rate schedulers: each sets the `lr` of an optimizer's groups, epoch by epoch.

The optimizer reads `lr` at every step, so a scheduler needs to know nothing of the update. Names,
attributes and the keys of `state_dict` are PyTorch's: a class written for it that defines `get_lr`
(and perhaps `_get_closed_form_lr`) works here. Most schedulers compute the lr from its value in the
epoch before, so that several can be chained on an optimizer.
"""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, SupportsFloat

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    MissingMethodError,
    MissingOptionError,
    arg_error,
)
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.ops.exposure import expose
from oneflow_lite.optim.optimizer import (
    AT_LEAST_0,
    Group,
    Limit,
    Optimizer,
    is_flag,
    is_number,
    number,
)
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.shown import Shown
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_POSITIVE: Limit = ("a number above 0", lambda x: x > 0)
_FINITE: Limit = ("a finite number", lambda x: -math.inf < x < math.inf)
_COUNT: Limit = ("a number of at least 0", lambda x: x >= 0)

EPOCH_WARNING = (
    "scheduler.step(epoch) is deprecated: call step() once for each epoch; the closed form of the "
    "schedule is used where there is one"
)


class LRScheduler(Shown):
    """Base of the schedulers: a subclass defines `get_lr`.

    Parameters
    ----------
    optimizer : Optimizer
        Its groups' `lr` is set, and their `initial_lr` keeps the first value.
    last_epoch : int
        -1 to begin; the last finished epoch to go on, with `initial_lr` in every group.

    Attributes
    ----------
    last_epoch : int
        The epoch that `get_lr` answers for; 0 after construction.
    base_lrs : list of float
        The `initial_lr` of each group.

    Raises
    ------
    ArgumentTypeError
        When `optimizer` is no Optimizer.
    MissingOptionError
        A `KeyError`, when a group has no `initial_lr` to go on from.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> class Halving(flow.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base_lr / 2**self.last_epoch for base_lr in self.base_lrs]
    >>> optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halving(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(self, optimizer)
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", number(group["lr"]))
            elif "initial_lr" not in group:
                raise arg_error(
                    type(self).__name__,
                    "last_epoch",
                    expected=f"-1, or 'initial_lr' in group {position} to go on from",
                    got=last_epoch,
                    hint="load the optimizer's state first",
                    kind=MissingOptionError,
                )
        self.base_lrs = [number(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        optimizer._noted.setdefault("stepped", False)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the lr of the first epoch."""
        # PyTorch's first lr is set by a step, too; so a subclass needs to define no more than that.
        self._step_count = 0
        with with_flag(self, "_is_initial"):
            self.step()

    def step(self, epoch: int | None = None) -> None:
        """Begin the next epoch: set each group's `lr`. Called after the optimizer's steps.

        Parameters
        ----------
        epoch : int, optional
            The epoch to begin instead; deprecated, as in PyTorch.
        """
        # The count is 1 after construction, so this is the first call by a user.
        known = self.optimizer._noted.get("stepped") or getattr(
            self.optimizer, "_opt_called", False
        )
        if self._step_count == 1 and not known:
            warn_caller(
                "scheduler.step() was called before optimizer.step(): the first learning rate "
                "is skipped; call optimizer.step() first"
            )
        self._step_count += 1
        if epoch is not None:
            warn_caller(EPOCH_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._apply(None if epoch is None else getattr(self, "_get_closed_form_lr", None))

    def _apply(self, closed: Callable[[], list[Any]] | None = None) -> None:
        """Set each group's lr to the result of `get_lr`, or of the closed form."""
        with with_flag(self, "_get_lr_called_within_step"):
            # All rates are computed before the first is set: a lambda that raises changes nothing.
            rates = self.get_lr() if closed is None else closed()
        groups = self.optimizer.param_groups
        if len(rates) != len(groups):
            raise ArgumentError(
                f"{type(self).__name__}: {len(rates)} learning rates for {len(groups)} parameter "
                "groups; add all groups before the scheduler is made"
            )
        for group, lr in zip(groups, rates, strict=True):
            _set_lr(group, lr)
        self._last_lr = self._lrs()

    def get_lr(self) -> list[Any]:
        """Return the lr of each group in epoch `last_epoch`; called by `step`."""
        name = type(self).__name__
        raise MissingMethodError(f"{name} does not define get_lr(); return one lr for each group")

    def _facts(self) -> dict[str, Any]:
        return {"lr": vars(self).get("_last_lr")}

    def get_last_lr(self) -> list[Any]:
        """Return the lr of each group as it was last set."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`; functions are no part of it."""
        return {k: v for k, v in vars(self).items() if k != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the state of a scheduler of the same kind.

        Raises
        ------
        ArgumentTypeError
            When it is no dict, or a value is of another kind than the present one; the scheduler
            is unchanged then.
        ArgumentError
            When it is of another number of parameter groups.
        """
        self._check_state(state_dict)
        vars(self).update(state_dict)

    def _check_state(self, state_dict: Any) -> None:
        if not isinstance(state_dict, Mapping) or not all(type(key) is str for key in state_dict):
            got = type(state_dict).__name__
            raise self._misfit_error("state_dict", "a dict by names", got, ArgumentTypeError)
        for key, value in state_dict.items():
            present = vars(self).get(key)
            expected = _kind_of(present)
            if expected and _kind_of(value) != expected:
                raise self._misfit_error(key, expected, type(value).__name__, ArgumentTypeError)
            if key in ("base_lrs", "_last_lr") and present and len(value) != len(present):
                raise self._misfit_error(key, f"{len(present)} numbers", len(value), ArgumentError)

    def _misfit_error(
        self, key: str, expected: str, got: object, kind: type[FlowError]
    ) -> FlowError:
        op, hint = f"{type(self).__name__}.load_state_dict", "load the state of such a scheduler"
        return arg_error(op, key, expected, got, hint, kind)

    def _check_function(self, function: Any, kept: Any) -> None:
        """Raise unless these are attributes for a function of the user."""
        if kept and (not isinstance(kept, Mapping) or not hasattr(function, "__dict__")):
            expected, got = "attributes of a callable object", type(kept).__name__
            raise self._misfit_error("state_dict", expected, got, ArgumentTypeError)

    def _lrs(self) -> list[Any]:  # numbers, as a tensor would change with the next step
        return [number(group["lr"]) for group in self.optimizer.param_groups]

    def _check_within_step(self) -> None:
        """Warn a user who calls `get_lr`: it computes the next lr from the present one."""
        if not self._get_lr_called_within_step:
            text = "get_lr() is for step() to call; get_last_lr() returns the learning rates"
            warn_caller(text)


def _apart(state_dict: Any, key: str) -> tuple[Any, Any]:
    """Return a state without an entry, and the entry."""
    if not isinstance(state_dict, Mapping):
        return state_dict, None
    return {k: v for k, v in state_dict.items() if k != key}, state_dict.get(key)


def _all_of(scheduler: Any) -> Iterator[Any]:
    """Yield a scheduler, and those that it leads."""
    yield scheduler
    for each in getattr(scheduler, "_schedulers", ()):
        yield from _all_of(each)


def _kind_of(value: Any) -> str:
    """Return the text for the kind of a value of a state; an empty one for any kind."""
    if is_number(value):
        return "a number"
    if isinstance(value, (list, tuple)):
        plain = {_kind_of(x) for x in value} <= {"a number"}
        return "a list of numbers" if plain else "a list"
    kinds = {bool: "True or False", str: "text", Mapping: "a dict"}
    return next((text for kind, text in kinds.items() if isinstance(value, kind)), "")


_LRScheduler = type("_LRScheduler", (LRScheduler,), {"__doc__": "PyTorch's older name."})


class _Chainable(LRScheduler):
    """A scheduler whose lr follows from the lr of the epoch before.

    A subclass defines `_next(lr, base_lr)`, and `_closed(base_lr)` from the epoch alone.
    """

    def get_lr(self) -> list[Any]:
        """Return the lr of each group in epoch `last_epoch`; called by `step`."""
        self._check_within_step()
        rates = self._lrs()
        starts = [*self.base_lrs, *rates[len(self.base_lrs) :]]  # of groups that came later
        return [self._next(*pair) for pair in zip(rates, starts, strict=True)]

    def _get_closed_form_lr(self) -> list[Any]:
        return [self._closed(base_lr) for base_lr in self.base_lrs]

    def _next(self, lr: float, base_lr: float) -> float:
        raise NotImplementedError

    def _closed(self, base_lr: float) -> float:
        raise NotImplementedError


class _OfFunctions(LRScheduler):
    """A scheduler with a function for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = _for_each_group(self, "lr_lambda", lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                got, op = type(function).__name__, type(self).__name__
                raise arg_error(
                    op, "lr_lambda", "a function", got, "take the epoch", ArgumentTypeError
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`: of a callable object, its attributes."""
        return super().state_dict() | {"lr_lambdas": list(map(_attributes, self.lr_lambdas))}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the state of a scheduler of the same kind."""
        own, functions = _apart(state_dict, "lr_lambdas")
        if functions is not None and not isinstance(functions, (list, tuple)):
            got = type(functions).__name__
            raise self._misfit_error("lr_lambdas", "a list", got, ArgumentTypeError)
        pairs = [*zip(self.lr_lambdas, functions or (), strict=False)]
        for function, kept in pairs:
            self._check_function(function, kept)
        super().load_state_dict(own)
        for function, kept in pairs:
            vars(function).update(kept or {})


class LambdaLR(_OfFunctions):
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

    def get_lr(self) -> list[Any]:
        """Return the lr of each group in epoch `last_epoch`; called by `step`."""
        self._check_within_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base_lr * function(self.last_epoch) for base_lr, function in pairs]


class MultiplicativeLR(_OfFunctions):
    """Multiplies lr by lr_lambda(epoch) every epoch; the parameters are those of `LambdaLR`."""

    def get_lr(self) -> list[Any]:
        """Return the lr of each group in epoch `last_epoch`; called by `step`."""
        self._check_within_step()
        rates = self._lrs()
        if self._is_initial:
            return rates
        pairs = zip(rates, self.lr_lambdas, strict=True)
        return [lr * function(self.last_epoch) for lr, function in pairs]


class StepLR(_Chainable):
    """Multiplies lr by `gamma` every `step_size` epochs.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: float, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        given: Any = step_size
        if isinstance(given, float) and given.is_integer():  # PyTorch takes 1.0; scripts write it
            given = int(given)
        self.step_size = check_int("StepLR", "step_size", given, 1)
        self.gamma = _checked_number(self, "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base_lr: float) -> float:
        due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return lr * self.gamma if due else lr

    def _closed(self, base_lr: float) -> float:
        return float(base_lr * self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(_Chainable):
    """Multiplies lr by `gamma` at each of the epochs `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        given: Any = milestones
        listed = isinstance(given, Iterable) and not isinstance(given, (str, Tensor))
        self.milestones: Counter[int] = Counter(given if listed else [given])
        for epoch in self.milestones:
            if not listed or not is_number(epoch) or epoch < 0 or epoch % 1:
                got, hint = repr(given), "pass the numbers of epochs"
                expected, kind = "a list of whole numbers", ArgumentTypeError
                raise arg_error("MultiStepLR", "milestones", expected, got, hint, kind)
        self.gamma = _checked_number(self, "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base_lr: float) -> float:
        return lr * self.gamma ** self.milestones[self.last_epoch]

    def _closed(self, base_lr: float) -> float:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return base_lr * self.gamma**passed


class ConstantLR(_Chainable):
    """Multiplies lr by `factor`, until epoch `total_iters`."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = _checked_factor(self, "factor", factor)
        whole = ("a whole number of at least 0", lambda x: x >= 0 and (x % 1 == 0 or x == math.inf))
        self.total_iters = _checked_number(self, "total_iters", total_iters, whole)
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base_lr: float) -> float:
        # Relative to the present lr, as another scheduler may have changed it, too.
        if self.last_epoch == 0:
            return lr * self.factor
        if self.last_epoch != self.total_iters:
            return lr
        return lr / self.factor if self.factor else base_lr

    def _closed(self, base_lr: float) -> float:
        return base_lr * (1 if self.last_epoch >= self.total_iters else self.factor)


class LinearLR(_Chainable):
    """Moves lr from `start_factor` to `end_factor` times its start, in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = _checked_factor(self, "start_factor", start_factor, positive=True)
        self.end_factor = _checked_factor(self, "end_factor", end_factor)
        self.total_iters = _checked_number(self, "total_iters", total_iters, _COUNT)
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        share = min(epoch, self.total_iters) / (self.total_iters or 1)
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def _next(self, lr: float, base_lr: float) -> float:
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        return lr * self._factor(self.last_epoch) / self._factor(self.last_epoch - 1)

    def _closed(self, base_lr: float) -> float:
        return base_lr * self._factor(self.last_epoch)


class ExponentialLR(_Chainable):
    """Multiplies lr by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = _checked_number(self, "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base_lr: float) -> float:
        return lr if self._is_initial else lr * self.gamma

    def _closed(self, base_lr: float) -> float:
        return float(base_lr * self.gamma**self.last_epoch)


class PolynomialLR(_Chainable):
    """lr = initial lr * (1 - epoch / total_iters)^power, until epoch `total_iters`."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = _checked_number(self, "total_iters", total_iters, _COUNT)
        self.power = _checked_number(self, "power", power)
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base_lr: float) -> float:
        epoch, total = self.last_epoch, self.total_iters
        if self._is_initial or epoch > total or total == math.inf:
            return lr
        return float(lr * ((total - epoch) / (total - epoch + 1)) ** self.power)

    def _closed(self, base_lr: float) -> float:
        left = 1 - min(self.last_epoch, self.total_iters) / (self.total_iters or 1)
        return float(base_lr * left**self.power)


class CosineAnnealingLR(_Chainable):
    """Moves lr along half a cosine from its initial value to `eta_min` in `T_max` epochs, and back.

    eta_min + (initial lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2
    (Loshchilov and Hutter, 2017).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: float, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = _checked_number(self, "T_max", T_max, _POSITIVE)
        self.eta_min = _checked_number(self, "eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: float) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def _next(self, lr: float, base_lr: float) -> float:
        epoch = self.last_epoch
        if self._is_initial:
            return lr
        if self._step_count == 1 and epoch > 0:
            return self._closed(base_lr)
        # At the bottom of the cosine the height is 0, and no factor leads up from it.
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return lr + (base_lr - self.eta_min) * self._height(self.T_max - 1)
        above = (lr - self.eta_min) * self._height(epoch) / self._height(epoch - 1)
        return self.eta_min + above

    def _closed(self, base_lr: float) -> float:
        return self.eta_min + (base_lr - self.eta_min) * self._height(self.last_epoch)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Moves lr along half a cosine to `eta_min`, again and again (Loshchilov and Hutter, 2017).

    Parameters
    ----------
    optimizer : Optimizer
        Whose lr is set.
    T_0 : int
        Epochs of the first descent.
    T_mult : int
        The ratio of a descent's length to the length of the descent before.
    eta_min : float
        The smallest lr.
    last_epoch : int
        See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: Any,
        T_mult: Any = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        op = type(self).__name__
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise arg_error(op, name, "an int of at least 1", value, "use 1", ArgumentError)
        if not isinstance(eta_min, (float, int)):
            got = type(eta_min).__name__
            raise arg_error(op, "eta_min", "a number", got, "pass a float", ArgumentError)
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = _checked_number(self, "eta_min", eta_min)
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the lr of each group, `T_cur` epochs into a descent of `T_i`; called by `step`."""
        self._check_within_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base_lr - self.eta_min) * height for base_lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Begin the next epoch, or go to any point in time: `step(epoch + batch / batches)`."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                op = f"{type(self).__name__}.step"
                raise arg_error(op, "epoch", "at least 0", epoch, "count from 0", ArgumentError)
            # The descents so far took T_0 (1 + T_mult + ... + T_mult^(done - 1)) epochs.
            if self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                cycles = epoch / self.T_0 * (self.T_mult - 1) + 1
                done = int(math.log(cycles, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**done - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**done
        self.last_epoch = math.floor(epoch)
        self._apply()


class _WithMomentum(LRScheduler):
    """A scheduler that may move momentum (or betas[0]) against the lr."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base: Any, maximum: Any, last_epoch: int) -> None:
        """Check that the optimizer has a momentum, note its limits, and set the largest."""
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            op = type(self).__name__
            expected = "False for an optimizer without momentum or betas"
            raise arg_error(
                op, "cycle_momentum", expected, True, "pass cycle_momentum=False", ArgumentError
            )
        self.use_beta1 = "betas" in defaults
        limits = zip(
            self.optimizer.param_groups,
            _for_each_group(self, "base_momentum", base, _FINITE),
            _for_each_group(self, "max_momentum", maximum, _FINITE),
            strict=True,
        )
        for group, low, high in limits if last_epoch == -1 else ():
            self._set_momentum(group, high)
            group |= {"max_momentum": high, "base_momentum": low}

    def _set_momentum(self, group: Group, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Moves lr from `base_lr` up to `max_lr` and down again, over and over (Smith, 2017).

    Parameters
    ----------
    optimizer : Optimizer
        Whose lr is set.
    base_lr, max_lr : float or list of float
        The limits, for all groups or for each.
    step_size_up, step_size_down : int
        Steps of each half of a cycle; the second is as long as the first by default.
    mode : {"triangular", "triangular2", "exp_range"}
        Whether the height of the triangle stays, halves with each cycle, or is multiplied by
        `gamma` at each step.
    gamma : float
        For "exp_range".
    scale_fn : callable, optional
        Returns the height instead; takes the cycle (from 1) or the step, as `scale_mode` says.
    scale_mode : {"cycle", "iterations"}
        The argument of `scale_fn`.
    cycle_momentum : bool
        Whether momentum (or betas[0]) moves from `max_momentum` to `base_momentum` and back.
    base_momentum, max_momentum : float or list of float
        Its limits.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ArgumentError
        For an unknown `mode`, lists that do not fit the groups, or an optimizer without momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = _checked(self, optimizer)
        base_lrs = _for_each_group(self, "base_lr", base_lr, AT_LEAST_0)
        self.max_lrs = _for_each_group(self, "max_lr", max_lr, AT_LEAST_0)
        if scale_fn is None:
            _check_choice(self, "mode", mode, ("triangular", "triangular2", "exp_range"))
        else:
            if not callable(scale_fn):
                got, hint = type(scale_fn).__name__, "take the cycle, and return a height"
                raise arg_error("CyclicLR", "scale_fn", "a function", got, hint, ArgumentTypeError)
            _check_choice(self, "scale_mode", scale_mode, ("cycle", "iterations"))
        positive = ("a finite number above 0", lambda x: 0 < x < math.inf)
        up = _checked_number(self, "step_size_up", step_size_up, positive)
        down = up if step_size_down is None else step_size_down
        down = _checked_number(self, "step_size_down", down)
        self.total_size = float(up + down)
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = _checked_number(self, "gamma", gamma)
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = _checked_flag(self, "cycle_momentum", cycle_momentum)
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
            self.base_momentums = _for_each_group(self, "base_momentum", base_momentum, _FINITE)
            self.max_momentums = _for_each_group(self, "max_momentum", max_momentum, _FINITE)
        for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
            if last_epoch == -1:
                _set_lr(group, lr)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs  # which the base class has set to each `initial_lr`

    def scale_fn(self, x: float) -> float:
        """Return the height of the triangle, in a cycle or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return float(self.gamma**x)
        return 1.0 if self.mode == "triangular" else 2.0 ** (1 - x)

    def get_lr(self) -> list[Any]:
        """Return the lr of each group at step `last_epoch`, and set its momentum."""
        self._check_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, limits, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        limits = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in limits]

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`: of a callable object, its attributes."""
        return super().state_dict() | {"_scale_fn_custom": _attributes(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the state of a scheduler of the same kind."""
        own, kept = _apart(state_dict, "_scale_fn_custom")
        self._check_function(self._scale_fn_custom, kept)
        super().load_state_dict(own)
        if kept:
            vars(self._scale_fn_custom).update(kept)


class OneCycleLR(_WithMomentum):
    """Moves lr up to `max_lr` and down to nearly nothing, once (Smith and Topin, 2019).

    Parameters
    ----------
    optimizer : Optimizer
        Whose lr is set.
    max_lr : float or list of float
        The largest lr, of all groups or of each.
    total_steps, epochs, steps_per_epoch : int, optional
        Length of the cycle, or two numbers that multiply to it.
    pct_start : float
        The share of the cycle that goes up.
    anneal_strategy : {"cos", "linear"}
        The way from one lr to the other.
    cycle_momentum : bool
        Whether momentum (or betas[0]) moves from `max_momentum` to `base_momentum` and back.
    base_momentum, max_momentum : float or list of float
        Its limits.
    div_factor, final_div_factor : float
        The first lr is max_lr / div_factor, the last is the first / final_div_factor.
    three_phase : bool
        Whether lr goes back to its first value, in as many steps, before the last descent.
    last_epoch : int
        See `LRScheduler`.

    Raises
    ------
    ArgumentError
        For a length that is no positive int, a share that is no float from 0 to 1, an unknown
        strategy, lists that do not fit the groups, or an optimizer without momentum; by `step`,
        after the end of the cycle.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: Any = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = _checked(self, optimizer)
        lengths = {"total_steps": total_steps}
        if total_steps is None:
            lengths = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        for name, value in lengths.items():
            if not isinstance(value, int) or value <= 0:
                hint = "pass total_steps, or epochs and steps_per_epoch"
                raise arg_error("OneCycleLR", name, "a positive int", value, hint, ArgumentError)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            expected = "a float from 0 to 1"
            raise arg_error(
                "OneCycleLR", "pct_start", expected, pct_start, "pass 0.3", ArgumentError
            )
        _check_choice(self, "anneal_strategy", anneal_strategy, ("cos", "linear"))
        self.total_steps = math.prod(value or 0 for value in lengths.values())
        up = pct_start * self.total_steps - 1
        rising = _phase(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        falling = _phase(0, "max_lr", "min_lr", "base_momentum", "max_momentum")
        if _checked_flag(self, "three_phase", three_phase):
            back = _phase(2 * up, "max_lr", "initial_lr", "base_momentum", "max_momentum")
            falling |= {"start_lr": "initial_lr", "start_momentum": "max_momentum"}
        self._schedule_phases = [rising, back, falling] if three_phase else [rising, falling]
        falling["end_step"] = self.total_steps - 1
        self._anneal_func_type = anneal_strategy
        max_lrs = _for_each_group(self, "max_lr", max_lr, AT_LEAST_0)
        first = _checked_number(self, "div_factor", div_factor, _POSITIVE)
        last = _checked_number(self, "final_div_factor", final_div_factor, _POSITIVE)
        self.cycle_momentum = _checked_flag(self, "cycle_momentum", cycle_momentum)
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
        for group, high in zip(optimizer.param_groups, max_lrs, strict=True):
            if last_epoch == -1:
                start = high / first
                group |= {"initial_lr": start, "max_lr": high, "min_lr": start / last}
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the lr of each group at step `last_epoch`, and set its momentum."""
        self._check_within_step()
        step, start = self.last_epoch, 0.0
        if step > self.total_steps:
            raise ArgumentError(
                f"OneCycleLR.step(): step {step} of a cycle of {self.total_steps}; pass a larger "
                "total_steps, or stop calling step()"
            )
        for phase in self._schedule_phases:
            if step <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:  # step total_steps continues the last phase
                start = phase["end_step"]
        share = (step - start) / (phase["end_step"] - start)
        if self._anneal_func_type == "cos":
            share = (1 - math.cos(math.pi * share)) / 2

        def between(group: Group, kind: str) -> float:
            first, last = group[phase[f"start_{kind}"]], group[phase[f"end_{kind}"]]
            return float(first + (last - first) * share)

        rates = [between(group, "lr") for group in self.optimizer.param_groups]
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            self._set_momentum(group, between(group, "momentum"))
        return rates


class _OfSchedulers(LRScheduler):
    """A scheduler that leads further schedulers."""

    _schedulers: Sequence[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Keep the schedulers when all belong to an optimizer, and step without an argument."""
        op = type(self).__name__
        hint = "pass schedulers of one optimizer"
        if not schedulers:
            raise arg_error(op, "schedulers", "at least one", "none", hint, ArgumentError)
        for i, scheduler in enumerate(schedulers):
            where = f"schedulers[{i}]"
            if not hasattr(scheduler, "optimizer"):
                got = type(scheduler).__name__
                raise arg_error(op, where, "a scheduler", got, hint, ArgumentTypeError)
            optimizer = optimizer or scheduler.optimizer
            if isinstance(scheduler, ReduceLROnPlateau):
                expected, got = "one whose step() takes nothing", "ReduceLROnPlateau"
                raise arg_error(op, where, expected, got, "step it apart", ArgumentError)
            if scheduler.optimizer is not optimizer:
                raise arg_error(op, where, "the same optimizer", "another", hint, ArgumentError)
        assert optimizer is not None
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `load_state_dict`, with the states of the schedulers."""
        return super().state_dict() | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the state of a scheduler of the same kind."""
        own, states = _apart(state_dict, "_schedulers")
        if not isinstance(states, (list, tuple)) or len(states) != len(self._schedulers):
            expected, kind = f"{len(self._schedulers)} states", ArgumentError
            raise self._misfit_error("_schedulers", expected, type(states).__name__, kind)
        before = [(each, dict(vars(each))) for each in _all_of(self)]
        try:
            super().load_state_dict(own)
            for scheduler, kept in zip(self._schedulers, states, strict=True):
                scheduler.load_state_dict(kept)
        except BaseException:
            for each, fields in before:
                vars(each).clear()
                vars(each).update(fields)
            raise


class SequentialLR(_OfSchedulers):
    """Uses several schedulers in turn; each begins anew at its milestone.

    Parameters
    ----------
    optimizer : Optimizer
        Whose lr is set.
    schedulers : list of LRScheduler
        Of this optimizer.
    milestones : list of int
        The epochs at which the second, third, ... begin.
    last_epoch : int
        See `LRScheduler`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)
    >>> warmup = flow.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1)
    >>> decay = flow.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = flow.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], [2])
    >>> for epoch in range(3):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [0.1]
    [0.1]
    [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise arg_error(
                "SequentialLR",
                "milestones",
                expected=f"{len(schedulers) - 1}, one fewer than schedulers",
                got=len(milestones),
                hint="the first scheduler begins at once",
                kind=ArgumentError,
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # The schedulers took their first steps when they were made, all on the same lr: undo them.
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        _undo_first_step(self)
        first = self._schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Begin the next epoch with the scheduler whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_OfSchedulers):
    """Steps several schedulers together: their factors multiply.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        Schedulers of the same optimizer.
    optimizer : Optimizer, optional
        The optimizer of the schedulers.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = self._lrs()

    def step(self) -> None:  # type: ignore[override]
        """Begin the next epoch with every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._lrs()


class ReduceLROnPlateau(LRScheduler):
    """Multiplies lr by `factor` when a measure has not improved for `patience` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Whose lr is set.
    mode : {"min", "max"}
        Whether the measure is to fall or to rise.
    factor : float
        Below 1.
    patience : int
        Epochs without improvement before the lr is reduced.
    threshold : float
        The least improvement that counts.
    threshold_mode : {"rel", "abs"}
        Whether `threshold` is a share of the best measure, or a difference.
    cooldown : int
        Epochs after a reduction that are not counted.
    min_lr : float or list of float
        The smallest lr, of all groups or of each.
    eps : float
        The lr stays when it would change by no more than this.

    Raises
    ------
    ArgumentError
        For a factor of 1 or more, an unknown mode, or a list that does not fit the groups.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = flow.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     optimizer.step()
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        below_1 = ("a number from 0 to below 1", lambda x: 0 <= x < 1)
        self.factor = _checked_number(self, "factor", factor, below_1)
        _check_choice(self, "mode", mode, ("min", "max"))
        _check_choice(self, "threshold_mode", threshold_mode, ("rel", "abs"))
        self.optimizer = _checked(self, optimizer)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _for_each_group(self, "min_lr", min_lr, AT_LEAST_0)
        self.patience = _checked_number(self, "patience", patience, _COUNT)
        self.cooldown = _checked_number(self, "cooldown", cooldown, _COUNT)
        self.eps = _checked_number(self, "eps", eps)
        self.last_epoch = 0
        self._last_lr = self._lrs()
        self.mode = mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.threshold = _checked_number(self, "threshold", threshold, _FINITE)
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forget all measures, as scripts have it do that begin anew."""
        self.best = self.mode_worse
        self.cooldown_counter: float = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted, after a reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of an epoch's measure, and reduce the lr when it is time.

        Parameters
        ----------
        metrics : float or Tensor
            The measure.
        epoch : int, optional
            The number of the epoch; deprecated, as in PyTorch.
        """
        current = float(metrics)
        if epoch is not None:
            warn_caller(EPOCH_WARNING)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._lrs()

    def _is_better(self, measure: float) -> bool:
        # A share of infinity, the first best, would be no number for a threshold of 1.
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            needed = self.best * (1 + sign * self.threshold)
        else:
            needed = self.best + sign * self.threshold
        return sign * measure > sign * needed

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ArgumentError(
                    f"ReduceLROnPlateau.step(): {len(self.min_lrs)} numbers in min_lr for "
                    f"{len(groups)} parameter groups; append to `min_lrs` with a group"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            lr = number(group["lr"])
            reduced = max(lr * self.factor, least)
            if lr - reduced > self.eps:
                _set_lr(group, reduced)


# Common parts


def _set_lr(group: Group, lr: Any) -> None:
    if isinstance(group["lr"], Tensor):  # the user's own tensor, which a recorded step reads
        group["lr"].fill_(number(lr))
    else:
        group["lr"] = lr


@contextmanager
def with_flag(scheduler: LRScheduler, flag: str) -> Iterator[None]:
    """Set a flag in a `with` block."""
    setattr(scheduler, flag, True)
    try:
        yield
    finally:
        setattr(scheduler, flag, False)


def _checked(scheduler: LRScheduler, optimizer: Any) -> Optimizer:
    if isinstance(optimizer, Optimizer):
        return optimizer
    raise arg_error(
        type(scheduler).__name__,
        "optimizer",
        expected="an Optimizer",
        got=type(optimizer).__name__,
        hint="pass the optimizer whose lr is to be scheduled",
        kind=ArgumentTypeError,
    )


def _checked_number(
    scheduler: LRScheduler, name: str, value: Any, limit: Limit = AT_LEAST_0
) -> float:
    """Return the number that an argument is, out of a tensor, too."""
    expected, holds = limit
    if is_number(value) and holds(number(value)):
        return number(value)  # type: ignore[no-any-return]
    kind = ArgumentError if is_number(value) else ArgumentTypeError
    op, hint = type(scheduler).__name__, "pass a number of this kind"
    raise arg_error(op, name, expected, repr(value), hint, kind)


def _checked_factor(
    scheduler: LRScheduler, name: str, factor: Any, positive: bool = False
) -> float:
    expected = "a factor from 0 to 1" + (", not 0" if positive else "")
    limit = (expected, lambda x: 0 <= x <= 1 and not (positive and x == 0))
    return _checked_number(scheduler, name, factor, limit)


def _checked_flag(scheduler: LRScheduler, name: str, value: Any) -> bool:
    if not is_flag(value):
        op, got = type(scheduler).__name__, repr(value)
        raise arg_error(op, name, "True or False", got, "pass one of them", ArgumentTypeError)
    return bool(value)


def _check_choice(scheduler: LRScheduler, name: str, value: Any, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        op, hint = type(scheduler).__name__, f"pass {known[0]!r}"
        raise arg_error(op, name, f"one of {known}", repr(value), hint, ArgumentError)


def _for_each_group(
    scheduler: LRScheduler, name: str, value: Any, limit: Limit | None = None
) -> list[Any]:
    """Return a value for each group: the values of a list, or the same value for all groups."""
    count = len(_checked(scheduler, scheduler.optimizer).param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    if len(value) != count:
        raise arg_error(
            type(scheduler).__name__,
            name,
            expected=f"{count} values, one for each group",
            got=len(value),
            hint="pass one for all groups",
            kind=ArgumentError,
        )
    if limit is None:
        return list(value)
    return [_checked_number(scheduler, name, x, limit) for x in value]


def _attributes(function: Any) -> dict[str, Any] | None:
    """Return the attributes of an object that is called; None for a plain function."""
    if function is None or isinstance(function, types.FunctionType):
        return None
    return dict(vars(function))


def _phase(end: float, start_lr: str, end_lr: str, *momentum: str) -> dict[str, Any]:
    start_momentum, end_momentum = momentum
    return {
        "end_step": float(end),
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


def _undo_first_step(scheduler: LRScheduler) -> None:
    """Set the epochs of all schedulers that a scheduler leads, directly or not, back by one."""
    for led in getattr(scheduler, "_schedulers", ()):
        if hasattr(led, "_schedulers"):
            _undo_first_step(led)
        else:
            led.last_epoch -= 1


guard_all(globals())
