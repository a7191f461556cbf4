"""Losses with a margin, of classes, labels, pairs and triplets: compositions of other ops."""

from __future__ import annotations

import functools
from collections.abc import Callable

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.checks import wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, Integer, Number, RealFloating
from oneflow_lite.functors.loss import Reduction, loss_functor, reduce_loss
from oneflow_lite.tensor import Tensor

_SIGNS = "fixed(2 * b(4) - 1)"


def _rows(op: str, input: Tensor) -> Tensor:
    """Return scores (N, C) or (C,) or () as (N, C)."""
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise wrong(op, "input", "shape (N, C) or (C,)", input, "give scores of classes")
    return input if input.ndim == 2 else input.reshape(1, -1)


def _mismatch(op: str, input: Tensor, target: Tensor) -> Exception:
    expected = f"a shape that fits the input's {input.shape}"
    return wrong(op, "target", expected, target, "give one for each sample of the input")


def _check_ndims(op: str, first: str, input: Tensor, **others: Tensor) -> None:
    for name, other in others.items():
        if other.ndim != input.ndim:
            expected = f"{input.ndim} dimensions, as many as {first}"
            raise wrong(op, name, expected, other, "reshape or unsqueeze it")


@loss_functor("x(3), i(n=3), 2; x(4, 3), i(4, n=3), 1, 0.3, fixed(pos(3)), reduction='none'")
def multi_margin_loss(
    input: RealFloating,
    target: Integer,
    p: int = 1,
    margin: Number = 1.0,
    weight: RealFloating | None = None,
) -> Tensor:
    """Return Σ_c max(0, margin - input[t] + input[c])^p / C over the classes c other than t.

    input: scores (N, C) or (C,), real floating.
    target: class numbers t, (N,) or ().
    p: 1 or 2.
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
    column = target.reshape(size, 1)
    terms = F.relu(margin - rows.gather(1, column) + rows)
    terms = terms if p == 1 else terms.square()
    if weight is not None:
        terms = terms * weight[column]
    others = F.arange(classes, device=input.device) != column
    loss = F.where(others, terms, 0.0).sum(1) / classes
    return loss if target.ndim else loss[0]


@loss_functor(
    "x(4, 4), fixed([[0, 2, -1, 1], [3, 3, -1, 0], [-1, 0, 1, 2], [0, 1, 2, 3]]), reduction='none';"
    "x(3), fixed([1, -1, 0])"
)
def multilabel_margin_loss(input: RealFloating, target: Integer) -> Tensor:
    """Return Σ_t Σ_c max(0, 1 - input[t] + input[c]) / C over labels t and all other classes c.

    input: scores (N, C) or (C,), real floating.
    target: the labels, of the input's shape: class numbers up to the first negative one.
    ShapeError: when a shape does not fit.
    """
    op = "multilabel_margin_loss"
    rows = _rows(op, input)
    if target.shape != input.shape and (input.ndim, target.shape) != (0, (1,)):
        raise _mismatch(op, input, target)
    labels = target.reshape(rows.shape)
    given = (labels < 0).cumsum(1) == 0
    labels = F.where(given, labels, 0)
    own = rows.gather(1, labels)
    classes = F.arange(rows.shape[1], device=input.device)
    named = (labels.unsqueeze(2) == classes) & given.unsqueeze(2)
    counted = given.unsqueeze(2) & ~named.any(1).unsqueeze(1)
    terms = F.where(counted, F.relu(1 - own.unsqueeze(2) + rows.unsqueeze(1)), 0.0)
    loss = terms.sum((1, 2)) / rows.shape[1]
    return loss if input.ndim == 2 else loss[0]


@loss_functor("x(2, 3), fixed(2 * b(3) - 1); x(2, 3), fixed(x(2, 3)), reduction='none'")
def soft_margin_loss(input: RealFloating, target: AnyTensor) -> Tensor:
    """Return the mean of log(1 + exp(-target · input)), which does not overflow.

    target: 1 or -1; broadcasts with the input.
    ShapeError: when the shapes do not broadcast.

    >>> flow.nn.functional.soft_margin_loss(flow.tensor([0.0]), flow.tensor([1.0]))
    tensor(0.6931)
    """
    return -F.logsigmoid(target * input)


@loss_functor(
    "x(2, 2, 3), share(2, 2, 3); x(2, 3), fixed(b(2, 3) * 1.0), fixed(pos(3)), reduction='none'"
)
def multilabel_soft_margin_loss(
    input: RealFloating, target: AnyTensor, weight: AnyTensor | None = None
) -> Tensor:
    """Return the binary cross entropy of sigmoid(input) and target, averaged over the classes.

    input: scores (*, C), real floating.
    target: 1 for the labels, 0 for the others.
    weight: broadcasts with the input; multiplies the terms.
    ShapeError: when the input has no dimension, or the shapes do not broadcast.
    """
    if not input.ndim:
        mend = "pass one score per class"
        raise wrong("multilabel_soft_margin_loss", "input", "shape (*, C)", input, mend)
    terms = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    terms = terms if weight is None else terms * weight
    return terms.sum(-1) / input.shape[-1]


def _triplet(
    op: str, distance: Callable[..., Tensor], tensors: tuple[Tensor, ...], margin: float, swap: bool
) -> Tensor:
    anchor, positive, negative = tensors
    if not margin > 0:
        raise wrong(op, "margin", "more than 0", margin, "make it positive", ArgumentError)
    _check_ndims(op, "anchor", anchor, positive=positive, negative=negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = far.minimum(distance(positive, negative)) if swap else far
    return (margin + near - far).clamp_min(0)


_TRIPLET = "x(4, 3), x(4, 3), x(4, 3)"


@loss_functor(
    f"x(3), x(3), x(3), 2.0; {_TRIPLET}, 0.5, 1.0, swap=True, reduction='none'", "functional flow"
)
def triplet_margin_loss(
    anchor: AnyTensor,
    positive: AnyTensor,
    negative: AnyTensor,
    margin: Number = 1.0,
    p: Number = 2.0,
    eps: Number = 1e-6,
    swap: Flag = False,
) -> Tensor:
    """Return the mean of max(0, margin + d(anchor, positive) - d(anchor, negative)).

    anchor, positive, negative: vectors (N, D) or (D,), whose distance is `pairwise_distance`.
    p, eps: exponent of the norm, and what is added to the differences.
    swap: take d(positive, negative) where it is smaller than d(anchor, negative).
    ArgumentError: when the margin is not positive, or the reduction is unknown.
    ShapeError: when the numbers of dimensions differ.

    >>> near, far = flow.tensor([[0.0, 0.0]]), flow.tensor([[0.0, 1.5]])
    >>> flow.nn.functional.triplet_margin_loss(near, near, far, margin=2.0)
    tensor(0.5000)
    """
    distance = functools.partial(F.pairwise_distance, p=p, eps=eps)
    return _triplet("triplet_margin_loss", distance, (anchor, positive, negative), margin, swap)


@functor("functional", samples=f"{_TRIPLET}; {_TRIPLET}, margin=0.5, swap=True, reduction='none'")
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

    distance_function: of two tensors; by default `pairwise_distance`.
    ArgumentError: when the margin is not positive, or the reduction is unknown.
    ShapeError: when the numbers of dimensions differ.
    """
    op, distance = "triplet_margin_with_distance_loss", distance_function or F.pairwise_distance
    loss = _triplet(op, distance, (anchor, positive, negative), margin, swap)
    return reduce_loss(loss, reduction)


