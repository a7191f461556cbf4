"""`torch.optim.optimizer`'s helpers and `torch.optim._functional`, for optimizers of packages.

An update is one op here, whatever the device: nothing is fused or done list by list by default.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from oneflow_lite.arrays.device import on_device
from oneflow_lite.arrays.dtype import float32, float64, get_default_dtype
from oneflow_lite.compatibility.helpers import grouped_tensors
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.optim import lr_scheduler
from oneflow_lite.optim.optimizer import OFF_AT_0, Parameters, filled, new_number, number
from oneflow_lite.tensors.mode import no_grad, set_grad_enabled
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_params_t = params_t = ParamsT = Parameters
StateDict: TypeAlias = dict[str, Any]
OptimizerPreHook = OptimizerPostHook = Callable[..., Any]
_DOCUMENTED = "params foreach fused maximize capturable differentiable"
globals().update({f"_{name}_doc": f"{name}: see `Optimizer`" for name in _DOCUMENTED.split()})


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step that records gradients where the optimizer's `differentiable` says so."""

    @functools.wraps(step)
    def in_mode(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return step(self, *args, **kwargs)

    return in_mode


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Any = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that changes nothing: there is no dynamo."""
    return lambda function: function


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda"]


_get_value = number


def _stack_if_compiling(x: Any) -> Any:
    return x


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _to_scalar(x: Any) -> Any:
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    return float64 if get_default_dtype() == float64 and not is_fused else float32


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace complex parameters and what belongs to them by views on real numbers."""
    real = FUNCTORS.get("view_as_real")
    for i, param in enumerate(params):
        if param.is_complex():
            for each in (params, *state_and_grads):
                each[i] = real(each[i])


EPOCH_DEPRECATION_WARNING = lr_scheduler.EPOCH_WARNING
_warn_get_lr_called_within_step = lr_scheduler.LRScheduler._check_within_step


def _enable_get_lr_call(scheduler: lr_scheduler.LRScheduler) -> Any:
    return lr_scheduler.with_flag(scheduler, "_get_lr_called_within_step")


def _nothing(self: Any) -> None:
    """Do nothing: a step reads no state of a CUDA graph."""


METHODS = {
    "_cuda_graph_capture_health_check": _nothing,
    "_group_tensors_by_device_and_dtype": staticmethod(grouped_tensors),
    "_patch_step_function": _nothing,
}

# --- Functional forms -----------------------------------------------------------------------------

# The lists of state in PyTorch's order, where it is not that of our update op.
_LISTS = {"rmsprop": "square_avg grad_avg momentum_buffer step", "sgd": "momentum_buffer"}
# Options that pick a kernel of PyTorch's or describe its gradients; nothing here depends on them.
_INERT = "foreach fused capturable has_complex has_sparse_grad amsgrad centered".split()


@functools.cache
def _functional(name: str) -> Callable[..., None]:
    """Return PyTorch's function of lists that takes a step of an optimizer.

    It takes `params`, `grads`, and a list for each state; options are keywords.
    """
    op = f"{'adam' if name == 'adamw' else name}_update"
    schema = op_expr(op).schema
    first = schema.inputs.index("lr" if "lr" in schema.inputs else "etaminus")
    kept, options = schema.inputs[2:first], schema.inputs[first:]
    order = _LISTS.get(name, " ".join(kept)).split()

    @no_grad()
    def update(params: list[Tensor], grads: list[Tensor], *lists: Any, **given: Any) -> None:
        attrs = {key: given[key] for key in schema.attrs if key in given}
        if name == "adamw":
            attrs["decoupled_weight_decay"] = True
        unused = {**given}
        for key in (*options, *attrs, *_INERT):
            unused.pop(key, None)
        wrong = [key for key, value in unused.items() if value]  # `differentiable`, `found_inf`
        absent = [key for key in options if key not in given]
        if len(lists) != len(order) or wrong or absent:
            got = f"{len(lists)} lists and {', '.join(given) or 'no options'}"
            expected = f"a list each of {', '.join(order)}, and {', '.join(options)} as keywords"
            raise arg_error(name, "options", expected, got, "use the class", ArgumentError)
        states = dict(zip(order, lists, strict=True))
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            state = {key: states[key][i] if states.get(key) else None for key in kept}
            if name == "sgd" and given["momentum"]:
                # A first step takes the gradient whole: the op knows it by the count.
                state["step"] = new_number(param, float(state["momentum_buffer"] is not None))
                if state["momentum_buffer"] is None:
                    state["momentum_buffer"] = lists[0][i] = filled(param, 0.0)
            scalars: list[Tensor | None] = []
            with on_device(param.device) as xp:
                for key in options:
                    off = key in OFF_AT_0 and not given[key]
                    value = None if off else xp.asarray(number(given[key]), dtype=float64)
                    scalars.append(None if value is None else make_tensor(value))
            FUNCTORS.get(op)(param, grad, *state.values(), *scalars, **attrs)

    update.__name__ = update.__qualname__ = name
    return update


FUNCTIONS = "adadelta adafactor adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd"


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS.split():
        return _functional(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
