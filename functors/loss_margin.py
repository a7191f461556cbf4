"""Losses with a margin, of classes, labels and triplets: compositions of other ops."""

from __future__ import annotations

from collections.abc import Callable

from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.activation import logsigmoid
from oneflow_lite.functors.activation_piecewise import relu
from oneflow_lite.functors.arithmetic import clamp_min, square, where
from oneflow_lite.functors.checks import wrong
from oneflow_lite.functors.creation import arange
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, Integer, Number, RealFloating
from oneflow_lite.functors.loss_reduction import Legacy, LegacyReduction, Reduction, reduce_loss
from oneflow_lite.functors.reduce import sum
from oneflow_lite.functors.shape import reshape, unsqueeze
from oneflow_lite.functors.similarity import pairwise_distance
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor


def _rows(op: str, input: Tensor) -> Tensor:
    """Return scores (N, C) or (C,) or () as (N, C)."""
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise wrong(op, "input", "shape (N, C) or (C,)", input, "give scores of classes")
    return input if input.ndim == 2 else reshape(input, (1, -1))


def _mismatch(op: str, input: Tensor, target: Tensor) -> Exception:
    expected = f"a shape that fits the input's {input.shape}"
    return wrong(op, "target", expected, target, "give one for each sample of the input")


@functor(
    "functional",
    samples="""
    x(4, 3), i(4, n=3), reduction='none'; x(3), i(n=3), 2; x(4, 3), i(4, n=3), reduction='sum'
    x(4, 3), i(4, n=3), 1, 0.3, weight=fixed(pos(3))
    """,
)
def multi_margin_loss(
    input: RealFloating,
    target: Integer,
    p: int = 1,
    margin: Number = 1.0,
    weight: RealFloating | None = None,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return Σ_c max(0, margin - input[t] + input[c])^p / C over the classes c other than t.

    input: scores (N, C) or (C,), real floating.
    target: class numbers t, (N,) or ().
    p: 1 or 2.
    margin: by how much the target's score should be larger.
    weight: (C,), by which the terms of a target are multiplied.
    ArgumentError: when `p` or the reduction are none of these.
    ShapeError: when a shape does not fit.

    >>> flow.nn.functional.multi_margin_loss(flow.tensor([0.0, 0.5]), flow.tensor(1))
    tensor(0.2500)
    """
    op = "multi_margin_loss"
    if p not in (1, 2):
        raise wrong(op, "p", "1 or 2", p, "take one of them", ArgumentError)
    rows = _rows(op, input)
    size, classes = rows.shape
    if target.ndim > 1 or target.numel() != size or (input.ndim == 2 != size and target.ndim == 0):
        raise _mismatch(op, input, target)
    if weight is not None and weight.shape != (classes,):
        raise wrong(op, "weight", f"shape ({classes},)", weight, "give one for each class")
    column = reshape(target, (size, 1))
    terms = relu(margin - FUNCTORS.get("gather")(rows, 1, column) + rows)
    terms = terms if p == 1 else square(terms)
    if weight is not None:
        terms = terms * weight[column]
    others = arange(classes, device=input.device) != column
    loss = sum(where(others, terms, 0.0), 1) / classes
    return reduce_loss(loss if target.ndim else loss[0], reduction)


@functor(
    "functional",
    samples="""
    x(3, 4), fixed([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 1, 2]]), reduction='none'
    x(3), fixed([1, -1, 0]); x(2, 3), fixed([[2, 2, -1], [0, 1, 2]]), reduction='sum'
    """,
)
def multilabel_margin_loss(
    input: RealFloating,
    target: Integer,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return Σ_t Σ_c max(0, 1 - input[t] + input[c]) / C over labels t and all other classes c.

    input: scores (N, C) or (C,), real floating.
    target: the labels, of the input's shape: class numbers up to the first negative one.
    ShapeError: when a shape does not fit.

    >>> flow.nn.functional.multilabel_margin_loss(flow.tensor([0.0, 0.5]), flow.tensor([1, -1]))
    tensor(0.2500)
    """
    op = "multilabel_margin_loss"
    rows = _rows(op, input)
    if target.shape != input.shape and (input.ndim, target.shape) != (0, (1,)):
        raise _mismatch(op, input, target)
    labels = reshape(target, rows.shape)
    given = FUNCTORS.get("cumsum")(labels < 0, 1) == 0
    labels = where(given, labels, 0)
    own = FUNCTORS.get("gather")(rows, 1, labels)
    named = (unsqueeze(labels, 2) == arange(rows.shape[1], device=input.device)) & given[:, :, None]
    counted = unsqueeze(given, 2) & ~unsqueeze(named.any(1), 1)
    terms = where(counted, relu(1 - unsqueeze(own, 2) + unsqueeze(rows, 1)), 0.0)
    loss = sum(terms, (1, 2)) / rows.shape[1]
    return reduce_loss(loss if input.ndim == 2 else loss[0], reduction)


