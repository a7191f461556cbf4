"""The two kinds of `F` that gradient rules get: functors on tensors, or kernels on arrays."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS, KERNELS

_SMALL = 4096  # elements of zeros that are made and added in the time that a part takes


class Part:
    """A gradient that is `dy` at an index and 0 elsewhere; its zeros are not made yet."""

    __slots__ = ("dy", "index", "shape")

    def __init__(self, dy: Any, index: Any, shape: tuple[int, ...]) -> None:
        self.dy, self.index, self.shape = dy, index, shape

    def whole(self) -> Any:
        """Return the array."""
        return NUMPY_F.getitem_grad(self.dy, index=self.index, shape=self.shape)


class KernelNamespace:
    """`F.relu_grad(dy, y)` runs the kernel on arrays; nothing is recorded.

    A kernel is looked up once and kept as an attribute. `on_tensors` is the F of rules that users
    wrote, which get tensors.
    """

    on_tensors: FunctorNamespace

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks whether this is a wrapper, an array, ...
            raise AttributeError(name)
        op = op_expr(name)
        kernel = op.on_cpu() if self._xp is np else op.kernel(self._xp)
        setattr(self, name, kernel)
        return kernel

    def put_back(self, dy: Any, *, index: Any, shape: tuple[int, ...]) -> Any:
        """Return zeros with `dy` at an index; a rule returns the result and does not read it."""
        return self.getitem_grad(dy, index=index, shape=shape)


class PartsNamespace(KernelNamespace):
    """The F of a task that sums the gradients of parts without making zeros for each part."""

    def put_back(self, dy: Any, *, index: Any, shape: tuple[int, ...]) -> Any:
        """Return zeros with `dy` at an index, as a Part where the zeros would be large."""
        if prod(shape) > _SMALL:
            return Part(dy, index, shape)
        return self.getitem_grad(dy, index=index, shape=shape)


class FunctorNamespace:
    """`F.relu_grad(dy, y)` dispatches on tensors, so that the backward pass is recorded itself.

    An op without a functor of its own gets one that hands its arguments on.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        functor = FUNCTORS.find(name)
        if functor is None:
            KERNELS.get(name)  # an unknown name raises here, with its neighbours
            functor = functools.partial(_pass_through, op_expr(name))
        setattr(self, name, functor)
        return functor

    @property
    def on_tensors(self) -> FunctorNamespace:
        """The namespace itself."""
        return self

    def put_back(self, dy: Any, *, index: Any, shape: tuple[int, ...]) -> Any:
        """Return zeros with `dy` at an index."""
        return self.getitem_grad(dy, index=index, shape=shape)


def _pass_through(op: Any, *inputs: Any, **attrs: Any) -> Any:
    return dispatch(op, inputs, attrs)


FUNCTORS_F = KernelNamespace.on_tensors = FunctorNamespace()
NUMPY_F = KernelNamespace(np)
NUMPY_PARTS = PartsNamespace(np)


def _forget(name: str) -> None:
    for namespace in (FUNCTORS_F, NUMPY_F, NUMPY_PARTS):
        vars(namespace).pop(name, None)


FUNCTORS.on_change.append(_forget)
KERNELS.on_change.append(_forget)
