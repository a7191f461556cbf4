"""Every optimizer and scheduler of PyTorch, its arguments, and values for each of them."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oneflow_lite as flow

NOT_HERE = {"SparseAdam"}  # there are no sparse gradients
INERT = {"foreach": [True, False], "fused": [True, False], "capturable": [True]}

# Values other than the default. A name stands for that argument of every optimizer.
VALUES: dict[str, list[Any]] = {
    "lr": [0.05],
    "betas": [(0.5, 0.9), (0.0, 0.6)],
    "weight_decay": [0.2, 0.0],
    "maximize": [True],
    "amsgrad": [True],
    "decoupled_weight_decay": [True],
    "momentum": [0.9],
    "dampening": [0.3],
    "nesterov": [True, False],
    "momentum_decay": [0.1],
    "lr_decay": [0.1],
    "initial_accumulator_value": [0.5],
    "rho": [0.5],
    "alpha": [0.5],
    "centered": [True],
    "etas": [(0.3, 1.5)],
    "step_sizes": [(1e-3, 0.1)],
    "lambd": [0.1],
    "t0": [20.0],
    "beta2_decay": [-0.5],
    "d": [2.0],
    "ns_coefficients": [(2.0, -1.5, 0.5)],
    "ns_steps": [3],
    "adjust_lr_fn": ["match_rms_adamw", "original"],
    "max_iter": [7],
    "max_eval": [9],
    "tolerance_grad": [1e-2],
    "tolerance_change": [1e-3],
    "history_size": [2],
    "line_search_fn": ["strong_wolfe"],
} | INERT
EPS: dict[str, list[Any]] = {"Adafactor": [(1e-2, 1e-2)], "Muon": [10.0]}


def optimizers(torch: Any) -> list[str]:
    found = vars(torch.optim).items()
    kinds = {n for n, c in found if inspect.isclass(c) and issubclass(c, torch.optim.Optimizer)}
    return sorted(kinds - NOT_HERE - {"Optimizer"})


def arguments(cls: type) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])


def values(name: str, argument: str) -> list[Any]:
    return EPS.get(name, [1e-3]) if argument == "eps" else VALUES[argument]


def accepted(name: str, options: dict[str, Any]) -> bool:
    """Return whether the options go together."""
    if name == "SGD" and options.get("nesterov"):
        return bool(options.get("momentum")) and not options.get("dampening")
    return True


def option_sets(torch: Any, name: str, together: int) -> Iterator[dict[str, Any]]:
    """Yield every choice of so many arguments and other values for them."""
    walked = [a for a in arguments(getattr(torch.optim, name)) if a in VALUES or a == "eps"]
    walked = [argument for argument in walked if argument not in INERT]
    for chosen in itertools.combinations(walked, together):
        for picked in itertools.product(*[values(name, argument) for argument in chosen]):
            options = dict(zip(chosen, picked, strict=True))
            if name == "SGD" and {"nesterov", "dampening"} & set(options):
                options = {"momentum": 0.5} | options  # without it they say nothing
            if accepted(name, options):
                yield options


class Run:
    """The same parameters and gradients, in PyTorch or here; two groups."""

    def __init__(self, lib: Any, name: str, dtype: str, **options: Any) -> None:
        self.lib, self.name, self.dtype, self.options = lib, name, dtype, options
        rng = np.random.default_rng(0)
        shapes = [(3, 4), (5, 2)] if name == "Muon" else [(3, 4), (3,), (), (2, 2, 3)]
        self.start = [self.draw(rng, shape) for shape in shapes]
        self.params = [lib.tensor(x.copy(), requires_grad=True) for x in self.start]
        self.rng = np.random.default_rng(1)
        self.optimizer = self.make()

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        x = rng.standard_normal(shape)
        if self.dtype.startswith("c"):
            x = x + 1j * rng.standard_normal(shape)
        return np.asarray(x, self.dtype)

    def make(self) -> Any:
        options = dict(self.options)
        if self.lib is not flow:
            # What changes nothing here picks one of several kernels there, each rounding its way.
            options = {k: v for k, v in options.items() if k not in INERT}
            if "foreach" in arguments(getattr(self.lib.optim, self.name)):
                options["foreach"] = False
        groups = [{"params": self.params[:1]}, {"params": self.params[1:], "lr": 0.02}]
        return getattr(self.lib.optim, self.name)(groups, **options)

    def steps(self, count: int) -> Run:
        for _ in range(count):
            for param, start in zip(self.params, self.start, strict=True):
                grad = self.lib.tensor(self.draw(self.rng, start.shape))
                param.grad = grad + 0.1 * param.detach()
            self.optimizer.step()
        return self

    def values(self) -> list[np.ndarray[Any, Any]]:
        return [param.detach().numpy() for param in self.params]


def error(a: Run, b: Run) -> float:
    return max(float(abs(x - y).max()) for x, y in zip(a.values(), b.values(), strict=True))


def converted(value: Any) -> Any:
    """Return a state dict of PyTorch's with tensors of this library."""
    if hasattr(value, "detach"):
        return flow.tensor(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {k: converted(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(converted(v) for v in value)
    return value


def wrong_kinds(lib: Any) -> list[Any]:
    """Return values of which none makes sense for every option."""
    return [
        "fast", "0.1", None, -1.0, -1, float("nan"), float("inf"), (0.9,), (0.9, 0.95),
        (0.9, 0.9, 0.9), ("a", "b"), (-0.1, 0.9), (float("nan"), 0.9), (1.2, 0.5), (), {},
        object(), 1j, lib.tensor([0.1, 0.2]), lib.tensor(1j), 0, 0.5, 2.0, 3,
    ]  # fmt: skip


# --- Schedulers ---------------------------------------------------------------------------------


class Decay:
    """A factor that is an object."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, epoch: int) -> float:
        return 1 - self.rate / (1 + epoch)


def _falling(epoch: float) -> float:
    return float(0.97**epoch)


_BOTH: Callable[[], list[Any]] = lambda: [_falling, Decay(0.5)]  # noqa: E731
_CYCLE = {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 7}
SCHEDULERS: dict[str, list[dict[str, Any]]] = {
    "LambdaLR": [{"lr_lambda": _falling}, {"lr_lambda": _BOTH}],
    "MultiplicativeLR": [{"lr_lambda": _falling}, {"lr_lambda": _BOTH}],
    "StepLR": [{"step_size": 30}, {"step_size": 7, "gamma": 0.5}],
    "MultiStepLR": [{"milestones": [30, 80]}, {"milestones": [2, 41, 9, 9], "gamma": 0.3}],
    "ConstantLR": [{}, {"factor": 0.5, "total_iters": 45}],
    "LinearLR": [
        {},
        {"start_factor": 0.25, "end_factor": 0.5, "total_iters": 60},
        {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 3},
    ],
    "ExponentialLR": [{"gamma": 0.9}, {"gamma": 1.01}],
    "PolynomialLR": [{}, {"total_iters": 70, "power": 2.0}],
    "CosineAnnealingLR": [{"T_max": 10}, {"T_max": 33, "eta_min": 0.01}, {"T_max": 1}],
    "CosineAnnealingWarmRestarts": [{"T_0": 7}, {"T_0": 5, "T_mult": 2, "eta_min": 0.01}],
    "CyclicLR": [
        _CYCLE,
        _CYCLE | {"max_lr": [0.1, 0.2], "base_lr": [0.02, 0.03], "step_size_down": 3},
        _CYCLE | {"mode": "triangular2", "base_momentum": 0.5, "max_momentum": 0.7},
        _CYCLE | {"mode": "exp_range", "gamma": 0.9, "cycle_momentum": False},
        _CYCLE | {"mode": "exp_range", "gamma": 0.99, "step_size_up": 9},
        _CYCLE | {"scale_fn": _falling, "scale_mode": "iterations"},
        _CYCLE | {"scale_fn": Decay(0.5)},
    ],
    "OneCycleLR": [
        {"max_lr": 0.1, "total_steps": 100},
        {"max_lr": [0.1, 0.2], "epochs": 11, "steps_per_epoch": 10, "pct_start": 0.4},
        {"max_lr": 0.1, "total_steps": 120, "anneal_strategy": "linear", "div_factor": 10.0},
        {"max_lr": 0.1, "total_steps": 100, "three_phase": True, "final_div_factor": 10.0},
        {"max_lr": 0.1, "total_steps": 100, "base_momentum": 0.5, "max_momentum": [0.8, 0.9]},
        {"max_lr": 0.1, "total_steps": 100, "cycle_momentum": False, "pct_start": 0.1},
        {"max_lr": 0.1, "epochs": 21, "steps_per_epoch": 5},
    ],
    "SWALR": [
        {"swa_lr": 0.05},
        {"swa_lr": [0.05, 0.01], "anneal_epochs": 30, "anneal_strategy": "linear"},
        {"swa_lr": 0.05, "anneal_epochs": 0},
    ],
}
SCHEDULER_CASES = [
    (name, number) for name, listed in SCHEDULERS.items() for number in range(len(listed))
]


def scheduler_class(lib: Any, name: str) -> Any:
    return getattr(lib.optim.swa_utils if name == "SWALR" else lib.optim.lr_scheduler, name)


class Schedule:
    """An optimizer of two groups and its scheduler, in PyTorch or here."""

    def __init__(self, lib: Any, name: str, number: int, kind: str = "SGD", **more: Any) -> None:
        params = [lib.nn.Parameter(lib.ones(1)) for _ in range(2)]
        groups: list[dict[str, Any]] = [{"params": params[:1]}, {"params": params[1:], "lr": 0.7}]
        for group in groups if more else ():
            group |= {"initial_lr": group.get("lr", 0.2)} | GROUP_OPTIONS
        options = {"momentum": 0.1} if kind == "SGD" else {}
        self.optimizer = getattr(lib.optim, kind)(groups, lr=0.2, **options)
        given = {k: v() if v is _BOTH else v for k, v in SCHEDULERS[name][number].items()}
        self.scheduler = scheduler_class(lib, name)(self.optimizer, **given, **more)

    def step(self, *args: Any) -> None:
        self.optimizer.step()
        self.scheduler.step(*args)

    def seen(self) -> list[float]:
        """Return the lr and the momentum of each group, and what the scheduler says."""
        found = []
        for group in self.optimizer.param_groups:
            found += [group["lr"], group["betas"][0] if "betas" in group else group["momentum"]]
        return [*found, *self.scheduler.get_last_lr()]


# What a scheduler with `last_epoch` finds in the groups.
GROUP_OPTIONS = {
    "max_lr": 0.3,
    "min_lr": 0.001,
    "max_momentum": 0.9,
    "base_momentum": 0.8,
    "swa_lr": 0.05,
}
