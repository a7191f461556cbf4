"""Losses of elements: they compose elementwise ops and a reduction."""

from __future__ import annotations

import math
import warnings
from typing import Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.checks import check_broadcast, check_number, real, real_floating, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, FloatingOrComplex, Number, RealFloating
from oneflow_lite.functors.loss_reduction import (
    RealTarget,
    Reduce,
    Reduction,
    ReductionOrBatchMean,
    SameShape,
    SizeAverage,
    Target,
    loss_functor,
    reduce_loss,
)
from oneflow_lite.tensor import Tensor

_PAIR = "x(2, 3), x(2, 3)"
_REDUCED = f"{_PAIR}; {_PAIR}, reduction='none'; {_PAIR}, reduction='sum'"
_WEIGHTED = f"{_REDUCED}; {_PAIR}, reduction='sum', weight=pos(2, 3)"


@loss_functor(samples=_WEIGHTED)
def mse_loss(
    input: AnyTensor,
    target: RealTarget,
    reduction: Reduction = "mean",
    weight: SameShape | None = None,
) -> Tensor:
    """Return the mean of (input - target)²; with a weight, divided by its sum.

    >>> flow.nn.functional.mse_loss(flow.tensor([1., 3.]), flow.tensor([0., 0.]))
    tensor(5.)
    """
    return _weighted((input - target).square(), weight, reduction)


@loss_functor(samples=_WEIGHTED)
def l1_loss(
    input: AnyTensor,
    target: Target,
    reduction: Reduction = "mean",
    weight: SameShape | None = None,
) -> Tensor:
    """Return the mean of \\|input - target\\|; where both are equal, the gradient is 0.

    weight: of the input's shape; multiplies each element. The mean is divided by their sum.
    """
    return _weighted((input - target).abs(), weight, reduction)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduce_loss(loss, reduction)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduce_loss(loss, reduction)


def _positive(op: str, argument: str, expected: str, got: float) -> Exception:
    return wrong(op, argument, expected, got, "make it positive", ArgumentError)


@loss_functor(samples=f"{_REDUCED}; {_PAIR}, beta=0.3; {_PAIR}, beta=0")
def smooth_l1_loss(
    input: AnyTensor, target: Target, reduction: Reduction = "mean", beta: Number = 1.0
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
        return reduce_loss(difference.abs(), reduction)
    loss = F.huber(real("smooth_l1_loss", difference), delta=beta)
    return reduce_loss(loss if beta == 1 else loss / beta, reduction)


@functor("functional", samples=f"{_REDUCED}; {_PAIR}, delta=0.3; {_PAIR}, weight=pos(2, 3)")
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
    """
    if not delta > 0:
        raise _positive("huber_loss", "delta", "more than 0", delta)
    loss = F.huber(input - target, delta=delta)
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
    size_average: SizeAverage = None,
    reduce: Reduce = None,
    reduction: ReductionOrBatchMean = "mean",
    log_target: Flag = False,
) -> Tensor:
    """Return the Kullback-Leibler divergence target · (log(target) - input), by elements.

    input: log-probabilities, real floating.
    target: probabilities, or their logarithms with `log_target`; broadcasts with the input.
    reduction: "batchmean" divides the sum by the batch size, which is the divergence; "mean"
    divides by the number of elements, and warns.
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
        loss = target.exp() * (target - input)
    else:
        loss = target.xlogy(target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return reduce_loss(loss, reduction)


@functor(
    "functional flow",
    samples="""
    x(2, 3), fixed(pos(2, 3)); pos(2, 3), fixed(pos(2, 3)), log_input=False, reduction='none'
    x(2, 3), fixed(pos(2, 3)), full=True, reduction='sum'
    """,
)
def poisson_nll_loss(
    input: FloatingOrComplex,
    target: AnyTensor,
    log_input: Flag = True,
    full: Flag = False,
    size_average: SizeAverage = None,
    eps: Number = 1e-8,
    reduce: Reduce = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood of Poisson counts: λ - target · log λ.

    input: log λ, or λ without `log_input`; floating.
    target: counts; broadcasts with the input.
    full: whether Stirling's approximation of log(target!) is added where the target is above 1.
    eps: keeps the logarithm of λ finite.
    ShapeError: when the shapes do not broadcast.

    >>> flow.nn.functional.poisson_nll_loss(flow.tensor([0.0]), flow.tensor([2.0]))
    tensor(1.)
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        counts = F.where(target > 1, target, 1.0)
        stirling = counts * counts.log() - counts + 0.5 * (2 * math.pi * counts).log()
        loss = loss + F.where(target > 1, stirling, 0.0)
    return reduce_loss(loss, reduction)


@functor(
    "functional",
    samples="""
    x(2, 3), x(2, 3), pos(2, 3); x(2, 3), x(2, 3), pos(2), reduction='none'; x(2, 3), x(2, 3), 0.5
    x(2, 3), x(2, 3), pos(2, 1), True, 0.3, 'sum'
    """,
)
def gaussian_nll_loss(
    input: RealFloating,
    target: RealFloating,
    var: Any,
    full: Flag = False,
    eps: Number = 1e-6,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood of a normal: (log v + (input - target)² / v) / 2.

    v = max(var, eps), and the gradient of v flows to `var` also where eps is larger, as in PyTorch.

    input, target: the expectation and what was observed, floating, of shapes that broadcast.
    var: the variance, a number or a tensor: of the input's shape, or the same with a last or a
    single size of 1, or without the last dimension.
    full: whether the constant log(2π) / 2 is added.
    ArgumentError: when the reduction is unknown, or the variance is negative (checked on the CPU
    only) or has another shape.
    ShapeError: when the shapes of input and target do not broadcast.

    >>> flow.nn.functional.gaussian_nll_loss(flow.tensor([1.0]), flow.tensor([3.0]), 1.0)
    tensor(2.)
    """
    op = "gaussian_nll_loss"
    if not isinstance(var, Tensor):
        var = F.full_like(input, check_number(op, "var", var))
    sizes = [(n, m) for n, m in zip(input.shape, var.shape, strict=False) if n != m]
    if input.shape[:-1] == var.shape and input.ndim:
        var = var.unsqueeze(-1)
    elif input.ndim != var.ndim or len(sizes) > 1 or any(m != 1 for _, m in sizes):
        expected = f"the input's shape {input.shape}, perhaps with one size of 1"
        mend = "give one variance for each element, or for each line of them"
        raise wrong(op, "var", expected, var, mend, ArgumentError)
    variance = F.least_variance(real_floating(op, var, "var"), eps=eps)
    loss = 0.5 * (variance.log() + (input - target).square() / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)
