"""The few operations on gradients that differ between the two modes of a GraphTask.

Raw arrays and bare kernels while nothing is recorded; tensors and functors while the backward pass
is itself recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.node import FunctionNode, TensorInfo
from oneflow_lite.autograd.rule_namespace import FunctorNamespace, KernelNamespace
from oneflow_lite.bfloat16_arrays import adopted
from oneflow_lite.device import on_device
from oneflow_lite.tensor import Tensor, make_tensor

FUNCTORS_F = FunctorNamespace()
NUMPY_F = KernelNamespace(np)


class Gradients:
    """Gradients as raw arrays, F as the bare kernels."""

    F: Any = NUMPY_F

    def wrap(self, grad: Any) -> Tensor:
        """Return a gradient as a tensor, for hooks and for `.grad`."""
        return make_tensor(adopted(grad))

    def unwrap(self, grad: Tensor) -> Any:
        """Take a gradient back from a hook."""
        return grad._data

    def zeros(self, info: TensorInfo) -> Any:
        """Return zeros for an output that got no gradient."""
        with on_device(info.device) as xp:
            return xp.zeros(info.shape, info.dtype)

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum in new memory."""
        out = a + b
        return np.asarray(out) if isinstance(out, np.generic) else out


class RecordedGradients:
    """Gradients as tensors, F as the functors: the backward pass can be differentiated again."""

    F: Any = FUNCTORS_F

    def wrap(self, grad: Tensor) -> Tensor:
        """Return the gradient, a tensor already."""
        return grad

    unwrap = wrap

    def zeros(self, info: TensorInfo) -> Tensor:
        """Return zeros for an output that got no gradient."""
        made: Tensor = FUNCTORS_F.zeros(info.shape, dtype=info.dtype, device=info.device)
        return made

    def add(self, a: Tensor, b: Tensor) -> Any:
        """Return the recorded sum."""
        return FUNCTORS_F.add(a, b)


RAW = Gradients()
RECORDED = RecordedGradients()


def fits(have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Return whether `want` broadcasts to `have`."""
    extra = len(have) - len(want)
    return extra >= 0 and all(w in (1, h) for w, h in zip(want, have[extra:], strict=True))


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
    if node.grad_function.shows_gradients:
        return False
    if isinstance(grad, Tensor):  # what tensors share is what their arrays share
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
