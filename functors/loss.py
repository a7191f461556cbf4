"""Losses that compose elementwise ops and a reduction: what users call."""

from __future__ import annotations

import warnings

from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.arithmetic import abs, square, sub
from oneflow_lite.functors.checks import check_broadcast, real, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, Number, RealFloating
from oneflow_lite.functors.loss_reduction import (
    Legacy,
    LegacyReduction,
    LegacyReductionOrBatchMean,
    RealTarget,
    Reduction,
    SameShape,
    Target,
    reduce_loss,
)
from oneflow_lite.functors.reduce import sum
from oneflow_lite.functors.transcendental import exp, xlogy
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

HUBER = op_expr("huber")

_PAIR = "x(2, 3), x(2, 3)"
_REDUCED = f"{_PAIR}; {_PAIR}, reduction='none'; {_PAIR}, reduction='sum'"
_WEIGHTED = f"{_REDUCED}; {_PAIR}, reduction='sum', weight=pos(2, 3)"


@functor("functional", samples=_WEIGHTED)
def mse_loss(
    input: AnyTensor,
    target: RealTarget,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
    weight: SameShape | None = None,
) -> Tensor:
    """Return the mean of (input - target)².

    weight: of the input's shape; multiplies each element. The mean is divided by their sum.

    >>> flow.nn.functional.mse_loss(flow.tensor([1., 3.]), flow.tensor([0., 0.]))
    tensor(5.)
    """
    return _weighted(square(input - target), weight, reduction)


@functor("functional", samples=_WEIGHTED)
def l1_loss(
    input: AnyTensor,
    target: Target,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
    weight: SameShape | None = None,
) -> Tensor:
    """Return the mean of \\|input - target\\|; where both are equal, the gradient is 0.

    weight: of the input's shape; multiplies each element. The mean is divided by their sum.

    >>> flow.nn.functional.l1_loss(flow.tensor([1., -3.]), flow.tensor([0., 0.]))
    tensor(2.)
    """
    return _weighted(abs(input - target), weight, reduction)


@functor("functional", samples=f"{_REDUCED}; {_PAIR}, beta=0.3; {_PAIR}, beta=0")
def smooth_l1_loss(
    input: AnyTensor,
    target: Target,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
    beta: Number = 1.0,
) -> Tensor:
    """Return the mean of d² / (2 beta) where d = \\|input - target\\| < beta, else d - beta / 2.

    beta: where the parabola ends; with 0 this is `l1_loss`.
    ArgumentError: when `beta` is negative.

    >>> x = flow.tensor([0.5, 3.])
    >>> flow.nn.functional.smooth_l1_loss(x, flow.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    if beta < 0:
        raise _positive("smooth_l1_loss", "beta", "at least 0", beta)
    difference = input - target
    if beta == 0:
        return reduce_loss(abs(difference), reduction)
    loss = dispatch1(HUBER, real("smooth_l1_loss", difference), {"delta": beta})
    return reduce_loss(loss if beta == 1 else loss / beta, reduction)


@functor(
    "functional",
    samples=f"{_REDUCED}; {_PAIR}, delta=0.3; {_PAIR}, weight=pos(2, 3)",
)
def huber_loss(
    input: AnyTensor,
    target: RealTarget,
    reduction: Reduction = "mean",
    delta: Number = 1.0,
    weight: SameShape | None = None,
) -> Tensor:
    """Return the mean of d² / 2 where d = \\|input - target\\| < delta, else delta (d - delta / 2).

    delta: where the parabola ends.
    weight: of the input's shape; multiplies each element. The mean is not weighted, as in PyTorch.
    ArgumentError: when `delta` is not positive, or an argument does not fit.

    >>> x = flow.tensor([1., 5.])
    >>> flow.nn.functional.huber_loss(x, flow.zeros(2), reduction="none", delta=2.0)
    tensor([0.5000, 8.0000])
    """
    if not delta > 0:
        raise _positive("huber_loss", "delta", "more than 0", delta)
    loss = dispatch1(HUBER, input - target, {"delta": delta})
    return reduce_loss(loss if weight is None else loss * weight, reduction)


@functor(
    "functional flow",
    samples="""
    x(2, 3), share(3), reduction='batchmean'
    x(2, 3), x(2, 3), reduction='none', log_target=True; x(2, 3), share(2, 3), reduction='sum'
    """,
)
def kl_div(
    input: RealFloating,
    target: RealFloating,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReductionOrBatchMean = "mean",
    log_target: Flag = False,
) -> Tensor:
    """Return the Kullback-Leibler divergence target · (log(target) - input), by elements.

    input: log-probabilities, real floating.
    target: probabilities, or their logarithms with `log_target`; broadcasts with the input.
    reduction: "batchmean" divides the sum by the batch size, which is the divergence; "mean"
    divides by the number of elements, and warns.
    log_target: whether the target is given as logarithms.
    ShapeError: when the shapes do not broadcast.

    >>> p = flow.tensor([[0.5, 0.5]])
    >>> flow.nn.functional.kl_div(flow.log(p), p, reduction="batchmean")
    tensor(0.)
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "kl_div(): 'mean' divides by the number of elements; 'batchmean' divides by the batch "
            "size, as the divergence is defined",
            stacklevel=3,
        )
    check_broadcast("kl_div", "target", target, input)
    if log_target:
        loss = exp(target) * sub(target, input)
    else:
        loss = sub(xlogy(target, target), target * input)
    if reduction == "batchmean":
        return sum(loss) / input.shape[0] if input.ndim else sum(loss)
    return reduce_loss(loss, reduction)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduce_loss(loss, reduction)
    loss = loss * weight
    return sum(loss) / sum(weight) if reduction == "mean" else reduce_loss(loss, reduction)


def _positive(op: str, argument: str, expected: str, got: float) -> Exception:
    return wrong(op, argument, expected, got, "make it positive", ArgumentError)
