"""Gradients of convolutions as functions, under the names of `torch.nn.grad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import enable_grad, is_grad_enabled
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

Ints = int | Sequence[int]


class _OfInput(Protocol):
    def __call__(
        self, input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Ints = 1,
        padding: Ints | str = 0, dilation: Ints = 1, groups: int = 1,
    ) -> Tensor: ...  # fmt: skip


class _OfWeight(Protocol):
    def __call__(
        self, input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Ints = 1,
        padding: Ints | str = 0, dilation: Ints = 1, groups: int = 1,
    ) -> Tensor: ...  # fmt: skip


def _of_input(spatial: int) -> _OfInput:
    def author(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        input = F.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device)
        geometry = (stride, padding, dilation, groups)
        return _grad(spatial, input, weight, grad_output, geometry, input)

    made: _OfInput = _named(author, spatial, "input")
    return made


def _of_weight(spatial: int) -> _OfWeight:
    def author(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = F.zeros(tuple(weight_size), dtype=input.dtype, device=input.device)
        geometry = (stride, padding, dilation, groups)
        return _grad(spatial, input, weight, grad_output, geometry, weight)

    made: _OfWeight = _named(author, spatial, "weight")
    return made


def _grad(
    spatial: int, input: Tensor, weight: Tensor, dy: Tensor, geometry: tuple[Any, ...], by: Tensor
) -> Tensor:
    """Return the gradient of a convolution, differentiable where gradients are recorded.

    The convolution of zeros checks all arguments; its gradient does not depend on them.
    """
    recorded = is_grad_enabled()
    by.requires_grad_()
    with enable_grad():
        y = getattr(F, f"conv{spatial}d")(input, weight, None, *geometry)
    result: Tensor = grad(y, by, dy, create_graph=recorded)[0]
    return result


def _named(author: Any, spatial: int, by: str) -> Any:
    author.__name__ = author.__qualname__ = f"conv{spatial}d_{by}"
    author.__doc__ = f"""Return the gradient of `conv{spatial}d` by its {by}, whose shape is given.

    grad_output: the gradient by the result of the convolution.
    stride, padding, dilation, groups: those of the convolution.
    """
    return author


conv1d_input, conv2d_input, conv3d_input = map(_of_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_of_weight, (1, 2, 3))


guard_all(globals())
