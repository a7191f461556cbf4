"""Expressions as calls: the tensors they may name, and how a text becomes a `Sample`."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.ops.exposure import load_all
from oneflow_lite.ops.registry import FUNCTORS
from tests.declared_samples import ARRAYS, FIXED, SCOPE, Sample
from tests.texts import function_of

_rng = np.random.default_rng(11)


def _share(*shape: int, dtype: Any = np.float32) -> Any:
    """Return numbers between 0.1 and 0.85, no two of them equal."""
    count = int(np.prod(shape))
    return (
        _rng.permutation(np.linspace(0.1, 0.85, max(count, 1))[:count]).reshape(shape).astype(dtype)
    )


def _signed(*shape: int, dtype: Any = np.float32) -> Any:
    """Return numbers of both signs, well away from 0, 0.5, 1 and from each other."""
    return (_share(*shape) * 4 - 2.0625).astype(dtype)


# What an expression may name, beside the arrays of declared samples. Three calls are made, with
# other values each (`Sample.arrays`).
TENSORS: dict[str, Any] = {
    "x": _share(2, 3),
    "y": _share(2, 3),
    "wide": _share(2, 3, dtype=np.float64),
    "half": _share(2, 3, dtype=np.float16),
    "u": _signed(2, 3),
    "v": _signed(3),
    "r": _share(3),
    "two": _signed(2),
    "s": _share(1)[0].reshape(()),
    "col": _share(2, 1),
    "m": _signed(3, 3),
    "tall": _share(3, 2),
    "fortran": np.asfortranarray(_signed(2, 3)),
    "c": _signed(2, 3, 4),
    "d": _share(2, 4, 3),
    "a": _share(2, 3, 3),
    "line": _signed(2, 2, 5),
    "line_kernel": _share(3, 2, 2),
    "plane": _signed(1, 2, 4, 4),
    "plane_kernel": _share(3, 2, 2, 2),
    "empty_rows": np.zeros((0, 3), np.float32),
    "z": _signed(2, 3).astype(np.complex64) * np.complex64(1 - 0.5j),
    "q": _share(2, 3).astype(np.complex64) * np.complex64(0.25 + 1j),
    "i": np.array([[5, -3, 2], [-7, 4, 6]]),
    "j": np.array([[2, 1, 3], [1, 4, 2]]),
    "small": np.array([[2, 1, 3], [1, 4, 2]], np.int8),
    "mask": np.array([[True, False, True], [False, True, True]]),
    "other_mask": np.array([[False, False, True], [True, True, False]]),
    "index": np.array([[0, 1, 1], [1, 0, 0]]),
    "pick": np.array([2, 0]),
    "rows": np.array([1, 0, 1]),
    "plus_minus": np.array([1, -1]),
    "signs": np.array([[1, -1, 1], [-1, -1, 1]]),
    "zero_one": np.array([[0.5, 0.0, 0.75], [0.0, 0.0, 0.25]], np.float32),
}


# What else it may name: the functors, and the library.
load_all("functors")
SCOPE.update({name: FUNCTORS.get(name) for name in FUNCTORS}, F=flow.nn.functional)


def tensor_names(expression: str) -> list[str]:
    """Return the tensors that an expression names, in the order of the table."""
    tree = ast.parse(expression, mode="eval")
    names = dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return [*(name for name in TENSORS if name in names), *(n for n in names if n in ARRAYS)]


def identifiers(expression: str) -> set[str]:
    """Return all words of an expression."""
    return {w.removeprefix("certified_") for w in re.findall(r"[A-Za-z_]\w*", expression)}


def sample(expression: str, *, gradients: bool = True, **more: Any) -> Sample:
    """Return an expression as a call of the tensors that it names, and of `more` arrays."""
    names = tensor_names(expression)
    arrays = {name: ARRAYS[name] if name in ARRAYS else TENSORS[name] for name in names} | more
    call = function_of(f"lambda {', '.join(arrays)}: ({expression})", SCOPE)
    grads = tuple(
        i
        for i, (name, x) in enumerate(arrays.items())
        if gradients and x.dtype.kind in "fc" and name not in FIXED
    )
    declared = any(name in ARRAYS for name in names)
    return Sample(expression, call, tuple(arrays.values()), grads, declared=declared)


def _call_of(expression: str, name: str) -> ast.Call | None:
    """Return the call of a functor that an expression consists of, or None."""
    node = ast.parse(expression, mode="eval").body
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
        return node
    return None


def in_place(expression: str, name: str) -> tuple[str, str | None] | None:
    """Return an expression with the twin of a functor: of a fresh tensor, and of an argument.

    >>> in_place("add(x, y, alpha=2)", "add")
    ('add_((x) * 1, y, alpha=2)', 'add_(x, y, alpha=2)')
    """
    call = _call_of(expression, name)
    if call is None:
        return None
    first, *rest = map(ast.unparse, [*call.args, *call.keywords])
    fresh = f"{name}_({', '.join([f'({first}) * 1', *rest])})"
    argument = (
        f"{name}_({', '.join([first, *rest])})" if first in TENSORS or first in ARRAYS else None
    )
    return fresh, argument


def takes_out(function: Callable[..., Any]) -> bool:
    """Return whether a functor has an `out` parameter."""
    return "out" in inspect.signature(function).parameters


def with_out(expression: str, name: str) -> Sample | None:
    """Return the call of an expression that writes to arguments of its result's shape."""
    if _call_of(expression, name) is None:
        return None
    plain = sample(expression, gradients=False)
    found = plain.call(*plain.tensors())
    parts = found if isinstance(found, tuple) else (found,)
    outs = {f"out{k}": np.zeros_like(part.numpy()) for k, part in enumerate(parts)}
    out = f"({', '.join(outs)},)" if isinstance(found, tuple) else "out0"
    return sample(f"{expression[:-1]}, out={out})", gradients=False, **outs)


@functools.cache
def reached(expressions: frozenset[str]) -> set[int]:
    """Return the identities of all functions that expressions name or take as attributes."""
    words = set().union(*map(identifiers, expressions))
    places = (flow, flow.nn.functional, flow.Tensor)
    found = [FUNCTORS.find(word) for word in words]
    found += [getattr(place, word, None) for word in words for place in places]
    return {id(function) for function in found if function is not None}
