"""Other spellings of arguments: NumPy's names, numbers as 0-d tensors, masks of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

# NumPy's names of parameters, which PyTorch's functions take as well.
NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}
NOTHING: Any = type("nothing", (), {"__repr__": lambda self: "nothing"})()  # no argument was given


def one_of(op: str, argument: str, value: Any, default: Any, other: str, given: Any) -> Any:
    """Return the value given under an argument's other name; raise where both names were used."""
    if value is default or (not isinstance(value, Tensor) and value == default):
        return given
    expected = f"one of {argument} and {other}"
    raise arg_error(op, other, expected, "both", "leave one out", ArgumentTypeError)


def old_order(
    op: str, function: Callable[..., Any], args: tuple[Any, ...], *, out: Any = None, **factors: Any
) -> Any:
    """Call a function whose factors were given by their places, between the tensors, and warn.

    PyTorch's older order is `addmm(beta, input, alpha, mat1, mat2)`, where `alpha` may be left out,
    and `add(input, alpha, other)`. The tensor of a method stands in front of them all.
    """
    first, *rest = function.__code__.co_varnames[: function.__code__.co_argcount]
    before = ["beta"] if "beta" in factors and not isinstance(args[0], Tensor) else []
    between = [name for name in factors if name not in before]
    if len(args) == len(rest) + 2 and "alpha" in between and "beta" in factors:
        between.remove("alpha")
    names = [*before, first, *between, *rest]
    given = dict(zip(names, args, strict=False))
    usual = function.__kwdefaults__ or {}
    twice = [n for n in given if n in factors and factors[n] != usual[n]]
    if len(args) != len(names) or twice:
        got = f"{twice[0]} twice" if twice else f"{len(args)} arguments"
        expected, hint = f"({', '.join(names)}) by place", "give the factors by name"
        raise arg_error(op, first, expected, got, hint, ArgumentTypeError)
    warn_caller(f"{op}({', '.join(names)}) is deprecated; give the factors by name")
    return function(**given, **({} if out is None else {"out": out}))


def as_number(value: Any) -> Any:
    """Return a NumPy scalar, 0-d array or 0-d tensor as a number; any other value as it is.

    A tensor that requires a gradient stays a tensor: its gradient would be lost.
    """
    if isinstance(value, (np.generic, np.ndarray, Tensor)) and not value.ndim:
        return value if getattr(value, "requires_grad", False) else value.item()
    return value


def byte_mask(op: str, mask: Tensor) -> Tensor:
    """Return a mask of dtype uint8 as a mask of bools, and warn that PyTorch will drop uint8."""
    warn_caller(f"{op}(): a mask of dtype uint8 is deprecated; use one of bools, as of .bool()")
    result: Tensor = mask.bool()
    return result
