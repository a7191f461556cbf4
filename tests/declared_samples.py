"""The samples of declared functors as calls that can be captured, such as `softmax(d2x3, dim=1)`.

An expression names its arrays, and everything else as a user would write it. It is run as it is,
for its gradients, written in place or with `out=`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from oneflow_lite.errors import NotDifferentiableError
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.functors.declaring.samples import samples
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.testing import Fixed
from tests.functors.meant import MEANT, meant
from tests.texts import function_of

Call = Callable[..., Any]


@attrs.frozen
class Sample:
    """A call that dispatches `op`; tensors of `inputs` at `differentiable` require a gradient."""

    op: str
    call: Call
    inputs: tuple[np.ndarray, ...]
    differentiable: tuple[int, ...]
    needs_cuda: bool = False
    control_flow: bool = False  # plain Python, unless a Program is captured
    declared: bool = False  # variants change what is differentiated, and keep the order

    def arrays(self, variant: int = 0) -> list[np.ndarray]:
        """Return the inputs, or for another variant other values of the same shape and domain."""
        factor = 1 + variant / 64  # exact, so that both precisions see the same numbers
        if self.declared:
            return [
                (x * factor).astype(x.dtype) if i in self.differentiable else x
                for i, x in enumerate(self.inputs)
            ]
        arrays = [np.flip(x, -1).copy("K") if variant % 2 and x.ndim else x for x in self.inputs]
        return [(x * factor).astype(x.dtype) if x.dtype.kind in "fc" else x for x in arrays]

    def tensors(self, variant: int = 0, device: str = "cpu") -> list[flow.Tensor]:
        """Return fresh tensors of the inputs."""
        tensors = [flow.tensor(x, device=device) for x in self.arrays(variant)]
        for i in self.differentiable:
            tensors[i].requires_grad_()
        return tensors


def gradient(forward: Call) -> Call:
    """Return a call of the gradients of `forward`, which are recorded themselves."""

    def call(*tensors: flow.Tensor) -> tuple[flow.Tensor, ...]:
        squares = [part.square().sum() for part in floats(forward(*tensors))]
        total = functools.reduce(flow.add, squares)
        inputs = [x for x in tensors if x.requires_grad]
        return flow.autograd.grad(total, inputs, create_graph=True, allow_unused=True)

    return call


def floats(result: Any) -> list[flow.Tensor]:
    """Return the real floating tensors of a result, complex ones seen as real."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    tensors = [part for part in parts if isinstance(part, flow.Tensor)]
    tensors = [flow.view_as_real(x) if x.dtype.kind == "c" else x for x in tensors]
    return [x for x in tensors if x.dtype.kind == "f"]