@functor(
    "functional",
    samples="""
    x(2, 3), fixed(2 * b(2, 3) - 1); x(2, 3), fixed(2 * b(3) - 1), reduction='none'
    x(2, 3), fixed(x(2, 3)), reduction='sum'
    """,
)
def soft_margin_loss(
    input: RealFloating,
    target: AnyTensor,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return the mean of log(1 + exp(-target · input)), which does not overflow.

    target: 1 or -1; broadcasts with the input.
    ShapeError: when the shapes do not broadcast.

    >>> flow.nn.functional.soft_margin_loss(flow.tensor([0.0]), flow.tensor([1.0]))
    tensor(0.6931)
    """
    return reduce_loss(-logsigmoid(target * input), reduction)


@functor(
    "functional",
    samples="""
    x(2, 3), share(2, 3), reduction='none'; x(2, 2, 3), share(2, 2, 3)
    x(2, 3), fixed(b(2, 3) * 1.0), fixed(pos(3)), reduction='sum'
    """,
)
def multilabel_soft_margin_loss(
    input: RealFloating,
    target: AnyTensor,
    weight: AnyTensor | None = None,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return the binary cross entropy of sigmoid(input) and target, averaged over the classes.

    input: scores (*, C), real floating.
    target: 1 for the labels, 0 for the others.
    weight: broadcasts with the input; multiplies the terms.
    ShapeError: when the input has no dimension, or the shapes do not broadcast.

    >>> flow.nn.functional.multilabel_soft_margin_loss(flow.tensor([0.0]), flow.tensor([1.0]))
    tensor(0.6931)
    """
    if not input.ndim:
        mend = "pass one score per class"
        raise wrong("multilabel_soft_margin_loss", "input", "shape (*, C)", input, mend)
    terms = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        terms = terms * weight
    return reduce_loss(sum(terms, -1) / input.shape[-1], reduction)


def _triplet(
    op: str,
    distance: Callable[[Tensor, Tensor], Tensor],
    tensors: tuple[Tensor, Tensor, Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    anchor, positive, negative = tensors
    if not margin > 0:
        raise wrong(op, "margin", "more than 0", margin, "make it positive", ArgumentError)
    for name, other in (("positive", positive), ("negative", negative)):
        if other.ndim != anchor.ndim:
            expected = f"{anchor.ndim} dimensions, as many as anchor"
            raise wrong(op, name, expected, other, "reshape or unsqueeze it")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = FUNCTORS.get("minimum")(far, distance(positive, negative))
    return reduce_loss(clamp_min(margin + near - far, 0), reduction)


@functor(
    "functional flow",
    samples="""
    x(4, 3), x(4, 3), x(4, 3); x(4, 3), x(4, 3), x(4, 3), 0.5, 1.0, swap=True, reduction='none'
    x(3), x(3), x(3), 2.0, reduction='sum'
    """,
)
def triplet_margin_loss(
    anchor: AnyTensor,
    positive: AnyTensor,
    negative: AnyTensor,
    margin: Number = 1.0,
    p: Number = 2.0,
    eps: Number = 1e-6,
    swap: Flag = False,
    size_average: Legacy = None,
    reduce: Legacy = None,
    reduction: LegacyReduction = "mean",
) -> Tensor:
    """Return the mean of max(0, margin + d(anchor, positive) - d(anchor, negative)).

    Distances are those of `pairwise_distance`.

    anchor, positive, negative: vectors (N, D) or (D,).
    margin: by how much the negative should be farther.
    p, eps: exponent of the norm, and what is added to the differences.
    swap: take d(positive, negative) where it is smaller than d(anchor, negative).
    ArgumentError: when the margin is not positive, or the reduction is unknown.
    ShapeError: when the numbers of dimensions differ.

    >>> near, far = flow.tensor([[0.0, 0.0]]), flow.tensor([[0.0, 1.5]])
    >>> flow.nn.functional.triplet_margin_loss(near, near, far, margin=2.0)
    tensor(0.5000)
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    tensors = (anchor, positive, negative)
    return _triplet("triplet_margin_loss", distance, tensors, margin, swap, reduction)


@functor(
    "functional",
    samples="""
    x(4, 3), x(4, 3), x(4, 3); x(4, 3), x(4, 3), x(4, 3), margin=0.5, swap=True, reduction='none'
    """,
)
def triplet_margin_with_distance_loss(
    anchor: AnyTensor,
    positive: AnyTensor,
    negative: AnyTensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: Number = 1.0,
    swap: Flag = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` with distances of one's own.

    anchor, positive, negative: as `distance_function` takes them.
    distance_function: of two tensors; by default `pairwise_distance`.
    margin, swap: as in `triplet_margin_loss`.
    ArgumentError: when the margin is not positive, or the reduction is unknown.
    ShapeError: when the numbers of dimensions differ.
    """
    distance = distance_function or pairwise_distance
    tensors = (anchor, positive, negative)
    return _triplet("triplet_margin_with_distance_loss", distance, tensors, margin, swap, reduction)
