"""What the losses share: the reduction, and operands whose shapes should agree, as domains."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from oneflow_lite.errors import ArgumentError, ArgumentTypeError
from oneflow_lite.functors import checks
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Domain
from oneflow_lite.interpreter import promote
from oneflow_lite.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])


def former_reduction(op: str, size_average: Any, reduce: Any) -> str:
    """Return the reduction that PyTorch's deprecated arguments mean, with a warning."""
    reduction = "none"
    if reduce is None or reduce:
        reduction = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"{op}(): size_average and reduce are deprecated; use reduction={reduction!r}",
        stacklevel=3,
    )
    return reduction


def check_reduction(op: str, reduction: Any, allowed: tuple[str, ...]) -> str:
    """Return the name of a reduction when it is among the allowed ones."""
    if isinstance(reduction, str) and reduction in allowed:
        return reduction
    kind = ArgumentError if isinstance(reduction, str) else ArgumentTypeError
    expected, got = " or ".join(map(repr, allowed)), repr(reduction)
    raise checks.wrong(op, "reduction", expected, got, "name one of these", kind)


def reduce_loss(loss: Tensor, reduction: str) -> Tensor:
    """Return the loss of each element, their mean or their sum."""
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def operands(op: str, input: Tensor, target: Any, real: bool) -> list[Tensor]:
    """Return input and target in one floating dtype; warn when their shapes differ, as PyTorch."""
    checks.check_tensor(op, "target", target)
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"{op}(): the target's shape {target.shape} differs from the input's {input.shape}; "
            "they are broadcast, which is seldom what is wanted: give both the same shape",
            stacklevel=3,
        )
        checks.check_broadcast(op, "target", target, input)
    if input._data.dtype is not target._data.dtype:
        input, target = promote(op, input, target)
    check = checks.real_floating if real else checks.require_floating
    return [check(op, input), target]


def same_shape(op: str, name: str, value: Any, input: Tensor) -> Tensor:
    """Return `value` when it is a Tensor of the input's shape."""
    if checks.check_tensor(op, name, value)._data.shape == input._data.shape:
        return value
    expected, mend = f"shape {input.shape}, that of the input", "give both the same shape"
    raise checks.wrong(op, name, expected, value, mend, ArgumentError)


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
        f"{{first}}, {{x}} = operands(NAME, {{first}}, {{x}}, {kind.startswith('real')})",
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


def loss_functor(on: str = "functional", samples: str = "") -> Callable[[Function], Function]:
    """Declare a loss; PyTorch's deprecated arguments come before its `reduction`."""

    def decorator(author: Function) -> Function:
        code, defaults = author.__code__, author.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        given = ", ".join(names)
        taken = given.replace("reduction", "size_average, reduce, reduction")
        made = eval(f"lambda {taken}: author({given})", {**author.__globals__, "author": author})
        functools.update_wrapper(made, author)
        place = names.index("reduction") - len(names)
        made.__defaults__ = (*defaults[:place], None, None, *defaults[place:])
        made.__annotations__ = {"size_average": SizeAverage, "reduce": Reduce}
        made.__annotations__ |= author.__annotations__
        made.__code__ = made.__code__.replace(
            co_filename=code.co_filename, co_firstlineno=code.co_firstlineno
        )
        return functor(on, samples=samples)(made)

    return decorator
