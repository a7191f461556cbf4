"""Adagrad, Adadelta and RMSprop: steps divided by the root of squared gradients."""

from __future__ import annotations

from typing import ClassVar

from oneflow_lite.ops.exposure import expose
from oneflow_lite.optim.optimizer import AT_LEAST_0, LIMITS, Optimizer, Parameters, options
from oneflow_lite.tensors.tensor import Tensor

expose(globals())


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011): divides by the root of the sum of all squared gradients.

    Parameters
    ----------
    params, lr, weight_decay, foreach, maximize, differentiable, fused
        See `Optimizer`.
    lr_decay : float
        The rate of step t is lr / (1 + (t - 1) lr_decay).
    initial_accumulator_value : float
        The first value of the sum.
    eps : float
        Added to the root.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.Adagrad([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _op = "adagrad_update"
    _state = dict.fromkeys(("step", "sum"), "")
    _starts: ClassVar = {"sum": "initial_accumulator_value"}
    _limits = LIMITS | dict.fromkeys(("lr_decay", "initial_accumulator_value"), AT_LEAST_0)

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, options(locals()))
        for group in self.param_groups:  # the state exists from the start, as in PyTorch
            for param in group["params"]:
                self._prepare_state(group, param, self.state[param])


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps in units of the parameter, whatever the gradient's units.

    Parameters
    ----------
    params, lr, weight_decay, foreach, capturable, maximize, differentiable
        See `Optimizer`.
    rho : float
        The share of the running means of squared gradients and squared steps that is kept, 0 to 1.
    eps : float
        Added to both means.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.Adadelta([x], lr=10.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9684, 1.9684], requires_grad=True)
    """

    _op = "adadelta_update"
    _state = dict.fromkeys(("step", "square_avg", "acc_delta"), "")
    _limits = LIMITS | {"rho": ("a number from 0 to 1", lambda x: 0 <= x <= 1)}

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))


class RMSprop(Optimizer):
    """RMSprop (Hinton, 2012): divides by the root of the squared gradients' running mean.

    Parameters
    ----------
    params, lr, weight_decay, capturable, foreach, maximize, differentiable
        See `Optimizer`.
    alpha : float
        The share of the running mean that is kept at each step.
    eps : float
        Added to the root.
    momentum : float
        The share of the last step that is taken again.
    centered : bool
        Whether to divide by the gradient's variance instead (Graves, 2013).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.RMSprop([x], lr=0.01)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _op = "rmsprop_update"
    _state: ClassVar = {
        "step": "",
        "square_avg": "",
        "momentum_buffer": "momentum",
        "grad_avg": "centered",
    }
    _limits = LIMITS | {"alpha": ("a number from 0 to 1", lambda x: 0 <= x <= 1)}

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))
