"""`cuda.FloatTensor` and its kin: the typed tensors of CUDA devices."""

from __future__ import annotations

from typing import Any

from oneflow_lite.compatibility.tensors import typed
from oneflow_lite.tensors.tensor_methods import TYPE_NAMES


def __getattr__(name: str) -> Any:
    if name not in TYPE_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = typed(name, True)
    return globals()[name]
