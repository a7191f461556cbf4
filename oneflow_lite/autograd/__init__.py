"""The autograd API: `backward`, `grad`, grad modes.

The names are looked up when first used. `rules` stands below the interpreter and the rest of this
room above it, so importing the API here would be circular.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oneflow_lite.autograd import function, functional, graph
    from oneflow_lite.autograd.engine.anomaly import (
        detect_anomaly,
        is_anomaly_check_nan_enabled,
        is_anomaly_enabled,
        set_debug_mode,
        set_detect_anomaly,
    )
    from oneflow_lite.autograd.engine.run import backward, grad
    from oneflow_lite.autograd.function import Function
    from oneflow_lite.autograd.tools.gradcheck import gradcheck, gradgradcheck
    from oneflow_lite.autograd.tools.step_log import trace
    from oneflow_lite.tensors.mode import (
        enable_grad,
        is_grad_enabled,
        no_grad,
        set_grad_enabled,
    )

_HOME = {
    "Function": "autograd.function",
    "backward": "autograd.engine.run",
    "grad": "autograd.engine.run",
    "gradcheck": "autograd.tools.gradcheck",
    "gradgradcheck": "autograd.tools.gradcheck",
    "detect_anomaly": "autograd.engine.anomaly",
    "is_anomaly_check_nan_enabled": "autograd.engine.anomaly",
    "is_anomaly_enabled": "autograd.engine.anomaly",
    "set_debug_mode": "autograd.engine.anomaly",
    "set_detect_anomaly": "autograd.engine.anomaly",
    "trace": "autograd.tools.step_log",
    "enable_grad": "tensors.mode",
    "is_grad_enabled": "tensors.mode",
    "no_grad": "tensors.mode",
    "set_grad_enabled": "tensors.mode",
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
        from oneflow_lite.ops.exposure import old_names

        return old_names(__name__)(name)
    value = getattr(import_module(f"oneflow_lite.{_HOME[name]}"), name)
    globals()[name] = value
    return value
