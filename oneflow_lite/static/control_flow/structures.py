"""The results of branches and bodies: nested containers of tensors, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError, arg_error
from oneflow_lite.functors.creation import tensor
from oneflow_lite.static.ir.tree import (
    Container,
    Leaf,
    NonTensor,
    flatten,
    is_plain,
    same,
    unflatten,
)
from oneflow_lite.tensors.tensor import Tensor

_NUMBERS = (bool, int, float, complex)


@attrs.define(eq=False)
class Result:
    """The result of a function, taken apart: its structure, and the tensors in order."""

    spec: Any
    tensors: list[Tensor]

    @classmethod
    def of(cls, value: Any) -> Result:
        """Take a value apart."""
        tensors: list[Tensor] = []
        return cls(flatten(value, tensors), tensors)


def numbers_to_tensors(results: Sequence[Result], which: int) -> None:
    """Make tensors of the numbers in a result that differ from result to result.

    The other results must be as returned, or have gone through this function before.
    """
    result = results[which]
    tensors: list[Tensor] = []
    others = [other.spec for other in results]
    result.spec = _converted(result.spec, others, result.tensors, tensors)
    result.tensors = tensors


def _same_value(a: Any, b: Any) -> bool:
    return same(a, b) if is_plain(a) else type(a) is type(b) and bool(a == b)


def _converted(spec: Any, others: list[Any], before: list[Tensor], tensors: list[Tensor]) -> Any:
    if isinstance(spec, Leaf):
        tensors.append(before[spec.position])
        return Leaf(len(tensors) - 1)
    if isinstance(spec, NonTensor):
        equal = all(isinstance(o, NonTensor) and _same_value(o.value, spec.value) for o in others)
        if equal or type(spec.value) not in _NUMBERS:
            return spec
        tensors.append(tensor(spec.value))
        return Leaf(len(tensors) - 1)
    children = []
    for i, child in enumerate(spec.children):
        beside = [
            o.children[i] if isinstance(o, Container) and len(o.children) > i else o for o in others
        ]
        children.append(_converted(child, beside, before, tensors))
    return Container(spec.kind, tuple(children), spec.keys)


def numbers_as_tensors(value: Any) -> Any:
    """Return a loop variable with tensors in place of numbers."""
    leaves: list[Tensor] = []
    spec = flatten(value, leaves)
    return _with_tensors(spec, leaves)


def _with_tensors(spec: Any, leaves: list[Tensor]) -> Any:
    if isinstance(spec, Leaf):
        return leaves[spec.position]
    if isinstance(spec, NonTensor):
        return tensor(spec.value) if type(spec.value) in (bool, int, float) else spec.value
    children = [_with_tensors(child, leaves) for child in spec.children]
    return unflatten(type(spec)(spec.kind, tuple(map(NonTensor, children)), spec.keys), no_tensor)


def no_tensor(position: int) -> Any:
    """Stand for the leaves of a structure that has none."""
    raise AssertionError(position)


def check_same_results(op: str, labels: Sequence[str], results: Sequence[Result]) -> None:
    """Check that functions returned the same structure of tensors of the same kinds.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError
        Naming the function and the place in its result.
    """
    for label, result in zip(labels[1:], results[1:], strict=True):
        _compare(op, labels[0], label, results[0], result, results[0].spec, result.spec, "")


def _compare(
    op: str, first: str, label: str, one: Result, other: Result, a: Any, b: Any, at: str
) -> None:
    if isinstance(a, Leaf) and isinstance(b, Leaf):
        _compare_tensors(op, first, label, one.tensors[a.position], other.tensors[b.position], at)
        return
    fits = type(a) is type(b)
    if fits and isinstance(a, Container):
        fits = a.kind is b.kind and a.keys == b.keys and len(a.children) == len(b.children)
    elif fits:
        fits = _same_value(a.value, b.value)
    if not fits:
        raise arg_error(
            op,
            label,
            expected=f"a result{at} of the structure that {first} has, {_told(a)}",
            got=_told(b),
            hint="use the same tuples, lists and dicts of tensors in all of them",
            kind=ArgumentError,
        )
    if isinstance(a, Container):
        for i, (x, y) in enumerate(zip(a.children, b.children, strict=True)):
            where = repr(a.keys[i]) if a.keys else i
            _compare(op, first, label, one, other, x, y, f"{at or ' at '}[{where}]")


def _compare_tensors(op: str, first: str, label: str, x: Tensor, y: Tensor, at: str) -> None:
    for what, kind in (("shape", ShapeError), ("dtype", DTypeError)):
        expected, got = getattr(x, what), getattr(y, what)
        if expected != got:
            raise arg_error(
                op,
                label,
                expected=f"a tensor{at} of {what} {expected}, as {first} has",
                got=got,
                hint="convert the result so that all agree",
                kind=kind,
            )


def _told(spec: Any) -> str:
    if isinstance(spec, Leaf):
        return "a tensor"
    if isinstance(spec, NonTensor):
        return repr(spec.value)
    keys = f" with the keys {list(spec.keys)}" if spec.keys else f" of {len(spec.children)}"
    return f"a {spec.kind.__name__}{keys}"
