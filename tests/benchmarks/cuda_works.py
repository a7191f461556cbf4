"""The works on a CUDA device: the same scripts, with arrays and modules made there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tests.benchmarks.works import COMPILED, OURS, PACKAGES

Step = Callable[[], list[Any]]
SIDES = {
    OURS: "oneflow_lite",
    COMPILED: "flow.compile",
    "torch": "PyTorch",
    "torch.compile": "torch.compile",
}
POINTWISE = 1 << 26  # elements of the work that shows how near a fused loop comes to a copy


class OnCuda:
    """A library whose `from_numpy` gives tensors on the CUDA device."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)

    def from_numpy(self, array: Any) -> Any:
        """Copy an array of NumPy's to the device."""
        return self._lib.from_numpy(array).to("cuda")


def library(side: str) -> Any:
    """Return a side's package; what it makes from now on is on the device."""
    lib = importlib.import_module(PACKAGES.get(side, side))
    lib.set_default_device("cuda")
    return lib


def build(side: str, name: str) -> Step:
    """Return one iteration of the work `name` on `side`."""
    lib = library(side)
    works = importlib.import_module("tests.benchmarks.tensor_works")
    return _compiled(side, lib, getattr(works, name)(OnCuda(lib)))


def _compiled(side: str, lib: Any, step: Step) -> Step:
    return lib.compile(step) if side in (COMPILED, "torch.compile") else step  # type: ignore[no-any-return]


def copying(side: str, elements: int = POINTWISE) -> Step:
    """Return a copy of float32 numbers, which reads and writes each once."""
    lib = library(side)
    x = lib.rand(elements)
    return lambda: [x.clone()]


def pointwise(side: str, elements: int = POINTWISE) -> Step:
    """Return GELU's forward of elementary ops, which should read and write each number once."""
    lib = library(side)
    x = lib.rand(elements)

    def step() -> list[Any]:
        return [0.5 * x * (1 + lib.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))]

    return _compiled(side, lib, step)