class Names(flow.Interpreter):
    """Collects the names of the ops that pass."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
        self.seen.add(op_expr.op_type_name)
        return self.inner.apply(op_expr, inputs, attrs)


# --- Expressions ---------------------------------------------------------------------------------

# The arrays that expressions name; those of FIXED are not differentiated.
ARRAYS: dict[str, np.ndarray] = {}
FIXED: set[str] = set()
# What else they name: functors, the library, and objects without a literal.
SCOPE: dict[str, Any] = {"flow": flow, "np": np, "inf": math.inf, "nan": math.nan}
_SINGLE = {"d": np.float32, "D": np.complex64}
_KINDS = {"d": "d", "f": "f", "D": "z", "F": "c", "l": "n", "?": "b"}


@functools.cache
def expressions(name: str, single: bool = False) -> tuple[str, ...]:
    """Return the samples of a declared functor, in double or in single precision.

    >>> expressions("leaky_relu")
    ('leaky_relu(d2x3)', 'leaky_relu(d2x3, 2.0)')
    """
    # What is given up to a sign or a phase is certified of what does not depend on it.
    called = f"certified_{name}" if name in MEANT else name
    SCOPE[called] = meant(name, FUNCTORS.get(name))
    if DECLARATIONS.get(name).has_twin:
        SCOPE[f"{name}_"] = FUNCTORS.get(f"{name}_")
    found = []
    for sample in samples(name):
        given = [_spelled(value, single) for value in sample.args]
        if name.endswith("_"):  # it writes its first argument
            given[0] = f"({given[0]}) * 1"
        given += [f"{word}={_spelled(value, single)}" for word, value in sample.kwargs.items()]
        found.append(f"{called}({', '.join(given)})")
    return tuple(dict.fromkeys(found))


def _spelled(value: Any, single: bool) -> str:
    if isinstance(value, (Fixed, np.ndarray)):
        return _named(value, single)
    if isinstance(value, (list, tuple)):
        inner = "".join(f"{_spelled(each, single)}, " for each in value)
        return f"[{inner[:-2]}]" if isinstance(value, list) else f"({inner.rstrip()})"
    if isinstance(value, np.dtype):
        return f"flow.{value}"
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        SCOPE[name] = value
        return name
    return repr(value)


def _named(array: Any, single: bool) -> str:
    """Return the name of an array: its kind and shape, and a letter where others have them too."""
    fixed = isinstance(array, Fixed)
    array = np.asarray(array.array if fixed else array)
    array = array.astype(_SINGLE.get(array.dtype.char, array.dtype)) if single else array
    fixed = fixed and array.dtype.kind in "fc"
    shape = "x".join(map(str, array.shape)) or "scalar"
    stem = f"{'k' if fixed else ''}{_KINDS.get(array.dtype.char, array.dtype.name)}{shape}"
    for letter in ("", *"abcdefghijklmnopqrstuvwxyz"):
        name = f"{stem}{letter}"
        known = ARRAYS.setdefault(name, array)
        if known.dtype == array.dtype and known.tobytes() == array.tobytes():
            FIXED.update([name] if fixed else [])
            return name
    raise AssertionError(f"more than 27 arrays are called {stem}")


def call_of(expression: str, op: str | None = None) -> Sample:
    """Return an expression as a call of the arrays that it names."""
    code = compile(expression, "<sample>", "eval")
    names = [name for name in code.co_names if name in ARRAYS]
    return Sample(
        op or expression,
        function_of(f"lambda {', '.join(names)}: ({expression})", SCOPE),
        tuple(ARRAYS[name] for name in names),
        tuple(i for i, n in enumerate(names) if ARRAYS[n].dtype.kind in "fc" and n not in FIXED),
        declared=True,
    )


# --- Samples of ops -------------------------------------------------------------------------------

MANY = 1  # samples of each op, and the first again in single precision


@functools.cache
def samples_of(op: str, family: str) -> tuple[Sample, ...]:
    """Return samples that dispatch an op: in a call, its backward pass, or that one's.

    The functor of that name is asked first, then those of its family, then all others.
    """
    for candidates in _candidates(op, family):
        for order in range(3):
            found = [e for e in candidates if op in dispatched(e, order)][:MANY]
            if found:
                made = [call_of(e, op) for e in found] + _single(op, found[0])
                return tuple(_of_order(sample, order) for sample in made)
    return ()


def _candidates(op: str, family: str) -> list[list[str]]:
    names = {op, op.partition("_grad")[0]}
    named = [d for d in map(DECLARATIONS.get, DECLARATIONS) if names & {d.op, d.name}]
    near = [d for d in map(DECLARATIONS.get, DECLARATIONS) if d.family == family]
    every = [d for d in map(DECLARATIONS.get, DECLARATIONS) if d.family != family]
    return [[e for d in part for e in expressions(d.name)] for part in (named, near, every)]


def _single(op: str, expression: str) -> list[Sample]:
    """Return the twin of an expression in single precision; none where that has another call."""
    name = expression.partition("(")[0].removeprefix("certified_")
    number = expressions(name).index(expression)
    twin = expressions(name, single=True)[number]
    return [call_of(twin, op)] if twin != expression else []


def _of_order(sample: Sample, order: int) -> Sample:
    """Return the call of a derivative, cut off where there is no further one."""
    call = sample.call
    for _ in range(order):
        call = gradient(call)
    if order == 2:
        try:
            gradient(call)(*sample.tensors())
        except NotDifferentiableError:
            last = call
            call = lambda *xs: tuple(y.detach() for y in floats(last(*xs)))  # noqa: E731
    return attrs.evolve(sample, call=call)


@functools.cache
def dispatched(expression: str, order: int) -> frozenset[str]:
    """Return the ops that an expression dispatches, or a derivative of it."""
    sample = call_of(expression)
    for _ in range(order):
        sample = attrs.evolve(sample, call=gradient(sample.call))
    if order and not sample.differentiable:
        return frozenset()
    with np.errstate(all="ignore"), flow.push_interpreter(Names()) as names:
        try:
            sample.call(*sample.tensors())
        except (RuntimeError, TypeError):  # there is no such derivative
            return frozenset()
    return frozenset(names.seen)
