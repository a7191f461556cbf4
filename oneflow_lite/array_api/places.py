"""Functions of NumPy that only move elements, such as `np.insert`.

NumPy moves the places of the elements, and the tensors are taken by them. So each option is NumPy's
own, and `take` records the gradient of all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.array_api.adapter import ADAPTERS, as_tensors, functor, mapped
from oneflow_lite.array_api.elementwise import meet, tensor
from oneflow_lite.arrays.dtype import SCALAR_TYPES
from oneflow_lite.tensors.tensor import Tensor

# By function the parameters whose elements it moves, the first of them always given.
MOVES = {
    "block": "arrays",
    "choose": "choices",
    "delete": "arr",
    "insert": "arr values",
    "ravel": "a",
    "reshape": "a",
    "resize": "a",
    "rollaxis": "a",
    "take": "a",
}
MOVERS: dict[str, Callable[..., Any]] = {}  # `ADAPTERS` know fewer options of some of these


def moved(function: Callable[..., Any], *elements: Any, dtype: Any = None) -> Tensor:
    """Return what a function that only moves elements makes of tensors and nests of tensors.

    It is called with places in their stead; where it fills in a 0 of its own, the result has a 0.
    """
    found: list[Any] = []
    mapped(elements, _is_element, found.append)
    if dtype is None:
        tensors = meet("take", *found)
    else:
        tensors = [tensor(x, dtype).to(found[0].device) for x in found]
    ends = np.cumsum([x.numel() for x in tensors]).tolist()
    last_first = list(zip(ends, tensors, strict=True))[::-1]

    def places_of(_: Any) -> Any:
        end, x = last_first.pop()
        return np.arange(end - x.numel(), end).reshape(x.shape) + 1

    places = np.asarray(function(*mapped(elements, _is_element, places_of)))
    flat = [functor("flatten")(x) for x in tensors]
    if not places.all():
        flat.append(flat[0].new_zeros(1))
    source = functor("cat")(flat, 0) if len(flat) > 1 else flat[0]
    return functor("take")(source, functor("from_numpy")(places - 1).to(source.device))


def _is_element(value: Any) -> bool:
    return isinstance(value, (Tensor, *SCALAR_TYPES))


def _mover(path: str, names: list[str]) -> Callable[..., Any]:
    function = getattr(np, path)
    signature = inspect.signature(function)

    def run(*args: Any, **options: Any) -> Tensor:
        arguments = signature.bind(*as_tensors(args), **as_tensors(options)).arguments
        out = arguments.pop("out", None)
        elements = [arguments.pop(name) for name in names if name in arguments]
        others = mapped(arguments, lambda x: isinstance(x, Tensor), lambda x: x.numpy())

        def move(*places: Any) -> Any:
            bound = inspect.BoundArguments(
                signature, {**dict(zip(names, places, strict=False)), **others}
            )
            return function(*bound.args, **bound.kwargs)

        # NumPy casts what it inserts.
        dtype = getattr(elements[0], "dtype", None) if path == "insert" else None
        result = moved(move, *elements, dtype=dtype)
        return result if out is None else out.copy_(result)

    return run


for _path, _names in MOVES.items():
    MOVERS[_path] = _mover(_path, _names.split())
    ADAPTERS.setdefault(_path, MOVERS[_path])
