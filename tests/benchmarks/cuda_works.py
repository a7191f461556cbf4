"""The works on a CUDA device: the same scripts, with arrays and modules made there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tests.benchmarks.works import COMPILED, OURS, PACKAGES

SIDES = (OURS, COMPILED, "torch", "torch.compile")


class OnCuda:
    """A library whose `from_numpy` gives tensors on the CUDA device."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)

    def from_numpy(self, array: Any) -> Any:
        """Copy an array of NumPy's to the device."""
        return self._lib.from_numpy(array).to("cuda")


def build(side: str, name: str) -> Callable[[], list[Any]]:
    """Return one iteration of the work `name` on `side`; modules are made on the device."""
    works = importlib.import_module("tests.benchmarks.tensor_works")
    lib = importlib.import_module(PACKAGES.get(side, side))
    lib.set_default_device("cuda")
    try:
        step: Callable[[], list[Any]] = getattr(works, name)(OnCuda(lib))
    finally:
        lib.set_default_device("cpu")
    return lib.compile(step) if side in (COMPILED, "torch.compile") else step  # type: ignore[no-any-return]
