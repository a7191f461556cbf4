"""Written by `python -m oneflow_lite.ops.index --write`; not by hand."""

from oneflow_lite.autograd import (
    forward_ad as forward_ad, function as function, functional as functional, graph as graph
)
from oneflow_lite.autograd.engine import anomaly as _anomaly
from oneflow_lite.autograd.engine.anomaly import (
    detect_anomaly as detect_anomaly,
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled, set_debug_mode as set_debug_mode,
    set_detect_anomaly as set_detect_anomaly
)
from oneflow_lite.autograd.engine.run import backward as backward, grad as grad
from oneflow_lite.autograd.function import Function as Function
from oneflow_lite.autograd.tools.gradcheck import (
    gradcheck as gradcheck, gradgradcheck as gradgradcheck
)
from oneflow_lite.autograd.tools.step_log import trace as trace
from oneflow_lite.compatibility import (
    autograd_profiler as _autograd_profiler, tensors as _tensors
)
from oneflow_lite.compatibility.tensors import Variable as Variable
from oneflow_lite.tensors import mode as _mode
from oneflow_lite.tensors.mode import (
    enable_grad as enable_grad, inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled
)

anomaly_mode = _anomaly
grad_mode = _mode
profiler = _autograd_profiler
variable = _tensors
