"""Losses of elements, losses with a margin, and the checks and reductions that all losses share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.functors.declaring import checks, domains
from oneflow_lite.functors.declaring.checks import check_broadcast, check_number, check_tensor
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Domain,
    Flag,
    Integer,
    Number,
    RealFloating,
    RealToFloating,
    TensorOrNumber,
)
from oneflow_lite.interpreter.dispatch import dispatch1, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

HUBER = op_expr("huber")


def former_reduction(op: str, size_average: Any, reduce: Any) -> str:
    """Return the reduction that PyTorch's deprecated arguments mean, with a warning."""
    reduction = "none"
    if reduce is None or reduce:
        reduction = "mean" if size_average is None or size_average else "sum"
    text = f"{op}(): size_average and reduce are deprecated; use reduction={reduction!r}"
    warn_caller(text)
    return reduction


def check_reduction(op: str, reduction: Any, allowed: tuple[str, ...]) -> str:
    """Return the name of a reduction when it is among the allowed ones."""
    if isinstance(reduction, str) and reduction in allowed:
        return reduction
    kind = ArgumentError if isinstance(reduction, str) else ArgumentTypeError
    expected, got = " or ".join(map(repr, allowed)), repr(reduction)
    raise arg_error(op, "reduction", expected, got, "name one of these", kind)


def reduce_loss(losses: Any, reduction: str) -> Tensor:
    """Return the losses, their sum or their mean.

    `losses` may be a pair of losses and weights (or None). The mean is then the sum of the
    products, divided by the sum of the weights.
    """
    loss, weight = losses if isinstance(losses, tuple) else (losses, None)
    loss = loss if weight is None else loss * weight
    if reduction == "none":
        return loss
    if reduction == "mean" and weight is None:
        return loss.mean()
    return loss.sum() / weight.sum() if reduction == "mean" else loss.sum()


def operands(op: str, input: Tensor, target: Any, real: bool) -> list[Tensor]:
    """Return input and target in one floating dtype; warn when their shapes differ, as PyTorch."""
    if input._data.shape != check_tensor(op, "target", target)._data.shape:
        warn_caller(
            f"{op}(): the target's shape {target.shape} differs from the input's {input.shape}; "
            "they are broadcast, which is seldom what is wanted: give both the same shape"
        )
        check_broadcast(op, "target", target, input)
    if input._data.dtype is not target._data.dtype:
        input, target = promote(op, input, target)
    check = checks.real_floating if real else checks.require_floating
    return [check(op, input), target]


def same_shape(op: str, name: str, value: Any, input: Tensor) -> Tensor:
    """Return `value` when it is a Tensor of the input's shape."""
    if check_tensor(op, name, value)._data.shape == input._data.shape:
        return value
    expected, hint = f"shape {input.shape}, that of the input", "give both the same shape"
    raise arg_error(op, name, expected, value, hint, ArgumentError)


def _reduction(*allowed: str) -> Domain:
    line = f"{{x}} = check_reduction(NAME, {{x}}, {allowed})"
    says = "Whether the losses are averaged, summed or returned."
    return domains.choice(*allowed)._replace(
        says=says, check=line, quick="", uses=(check_reduction,)
    )


def fitting(check: Callable[..., Any], says: str, sample: str = "x(2, 3)", **raises: str) -> Domain:
    """Return a domain of tensors that `check(name, argument, value, first)` finds to fit."""
    line = f"{{x}} = {check.__name__}(NAME, '{{x}}', {{x}}, {{first}})"
    return Domain(says, line, raises=raises, uses=(check,), tensor="one", sample=sample)


def _target(kind: str) -> Domain:
    line = f"{{first}}, {{x}} = operands(NAME, {{first}}, {{x}}, {kind == 'real floating'})"
    says = "Of the input's shape; another one that broadcasts gives a warning."
    dtype, shape = f"When the common dtype is not {kind}.", "When the shapes do not broadcast."
    return fitting(operands, says, DTypeError=dtype, ShapeError=shape)._replace(check=line)


_FORMER = Domain("PyTorch's deprecated names for `reduction`.", early=True, type="bool, optional")
SizeAverage = Annotated[Any, _FORMER]
Reduce = Annotated[  # after a SizeAverage, and with a Reduction
    Any,
    _FORMER._replace(
        check="reduction = former_reduction(NAME, size_average, {x})",
        quick="size_average is None and {x} is None",
        uses=(former_reduction,),
    ),
]
Reduction = Annotated[str, _reduction("none", "mean", "sum")]
ReductionOrBatchMean = Annotated[str, _reduction("none", "mean", "sum", "batchmean")]
Target = Annotated[Tensor, _target("floating")]
RealTarget = Annotated[Tensor, _target("real floating")]
_FACTORS = "Of the input's shape; multiplies each element."
SameShape = Annotated[
    Tensor, fitting(same_shape, _FACTORS, ArgumentError="When {x} has another shape.")
]


