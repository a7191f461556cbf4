"""Losses of pairs that should be near or far, and of distributions: compositions of other ops."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.arithmetic import clamp_min, div, sqrt, square, sub, where
from oneflow_lite.functors.checks import check_number, real_floating, wrong
from oneflow_lite.functors.creation import full_like
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, FloatingOrComplex, Number, RealFloating
from oneflow_lite.functors.loss_reduction import Legacy, LegacyReduction, Reduction, reduce_loss
from oneflow_lite.functors.reduce import sum
from oneflow_lite.functors.shape import unsqueeze
from oneflow_lite.functors.transcendental import exp, log
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

LEAST_VARIANCE = op_expr("least_variance")

_SIGNS = "fixed(2 * b(4) - 1)"


@functor(
    "functional flow",
    samples=f"x(4), {_SIGNS}; x(4) * 0.5, {_SIGNS}, 2.0, reduction='none'",
)
def hinge_embedding_loss(
    input: RealFloating,
    target: AnyTensor,
    margin: Number = 1.0,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return the mean of the distance where the target is 1, and max(0, margin - distance) at -1.

    input: distances, real floating.
    target: 1 or -1; broadcasts with the input.
    margin: the distance that is far enough.
    ShapeError: when the shapes do not broadcast.

    >>> distance = flow.tensor([0.5, 0.5])
    >>> flow.nn.functional.hinge_embedding_loss(
    ...     distance, flow.tensor([1, -1]), 2.0, reduction="none"
    ... )
    tensor([0.5000, 1.5000])
    """
    far = clamp_min(margin - input, 0)
    loss = where(target != 1, far, 0.0) + where(target != -1, input, 0.0)
    return reduce_loss(loss, reduction)


@functor(
    "functional flow",
    samples=f"x(4), x(4), {_SIGNS}; x(2, 4), x(2, 4), fixed(2 * b(1, 4) - 1), 0.5, reduction='sum'",
)
def margin_ranking_loss(
    input1: RealFloating,
    input2: RealFloating,
    target: AnyTensor,
    margin: Number = 0,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return the mean of max(0, margin - target · (input1 - input2)).

    input1, input2: scores, real floating.
    target: 1 where input1 should rank above input2, -1 where below; as many dimensions.
    margin: by how much.
    ShapeError: when the numbers of dimensions differ, or the shapes do not broadcast.

    >>> flow.nn.functional.margin_ranking_loss(
    ...     flow.tensor([3.0, 1.0]), flow.tensor([1.0, 3.0]), flow.tensor([1, 1])
    ... )
    tensor(1.)
    """
    for name, other in (("input2", input2), ("target", target)):
        if other.ndim != input1.ndim:
            raise wrong(
                "margin_ranking_loss",
                name,
                f"{input1.ndim} dimensions, as many as input1",
                other,
                "reshape or unsqueeze it",
            )
    return reduce_loss(clamp_min(margin - sub(input1, input2) * target, 0), reduction)


@functor(
    "functional flow",
    samples=f"""
    x(4, 3), x(4, 3), {_SIGNS}; x(3), x(3), fixed(1), reduction='none'
    x(4, 3), x(4, 3), {_SIGNS}, -0.8, reduction='sum'
    """,
)
def cosine_embedding_loss(
    input1: RealFloating,
    input2: RealFloating,
    target: AnyTensor,
    margin: Number = 0,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return the mean of 1 - cos where the target is 1, and max(0, cos - margin) where it is -1.

    input1, input2: vectors (N, D) or (D,), real floating.
    target: 1 or -1, of shape (N,) or ().
    margin: the cosine that is far enough.
    ShapeError: when the shapes do not fit.

    >>> x, y = flow.tensor([[3.0, 4.0]]), flow.tensor([[4.0, 3.0]])
    >>> flow.nn.functional.cosine_embedding_loss(x, y, flow.tensor([1]))
    tensor(0.0400)
    """
    vectors = target.ndim + 1
    for name, value in (("input1", input1), ("input2", input2)):
        if value.ndim != vectors or vectors > 2:
            raise wrong(
                "cosine_embedding_loss",
                name,
                "(N, D) with a target (N,), or (D,) with a target ()",
                f"shape {value.shape} with a target of shape {target.shape}",
                "give one target for each vector",
            )
    # As PyTorch's own, which differs from cosine_similarity near zero.
    tiny = 1e-12
    squares = [sum(square(x), -1) + tiny for x in (input1, input2)]
    cosine = sum(input1 * input2, -1) / sqrt(squares[0] * squares[1])
    loss = where(target == 1, 1 - cosine, 0.0)
    loss = loss + where(target == -1, clamp_min(cosine - margin, 0), 0.0)
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
    size_average: Legacy = None,
    eps: Number = 1e-8,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood of Poisson counts: λ - target · log λ.

    input: log λ, or λ without `log_input`; floating.
    target: counts; broadcasts with the input.
    log_input: whether the input is a logarithm; otherwise log(input + eps) is taken.
    full: whether Stirling's approximation of log(target!) is added where the target is above 1.
    eps: keeps the logarithm finite.
    ShapeError: when the shapes do not broadcast.

    >>> flow.nn.functional.poisson_nll_loss(flow.tensor([0.0]), flow.tensor([2.0]))
    tensor(1.)
    """
    if log_input:
        loss = exp(input) - target * input
    else:
        loss = input - target * log(input + eps)
    if full:
        counts = where(target > 1, target, 1.0)
        stirling = counts * log(counts) - counts + 0.5 * log(2 * math.pi * counts)
        loss = loss + where(target > 1, stirling, 0.0)
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
    eps: the least variance.
    ArgumentError: when the reduction is unknown, or the variance is negative (checked on the CPU
    only) or has another shape.
    ShapeError: when the shapes of input and target do not broadcast.

    >>> flow.nn.functional.gaussian_nll_loss(flow.tensor([1.0]), flow.tensor([3.0]), 1.0)
    tensor(2.)
    """
    op = "gaussian_nll_loss"
    if not isinstance(var, Tensor):
        var = full_like(input, check_number(op, "var", var))
    sizes = [(n, m) for n, m in zip(input.shape, var.shape, strict=False) if n != m]
    if input.shape[:-1] == var.shape and input.ndim:
        var = unsqueeze(var, -1)
    elif input.ndim != var.ndim or len(sizes) > 1 or any(m != 1 for _, m in sizes):
        raise wrong(
            op,
            "var",
            f"the input's shape {input.shape}, perhaps with one size of 1",
            var,
            "give one variance for each element, or for each line of them",
            ArgumentError,
        )
    variance = dispatch1(LEAST_VARIANCE, real_floating(op, var, "var"), {"eps": eps})
    loss = 0.5 * (log(variance) + div(square(sub(input, target)), variance))
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)
