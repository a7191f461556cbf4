"""Losses that compose elementwise ops and a reduction: what users call."""

from __future__ import annotations

import warnings
from typing import Any

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.arithmetic import abs, square, sub
from oneflow_lite.functors.checks import check_broadcast, require_floating
from oneflow_lite.functors.elementwise_checks import check_number, real, real_floating
from oneflow_lite.functors.loss_reduction import (
    check_reduction,
    operands,
    reduce_loss,
    same_shape,
)
from oneflow_lite.functors.reduce import sum
from oneflow_lite.functors.transcendental import exp, xlogy
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

HUBER = op_expr("huber")


@register_functor("mse_loss")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean of (input - target)².

    Parameters
    ----------
    input, target : Tensor
        Of one shape, floating; other shapes that broadcast give a warning.
    size_average, reduce : bool, optional
        PyTorch's deprecated names for `reduction`.
    reduction : {"mean", "sum", "none"}
        Whether the elements are averaged, summed or returned.
    weight : Tensor, optional
        Of the input's shape; multiplies each element. The mean is then weighted: divided by the
        sum of the weights.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.
    ArgumentError
        When the reduction is unknown, or the weight has another shape.
    DTypeError
        When the common dtype is not floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.mse_loss(flow.tensor([1., 3.]), flow.tensor([0., 0.]))
    tensor(5.)
    """
    reduction = check_reduction("mse_loss", reduction, size_average, reduce)
    input, target = operands("mse_loss", input, target)
    difference = real_floating("mse_loss", input) - target
    return _weighted("mse_loss", square(difference), weight, input, reduction)


@register_functor("l1_loss")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean of |input - target|; where both are equal, the gradient is 0.

    Parameters
    ----------
    input, target, size_average, reduce, reduction, weight
        As in `mse_loss`.

    Raises
    ------
    ShapeError, ArgumentError, DTypeError
        As in `mse_loss`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.l1_loss(flow.tensor([1., -3.]), flow.tensor([0., 0.]))
    tensor(2.)
    """
    reduction = check_reduction("l1_loss", reduction, size_average, reduce)
    input, target = operands("l1_loss", input, target)
    difference = require_floating("l1_loss", input) - target
    return _weighted("l1_loss", abs(difference), weight, input, reduction)


@register_functor("smooth_l1_loss")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return the mean of d² / (2 beta) where d = |input - target| < beta, else d - beta / 2.

    Parameters
    ----------
    input, target, size_average, reduce, reduction
        As in `mse_loss`.
    beta : float
        Where the parabola ends; with 0 this is `l1_loss`.

    Raises
    ------
    ShapeError, ArgumentError, DTypeError
        As in `mse_loss`; also when beta is negative.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([0.5, 3.])
    >>> flow.nn.functional.smooth_l1_loss(x, flow.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    op = "smooth_l1_loss"
    reduction = check_reduction(op, reduction, size_average, reduce)
    beta = check_number(op, "beta", beta)
    if beta < 0:
        raise bad_argument(
            ArgumentError, op, "beta", expected="at least 0", got=beta, mend="make it positive"
        )
    input, target = operands(op, input, target)
    difference = require_floating(op, input) - target
    if beta == 0:
        return reduce_loss(abs(difference), reduction)
    loss = dispatch1(HUBER, real(op, difference), {"delta": beta})
    return reduce_loss(loss if beta == 1 else loss / beta, reduction)


@register_functor("huber_loss")
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean of d² / 2 where d = |input - target| < delta, else delta (d - delta / 2).

    Parameters
    ----------
    input, target, reduction
        As in `mse_loss`.
    delta : float
        Where the parabola ends.
    weight : Tensor, optional
        Of the input's shape; multiplies each element. The mean is not weighted, as in PyTorch.

    Raises
    ------
    ShapeError, ArgumentError, DTypeError
        As in `mse_loss`; also when delta is not positive.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1., 5.])
    >>> flow.nn.functional.huber_loss(x, flow.zeros(2), reduction="none", delta=2.0)
    tensor([0.5000, 8.0000])
    """
    op = "huber_loss"
    reduction = check_reduction(op, reduction)
    if not (delta := check_number(op, "delta", delta)) > 0:
        raise bad_argument(
            ArgumentError, op, "delta", expected="more than 0", got=delta, mend="make it positive"
        )
    input, target = operands(op, input, target)
    loss = dispatch1(HUBER, real_floating(op, input) - target, {"delta": delta})
    if weight is not None:
        loss = loss * same_shape(op, "weight", weight, input)
    return reduce_loss(loss, reduction)


@register_functor("kl_div")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the Kullback-Leibler divergence target · (log(target) - input), by elements.

    Parameters
    ----------
    input : Tensor
        Log-probabilities, floating.
    target : Tensor
        Probabilities, or their logarithms with `log_target`; broadcasts with the input.
    size_average, reduce : bool, optional
        PyTorch's deprecated names for `reduction`.
    reduction : {"mean", "batchmean", "sum", "none"}
        "batchmean" divides the sum by the batch size, which is the divergence; "mean" divides by
        the number of elements, and warns.
    log_target : bool
        Whether the target is given as logarithms.

    Raises
    ------
    ArgumentError
        When the reduction is unknown.
    ShapeError
        When the shapes do not broadcast.
    DTypeError
        When the input or the target is not floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> p = flow.tensor([[0.5, 0.5]])
    >>> flow.nn.functional.kl_div(flow.log(p), p, reduction="batchmean")
    tensor(0.)
    """
    legacy = size_average is not None or reduce is not None
    reduction = check_reduction("kl_div", reduction, size_average, reduce, "batchmean")
    if reduction == "mean" and not legacy:
        warnings.warn(
            "kl_div(): 'mean' divides by the number of elements; 'batchmean' divides by the batch "
            "size, as the divergence is defined",
            stacklevel=2,
        )
    real_floating("kl_div", input)
    real_floating("kl_div", target, "target")
    check_broadcast("kl_div", "target", target, input)
    if log_target:
        loss = exp(target) * sub(target, input)
    else:
        loss = sub(xlogy(target, target), target * input)
    if reduction == "batchmean":
        return sum(loss) / input.shape[0] if input.ndim else sum(loss)
    return reduce_loss(loss, reduction)


def _weighted(
    op: str, loss: Tensor, weight: Tensor | None, input: Tensor, reduction: str
) -> Tensor:
    if weight is None:
        return reduce_loss(loss, reduction)
    loss = loss * same_shape(op, "weight", weight, input)
    return sum(loss) / sum(weight) if reduction == "mean" else reduce_loss(loss, reduction)
