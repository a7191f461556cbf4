"""Mixed precision: `autocast`, which rounds the operands of products, and `GradScaler`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator, ExitStack
from typing import Any

from oneflow_lite.arrays.dtype import DType, as_dtype, float16, float32, int64
from oneflow_lite.arrays.dtype_object import DTYPES, bfloat16, dtype as DTypeObject
from oneflow_lite.errors import ArgumentError, GradientError, arg_error
from oneflow_lite.interop import cuda
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.interpreter.stack import Interpreter, push_interpreter
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import local, no_grad
from oneflow_lite.tensors.shown import Shown
from oneflow_lite.tensors.tensor import Tensor

_CAST = op_expr("cast")
_PRODUCTS = frozenset("matmul matmul_nt matmul_tn dot attention".split())
_active: list[autocast] = []


class _Rounding(Interpreter):
    """Computes products and convolutions of float32 tensors in a half dtype, and casts back."""

    def __init__(self, device_type: str, dtype: DType) -> None:
        self.device_type, self.dtype = device_type, dtype

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        name = op_expr.op_type_name
        is_product = name in _PRODUCTS or name.startswith("conv")
        factors = [x for x in inputs if x is not None and x._data.dtype.kind not in "biu"]
        if not (is_product and factors and all(map(self._is_wide, factors))):
            return super().apply(op_expr, inputs, attrs)
        # The casts are ops, so that gradients are cast on their way back, too.
        half, single = {"dtype": self.dtype}, {"dtype": float32}
        rounded = [dispatch1(_CAST, x, half) if self._is_wide(x) else x for x in inputs]
        made = super().apply(op_expr, tuple(rounded), attrs)
        if isinstance(made, tuple):  # sums are float32 already
            return tuple([y if self._is_wide(y) else dispatch1(_CAST, y, single) for y in made])
        return dispatch1(_CAST, made, single)

    def _is_wide(self, x: Any) -> bool:
        return x is not None and x._data.dtype is float32 and x.device.type == self.device_type


class autocast(Shown, ContextDecorator):
    """Compute matrix products and convolutions of float32 tensors in a half dtype.

    Results are float32 again, where PyTorch's stay in the half dtype. On the CPU the block does
    nothing unless a half dtype is named. On CUDA the dtype is float16 by default; without a CUDA
    device the block warns and does nothing. Raises `ArgumentError` for another device type.

    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1.0001]])
    >>> with flow.autocast("cpu", dtype=flow.float16):
    ...     print(x @ flow.ones(1, 1), x * 1)
    tensor([[1.]]) tensor([[1.0001]])
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        name = str(device_type).partition(":")[0]
        if name not in ("cpu", "cuda"):
            raise arg_error(
                "autocast",
                "device_type",
                expected="'cpu' or 'cuda'",
                got=repr(device_type),
                hint="name one of these",
                kind=ArgumentError,
            )
        self.device, self._enabled = name, enabled
        if name == "cuda" and enabled and not cuda.is_available():
            warn_caller("autocast(): there is no CUDA device; nothing is done")
            self._enabled = False
        self.fast_dtype = None if dtype is None else as_dtype("autocast", dtype)
        if self.fast_dtype is None and name == "cuda":
            self.fast_dtype = float16
        self._stacks: list[ExitStack] = []

    def _facts(self) -> dict[str, Any]:
        return {"device_type": self.device, "dtype": self.fast_dtype}

    def __enter__(self) -> autocast:
        stack = ExitStack()
        dtype = self.fast_dtype
        if self._enabled and dtype is not None and dtype.itemsize == 2:
            stack.enter_context(push_interpreter(_Rounding(self.device, dtype)))
        self._stacks.append(stack)
        _active.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _active.remove(self)
        self._stacks.pop().close()


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether an `autocast` for this type of device is at work."""
    return any(each.device == device_type and each._enabled for each in _active)


def is_autocast_cpu_enabled() -> bool:
    """Return whether an `autocast` for the CPU is at work."""
    return is_autocast_enabled("cpu")


def get_autocast_dtype(device_type: str) -> DTypeObject:
    """Return the dtype of the innermost `autocast`; float16 on CUDA and bfloat16 otherwise."""
    for each in reversed(_active):
        if each.device == device_type and each.fast_dtype is not None:
            return DTYPES[each.fast_dtype]
    return DTYPES[float16] if device_type == "cuda" else bfloat16()


def get_autocast_gpu_dtype() -> DTypeObject:
    """Return `get_autocast_dtype("cuda")`."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> DTypeObject:
    """Return `get_autocast_dtype("cpu")`."""
    return get_autocast_dtype("cpu")


