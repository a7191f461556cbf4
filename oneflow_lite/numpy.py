"""NumPy's names with tensors for arrays, in the place of `autograd.numpy` or `jax.numpy`.

NumPy's own functions take tensors already, where NumPy asks an argument for its way. Here they are
asked in lists, too, and by `array`, `full`, `vectorize`, `r_` and `c_`. Every array that a function
returns becomes a tensor, of NumPy's dtype.

>>> import oneflow_lite as flow
>>> import oneflow_lite.numpy as np
>>> x = flow.tensor([1.0, 2.0], requires_grad=True)
>>> np.array([x[1], 3.0])
tensor([2., 3.], grad_fn=<stack_backward>)
>>> np.linspace(0, 1, 3)
tensor([0.0000, 0.5000, 1.0000], dtype=float64)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as _np

from oneflow_lite.array_api import functions as _functions
from oneflow_lite.array_api.adapter import as_tensors, functor, mapped, tensors_in
from oneflow_lite.array_api.places import moved
from oneflow_lite.arrays.dtype import SUPPORTED


def __getattr__(name: str) -> Any:
    return _taken(_np, name)


def __dir__() -> list[str]:
    return dir(_np)


class _Part:
    """A module of NumPy, such as `np.random`."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _taken(self._module, name)

    def __dir__(self) -> list[str]:
        return dir(self._module)


def _taken(module: ModuleType, name: str) -> Any:
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return _Part(value)
    if isinstance(value, (type, _np.ufunc)) or not callable(value):
        return value

    @functools.wraps(value)
    def function(*args: Any, **options: Any) -> Any:
        tensors = tensors_in((args, options))
        if tensors and value.__module__:  # no random numbers
            types = [type(x) for x in tensors]
            return tensors[0].__array_function__(value, types, args, options)
        return _with_tensors(value(*args, **options))

    return function


def _with_tensors(result: Any) -> Any:
    return mapped(
        result,
        lambda x: isinstance(x, _np.ndarray) and x.dtype in SUPPORTED,
        lambda x: functor("from_numpy")(x),
    )


class vectorize(_np.vectorize):
    """`numpy.vectorize`, which calls a function with 0-d tensors and joins its results."""

    def _vectorize_call(self, func: Callable[..., Any], args: Sequence[Any]) -> Any:
        if not tensors_in(args) or self.signature is not None:
            return _with_tensors(super()._vectorize_call(func, args))  # type: ignore[misc]
        arrays = _functions.broadcast_arrays(*as_tensors(args))
        elements = zip(*[functor("flatten")(x) for x in arrays], strict=True)
        results = [func(*each) for each in elements]
        several = isinstance(results[0], tuple)
        columns = zip(*results, strict=True) if several else [results]
        joined = [_functions.stack(column).reshape(arrays[0].shape) for column in columns]
        return tuple(joined) if several else joined[0]


class _Joiner:
    """`numpy.r_` or `numpy.c_`: the entries in brackets, joined."""

    def __init__(self, joiner: Any) -> None:
        self._joiner = joiner

    def __getitem__(self, key: Any) -> Any:
        given = key if isinstance(key, tuple) else (key,)
        parts = [_np.r_[part] if isinstance(part, slice) else part for part in given]
        return moved(lambda *places: self._joiner[places], *as_tensors(parts))


r_, c_ = _Joiner(_np.r_), _Joiner(_np.c_)
