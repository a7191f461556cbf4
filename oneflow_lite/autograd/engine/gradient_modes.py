"""The two modes of a GraphTask: gradients are raw arrays, or tensors where they are recorded.

While nothing is recorded, F is the bare kernels. While the backward pass is itself recorded, F is
the functors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.device import CPU, Device, array_module, device_of, on_device
from oneflow_lite.arrays.size import fits
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F, NUMPY_F, KernelNamespace
from oneflow_lite.autograd.rules.zero import ZERO
from oneflow_lite.errors import GradientError
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import FunctionNode, TensorInfo
from oneflow_lite.tensors.tensor import Tensor, make_tensor

ndarray = np.ndarray


class GradientMode(ABC):
    """A way in which a GraphTask works with gradients.

    Attributes
    ----------
    recorded : bool
        Whether gradients are tensors, and every op on them is recorded.
    F : object
        Every op by name, for gradients on the CPU.
    """

    recorded: bool
    F: Any

    @abstractmethod
    def wrap(self, grad: Any) -> Tensor:
        """Return a gradient as a tensor, for hooks and for `.grad`."""

    @abstractmethod
    def unwrap(self, grad: Tensor) -> Any:
        """Take a gradient back from a hook."""

    @abstractmethod
    def zeros(self, info: TensorInfo) -> Any:
        """Return zeros for an output that got no gradient."""

    @abstractmethod
    def add(self, a: Any, b: Any) -> Any:
        """Return the sum in new memory."""

    @abstractmethod
    def copy(self, grad: Any) -> Any:
        """Return a gradient in memory of its own."""

    @abstractmethod
    def namespace(self, device: Device) -> Any:
        """Return F for gradients on a device."""

    def zeros_at(self, node: FunctionNode, index: int) -> Any:
        """Return zeros for one output of a node."""
        info: Any = node.output_tensor_infos[index]
        if getattr(node, "home", None) is not None:  # a leaf that is a global tensor
            info = attrs.evolve(info, home=node.home)  # type: ignore[attr-defined]
        return self.zeros(info)

    def materialize(
        self, node: FunctionNode, function: Any, grads: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Fill the missing gradients of a node's outputs with zeros, where its rule wants that."""
        if not function.materialize:
            return tuple(grads)
        return tuple(
            [
                self.zeros(info) if grad is None and info is not None else grad
                for grad, info in zip(grads, node.output_tensor_infos, strict=True)
            ]
        )

    def conform(self, grad: Any, node: FunctionNode, index: int, sender: Any) -> Any:
        """Return a gradient for one output of a node, summed to the shape of that output.

        Raises
        ------
        GradientError
            When it does not fit; the message names the node that sent it.
        """
        # The usual case costs four comparisons: an array of the output's shape and dtype.
        data: Any = getattr(grad, "_data", None) if self.recorded else grad
        value: Any = node if node.infos is None else node.infos[index]
        if (
            type(data) is ndarray
            and data.shape == value.shape
            and data.dtype is value.dtype
            and (value is node or value.device is CPU)
        ):
            return grad
        levels = getattr(data, "levels", None)
        if levels:  # of a transform
            own = value.levels if value is not node else _NO_LEVELS
            if levels is not own:
                grad = _settled(grad, levels, own)
                data = grad._data
            if data.shape == value.shape and data.dtype is value.dtype and value is not node:
                return grad
        if isinstance(grad, (tuple, list)):
            if len(grad) != 1:
                raise wrong_count_error(sender, tuple(grad))
            grad = grad[0]
        info = node.output_tensor_infos[index]
        assert info is not None
        if grad is ZERO:
            return self.zeros_at(node, index)
        if isinstance(grad, Tensor) != self.recorded or not hasattr(grad, "dtype"):
            wanted = "Tensor" if self.recorded else "array"
            raise _wrong_gradient_error(sender, "type", wanted, type(grad).__name__)
        if grad.shape != info.shape:
            if not fits(grad.shape, info.shape):
                raise _wrong_gradient_error(sender, "shape", info.shape, grad.shape)
            grad = self.namespace(info.device).sum_to(grad, shape=info.shape)
        if (grad._data if self.recorded else grad).dtype is not info.dtype:
            # A real input of a complex op: only the real part of its gradient counts.
            if grad.dtype.kind == "c" and info.dtype.kind == "f":
                F = self.namespace(info.device)
                grad = F.clone(F.real(grad))
            if grad.dtype != info.dtype:
                raise _wrong_gradient_error(sender, "dtype", info.dtype, grad.dtype)
        device = grad.device if isinstance(grad, Tensor) else None
        if device is None:
            if isinstance(grad, np.generic):
                grad = np.asarray(grad)
            device = device_of(grad)
        if device != info.device:
            raise _wrong_gradient_error(sender, "device", info.device, device)
        return grad