@loss_functor(f"x(4), {_SIGNS}; x(4) * 0.5, {_SIGNS}, 2.0, reduction='none'", "functional flow")
def hinge_embedding_loss(input: RealFloating, target: AnyTensor, margin: Number = 1.0) -> Tensor:
    """Return the mean of the distance where the target is 1, and max(0, margin - distance) at -1.

    input: distances, real floating.
    target: 1 or -1; broadcasts with the input.
    ShapeError: when the shapes do not broadcast.

    >>> distance, sides = flow.tensor([0.5, 0.5]), flow.tensor([1, -1])
    >>> flow.nn.functional.hinge_embedding_loss(distance, sides, 2.0, reduction="none")
    tensor([0.5000, 1.5000])
    """
    far = (margin - input).clamp_min(0)
    return F.where(target != 1, far, 0.0) + F.where(target != -1, input, 0.0)


@loss_functor(
    f"x(4), x(4), {_SIGNS}; x(2, 4), x(2, 4), fixed(2 * b(1, 4) - 1), 0.5", "functional flow"
)
def margin_ranking_loss(
    input1: RealFloating, input2: RealFloating, target: AnyTensor, margin: Number = 0
) -> Tensor:
    """Return the mean of max(0, margin - target · (input1 - input2)).

    target: 1 where input1 should rank above input2, -1 where below; as many dimensions.
    ShapeError: when the numbers of dimensions differ, or the shapes do not broadcast.
    """
    _check_ndims("margin_ranking_loss", "input1", input1, input2=input2, target=target)
    return (margin - (input1 - input2) * target).clamp_min(0)


@loss_functor(
    f"x(4, 3), x(4, 3), {_SIGNS}, -0.8; x(3), x(3), fixed(1), reduction='none'", "functional flow"
)
def cosine_embedding_loss(
    input1: RealFloating, input2: RealFloating, target: AnyTensor, margin: Number = 0
) -> Tensor:
    """Return the mean of 1 - cos where the target is 1, and max(0, cos - margin) where it is -1.

    input1, input2: vectors (N, D) or (D,), real floating.
    target: 1 or -1, of shape (N,) or ().
    ShapeError: when the shapes do not fit.

    >>> x, y = flow.tensor([[3.0, 4.0]]), flow.tensor([[4.0, 3.0]])
    >>> flow.nn.functional.cosine_embedding_loss(x, y, flow.tensor([1]))
    tensor(0.0400)
    """
    for name, value in (("input1", input1), ("input2", input2)):
        if value.ndim != target.ndim + 1 or value.ndim > 2:
            expected = "(N, D) with a target (N,), or (D,) with a target ()"
            got = f"shape {value.shape} with a target of shape {target.shape}"
            mend = "give one target for each vector"
            raise wrong("cosine_embedding_loss", name, expected, got, mend)
    # As PyTorch's own, which differs from cosine_similarity near zero.
    tiny = 1e-12
    squares = [x.square().sum(-1) + tiny for x in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / (squares[0] * squares[1]).sqrt()
    apart = F.where(target == -1, (cosine - margin).clamp_min(0), 0.0)
    return F.where(target == 1, 1 - cosine, 0.0) + apart
