"""SGD: stochastic gradient descent, with momentum or without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.optim import sgd_update
from oneflow_lite.optim.optimizer import (
    Group,
    Optimizer,
    check_not_differentiable,
    check_not_negative,
    new_step,
    zeros_like,
)
from oneflow_lite.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent.

    Parameters
    ----------
    params : iterable, optional
        Of tensors, of pairs (name, tensor), or of dicts (see `Optimizer`).
    lr : float or Tensor
        The learning rate.
    momentum, dampening, weight_decay : float
        See the formula of `oneflow_lite.functors.optim.sgd_update`.
    nesterov : bool
        Nesterov's variant; needs a momentum and no dampening.
    maximize : bool
        Whether to go up instead of down.
    foreach, fused : optional
        Accepted for scripts written for PyTorch; every update is one op in any case.
    differentiable : bool
        Must be False.

    Raises
    ------
    ArgumentError
        For a negative option, or `nesterov` without momentum or with dampening.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any = None,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise bad_argument(
                ArgumentError,
                "SGD",
                "nesterov",
                expected="a momentum and no dampening with it",
                got=f"momentum={momentum}, dampening={dampening}",
                mend="set momentum=0.9, dampening=0",
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        check_not_negative(
            "SGD", **{name: group[name] for name in ("lr", "momentum", "weight_decay")}
        )
        check_not_differentiable("SGD", group["differentiable"])

    def _scalar_options(self, group: Group) -> tuple[Any, ...]:
        momentum = group["momentum"]
        return (
            group["lr"],
            momentum or None,
            (momentum and group["dampening"]) or None,
            group["weight_decay"] or None,
        )

    def _prepare_state(self, group: Group, param: Tensor, state: dict[str, Any]) -> None:
        if not group["momentum"]:
            return
        begun = state.get("momentum_buffer") is not None
        if not begun:
            state["momentum_buffer"] = zeros_like(param)
        if group["dampening"] and "step" not in state:
            # A buffer without a count has been stepped before: only a first step is undampened.
            state["step"] = new_step(param, 1.0 if begun else 0.0)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients anew; called first, with gradients enabled.

        Returns
        -------
        object
            What `closure` returned; None without it.
        """
        loss = self._evaluate(closure)
        with no_grad():
            for group, (lr, momentum, dampening, weight_decay), param, grad, state in self._work():
                sgd_update(
                    param,
                    grad,
                    None if momentum is None else state["momentum_buffer"],
                    None if dampening is None else state["step"],
                    lr,
                    momentum,
                    dampening,
                    weight_decay,
                    nesterov=group["nesterov"],
                    maximize=group["maximize"],
                )
        return loss
