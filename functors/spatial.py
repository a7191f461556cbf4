"""What functors of windows share: one author for `name1d`, `name2d` and `name3d`; their domains.

The number of spatial dimensions stands in the name of the functor; checks read it there.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, cast

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, DTypeError, ShapeError
from oneflow_lite.functors.checks import (
    check_ndim,
    check_number,
    check_tensor,
    real,
    require_floating,
)
from oneflow_lite.functors.declare import fill_cell, functor
from oneflow_lite.functors.domains import attribute, tensor
from oneflow_lite.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

# What S stands for in the samples of one, two and three dimensions.
_SAMPLE_SIZES = ("", "5", "4, 5", "3, 2, 4")


def spatially(
    *on: str,
    numbers: tuple[int, ...] = (1, 2, 3),
    samples: str | Sequence[str] = "",
    indices: bool = False,
    out: bool = False,
) -> Callable[[Function], list[Function]]:
    """Declare `name_nd` once for each number of spatial dimensions.

    `on` and `samples` are one for all, or one for each. In samples, S stands for the sizes of a
    plane. The example goes to the functor that it calls. With `indices` each functor has a double
    that returns the indices: `max_pool2d_with_indices`.
    """

    def decorator(author: Function) -> list[Function]:
        made, (text, mark, example) = [], (author.__doc__ or "").partition(">>> ")
        for k, n in enumerate(numbers):
            name, where = author.__name__.replace("_nd", f"{n}d"), on[min(k, len(on) - 1)]
            calls = samples if isinstance(samples, str) else samples[k]
            options = {"samples": re.sub(r"\bS\b", _SAMPLE_SIZES[n], calls), "out": out}
            document = text + (mark + example) * (f"{name}(" in example)
            made.append(functor(where, **options)(_clone(author, name, document)))
            if indices:
                document = f"Do what `{name}` does, and return the positions of the maxima too."
                double = _clone(author, f"{name}_with_indices", document)
                where = "functional flow" if name == "max_pool1d" else "functional"
                fill_cell(functor(where, **options)(double), "BODY", _with_indices(author))
        return made

    return decorator


def _clone(author: Function, name: str, document: str) -> Function:
    """Return the same function under another name."""
    code = author.__code__.replace(co_name=name, co_qualname=name)
    made = types.FunctionType(code, author.__globals__, name, author.__defaults__)
    made.__annotations__, made.__doc__ = author.__annotations__, document
    return cast(Function, made)


def _with_indices(author: Function) -> Callable[..., Any]:
    where = author.__code__.co_varnames.index("return_indices")
    return lambda *given: author(*given[:where], True, *given[where + 1 :])


@functools.cache
def number_of(op: str) -> int:
    """Return the number of spatial dimensions that the name of a functor says."""
    return next(int(character) for character in op if character.isdigit())


def same_dtype(op: str, input: Tensor, **others: Tensor | None) -> None:
    """Check that the other tensors have the dtype of the input."""
    for name, other in others.items():
        if other is not None and other.dtype != input.dtype:
            raise DTypeError(
                f"{op}(): argument '{name}': expected dtype {input.dtype}, that of the input, got "
                f"{other.dtype}; convert one of them with .to(dtype)"
            )


def check_sizes(
    op: str, argument: str, value: Any, spatial: int, minimum: int = 1
) -> tuple[int, ...]:
    """Return one int for each spatial dimension, from one int or a sequence.

    Raises
    ------
    ArgumentTypeError
        When an element is no int.
    ShapeError
        When the sequence is of the wrong length or an element is less than `minimum`.
    """
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(given) == 1:
        given *= spatial
    what = f"an int of at least {minimum}"
    if spatial > 1:
        what += f", or {spatial} of them"
    for size in given:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
            raise ArgumentTypeError(
                f"{op}(): argument '{argument}': expected {what}, got {value!r}; pass whole numbers"
            )
    if len(given) != spatial or any(size < minimum for size in given):
        raise ShapeError(
            f"{op}(): argument '{argument}': expected {what}, got {value!r}; change the number, or "
            "give one for each spatial dimension"
        )
    return tuple(int(size) for size in given)


def check_ratios(
    op: str, value: Any, spatial: int, argument: str = "output_ratio"
) -> tuple[float, ...]:
    """Return one number for each spatial dimension, from one or a sequence."""
    given = value if isinstance(value, (tuple, list)) else (value,)
    ratios = tuple([check_number(op, argument, each) for each in given])
    if len(ratios) not in (1, spatial):
        raise ShapeError(
            f"{op}(): argument '{argument}': expected one or {spatial} numbers, got {value!r}; "
            "pass so many"
        )
    return ratios * spatial if len(ratios) == 1 else ratios


def spatial_sizes(op: str, argument: str, value: Any, minimum: int = 1) -> tuple[int, ...]:
    """Return as many sizes as the name of the functor says."""
    return check_sizes(op, argument, value, number_of(op), minimum)


def planes(op: str, input: Tensor, argument: str = "input") -> Tensor:
    """Return numbers in planes (N, C, *size) or (C, *size) that are not empty.

    Raises
    ------
    ShapeError
        When there are too many or too few dimensions, or one other than the batch is empty.
    DTypeError
        When it holds bools.
    """
    spatial = number_of(op)
    check_ndim(op, input, (spatial + 1, spatial + 2))
    if 0 in input.shape[-1 - spatial :]:
        raise ShapeError(
            f"{op}(): argument 'input': expected no size of 0 except that of the batch, got shape "
            f"{input.shape}; pass channels that hold elements"
        )
    if input.dtype.kind == "b":
        raise DTypeError(
            f"{op}(): argument 'input': expected numbers, got {input.dtype}; convert it with "
            ".float()"
        )
    return input


def real_planes(op: str, input: Tensor, argument: str = "input") -> Tensor:
    """Return planes of real numbers."""
    return planes(op, real(op, input, argument))


def floating_planes(op: str, input: Tensor, argument: str = "input") -> Tensor:
    """Return planes of floating or complex numbers."""
    return planes(op, require_floating(op, input, argument))


def lone_planes(op: str, input: Tensor, argument: str = "input") -> Tensor:
    """Return a tensor (N, C, *size) or (C, *size)."""
    spatial = number_of(op)
    return check_ndim(op, check_tensor(op, argument, input), (spatial + 1, spatial + 2), argument)


def channels(op: str, input: Tensor, argument: str = "input") -> Tensor:
    """Return a floating tensor (N, C, *) of three dimensions or more."""
    if require_floating(op, input, argument).ndim > 2:
        return input
    return check_ndim(op, input, (3, 4, 5), argument)


_SHAPED = "of shape (N, C, *size), or (C, *size) for one sample alone."
_ERRORS = {
    "ArgumentTypeError": "When {x} is no whole number.",
    "ShapeError": "When {x} has the wrong number of entries, or one is too small.",
}
SIZE_WORDS = {"type": "int or tuple of ints", "raises": _ERRORS}
_EMPTY = {
    "DTypeError": "When {x} is of the wrong kind.",
    "ShapeError": "When {x} has other dimensions or no elements.",
}
Planes = Annotated[Tensor, tensor(lone_planes, "", f"O{_SHAPED[1:]}")]
RealPlanes = Annotated[Tensor, tensor(real_planes, "", f"Real, {_SHAPED}", **_EMPTY)]
FloatingPlanes = Annotated[
    Tensor, tensor(floating_planes, "", f"Floating or complex, {_SHAPED}", **_EMPTY)
]
Sizes = Annotated[
    Any, attribute(spatial_sizes, says="One for each dimension, or one for all.", **SIZE_WORDS)
]
Stride = Annotated[
    Any,
    attribute(
        spatial_sizes,
        says="The step of the window; its own size by default.",
        quick="{x} is None or {x} in ((), [])",
        **SIZE_WORDS,
    ),
]
Padding = Annotated[
    Any,
    attribute(spatial_sizes, ", 0", says="How much is added on both sides.", **SIZE_WORDS),
]
