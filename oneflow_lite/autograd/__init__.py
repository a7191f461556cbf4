"""The autograd API: `backward`, `grad`, grad modes.

The names are looked up when first used: the core modules of this package stand below Tensor, the
API above it, and importing the API here would close a circle.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oneflow_lite.autograd.engine import backward, grad
    from oneflow_lite.autograd.mode import (
        enable_grad,
        is_grad_enabled,
        no_grad,
        set_grad_enabled,
    )

_HOME = {
    "backward": "engine",
    "grad": "engine",
    "enable_grad": "mode",
    "is_grad_enabled": "mode",
    "no_grad": "mode",
    "set_grad_enabled": "mode",
}

__all__ = ["backward", "enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'oneflow_lite.autograd' has no attribute {name!r}")
    value = getattr(import_module(f"oneflow_lite.autograd.{_HOME[name]}"), name)
    globals()[name] = value
    return value
