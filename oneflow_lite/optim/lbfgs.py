"""LBFGS: a quasi-Newton method that calls the loss several times for each step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.optim.optimizer import (
    AT_LEAST_0,
    Group,
    Optimizer,
    Parameters,
    is_number,
    number,
    options,
)
from oneflow_lite.tensors.mode import enable_grad, no_grad
from oneflow_lite.tensors.tensor import Tensor


class LBFGS(Optimizer):
    """L-BFGS (Nocedal, 1980), with fixed steps or a line search (Nocedal and Wright, 3.5).

    All parameters make up a single vector, and so a single group. A step reads the loss, and
    therefore runs eagerly, inside `flow.compile`, too; a Program cannot capture it.

    Parameters
    ----------
    params, lr
        See `Optimizer`.
    max_iter : int
        Iterations in each step.
    max_eval : int, optional
        Calls of the closure in each step; 5/4 of `max_iter` by default.
    tolerance_grad : float
        A step ends when no element of the gradient is larger.
    tolerance_change : float
        A step ends when the loss changes by less, or no parameter changes by more.
    history_size : int
        The number of changes that are kept, the latest.
    line_search_fn : {None, "strong_wolfe"}
        Whether to search along each direction for a point that meets the strong Wolfe conditions.

    Raises
    ------
    ArgumentError
        For several groups, a negative `lr`, or another line search.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    5.0
    >>> x
    tensor([3.0000, 3.0000], requires_grad=True)
    """

    _limits: ClassVar = {
        "lr": AT_LEAST_0,
        "max_iter": AT_LEAST_0,
        "line_search_fn": (
            "None or 'strong_wolfe'",
            lambda x: x is None or (isinstance(x, str) and x == "strong_wolfe"),
        ),
        "max_eval": ("a number of at least 0", lambda x: is_number(x) and x >= 0),
        "history_size": ("a whole number of at least 1", lambda x: isinstance(x, int) and x > 0),
    }

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None and is_number(max_iter):
            max_eval = max_iter * 5 // 4
        super().__init__(params, options(locals()))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take the parameters; a second group raises `ArgumentError`."""
        if self.param_groups:
            raise self._bad_params_error("one group", "several", "use an optimizer for each")
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any]) -> Any:
        """Take up to `max_iter` iterations.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns
        -------
        Tensor
            The loss before the step.
        """
        if not callable(closure):
            raise arg_error(
                "LBFGS.step",
                "closure",
                expected="a function that computes loss and gradients",
                got=closure,
                hint="define one that calls zero_grad(), backward() and returns the loss",
                kind=ArgumentError,
            )
        self._require_parameters()
        params = self.param_groups[0]["params"]
        kept = self.state[params[0]]
        self._check_kept(kept)
        before = {k: [*value] if type(value) is list else value for k, value in kept.items()}
        with no_grad():
            start = [param.clone() for param in params]
            try:
                return self._iterate(closure)
            except BaseException:  # half of a step would be no step
                for param, value in zip(params, start, strict=True):
                    param.copy_(value)
                self.state[params[0]] = before
                raise

    def _read_state(self, state_dict: Any) -> tuple[defaultdict[Any, Any], list[Group]]:
        state, groups = super()._read_state(state_dict)
        for param in self.param_groups[0]["params"]:
            self._check_kept(state.get(param, {}))
        return state, groups

    def _check_kept(self, kept: dict[str, Any]) -> None:
        """Raise `ArgumentError` for a state that no step leaves."""
        params = self.param_groups[0]["params"]
        size = sum(param.numel() * (1 + param.is_complex()) for param in params)
        if not isinstance(kept, dict):
            raise self._misfit_error("a dict for each parameter", type(kept).__name__)
        lists = [kept[key] for key in _LISTS if key in kept]
        fits = all(type(each) is list and len(each) == len(lists[0]) for each in lists)
        flat = [kept[key] for key in _TENSORS if key in kept]
        flat += [x for each in lists[:2] for x in each] if fits else []
        numbers = [kept[key] for key in _COUNTS if key in kept]
        numbers += [x for each in lists[2:] for x in each] if fits else []
        fits &= all(isinstance(x, Tensor) and x.shape == (size,) for x in flat)
        fits &= len(lists) in (0, 3) and all(map(is_number, numbers))
        if fits and kept:
            begun = {*_COUNTS, *_TENSORS, *_LISTS} if kept.get("n_iter") else {"n_iter"}
            fits = begun <= kept.keys()
        if not fits:
            raise self._misfit_error(f"the state of LBFGS for {size} numbers", "another one")

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, last = number(group["lr"]), group["max_iter"]
        most, too_flat, too_close = (
            group[name] for name in ("max_eval", "tolerance_grad", "tolerance_change")
        )
        kept = self.state[group["params"][0]]
        kept.setdefault("func_evals", 0)
        kept.setdefault("n_iter", 0)
        first_loss, point = self._evaluate(closure)
        evaluations = 1
        kept["func_evals"] += 1
        flat = point.steepest <= too_flat
        iteration = 0
        while not flat and iteration < last:
            iteration += 1
            kept["n_iter"] += 1
            direction = self._direction(kept, point.grad, group["history_size"])
            before = kept["prev_loss"] = point.loss
            kept["prev_flat_grad"] = point.grad
            beginning = kept["n_iter"] == 1
            t = lr
            if beginning and (total := _scalar(point.grad.abs().sum())) > 1:
                t = 1.0 / total * lr
            kept["d"], kept["t"] = direction, float(t)
            slope = _scalar(point.grad.dot(direction))
            if (
                slope > -too_close
            ):  # no descent: the curvature that is kept misleads, or all is flat
                break
            if group["line_search_fn"] is not None:
                if not t > 0 or math.isnan(slope) or math.isnan(point.loss):
                    break  # the gradient or the loss overflowed: no point is better than this one
                start = [param.clone() for param in group["params"]]

                def at(t: float, direction: Tensor = direction, start: Any = start) -> _Point:
                    self._move(t, direction)
                    try:
                        reached = self._evaluate(closure)[1]
                    finally:  # back to the exact start: t added and subtracted would round
                        for param, value in zip(group["params"], start, strict=True):
                            param.copy_(value)
                    loss = math.inf if math.isnan(reached.loss) else reached.loss  # no good point
                    return reached._replace(
                        t=t, loss=loss, slope=_scalar(reached.grad.dot(direction))
                    )

                longest = _scalar(direction.abs().max())
                origin = point._replace(t=0.0, slope=slope)
                with np.errstate(all="ignore"):  # where values overflow, the search goes back
                    point, calls = _strong_wolfe(at, t, origin, longest, most - evaluations)
                t = kept["t"] = float(point.t)
                self._move(t, direction)
            else:
                self._move(t, direction)
                calls = int(iteration != last)  # the loss after the last iteration is not used
                if calls:
                    point = self._evaluate(closure)[1]
            evaluations += calls
            kept["func_evals"] += calls
            flat = point.steepest <= too_flat
            still = (direction * t).abs().max().item() <= too_close
            if evaluations >= most or still or abs(point.loss - before) < too_close:
                break
        return first_loss

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, _Point]:
        """Call the closure, with gradients enabled; return its loss, and loss and gradient."""
        with enable_grad():
            loss = closure()
        grads = []
        for param in self.param_groups[0]["params"]:
            grad = param.grad if param.grad is not None else param.detach() * 0
            grads.append(_as_real(grad.detach()).reshape(-1))
        grad = FUNCTORS.get("cat")(grads)
        return loss, _Point(0.0, float(loss), grad, 0.0, grad.abs().max().item())

    def _move(self, t: float, direction: Tensor) -> None:
        """Add t * direction to the parameters."""
        start = 0
        for param in map(_as_real, self.param_groups[0]["params"]):
            count = param.numel()
            param.add_(direction[start : start + count].reshape(param.shape), alpha=t)
            start += count

    def _direction(self, kept: dict[str, Any], grad: Tensor, history: int) -> Tensor:
        """Return minus the gradient times the inverse Hessian, as the last changes estimate it."""
        if kept["n_iter"] == 1:
            kept |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
            return -grad
        changes, steps, ro = kept["old_dirs"], kept["old_stps"], kept["ro"]
        change, step = grad - kept["prev_flat_grad"], kept["d"] * kept["t"]
        curvature = change.dot(step)
        if curvature.item() > 1e-10:  # else the estimate would cease to be positive definite
            changes.append(change)
            steps.append(step)
            ro.append(1.0 / curvature)
            for old in (changes, steps, ro):
                del old[:-history]
            kept["H_diag"] = curvature / change.dot(change)
        kept["al"] = al = [None] * history
        direction: Tensor = -grad
        # The two-loop recursion: the inverse Hessian is applied and never formed.
        for i in reversed(range(len(steps))):
            al[i] = steps[i].dot(direction) * ro[i]
            direction = direction - changes[i] * al[i]
        direction = direction * kept["H_diag"]
        for i in range(len(steps)):
            direction = direction + steps[i] * (al[i] - changes[i].dot(direction) * ro[i])
        return direction


