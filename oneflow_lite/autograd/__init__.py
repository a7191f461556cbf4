"""The autograd API: `backward`, `grad`, grad modes.

The names are looked up when first used: the core modules of this package stand below Tensor, the
API above it, so importing the API here would be circular.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oneflow_lite.autograd import function, functional, graph
    from oneflow_lite.autograd.anomaly import (
        detect_anomaly,
        is_anomaly_check_nan_enabled,
        is_anomaly_enabled,
        set_debug_mode,
        set_detect_anomaly,
    )
    from oneflow_lite.autograd.engine import backward, grad
    from oneflow_lite.autograd.function import Function
    from oneflow_lite.autograd.gradcheck import gradcheck, gradgradcheck
    from oneflow_lite.autograd.mode import (
        enable_grad,
        is_grad_enabled,
        no_grad,
        set_grad_enabled,
    )
    from oneflow_lite.autograd.step_log import trace

_HOME = {
    "Function": "function",
    "backward": "engine",
    "grad": "engine",
    "gradcheck": "gradcheck",
    "gradgradcheck": "gradcheck",
    "detect_anomaly": "anomaly",
    "is_anomaly_check_nan_enabled": "anomaly",
    "is_anomaly_enabled": "anomaly",
    "set_debug_mode": "anomaly",
    "set_detect_anomaly": "anomaly",
    "trace": "step_log",
    "enable_grad": "mode",
    "is_grad_enabled": "mode",
    "no_grad": "mode",
    "set_grad_enabled": "mode",
}
_MODULES = {"function", "functional", "graph"}

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "set_debug_mode",
    "set_detect_anomaly",
    "set_grad_enabled",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"oneflow_lite.autograd.{name}")
    if name not in _HOME:
        from oneflow_lite.exposure import old_names

        return old_names(__name__)(name)
    value = getattr(import_module(f"oneflow_lite.autograd.{_HOME[name]}"), name)
    globals()[name] = value
    return value
