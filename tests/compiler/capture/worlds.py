"""Runs a scripted case in two worlds, plain and compiled, and compares all that can be seen.

A case is a generator function: it takes `compiled` (which returns the function as it is, or
compiles it), builds models and tensors of its own, and yields after every call what it got and
what the call may have changed. Both worlds must yield the same.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Generator
from types import ModuleType
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.errors import CaptureError

Compiler = Callable[..., Any]
Case = Callable[[Compiler], Generator[Any, None, None]]


def cases_of(module: ModuleType) -> list[Case]:
    """Return the cases that a module defines."""
    functions = [f for f in vars(module).values() if inspect.isgeneratorfunction(f)]
    return [f for f in functions if inspect.getfullargspec(f).args == ["compiled"]]


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function; return the names of the classes of what it raises, instead."""
    try:
        return function(*args, **kwargs)
    except CaptureError:
        raise
    except Exception as error:
        return ["raised", type(error).__name__]


def tensor(*values: float, **options: Any) -> flow.Tensor:
    """Return a float64 vector."""
    return flow.tensor(values, dtype=flow.float64, **options)


def leaf(*values: float) -> flow.Tensor:
    """Return a float64 vector that requires a gradient."""
    return tensor(*values, requires_grad=True)


def snapshot(thing: Any) -> Any:
    """Return what can be seen of a result or of the world's state, in plain values."""
    if isinstance(thing, flow.Tensor):
        data = thing.detach().cpu().numpy()
        seen = [str(data.dtype), data.shape, data.strides, data.tobytes()]
        return [*seen, thing.requires_grad, thing.is_leaf, snapshot(thing.grad)]
    if isinstance(thing, flow.nn.Module):
        members = [*thing.named_parameters(), *thing.named_buffers()]
        return {name: (snapshot(x), x._version) for name, x in members}
    if isinstance(thing, flow.optim.Optimizer):
        return snapshot(thing.state_dict())
    if isinstance(thing, np.ndarray):
        return [str(thing.dtype), thing.shape, thing.tobytes()]
    if isinstance(thing, dict):
        return [(str(key), snapshot(value)) for key, value in thing.items()]
    if isinstance(thing, (list, tuple)):
        return [type(thing).__name__, *map(snapshot, thing)]
    if isinstance(thing, (bool, int, float, complex, str, type(None))):
        return (type(thing).__name__, repr(thing))
    return type(thing).__name__


def run(case: Case, compiled: Compiler) -> Generator[Any, None, None]:
    """Run a case from the same seeds; give a snapshot after every call."""
    flow.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    for seen in case(compiled):
        yield snapshot(seen)


def plain(function: Any, **_: Any) -> Any:
    """Stand in for `flow.compile` in the world that is not compiled."""
    return function


def check(case: Case, compiler: Compiler) -> None:
    """Hold that every call is seen to do what the plain one does."""
    expected = list(run(case, plain))
    got = run(case, compiler)
    for i, (want, have) in enumerate(zip(expected, got, strict=True)):
        assert have == want, f"{case.__name__}, what call {i} left:\n{have}\nnot as eager:\n{want}"


def check_or_refused(case: Case) -> None:
    """Hold the same of `fullgraph=True`, up to where capture is refused."""
    try:
        check(case, functools.partial(flow.compile, fullgraph=True))
    except CaptureError:
        return


def remembering(function: Any, **_: Any) -> Any:
    """Compile badly: run the first call, and give its result ever after."""
    results: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not results:
            results.append(function(*args, **kwargs))
        return results[0]

    return call


class Box:
    """A holder of whatever is set on it."""

    rate = 2.0

    def __init__(self, **items: Any) -> None:
        self.__dict__.update(items)

    def scaled(self, x: Any) -> Any:
        return x * self.scale

    @property
    def doubled(self) -> Any:
        return self._hidden * 2
