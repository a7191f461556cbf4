"""SGD, plain or with momentum; ASGD, which also keeps an average; Rprop, which looks at signs."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.ops.exposure import expose
from oneflow_lite.optim.optimizer import LIMITS, Group, Optimizer, Parameters, new_number, options
from oneflow_lite.tensors.tensor import Tensor

expose(globals())


class SGD(Optimizer):
    """Stochastic gradient descent (Sutskever et al., 2013, in the form of PyTorch).

    b = momentum b + (1 - dampening) grad, where the first step sets b = grad; the parameter loses
    lr b, or lr (grad + momentum b) with `nesterov`.

    Parameters
    ----------
    params, lr, weight_decay, maximize, foreach, differentiable, fused
        See `Optimizer`.
    momentum, dampening : float
        See above.
    nesterov : bool
        Nesterov's variant; needs a momentum and no dampening.

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

    _op = "sgd_update"
    _state: ClassVar = {"step": "dampening", "momentum_buffer": "momentum"}
    _limits = LIMITS

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, options(locals()))

    def _check_options(self, group: Group) -> None:
        super()._check_options(group)
        momentum, dampening = group["momentum"], group["dampening"]
        if group["nesterov"] and (momentum <= 0 or dampening != 0):
            raise arg_error(
                "SGD",
                "nesterov",
                expected="a momentum and no dampening with it",
                got=f"momentum={momentum}, dampening={dampening}",
                hint="set momentum=0.9, dampening=0",
                kind=ArgumentError,
            )

    def _keeps(self, group: Group, name: str) -> bool:
        # The count of steps serves the momentum alone: plain SGD has no state.
        return bool(group["momentum"]) and super()._keeps(group, name)

    def _first(
        self, group: Group, param: Tensor, name: str, state: dict[str, Any]
    ) -> Tensor | None:
        if name == "step":
            # A buffer without a count has been stepped before: only a first step is undampened.
            return new_number(param, float("momentum_buffer" in state))
        return super()._first(group, param, name, state)


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    The parameter loses eta (lambd param + grad), where eta = lr / (1 + lambd lr (t - 1))^alpha at
    step t = 1, 2, ...; `ax` in the state is its average from step `t0` on.

    Parameters
    ----------
    params, lr, weight_decay, foreach, maximize, differentiable, capturable
        See `Optimizer`.
    lambd, alpha, t0 : float
        See above.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.ASGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    _op = "asgd_update"
    _state = dict.fromkeys(("step", "eta", "mu", "ax"), "")
    _starts: ClassVar = {"eta": "lr", "mu": 1.0}
    _limits = LIMITS | dict.fromkeys(
        ("lambd", "alpha"), ("a finite number", lambda x: x > -math.inf and x < math.inf)
    )

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993): steps by the sign of the gradient.

    The step of each element begins with `lr`; it is multiplied by etas[1] while the gradient keeps
    its sign, and by etas[0] where the sign changed; there the element waits for a step.

    Parameters
    ----------
    params, lr, capturable, foreach, maximize, differentiable
        See `Optimizer`.
    etas : pair of float
        Factors of the step, the first below 1 and the second above.
    step_sizes : pair of float
        The smallest and the largest step.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.Rprop([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _op = "rprop_update"
    _state = dict.fromkeys(("step", "prev", "step_size"), "")
    _starts: ClassVar = {"step_size": "lr"}
    _limits = LIMITS | {
        "etas": ("two numbers, 0 < etas[0] < 1 < etas[1]", lambda x: 0 < x[0] < 1 < x[1]),
        "step_sizes": ("two numbers, the least and the largest", lambda x: 0 <= x[0] <= x[1]),
    }

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))
