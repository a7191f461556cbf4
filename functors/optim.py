"""What an optimizer calls for each parameter: updates that write parameter and state in place."""

from __future__ import annotations

from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

SGD_UPDATE, ADAM_UPDATE = op_expr("sgd_update"), op_expr("adam_update")


@register_functor("sgd_update")
def sgd_update(
    param: Tensor,
    grad: Tensor,
    momentum_buffer: Tensor | None,
    step: Tensor | None,
    lr: Tensor,
    momentum: Tensor | None,
    dampening: Tensor | None,
    weight_decay: Tensor | None,
    *,
    nesterov: bool = False,
    maximize: bool = False,
) -> Tensor:
    """Take one step of stochastic gradient descent, in place, and return `param`.

    g = grad + weight_decay * param; b = momentum * b + (1 - dampening) * g, where the first step
    sets b = g; param -= lr * b, with Nesterov's variant param -= lr * (g + momentum * b)
    (Sutskever et al., 2013, in the form of PyTorch).

    param, grad: of one shape and dtype.
    momentum_buffer: the sum of gradients, zeros before the first step; None without momentum.
    step: 0-d, the number of steps taken; counted only for dampening, whose first step differs.
    lr, momentum, dampening, weight_decay: 0-d, of dtype float64; None (not for `lr`) is zero.

    >>> import oneflow_lite as flow
    >>> param, lr = flow.tensor([1.0, 2.0]), flow.tensor(0.5, dtype=flow.float64)
    >>> sgd_update(param, flow.tensor([1.0, 1.0]), None, None, lr, None, None, None)
    tensor([0.5000, 1.5000])
    """
    inputs = (param, grad, momentum_buffer, step, lr, momentum, dampening, weight_decay)
    return dispatch(SGD_UPDATE, inputs, {"nesterov": nesterov, "maximize": maximize})


@register_functor("adam_update")
def adam_update(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    step: Tensor,
    lr: Tensor,
    beta1: Tensor,
    beta2: Tensor,
    eps: Tensor,
    weight_decay: Tensor | None,
    *,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> Tensor:
    """Take one step of Adam or AdamW, in place, and return `param`.

    Kingma and Ba, 2015 (Adam); Reddi et al., 2018 (AMSGrad); Loshchilov and Hutter, 2019 (AdamW).

    param, grad: of one shape and dtype.
    exp_avg, exp_avg_sq: running means of the gradient and its square, zeros before the first step.
    max_exp_avg_sq: the largest `exp_avg_sq` so far (AMSGrad); None without it.
    step: 0-d, the number of steps taken; the update counts this one.
    lr, beta1, beta2, eps, weight_decay: 0-d, of dtype float64; None is a `weight_decay` of zero.
    decoupled_weight_decay: shrink the parameter (AdamW) rather than add the decay to the gradient.

    >>> import oneflow_lite as flow
    >>> param, mean, square, step = (flow.tensor(x) for x in ([1.0], [0.0], [0.0], 0.0))
    >>> options = [flow.tensor(x, dtype=flow.float64) for x in (0.1, 0.9, 0.999, 1e-8)]
    >>> adam_update(param, flow.tensor([3.0]), mean, square, None, step, *options, None)
    tensor([0.9000])
    """
    state = (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step)
    options = (lr, beta1, beta2, eps, weight_decay)
    attrs = {"decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}
    return dispatch(ADAM_UPDATE, (*state, *options), attrs)
