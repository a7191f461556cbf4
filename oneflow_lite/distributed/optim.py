"""Optimizers on several processes, under PyTorch's name `distributed.optim`."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the optimizer, which stands above this package."""
    from importlib import import_module

    if name == "ZeroRedundancyOptimizer":
        return getattr(import_module(".".join(["oneflow_lite", "optim", "zero"])), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