def clear_autocast_cache() -> None:
    """Do nothing: casts are not kept."""


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` knows a type of device."""
    return device_type in ("cpu", "cuda")


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str = "cuda", cast_inputs: Any = None
) -> Any:
    """Cast the tensors given to a Function's `forward`, with `cast_inputs` inside `autocast`."""
    if fwd is None:
        return lambda fwd: custom_fwd(fwd, device_type=device_type, cast_inputs=cast_inputs)

    def forward(*args: Any, **kwargs: Any) -> Any:
        if cast_inputs is not None and is_autocast_enabled(device_type):
            floats = [isinstance(x, Tensor) and x.is_floating_point() for x in args]
            args = tuple([x.to(cast_inputs) if f else x for x, f in zip(args, floats, strict=True)])
        return fwd(*args, **kwargs)

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cuda") -> Any:
    """Return a Function's `backward` as it is."""
    return bwd if bwd is not None else (lambda bwd: bwd)


class GradScaler(Shown):
    """Scale a loss so that half precision holds its gradients; steps that overflow are left out.

    The scale begins with `init_scale`. An overflow multiplies it by `backoff_factor`, and
    `growth_interval` steps without overflow by `growth_factor`. For device "cuda" without a CUDA
    device the scaler is disabled: the loss is not scaled and `step` is the optimizer's own.

    >>> import oneflow_lite as flow
    >>> w = flow.ones(1, requires_grad=True)
    >>> optimizer, scaler = flow.optim.SGD([w], lr=0.5), flow.amp.GradScaler("cpu")
    >>> scaler.scale((w * w).sum()).backward()
    >>> _ = scaler.step(optimizer)
    >>> scaler.update()
    >>> w.detach(), scaler.get_scale()
    (tensor([0.]), 65536.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda" and not cuda.is_available():
            warn_caller("GradScaler(): there is no CUDA device; the scaler is disabled")
            enabled = False
        if enabled and not (growth_factor > 1 > backoff_factor):
            raise arg_error(
                "GradScaler",
                "growth_factor",
                expected="one above 1, and a backoff_factor below 1",
                got=f"{growth_factor} and {backoff_factor}",
                hint="leave them out",
                kind=ArgumentError,
            )
        self._enabled = enabled
        at = "cuda" if enabled and device.startswith("cuda") else "cpu"
        # Tensors, so that a recorded step changes them at every replay.
        self._scale = FUNCTORS.get("full")((), float(init_scale), dtype=float32, device=at)
        self._growth_tracker = FUNCTORS.get("full")((), 0, dtype=int64, device=at)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        # By optimizer that was unscaled in this step: whether a gradient is inf or NaN.
        self._found: dict[int, Tensor] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ArgumentError("scale(): expected a tensor or a sequence of them; pass the loss")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once for each step."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise GradientError("unscale_(): step() was called; call update() first")
        if id(optimizer) in self._found:
            raise GradientError("unscale_(): called twice for this optimizer; call update() first")
        with no_grad():
            found, inverse = self._scale.isnan(), self._scale.double().reciprocal().float()
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if (grad := parameter.grad) is not None:
                        found = found | ~grad.isfinite().all().to(found.device)
                        grad.mul_(inverse.to(grad.device))
        self._found[id(optimizer)] = found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Take the optimizer's step and return its result; None if a gradient is inf or nan.

        GradientError: for a closure, or a second step before `update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise GradientError("step(): closures cannot be scaled; call it without one")
        if id(optimizer) in self._stepped:
            raise GradientError("step(): called twice for this optimizer; call update() first")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        found, observer = self._found[id(optimizer)], local.observer
        if observer is not None and not observer.refused and found._data.item():
            observer.refuse("it leaves out the step of an optimizer")
        if observer is not None and not observer.refused:
            return _step_unless(found, optimizer, args, kwargs)
        return None if found else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Lower the scale after an overflow, and raise it after `growth_interval` steps without."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale.fill_(new_scale)
        elif not self._found:
            raise GradientError("update(): no gradient was looked at; call step() before it")
        else:
            where, scale, steps = FUNCTORS.get("where"), self._scale, self._growth_tracker + 1
            found = functools.reduce(operator.or_, self._found.values())
            grows = steps == self._growth_interval
            grown = where(grows, scale * self._growth_factor, scale)
            grown = where(grown.isfinite(), grown, scale)
            scale.copy_(where(found, scale * self._backoff_factor, grown))
            self._growth_tracker.copy_(where(found | grows, steps * 0, steps))
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """Return the scale; 1 when disabled."""
        return float(self._scale.item()) if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale is raised."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale is lowered."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """Return after how many steps the scale is raised."""
        return self._growth_interval

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale is raised."""
        self._growth_factor = new_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale is lowered."""
        self._backoff_factor = new_factor

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps the scale is raised."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether anything is scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the state; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker.item(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        if not self._enabled:
            return
        if not state_dict:
            raise GradientError(
                "load_state_dict(): the state is empty, as of a disabled scaler; leave it out"
            )
        self._scale.fill_(float(state_dict["scale"]))
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker.fill_(state_dict["_growth_tracker"])


def _step_unless(found: Tensor, optimizer: Any, args: Any, kwargs: Any) -> Any:
    """Take a step that is recorded, and undo it in tensors where a gradient is inf or NaN.

    The writes of a step that is undone are counted. A first step makes the state, which the replay
    of a step that is left out would make as well: it is not recorded.
    """

    def tensors() -> list[Tensor]:
        options = {id(tensor) for tensor in optimizer.option_tensors()}
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        state = [tensor for tensor in optimizer.own_tensors() if id(tensor) not in options]
        return [*[p for p in parameters if p.grad is not None], *state]

    recorder: Any = local.observer.recorder
    with no_grad():
        recorder.adds = True
        before = [(tensor, tensor.clone()) for tensor in tensors()]
        recorder.adds = False
        result = optimizer.step(*args, **kwargs)
        recorder.adds = True
        for tensor, old in before:  # by .data, which counts no write
            tensor.data.copy_(FUNCTORS.get("where")(found.to(old.device), old, tensor))
        recorder.adds = False
    if len(tensors()) > len(before):
        local.observer.refuse("a step that may be left out makes the state of an optimizer")
    return result
