"""Adam and its kin: steps scaled by running means of the gradient and its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from oneflow_lite.ops.exposure import expose
from oneflow_lite.optim.optimizer import AT_LEAST_0, LIMITS, Optimizer, Parameters, number, options
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

_MEANS = dict.fromkeys(("step", "exp_avg", "exp_avg_sq"), "")


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015).

    Parameters
    ----------
    params, lr, weight_decay, foreach, maximize, capturable, differentiable, fused
        See `Optimizer`.
    betas : pair of float
        The shares of the running means of gradient and squared gradient that are kept at each step.
    eps : float
        Added to the root of the squared gradients' mean.
    amsgrad : bool
        Whether to divide by the largest mean of squares so far (Reddi et al., 2018).
    decoupled_weight_decay : bool
        Whether this is AdamW.

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

    _op = "adam_update"
    _state: ClassVar = {**_MEANS, "max_exp_avg_sq": "amsgrad"}
    _limits = LIMITS

    def __init__(
        self,
        params: Parameters | None = None,
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
        if isinstance(betas, Sequence):
            betas = tuple(map(number, betas))  # read once, as in PyTorch
        super().__init__(params, options(locals()))


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
        params: Parameters | None = None,
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
        super().__init__(params, **options(locals()), decoupled_weight_decay=True)


class NAdam(Optimizer):
    """Adam with Nesterov momentum (Dozat, 2016).

    Parameters
    ----------
    params, lr, weight_decay, foreach, maximize, capturable, differentiable
        See `Optimizer`.
    betas, eps, decoupled_weight_decay
        See `Adam`.
    momentum_decay : float
        The momentum of step t is betas[0] (1 - 0.96^(t momentum_decay) / 2).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944, 1.8944], requires_grad=True)
    """

    _op = "nadam_update"
    _state: ClassVar = {"step": "", "mu_product": "", **_MEANS}
    _starts: ClassVar = {"mu_product": 1.0}
    _limits = LIMITS | {"momentum_decay": AT_LEAST_0}

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))


class RAdam(Optimizer):
    """Rectified Adam (Liu et al., 2020): plain momentum until the squared gradients' mean is known.

    Parameters
    ----------
    params, lr, weight_decay, foreach, maximize, capturable, differentiable
        See `Optimizer`.
    betas, eps, decoupled_weight_decay
        See `Adam`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.RAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    _op = "radam_update"
    _state = _MEANS
    _limits = LIMITS

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))


class Adamax(Optimizer):
    """Adamax (Kingma and Ba, 2015): Adam with the largest gradient in place of the mean square.

    Parameters
    ----------
    params, lr, weight_decay, foreach, maximize, differentiable, capturable
        See `Optimizer`.
    betas : pair of float
        The shares of the gradient's running mean and of its largest value that are kept at each
        step.
    eps : float
        Added to the gradient's size.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = flow.optim.Adamax([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _op = "adamax_update"
    _state = dict.fromkeys(("step", "exp_avg", "exp_inf"), "")
    _limits = LIMITS

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))
