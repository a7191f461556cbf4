"""What the losses share: the reduction, and operands whose shapes should agree, as domains."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any

from oneflow_lite.errors import ArgumentError, ArgumentTypeError
from oneflow_lite.functors.checks import (
    check_broadcast,
    check_tensor,
    real_floating,
    require_floating,
    wrong,
)
from oneflow_lite.functors.domains import Domain
from oneflow_lite.functors.reduce import mean, sum
from oneflow_lite.interpreter import promote
from oneflow_lite.tensor import Tensor


def check_reduction(
    op: str, reduction: Any, size_average: Any = None, reduce: Any = None, extra: str = ""
) -> str:
    """Return "none", "mean" or "sum" (or `extra`), also from PyTorch's deprecated arguments."""
    if size_average is not None or reduce is not None:
        if reduce is None or reduce:
            reduction = "mean" if size_average is None or size_average else "sum"
        else:
            reduction = "none"
        warnings.warn(
            f"{op}(): size_average and reduce are deprecated; use reduction={reduction!r}",
            stacklevel=3,
        )
    if not isinstance(reduction, str):
        kind: Any = ArgumentTypeError
    elif reduction in ("none", "mean", "sum") or (extra and reduction == extra):
        return reduction
    else:
        kind = ArgumentError
    choices = ["none", "mean", "sum", *([extra] if extra else [])]
    raise wrong(
        op, "reduction", " or ".join(map(repr, choices)), repr(reduction), "name one of these", kind
    )


def reduce_loss(loss: Tensor, reduction: str) -> Tensor:
    """Return the loss of each element, their mean or their sum."""
    if reduction == "none":
        return loss
    return mean(loss) if reduction == "mean" else sum(loss)


def operands(op: str, input: Any, target: Any, real: bool = False) -> list[Tensor]:
    """Return input and target in one floating dtype; warn when their shapes differ, as PyTorch."""
    check_tensor(op, "input", input)
    check_tensor(op, "target", target)
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"{op}(): the target's shape {target.shape} differs from the input's {input.shape}; "
            "they are broadcast, which is seldom what is wanted: give both the same shape",
            stacklevel=3,
        )
        check_broadcast(op, "target", target, input)
    if input._data.dtype is not target._data.dtype:
        input, target = promote(op, input, target)
    check = real_floating if real else require_floating
    return [check(op, input), target]


def same_shape(op: str, name: str, value: Any, other: Tensor, of: str = "input") -> Tensor:
    """Return `value` when it is a Tensor of the other's shape; raise `ArgumentError` otherwise."""
    if check_tensor(op, name, value)._data.shape == other._data.shape:
        return value
    raise wrong(
        op,
        name,
        f"shape {other.shape}, that of the {of}",
        value,
        "give both the same shape",
        ArgumentError,
    )


def _reduction(extra: str = "", legacy: bool = True) -> Domain:
    words = ["mean", "sum", "none", *([extra] if extra else [])]
    given = "size_average, reduce" if legacy else "None, None"
    return Domain(
        "Whether the losses are averaged, summed or returned.",
        f"{{x}} = check_reduction(NAME, {{x}}, {given}, {extra!r})",
        raises={"ArgumentError": "When the reduction is unknown."},
        uses=(check_reduction,),
        type="{" + ", ".join(f'"{word}"' for word in words) + "}",
    )


Legacy = Annotated[
    Any,
    Domain("PyTorch's deprecated names for `reduction`.", early=True, type="bool, optional"),
]
Reduction = Annotated[str, _reduction(legacy=False)]
LegacyReduction = Annotated[str, _reduction()]
LegacyReductionOrBatchMean = Annotated[str, _reduction("batchmean")]


def _target(real: bool) -> Domain:
    return Domain(
        "Of the input's shape; another one that broadcasts gives a warning.",
        f"{{first}}, {{x}} = operands(NAME, {{first}}, {{x}}, {real})",
        raises={
            "DTypeError": f"When the common dtype is not {'real ' if real else ''}floating.",
            "ShapeError": "When the shapes do not broadcast.",
        },
        uses=(operands,),
        tensor="one",
        sample="x(2, 3)",
    )


Target = Annotated[Tensor, _target(False)]
RealTarget = Annotated[Tensor, _target(True)]


def fitting(check: Callable[..., Any], says: str, sample: str = "x(2, 3)", **raises: str) -> Domain:
    """Return a domain of tensors that `check(name, argument, value, first)` finds to fit."""
    line = f"{{x}} = {check.__name__}(NAME, '{{x}}', {{x}}, {{first}})"
    return Domain(says, line, raises=raises, uses=(check,), tensor="one", sample=sample)


SameShape = Annotated[
    Tensor,
    fitting(
        same_shape,
        "Of the input's shape; multiplies each element.",
        ArgumentError="When {x} has another shape.",
    ),
]