def loss_functor(
    samples: str, on: str = "functional", *, before: str = "", former: bool = True
) -> Callable[[Callable[..., Any]], Any]:
    """Declare a loss by the losses of its elements, or by these and weights of their mean.

    The functor reduces them. It takes `reduction` as its last argument, or `before` a named
    argument; with `former`, PyTorch's deprecated arguments stand in front of it.
    """

    def decorator(author: Callable[..., Any]) -> Any:
        code, given = author.__code__, author.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        place = names.index(before) if before else len(names)
        new: dict[str, Any] = {"size_average": None, "reduce": None} if former else {}
        new["reduction"] = "mean"
        taken = [*names[:place], *new, *names[place:]]
        defaults = dict(zip(reversed(names), reversed(given), strict=False)) | new
        text = f"lambda {', '.join(taken)}: REDUCED(AUTHOR({', '.join(names)}), reduction)"
        made = eval(text, {**author.__globals__, "AUTHOR": author, "REDUCED": reduce_loss})
        functools.update_wrapper(made, author)
        made.__code__ = made.__code__.replace(
            co_filename=code.co_filename, co_firstlineno=code.co_firstlineno
        )
        made.__defaults__ = tuple(defaults[name] for name in taken if name in defaults)
        hints = {"size_average": SizeAverage, "reduce": Reduce, "reduction": Reduction}
        made.__annotations__ = {**author.__annotations__, **hints, "return": Tensor}
        return functor(on, samples=samples)(made)

    return decorator


_PAIR = "x(2, 3), x(2, 3)"
_REDUCED = f"{_PAIR}; {_PAIR}, reduction='none'; {_PAIR}, reduction='sum'"
_WEIGHTED = f"{_REDUCED}; {_PAIR}, reduction='sum', weight=pos(2, 3)"


@loss_functor(_WEIGHTED, before="weight")
def mse_loss(input: AnyTensor, target: RealTarget, weight: SameShape | None = None) -> Any:
    """Return the mean of (input - target)²; with a weight, their sum divided by the weight's.

    >>> flow.nn.functional.mse_loss(flow.tensor([1., 3.]), flow.tensor([0., 0.]))
    tensor(5.)
    """
    return (input - target).square(), weight


@loss_functor(_WEIGHTED, before="weight")
def l1_loss(input: AnyTensor, target: Target, weight: SameShape | None = None) -> Any:
    """Return the mean of \\|input - target\\|, weighted as `mse_loss`; the gradient at 0 is 0."""
    return (input - target).abs(), weight


@loss_functor(f"{_REDUCED}; {_PAIR}, beta=0.3; {_PAIR}, beta=0", before="beta")
def smooth_l1_loss(input: AnyTensor, target: Target, beta: Number = 1.0) -> Tensor:
    """Return the mean of d² / (2 beta) where d = \\|input - target\\| < beta, else d - beta / 2.

    beta: with 0 this is `l1_loss`.
    ArgumentError: when `beta` is negative.

    >>> x = flow.tensor([0.5, 3.])
    >>> flow.nn.functional.smooth_l1_loss(x, flow.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    op, difference = "smooth_l1_loss", input - target
    if beta < 0:
        raise arg_error(op, "beta", "at least 0", beta, "make it positive", ArgumentError)
    if beta == 0:
        return difference.abs()
    loss = dispatch1(HUBER, checks.real(op, difference), {"delta": beta})
    return loss if beta == 1 else loss / beta


@loss_functor(
    f"{_REDUCED}; {_PAIR}, delta=0.3; {_PAIR}, weight=pos(2, 3)", before="delta", former=False
)
def huber_loss(
    input: AnyTensor, target: RealTarget, delta: Number = 1.0, weight: SameShape | None = None
) -> Tensor:
    """Return the mean of d² / 2 where d = \\|input - target\\| < delta, else delta (d - delta / 2).

    weight: of the input's shape; multiplies each element. The mean is not weighted, as in PyTorch.
    ArgumentError: when `delta` is not positive, or an argument does not fit.
    """
    if not delta > 0:
        raise arg_error(
            "huber_loss", "delta", "more than 0", delta, "make it positive", ArgumentError
        )
    loss = dispatch1(HUBER, input - target, {"delta": delta})
    return loss if weight is None else loss * weight


@functor(
    "functional flow",
    samples="x(2, 3), share(3), reduction='batchmean'; x(2, 3), share(2, 3), reduction='sum'; "
    "x(2, 3), x(2, 3), reduction='none', log_target=True",
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

    input: log-probabilities.
    target: probabilities, or their logarithms with `log_target`; broadcasts with the input.
    reduction: "batchmean", the sum over the batch size, is the divergence; "mean" warns.
    ShapeError: when the shapes do not broadcast.

    >>> p = flow.tensor([[0.5, 0.5]])
    >>> flow.nn.functional.kl_div(flow.log(p), p, reduction="batchmean")
    tensor(0.)
    """
    if reduction == "mean" and size_average is None and reduce is None:
        text = "'mean' divides by the number of elements; 'batchmean' divides by the batch size"
        warn_caller(f"kl_div(): {text}, as the divergence is defined")
    check_broadcast("kl_div", "target", target, input)
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return reduce_loss(loss, reduction)


