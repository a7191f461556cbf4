"""Shared by functors of windows: one author for `name1d`, `name2d` and `name3d`; their domains.

The number of spatial dimensions stands in the name of the functor; checks read it there.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, DTypeError, arg_error
from oneflow_lite.functors.declaring import checks
from oneflow_lite.functors.declaring.declare import fill_cell, functor
from oneflow_lite.functors.declaring.domains import Domain, attribute, tensor
from oneflow_lite.tensors.spellings import as_number
from oneflow_lite.tensors.tensor import Tensor

Ints = tuple[int, ...]
Function = TypeVar("Function", bound=Callable[..., Any])

# What S and K stand for in the samples of one, two and three dimensions.
_SAMPLE_WORDS = {"S": ("", "5", "4, 5", "3, 2, 4"), "K": ("", "2", "1, 2", "2, 1, 2")}


_POOLED = """
    return_indices: Literal[False] = ... -> Tensor
    return_indices: Literal[True] -> tuple[Tensor, Tensor]
"""


def spatially(
    *on: str, least: int = 1, samples: Any = "", indices: bool = False, out: bool | str = False
) -> Callable[[Function], Function]:
    """Declare `name1d`, `name2d` and `name3d` by one author, `name_nd`, which stays as it is.

    `least` is the lowest number of dimensions. `on` and `samples` serve all functors, or list a
    string for each. In samples, S stands for the sizes of a plane, K for the sizes of a filter. The
    example goes to the functor that it calls. With `indices` each functor has a double that returns
    the indices, too: `max_pool2d_with_indices`.
    """

    def decorator(author: Function) -> Function:
        text, mark, example = (author.__doc__ or "").partition(">>> ")
        for k, n in enumerate(range(least, 4)):
            name, where = author.__name__.replace("_nd", f"{n}d"), on[min(k, len(on) - 1)]
            calls = samples if isinstance(samples, str) else samples[k]
            calls = re.sub(r"\b[SK]\b", lambda word, n=n: _SAMPLE_WORDS[word[0]][n], calls)
            options = {"samples": calls, "out": out, "results": _POOLED if indices else ""}
            document = text + (mark + example) * (f"{name}(" in example)
            made = functor(where, **options)(_clone(author, name, document))
            author.__globals__[name] = made
            if indices:
                document = f"Do what `{name}` does, and return the positions of the maxima too."
                double = _clone(author, f"{name}_with_indices", document)
                where = "functional flow" if name == "max_pool1d" else "functional"
                options["results"] = "tuple[Tensor, Tensor]"
                fill_cell(functor(where, **options)(double), "BODY", _with_indices(author))
        return author

    return decorator


def _clone(author: Function, name: str, document: str) -> Function:
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
        if other is not None and other._data.dtype != input._data.dtype:
            expected = f"dtype {input.dtype}, that of the input"
            hint = "convert one of them with .to(dtype)"
            raise arg_error(op, name, expected, other.dtype, hint, DTypeError)


def check_sizes(op: str, argument: str, value: Any, minimum: int = 1, spatial: int = 0) -> Ints:
    """Return an int of at least `minimum` for each spatial dimension, from an int or a sequence."""
    spatial = spatial or number_of(op)
    if type(value) is int and value >= minimum:
        return (value,) * spatial
    if type(value) is tuple and len(value) == spatial:  # as modules keep it
        for size in value:
            if type(size) is not int or size < minimum:
                break
        else:
            return value
    given = tuple(map(as_number, value if isinstance(value, (tuple, list)) else (value,)))
    given = given * spatial if len(given) == 1 else given
    expected = f"an int of at least {minimum}" + f", or {spatial} of them" * (spatial > 1)
    for size in given:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
            hint = "pass whole numbers"
            raise arg_error(op, argument, expected, repr(value), hint, ArgumentTypeError)
    if len(given) != spatial or min(given) < minimum:
        hint = "change the number, or give one for each spatial dimension"
        raise arg_error(op, argument, expected, repr(value), hint)
    return tuple(int(size) for size in given)


def check_ratios(op: str, argument: str, value: Any, spatial: int) -> tuple[float, ...]:
    """Return a number for each spatial dimension, from a number or a sequence."""
    given = value if isinstance(value, (tuple, list)) else (value,)
    ratios = tuple([checks.check_number(op, argument, each) for each in given])
    if len(ratios) not in (1, spatial):
        raise arg_error(op, argument, f"one or {spatial} numbers", repr(value), "pass so many")
    return ratios * spatial if len(ratios) == 1 else ratios


def lone_planes(op: str, input: Tensor, argument: str = "input") -> Tensor:
    """Return a tensor (N, C, *size) or (C, *size)."""
    spatial = number_of(op)
    return checks.check_ndim(op, input, (spatial + 1, spatial + 2), argument)


def planes(op: str, input: Tensor) -> Tensor:
    """Return numbers in planes (N, C, *size) or (C, *size) that are not empty."""
    if 0 in lone_planes(op, input).shape[-1 - number_of(op) :]:
        expected, hint = "no size of 0 except that of the batch", "pass channels that hold elements"
        raise arg_error(op, "input", expected, input, hint)
    if input.dtype.kind == "b":
        raise arg_error(op, "input", "numbers", input.dtype, "convert it with .float()", DTypeError)
    return input


def planes_of(check: Callable[..., Any], says: str) -> Domain:
    """Return the domain of planes whose elements pass `check`."""
    line = f"{{x}} = planes(NAME, {check.__name__}(NAME, {{x}}))"
    raises = {
        "DTypeError": "When {x} is of the wrong kind.",
        "ShapeError": "When {x} has other dimensions or no elements.",
    }
    return Domain(f"{says}, {_SHAPED}", line, "", raises, (planes, check), "one", None, "x(2, 3)")


def sizes(says: str, extra: str = "", check: Any = check_sizes, **more: Any) -> Domain:
    """Return a domain of ints: an int for each dimension, or an int for all dimensions."""
    raises = {
        "ArgumentTypeError": "When {x} is no whole number.",
        "ShapeError": "When {x} has the wrong number of entries, or one is too small.",
    }
    words = {"says": says, "type": "int or tuple of ints", "raises": raises, **more}
    return attribute(check, extra, **words)


_SHAPED = "of shape (N, C, *size), or (C, *size) for one sample alone."
Planes = Annotated[Tensor, tensor(lone_planes, "", f"O{_SHAPED[1:]}")]
RealPlanes = Annotated[Tensor, planes_of(checks.real, "Real")]
FloatingPlanes = Annotated[Tensor, planes_of(checks.require_floating, "Floating or complex")]
_OMITTED = "{x} is None or (type({x}) in (tuple, list) and not {x})"
Sizes = Annotated[Any, sizes("One for each dimension, or one for all.")]
Stride = Annotated[Any, sizes("The step of the window; its own size by default.", quick=_OMITTED)]
Padding = Annotated[Any, sizes("How much is added on both sides.", ", 0")]
