"""Adam and AdamW: steps scaled by running means of the gradient and its square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.optim import adam_update
from oneflow_lite.optim.optimizer import (
    Group,
    Optimizer,
    check_not_differentiable,
    check_not_negative,
    new_step,
    zeros_like,
)
from oneflow_lite.tensor import Tensor


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015).

    Parameters
    ----------
    params : iterable, optional
        Of tensors, of pairs (name, tensor), or of dicts (see `Optimizer`).
    lr : float or Tensor
        The learning rate.
    betas : pair of float
        How much of the running means of gradient and squared gradient is kept at each step.
    eps : float
        Added to the root of the squared gradients' mean.
    weight_decay : float
        This share of the parameter is added to its gradient, or with `decoupled_weight_decay`
        (times `lr`) taken from the parameter itself.
    amsgrad : bool
        Whether to divide by the largest mean of squares so far (Reddi et al., 2018).
    maximize : bool
        Whether to go up instead of down.
    decoupled_weight_decay : bool
        Whether this is AdamW.
    foreach, capturable, fused : optional
        Accepted for scripts written for PyTorch; every update is one op in any case.
    differentiable : bool
        Must be False.

    Raises
    ------
    ArgumentError
        For a negative option, or betas outside [0, 1).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any = None,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        op = type(self).__name__
        check_not_negative(op, **{name: group[name] for name in ("lr", "eps", "weight_decay")})
        check_not_differentiable(op, group["differentiable"])
        betas = group["betas"]
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise bad_argument(
                ArgumentError,
                op,
                "betas",
                expected="two numbers from 0 to below 1",
                got=betas,
                mend="pass (0.9, 0.999)",
            )

    def _scalar_options(self, group: Group) -> tuple[Any, ...]:
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"] or None)

    def _prepare_state(self, group: Group, param: Tensor, state: dict[str, Any]) -> None:
        if not state:
            state["step"] = new_step(param)
            state["exp_avg"] = zeros_like(param)
            state["exp_avg_sq"] = zeros_like(param)
        if group["amsgrad"] and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = zeros_like(param)

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
            for group, scalars, param, grad, state in self._work():
                adam_update(
                    param,
                    grad,
                    state["exp_avg"],
                    state["exp_avg_sq"],
                    state["max_exp_avg_sq"] if group["amsgrad"] else None,
                    state["step"],
                    *scalars,
                    decoupled_weight_decay=group["decoupled_weight_decay"],
                    maximize=group["maximize"],
                )
        return loss


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    The parameters are those of `Adam`; every step first takes `lr * weight_decay` of a parameter
    away from it.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.AdamW([x], lr=0.1, weight_decay=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8500, 1.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any = None,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