@functor(
    "functional flow",
    samples="pos(2, 3), fixed(pos(2, 3)), log_input=False, reduction='none'; "
    "x(2, 3), fixed(pos(2, 3)); x(2, 3), fixed(pos(2, 3)), full=True, reduction='sum'",
)
def poisson_nll_loss(
    input: domains.Floating,
    target: AnyTensor,
    log_input: Flag = True,
    full: Flag = False,
    size_average: SizeAverage = None,
    eps: Number = 1e-8,
    reduce: Reduce = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood of Poisson counts: λ - target · log λ.

    input: log λ, or λ without `log_input`, whose logarithm is then log(input + eps).
    target: counts; broadcasts with the input.
    full: add Stirling's approximation of log(target!) where the target is above 1.
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


@loss_functor(
    "x(2, 3), x(2, 3), pos(2, 3); x(2, 3), x(2, 3), pos(2), reduction='none'; "
    "x(2, 3), x(2, 3), 0.5; x(2, 3), x(2, 3), pos(2, 1), True, 0.3, 'sum'",
    former=False,
)
def gaussian_nll_loss(
    input: RealFloating,
    target: RealFloating,
    var: TensorOrNumber,
    full: Flag = False,
    eps: Number = 1e-6,
) -> Tensor:
    """Return the mean negative log-likelihood of a normal: (log v + (input - target)² / v) / 2.

    v = max(var, eps), and the gradient of v flows to `var` also where eps is larger, as in PyTorch.

    var: a number, or a tensor of the input's shape, perhaps with a size of 1 or no last dimension.
    full: add the constant log(2π) / 2.
    ArgumentError: when the variance is negative (checked on the CPU only) or has another shape.
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
        hint = "give one variance for each element, or for each line of them"
        raise arg_error(op, "var", expected, var, hint, ArgumentError)
    variance = F.least_variance(checks.real_floating(op, var, "var"), eps=eps)
    loss = 0.5 * (variance.log() + (input - target).square() / variance)
    return loss + 0.5 * math.log(2 * math.pi) if full else loss


# --- With a margin: of classes, labels, pairs and triplets ----------------------------------------

_SIGNS = "fixed(2 * b(4) - 1)"
Weight = RealFloating | None


def _rows(op: str, input: Tensor) -> Tensor:
    """Return scores (N, C) or (C,) or () as (N, C)."""
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise arg_error(op, "input", "shape (N, C) or (C,)", input, "give scores of classes")
    return input if input.ndim == 2 else input.reshape(1, -1)


def _mismatch_error(op: str, input: Tensor, target: Tensor) -> Exception:
    expected = f"a shape that fits the input's {input.shape}"
    return arg_error(op, "target", expected, target, "give one for each sample of the input")


def _check_ndims(op: str, first: str, input: Tensor, **others: Tensor) -> None:
    for name, other in others.items():
        if other.ndim != input.ndim:
            expected = f"{input.ndim} dimensions, as many as {first}"
            raise arg_error(op, name, expected, other, "reshape or unsqueeze it")


@loss_functor("x(3), i(n=3), 2; x(4, 3), i(4, n=3), 1, 0.3, fixed(pos(3)), reduction='none'")
def multi_margin_loss(
    input: RealFloating, target: Integer, p: int = 1, margin: Number = 1.0, weight: Weight = None
) -> Tensor:
    """Return Σ_c max(0, margin - input[t] + input[c])^p / C over the classes c other than t.

    input, target: scores (N, C) or (C,), and class numbers t, (N,) or ().
    p: 1 or 2.
    weight: (C,), by which the terms of a target are multiplied.
    ShapeError: when a shape does not fit.

    >>> flow.nn.functional.multi_margin_loss(flow.tensor([0.0, 0.5]), flow.tensor(1))
    tensor(0.2500)
    """
    op = "multi_margin_loss"
    if p not in (1, 2):
        raise arg_error(op, "p", "1 or 2", p, "take one of them", ArgumentError)
    rows = _rows(op, input)
    size, classes = rows.shape
    if target.ndim > 1 or target.numel() != size or (input.ndim == 2 != size and target.ndim == 0):
        raise _mismatch_error(op, input, target)
    if weight is not None and weight.shape != (classes,):
        raise arg_error(op, "weight", f"shape ({classes},)", weight, "give one for each class")
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

    target: the labels, of the shape of the scores: class numbers up to the first negative one.
    ShapeError: when a shape does not fit.
    """
    op = "multilabel_margin_loss"
    rows = _rows(op, input)
    if target.shape != input.shape and (input.ndim, target.shape) != (0, (1,)):
        raise _mismatch_error(op, input, target)
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

    input, target: scores (*, C), and 1 for the labels, 0 for the others.
    weight: multiplies the terms; broadcasts with the input.
    ShapeError: when the input has no dimension, or the shapes do not broadcast.
    """
    if not input.ndim:
        hint = "pass one score per class"
        raise arg_error("multilabel_soft_margin_loss", "input", "shape (*, C)", input, hint)
    terms = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    terms = terms if weight is None else terms * weight
    return terms.sum(-1) / input.shape[-1]


def _triplet(
    op: str, distance: Callable[..., Tensor], tensors: tuple[Tensor, ...], margin: float, swap: bool
) -> Tensor:
    anchor, positive, negative = tensors
    if not margin > 0:
        raise arg_error(op, "margin", "more than 0", margin, "make it positive", ArgumentError)
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

    anchor, positive, negative: vectors (N, D) or (D,).
    p, eps: those of `pairwise_distance`, d.
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
    ShapeError: when the numbers of dimensions differ.
    """
    op, distance = "triplet_margin_with_distance_loss", distance_function or F.pairwise_distance
    loss = _triplet(op, distance, (anchor, positive, negative), margin, swap)
    return reduce_loss(loss, reduction)


@loss_functor(f"x(4), {_SIGNS}; x(4) * 0.5, {_SIGNS}, 2.0, reduction='none'", "functional flow")
def hinge_embedding_loss(input: RealFloating, target: AnyTensor, margin: Number = 1.0) -> Tensor:
    """Return the mean: the distance where the target is 1, and max(0, margin - distance) at -1.

    target: broadcasts with the input, the distances.
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
    input1: RealToFloating, input2: RealToFloating, target: AnyTensor, margin: Number = 0
) -> Tensor:
    """Return the mean of max(0, margin - target · (input1 - input2)).

    target: 1 where input1 should rank above input2, -1 where below; of as many dimensions.
    ShapeError: when the numbers of dimensions differ, or the shapes do not broadcast.
    """
    _check_ndims("margin_ranking_loss", "input1", input1, input2=input2, target=target)
    return (margin - (input1 - input2) * target).clamp_min(0)


@loss_functor(
    f"x(4, 3), x(4, 3), {_SIGNS}, -0.8; x(3), x(3), fixed(1), reduction='none'", "functional flow"
)
def cosine_embedding_loss(
    input1: RealToFloating, input2: RealToFloating, target: AnyTensor, margin: Number = 0
) -> Tensor:
    """Return the mean of 1 - cos where the target is 1, and max(0, cos - margin) where it is -1.

    input1, input2, target: vectors (N, D) or (D,), and 1 or -1, of shape (N,) or ().
    ShapeError: when the shapes do not fit.

    >>> x, y = flow.tensor([[3.0, 4.0]]), flow.tensor([[4.0, 3.0]])
    >>> flow.nn.functional.cosine_embedding_loss(x, y, flow.tensor([1]))
    tensor(0.0400)
    """
    for name, value in (("input1", input1), ("input2", input2)):
        if value.ndim != target.ndim + 1 or value.ndim > 2:
            expected = "(N, D) with a target (N,), or (D,) with a target ()"
            got = f"shape {value.shape} with a target of shape {target.shape}"
            hint = "give one target for each vector"
            raise arg_error("cosine_embedding_loss", name, expected, got, hint)
    # As PyTorch's own, which differs from cosine_similarity near zero.
    squares = [x.square().sum(-1) + 1e-12 for x in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / (squares[0] * squares[1]).sqrt()
    apart = F.where(target == -1, (cosine - margin).clamp_min(0), 0.0)
    return F.where(target == 1, 1 - cosine, 0.0) + apart
