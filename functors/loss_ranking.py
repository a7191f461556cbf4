"""Losses of pairs that should be near or far, and of distributions: compositions of other ops."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.errors import ArgumentError, ShapeError, bad_argument
from oneflow_lite.functors.arithmetic import clamp_min, div, sqrt, square, sub, where
from oneflow_lite.functors.checks import check_tensor, require_floating
from oneflow_lite.functors.creation import full_like
from oneflow_lite.functors.elementwise_checks import check_number, real_floating
from oneflow_lite.functors.loss_reduction import check_reduction, reduce_loss
from oneflow_lite.functors.reduce import sum
from oneflow_lite.functors.shape import unsqueeze
from oneflow_lite.functors.transcendental import exp, log
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

LEAST_VARIANCE = op_expr("least_variance")


@register_functor("hinge_embedding_loss")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of the distance where the target is 1, and max(0, margin - distance) at -1.

    Parameters
    ----------
    input : Tensor
        Distances, floating.
    target : Tensor
        1 or -1; broadcasts with the input.
    margin : float
        The distance that is far enough.
    size_average, reduce : bool, optional
        PyTorch's deprecated names for `reduction`.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, summed or returned.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.
    ArgumentError
        When the reduction is unknown.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> distance = flow.tensor([0.5, 0.5])
    >>> flow.nn.functional.hinge_embedding_loss(
    ...     distance, flow.tensor([1, -1]), 2.0, reduction="none"
    ... )
    tensor([0.5000, 1.5000])
    """
    op = "hinge_embedding_loss"
    reduction = check_reduction(op, reduction, size_average, reduce)
    real_floating(op, input)
    check_tensor(op, "target", target)
    far = clamp_min(check_number(op, "margin", margin) - input, 0)
    loss = where(target != 1, far, 0.0) + where(target != -1, input, 0.0)
    return reduce_loss(loss, reduction)


@register_functor("margin_ranking_loss")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of max(0, margin - target · (input1 - input2)).

    Parameters
    ----------
    input1, input2 : Tensor
        Scores, floating, with as many dimensions as each other.
    target : Tensor
        1 where the first should be larger, -1 where the second should; as many dimensions.
    margin, size_average, reduce, reduction
        As in `hinge_embedding_loss`.

    Raises
    ------
    ShapeError
        When the numbers of dimensions differ, or the shapes do not broadcast.
    ArgumentError
        When the reduction is unknown.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.margin_ranking_loss(
    ...     flow.tensor([3.0, 1.0]), flow.tensor([1.0, 3.0]), flow.tensor([1, 1])
    ... )
    tensor(1.)
    """
    op = "margin_ranking_loss"
    reduction = check_reduction(op, reduction, size_average, reduce)
    real_floating(op, input1, "input1")
    real_floating(op, input2, "input2")
    for name, other in (("input2", input2), ("target", target)):
        if check_tensor(op, name, other).ndim != input1.ndim:
            raise bad_argument(
                ShapeError,
                op,
                name,
                expected=f"{input1.ndim} dimensions, as many as input1",
                got=f"shape {other.shape}",
                mend="reshape or unsqueeze it",
            )
    difference = sub(input1, input2) * target
    return reduce_loss(clamp_min(check_number(op, "margin", margin) - difference, 0), reduction)


@register_functor("cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of 1 - cos where the target is 1, and max(0, cos - margin) where it is -1.

    Parameters
    ----------
    input1, input2 : Tensor
        Vectors (N, D) or (D,), floating.
    target : Tensor
        1 or -1, of shape (N,) or ().
    margin, size_average, reduce, reduction
        As in `hinge_embedding_loss`.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    ArgumentError
        When the reduction is unknown.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x, y = flow.tensor([[3.0, 4.0]]), flow.tensor([[4.0, 3.0]])
    >>> flow.nn.functional.cosine_embedding_loss(x, y, flow.tensor([1]))
    tensor(0.0400)
    """
    op = "cosine_embedding_loss"
    reduction = check_reduction(op, reduction, size_average, reduce)
    real_floating(op, input1, "input1")
    real_floating(op, input2, "input2")
    vectors = check_tensor(op, "target", target).ndim + 1
    for name, value in (("input1", input1), ("input2", input2)):
        if value.ndim != vectors or vectors > 2:
            raise bad_argument(
                ShapeError,
                op,
                name,
                expected="(N, D) with a target (N,), or (D,) with a target ()",
                got=f"shape {value.shape} with a target of shape {target.shape}",
                mend="give one target for each vector",
            )
    # As PyTorch's own, which differs from cosine_similarity near zero.
    tiny = 1e-12
    squares = [sum(square(x), -1) + tiny for x in (input1, input2)]
    cosine = sum(input1 * input2, -1) / sqrt(squares[0] * squares[1])
    far = clamp_min(cosine - check_number(op, "margin", margin), 0)
    loss = where(target == 1, 1 - cosine, 0.0) + where(target == -1, far, 0.0)
    return reduce_loss(loss, reduction)