_COUNTS = ("n_iter", "func_evals", "t", "prev_loss", "H_diag")
_TENSORS = ("d", "prev_flat_grad")
_LISTS = ("old_dirs", "old_stps", "ro")


class _Point(NamedTuple):
    """A point at distance t along a direction, with its loss and gradient.

    Distances and slopes have the precision of the gradient, as in PyTorch: what is too close there
    is too close here.
    """

    t: float
    loss: float
    grad: Tensor
    slope: float
    steepest: float


def _scalar(x: Tensor) -> Any:
    """Return a number of NumPy's, with the precision of a tensor."""
    return x._data.dtype.type(x.item())


def _as_real(x: Tensor) -> Tensor:
    """Return a view on real numbers."""
    return FUNCTORS.get("view_as_real")(x) if x.is_complex() else x


def _strong_wolfe(
    at: Callable[[float], _Point],
    t: float,
    origin: _Point,
    longest: float,
    most: int,
    c1: float = 1e-4,
    c2: float = 0.9,
    too_close: float = 1e-9,  # whatever `tolerance_change` is, as in PyTorch
) -> tuple[_Point, int]:
    """Return a point that meets the strong Wolfe conditions, or else the best, and the calls.

    Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6. The interval grows until it
    must hold a point that meets them; then it shrinks around the point.
    """

    def falls_too_little(point: _Point) -> bool:
        return point.loss > origin.loss + c1 * point.t * origin.slope

    def is_flat(point: _Point) -> bool:
        return abs(point.slope) <= -c2 * origin.slope

    point, previous, tries = at(t), origin, 0
    bracket = [origin, point]
    while tries < most:
        if falls_too_little(point) or (tries > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
            break
        if is_flat(point):
            return point, tries + 1
        if point.slope >= 0:
            bracket = [previous, point]
            break
        low, high = point.t + 0.01 * (point.t - previous.t), point.t * 10
        t = _interpolated(previous, point, low, high)
        previous, point = point, at(t)
        tries += 1
        bracket = [origin, point]

    low, high = _by_loss(bracket)
    stuck = False
    while tries < most and abs(bracket[1].t - bracket[0].t) * longest >= too_close:
        ends = min(bracket[0].t, bracket[1].t), max(bracket[0].t, bracket[1].t)
        t = _interpolated(bracket[0], bracket[1], *ends)
        margin = 0.1 * (ends[1] - ends[0])
        near = min(ends[1] - t, t - ends[0]) < margin
        if near and (stuck or not ends[0] < t < ends[1]):
            # Hardly any progress, twice: a tenth of the interval away from the nearer end.
            t = ends[1] - margin if abs(t - ends[1]) < abs(t - ends[0]) else ends[0] + margin
            near = False
        stuck = near
        point = at(t)
        tries += 1
        if falls_too_little(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = _by_loss(bracket)
            continue
        if is_flat(point):
            return point, tries + 1
        if point.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    return bracket[low], tries + 1


def _by_loss(bracket: list[_Point]) -> tuple[int, int]:
    """Return the positions of the lower and the higher end."""
    return (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)


def _interpolated(a: _Point, b: _Point, low: float, high: float) -> float:
    """Return the minimum, within limits, of the cubic through two points and their slopes.

    The middle where the points meet, the cubic has no minimum, or values overflow.
    """
    middle = (low + high) / 2
    if a.t == b.t:
        return middle
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    a, b = (a, b) if a.t <= b.t else (b, a)
    least = math.nan
    if square >= 0:
        d2 = np.sqrt(square)
        change = b.slope - a.slope + 2 * d2
        if change:  # else the loss is a line
            least = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / change)
    return min(max(least, low), high) if math.isfinite(least) else middle
