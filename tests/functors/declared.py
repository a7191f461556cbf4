"""Calls of declared functors on both libraries, made from the samples of their declarations."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from oneflow_lite.functors.declaring.declare import DECLARATIONS, PREFIXED, Declaration
from oneflow_lite.functors.declaring.samples import samples
from oneflow_lite.testing import Fixed, Sample
from tests import texts


@attrs.frozen
class _Leaf:
    index: int


@attrs.frozen
class Call:
    """One sample of one functor: the arrays to differentiate, and what calls it with them."""

    declaration: Declaration
    sample: Sample
    number: int

    def __str__(self) -> str:
        return f"{self.declaration.name}-{self.number}"

    @property
    def arrays(self) -> list[np.ndarray]:
        """The floating and complex arrays that are not fixed."""
        found: list[np.ndarray] = []
        self._map(lambda a: found.append(a), lambda a: None)
        return found

    def run(self, lib: Any, function: Callable[..., Any], *leaves: Any, device: str = "cpu") -> Any:
        """Call a function of a library with its leaves in the place of the arrays."""
        given = iter(leaves)
        fixed = functools.partial(lib.tensor, device=device)
        args, kwargs = self._map(lambda a: next(given), fixed, lib)
        return function(*args, **kwargs)

    def written_out(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a plain function of the leaves, as a user would write the call."""
        scope: dict[str, Any] = {"function": function, "inf": np.inf, "nan": np.nan}

        def name(value: Any) -> str:
            scope[f"v{len(scope)}"] = value
            return f"v{len(scope) - 1}"

        def spell(value: Any) -> str:
            if isinstance(value, _Leaf):
                return f"leaf{value.index}"
            if isinstance(value, (list, tuple)):
                inner = "".join(f"{spell(v)}, " for v in value)
                return f"[{inner}]" if isinstance(value, list) else f"({inner})"
            named = isinstance(value, (flow.Tensor, np.dtype)) or value in (np.inf, -np.inf)
            return name(value) if named else repr(value)

        counter = iter(range(len(self.arrays)))
        args, kwargs = self._map(lambda a: _Leaf(next(counter)), flow.tensor)
        given = [spell(v) for v in args] + [f"{n}={spell(v)}" for n, v in kwargs.items()]
        leaves = ", ".join(f"leaf{i}" for i in range(len(self.arrays)))
        text = f"def call({leaves}):\n    return function({', '.join(given)})\n"
        exec(compile(text, texts.named(text), "exec"), scope)
        return scope["call"]

    def with_arrays(self, change: Callable[[np.ndarray], np.ndarray]) -> Call:
        """Return the call with other arrays in the place of those to differentiate."""
        args, kwargs = self._map(change, lambda a: Fixed(a))
        return attrs.evolve(self, sample=Sample(*args, **kwargs))

    def _map(self, leaf: Any, fixed: Any, lib: Any = flow) -> tuple[list[Any], dict[str, Any]]:
        def walk(value: Any) -> Any:
            if isinstance(value, Fixed):
                return fixed(np.asarray(value.array))
            if isinstance(value, np.ndarray):
                return leaf(value) if value.dtype.kind in "fc" else fixed(value)
            if isinstance(value, np.dtype) and lib is not flow:
                return getattr(lib, str(value))
            if isinstance(value, (list, tuple)):
                return type(value)(walk(v) for v in value)
            return value

        args = [walk(value) for value in self.sample.args]
        return args, {name: walk(value) for name, value in self.sample.kwargs.items()}


def calls() -> Iterator[Call]:
    """Yield every sample call of every declared functor."""
    for name in DECLARATIONS:
        declaration = DECLARATIONS.get(name)
        for number, sample in enumerate(samples(name)):
            yield Call(declaration, sample, number)


def counterpart(torch: Any, declaration: Declaration) -> Any:
    """Return PyTorch's function of the same name and place; None where it has none."""
    roots = {name: getattr(torch, name) for name in PREFIXED}
    roots |= {"flow": torch, "Tensor": torch.Tensor, "functional": torch.nn.functional}
    # What is documented there may have another signature at the top.
    for place, name in sorted(declaration.places, key=lambda each: each[0] != "functional"):
        found = getattr(roots.get(place), name, None)
        if callable(found):
            return found
    return None


def exposures() -> list[tuple[str, str, Any]]:
    """Return where users find functors: namespace, name there, and function; each function once."""
    # PyTorch documents most losses and layers there, and has others of these names at its top.
    roots = {"functional": flow.nn.functional, "flow": flow, "Tensor": flow.Tensor}
    roots |= {n: getattr(flow, n) for n in PREFIXED if n not in roots and hasattr(flow, n)}
    found: dict[tuple[Any, str], tuple[str, str, Any]] = {}
    for place, root in roots.items():
        for name in dir(root):
            value = None if name.startswith("_") else getattr(root, name, None)
            home = str(getattr(value, "__module__", ""))
            if isinstance(value, types.FunctionType) and ".functors." in home:
                found.setdefault((value, name), (place, name, value))
    return list(found.values())