@register_functor("poisson_nll_loss")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood of Poisson counts: λ - target · log λ.

    Parameters
    ----------
    input : Tensor
        log λ, or λ without `log_input`; floating.
    target : Tensor
        Counts; broadcasts with the input.
    log_input : bool
        Whether the input is a logarithm; otherwise log(input + eps) is taken.
    full : bool
        Whether Stirling's approximation of log(target!) is added where the target is above 1.
    size_average, reduce, reduction
        As in `hinge_embedding_loss`.
    eps : float
        Keeps the logarithm finite.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.
    ArgumentError
        When the reduction is unknown.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.poisson_nll_loss(flow.tensor([0.0]), flow.tensor([2.0]))
    tensor(1.)
    """
    op = "poisson_nll_loss"
    reduction = check_reduction(op, reduction, size_average, reduce)
    require_floating(op, input)
    check_tensor(op, "target", target)
    if log_input:
        loss = exp(input) - target * input
    else:
        loss = input - target * log(input + check_number(op, "eps", eps))
    if full:
        counts = where(target > 1, target, 1.0)
        stirling = counts * log(counts) - counts + 0.5 * log(2 * math.pi * counts)
        loss = loss + where(target > 1, stirling, 0.0)
    return reduce_loss(loss, reduction)


@register_functor("gaussian_nll_loss")
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood of a normal: (log v + (input - target)² / v) / 2.

    v = max(var, eps), and the gradient of v flows to `var` also where eps is larger, as in PyTorch.

    Parameters
    ----------
    input, target : Tensor
        The expectation and what was observed, floating, of shapes that broadcast.
    var : Tensor or float
        The variance: of the input's shape, or the same with a last or a single size of 1, or
        without the last dimension.
    full : bool
        Whether the constant log(2π) / 2 is added.
    eps : float
        The least variance.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, summed or returned.

    Raises
    ------
    ArgumentError
        When the reduction is unknown, or the variance is negative (checked on the CPU only) or has
        another shape.
    ShapeError
        When the shapes of input and target do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.gaussian_nll_loss(flow.tensor([1.0]), flow.tensor([3.0]), 1.0)
    tensor(2.)
    """
    op = "gaussian_nll_loss"
    reduction = check_reduction(op, reduction)
    real_floating(op, input)
    real_floating(op, target, "target")
    if not isinstance(var, Tensor):
        var = full_like(input, check_number(op, "var", var))
    sizes = [(n, m) for n, m in zip(input.shape, var.shape, strict=False) if n != m]
    if input.shape[:-1] == var.shape and input.ndim:
        var = unsqueeze(var, -1)
    elif input.ndim != var.ndim or len(sizes) > 1 or any(m != 1 for _, m in sizes):
        raise bad_argument(
            ArgumentError,
            op,
            "var",
            expected=f"the input's shape {input.shape}, perhaps with one size of 1",
            got=f"shape {var.shape}",
            mend="give one variance for each element, or for each line of them",
        )
    least = {"eps": check_number(op, "eps", eps)}
    variance = dispatch1(LEAST_VARIANCE, real_floating(op, var, "var"), least)
    loss = 0.5 * (log(variance) + div(square(sub(input, target)), variance))
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)
