"""einops on tensors: a backend that einops finds among the subclasses of its own base class.

The class is made when einops is imported, before or after this package, and not otherwise.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_BACKENDS = "einops._backends"
_registered: list[Any] = []


def register(backends: ModuleType) -> None:
    """Define the backend class, where einops finds it among the subclasses of its base."""

    class FlowBackend(backends.AbstractBackend):  # type: ignore[misc,name-defined]
        framework_name = "oneflow_lite"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Tensor:
            return make_tensor(x)

        def to_numpy(self, x: Tensor) -> Any:
            return x.detach().numpy()

        def arange(self, start: int, stop: int) -> Any:
            return FUNCTORS.get("arange")(start, stop)

        def transpose(self, x: Tensor, axes: Any) -> Any:
            return x.permute(axes)

        def reduce(self, x: Tensor, operation: str, axes: Any) -> Any:
            name = {"min": "amin", "max": "amax"}.get(operation, operation)
            if name in ("amin", "amax", "sum", "mean"):
                return getattr(x, name)(tuple(axes))
            for axis in sorted(axes, reverse=True):
                x = getattr(x, name)(axis)
            return x

        def stack_on_zeroth_dimension(self, tensors: Any) -> Any:
            return FUNCTORS.get("stack")(tensors)

        def add_axis(self, x: Tensor, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Any:
            sizes = [-1] * n_axes
            for position, length in sorted(pos2len.items()):
                x = x.unsqueeze(position)
                sizes[position] = length
            return x.expand(sizes)

        def tile(self, x: Tensor, repeats: Any) -> Any:
            return x.repeat(repeats)

        def concat(self, tensors: Any, axis: int) -> Any:
            return FUNCTORS.get("cat")(tensors, axis)

        def is_float_type(self, x: Tensor) -> bool:
            return x.is_floating_point()

        def einsum(self, pattern: str, *x: Tensor) -> Any:
            return FUNCTORS.get("einsum")(pattern, *x)

    _registered.append(FlowBackend)  # a class holds its subclasses weakly


class _WhenImported(MetaPathFinder):
    """Waits for the import of einops' backends; finds nothing itself."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _BACKENDS or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # or find_spec below would ask this finder again
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            run(module)
            register(module)

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def watch() -> None:
    """Register the backend now if einops is imported, or else when it is."""
    if _BACKENDS in sys.modules:
        register(sys.modules[_BACKENDS])
    else:
        sys.meta_path.insert(0, _WhenImported())