class RawGradients(GradientMode):
    """Gradients are arrays, and F is the bare kernels."""

    recorded = False
    F = NUMPY_F

    def wrap(self, grad: Any) -> Tensor:
        """Return a tensor on the array."""
        return make_tensor(adopted(grad))

    def unwrap(self, grad: Tensor) -> Any:
        """Return the tensor's array."""
        return grad._data

    def zeros(self, info: TensorInfo) -> Any:
        """Return an array of zeros."""
        with on_device(info.device) as xp:
            return xp.zeros(info.shape, info.dtype)

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum, as an array even when it has no dimension."""
        out = a + b
        return np.asarray(out) if isinstance(out, np.generic) else out

    def copy(self, grad: Any) -> Any:
        """Return a copy of the array."""
        return grad.copy()

    def namespace(self, device: Device) -> Any:
        """Return the kernels of a device."""
        return self.F if device is CPU else KernelNamespace(array_module(device))


class RecordedGradients(GradientMode):
    """Gradients are tensors and F is the functors: the backward pass can be differentiated."""

    recorded = True
    F = FUNCTORS_F

    def wrap(self, grad: Tensor) -> Tensor:
        """Return the gradient, which is a tensor already."""
        return grad

    unwrap = wrap

    def zeros(self, info: TensorInfo) -> Tensor:
        """Return a tensor of zeros."""
        lies: dict[str, Any] = {"device": info.device}
        if info.home is not None:
            lies = {"placement": info.home[0], "sbp": info.home[1]}
        made: Tensor = FUNCTORS_F.zeros(info.shape, dtype=info.dtype, **lies)
        return made

    def add(self, a: Tensor, b: Tensor) -> Any:
        """Return the recorded sum."""
        return FUNCTORS_F.add(a, b)

    def copy(self, grad: Tensor) -> Any:
        """Return a recorded copy."""
        return FUNCTORS_F.clone(grad)

    def namespace(self, device: Device) -> Any:
        """Return the functors."""
        return FUNCTORS_F


_NO_LEVELS: frozenset[Any] = frozenset()


def _settled(grad: Any, levels: Any, own: frozenset[Any]) -> Any:
    """Take the levels of transforms off a gradient that are not the value's own.

    A level that the task's roots carry stays: then the gradient is taken inside of it.
    """
    task = local.task
    foreign = levels - own if task is None else levels - own - task.kept
    if len(foreign) > 1:
        foreign = sorted(foreign, key=lambda level: level.number, reverse=True)
    for level in foreign:
        grad = level.settle(grad)
    return grad


RAW = RawGradients()
RECORDED = RecordedGradients()


def _wrong_gradient_error(sender: Any, what: str, expected: object, got: object) -> GradientError:
    name = "the caller" if sender is None else sender.name()
    return GradientError(
        f"{name} returned a gradient of {what} {got}, expected {what} {expected}, that of the "
        "input; mend its gradient rule"
    )


def wrong_count_error(node: FunctionNode, grads: tuple[Any, ...]) -> GradientError:
    """Build the error for a rule that returned too few gradients, or too many."""
    return GradientError(
        f"{node.name()} returned {len(grads)} gradient(s) for {len(node.edges)} input(s); "
        "return one gradient, or None, per input"
    )


def _arrays(tensors: Any) -> Any:
    if isinstance(tensors, (tuple, list)):
        return tuple(map(_arrays, tensors))
    return getattr(tensors, "_data", None)


def is_fresh(grad: Any, out_grad: Any, node: FunctionNode, siblings: Sequence[Any] | None) -> bool:
    """Return whether a rule made this array for us alone, so that the task may write into it.

    A rule computes with ops and arithmetic only, and a kernel that declares no view returns new
    memory. So an array that owns its memory is new, unless it is an incoming gradient or a saved
    array handed through, or the rule returned it, or a view of it, for another input as well.
    `out_grad` is a tuple for a node with several outputs.
    """
    if node.grad_function.shows_gradients:  # a user's function may have kept it
        return False
    if isinstance(grad, Tensor):  # tensors share memory where their arrays do
        grad, out_grad, siblings = grad._data, _arrays(out_grad), _arrays(siblings)
    if grad.base is not None or grad is out_grad:
        return False
    if type(out_grad) is tuple:
        for other in out_grad:
            if other is grad:
                return False
    for saved in node.saved or ():
        if grad is saved[1]:
            return False
    if siblings is not None and len(siblings) > 1:
        times = 0
        for other in siblings:
            if other is grad:
                times += 1
            elif getattr(other, "base", None) is grad:
                return False
        return times == 1
    return True
