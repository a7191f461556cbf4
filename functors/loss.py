"""Losses of elements, and what all losses share: reductions, and domains of what should agree."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError
from oneflow_lite.functors import checks, domains
from oneflow_lite.functors.checks import check_broadcast, check_number, check_tensor, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Domain, Flag, Number, RealFloating
from oneflow_lite.interpreter import dispatch1, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

HUBER = op_expr("huber")


def former_reduction(op: str, size_average: Any, reduce: Any) -> str:
    """Return the reduction that PyTorch's deprecated arguments mean, with a warning."""
    reduction = "none"
    if reduce is None or reduce:
        reduction = "mean" if size_average is None or size_average else "sum"
    text = f"{op}(): size_average and reduce are deprecated; use reduction={reduction!r}"
    warnings.warn(text, stacklevel=3)
    return reduction


def check_reduction(op: str, reduction: Any, allowed: tuple[str, ...]) -> str:
    """Return the name of a reduction when it is among the allowed ones."""
    if isinstance(reduction, str) and reduction in allowed:
        return reduction
    kind = ArgumentError if isinstance(reduction, str) else ArgumentTypeError
    expected, got = " or ".join(map(repr, allowed)), repr(reduction)
    raise wrong(op, "reduction", expected, got, "name one of these", kind)


def reduce_loss(losses: Any, reduction: str) -> Tensor:
    """Return the losses, their sum or mean; of a pair of losses and weights, which may be None."""
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
        warnings.warn(
            f"{op}(): the target's shape {target.shape} differs from the input's {input.shape}; "
            "they are broadcast, which is seldom what is wanted: give both the same shape",
            stacklevel=3,
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
    expected, mend = f"shape {input.shape}, that of the input", "give both the same shape"
    raise wrong(op, name, expected, value, mend, ArgumentError)


def _reduction(*allowed: str) -> Domain:
    return Domain(
        "Whether the losses are averaged, summed or returned.",
        f"{{x}} = check_reduction(NAME, {{x}}, {allowed})",
        raises={"ArgumentError": "When the reduction is unknown."},
        uses=(check_reduction,),
        type="{" + ", ".join(f'"{word}"' for word in allowed) + "}",
    )


def _target(kind: str) -> Domain:
    return Domain(
        "Of the input's shape; another one that broadcasts gives a warning.",
        f"{{first}}, {{x}} = operands(NAME, {{first}}, {{x}}, {kind == 'real floating'})",
        raises={
            "DTypeError": f"When the common dtype is not {kind}.",
            "ShapeError": "When the shapes do not broadcast.",
        },
        uses=(operands,),
        tensor="one",
        sample="x(2, 3)",
    )


def fitting(check: Callable[..., Any], says: str, sample: str = "x(2, 3)", **raises: str) -> Domain:
    """Return a domain of tensors that `check(name, argument, value, first)` finds to fit."""
    line = f"{{x}} = {check.__name__}(NAME, '{{x}}', {{x}}, {{first}})"
    return Domain(says, line, raises=raises, uses=(check,), tensor="one", sample=sample)


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

    The functor reduces them. It takes `reduction`, after PyTorch's deprecated arguments if there
    are `former` ones, as the last or `before` another.
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
        raise wrong(op, "beta", "at least 0", beta, "make it positive", ArgumentError)
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
        raise wrong("huber_loss", "delta", "more than 0", delta, "make it positive", ArgumentError)
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
        text = "'mean' divides by the number of elements; 'batchmean' divides by the batch size"
        warnings.warn(f"kl_div(): {text}, as the divergence is defined", stacklevel=3)
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
    input: domains.FloatingOrComplex,
    target: AnyTensor,
    log_input: Flag = True,
    full: Flag = False,
    size_average: SizeAverage = None,
    eps: Number = 1e-8,
    reduce: Reduce = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood of Poisson counts: λ - target · log λ.

    input: log λ, or λ without `log_input`, whose logarithm is then log(input + eps); floating.
    target: counts; broadcasts with the input.
    full: whether Stirling's approximation of log(target!) is added where the target is above 1.
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
    input: RealFloating, target: RealFloating, var: Any, full: Flag = False, eps: Number = 1e-6
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
    variance = F.least_variance(checks.real_floating(op, var, "var"), eps=eps)
    loss = 0.5 * (variance.log() + (input - target).square() / variance)
    return loss + 0.5 * math.log(2 * math.pi) if full else loss
