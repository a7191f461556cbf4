"""GradientEdge: an output of a node, which `backward` and `grad` take in place of a tensor."""

from __future__ import annotations

from typing import NamedTuple

from oneflow_lite.arrays.device import on_device
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import GradientError, arg_error
from oneflow_lite.tensors.node import FunctionNode
from oneflow_lite.tensors.tensor import Tensor, make_tensor


class GradientEdge(NamedTuple):
    """An output of a node: the place where the gradient of a tensor arrives.

    `backward` and `grad` take it in place of the tensor, which need not be kept.
    """

    node: FunctionNode
    output_nr: int

    def stand_in(self) -> Tensor:
        """Return a tensor of the same shape, dtype, device and history, almost without memory."""
        info = self.node.output_tensor_infos[self.output_nr]
        assert info is not None
        with on_device(info.device) as xp:
            tensor = make_tensor(xp.broadcast_to(xp.zeros((), info.dtype), info.shape))
        tensor.set_history((self.node, self.output_nr))
        return tensor


@guarded
def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return where the gradient of a tensor arrives.

    Parameters
    ----------
    tensor : Tensor
        A tensor that requires a gradient.

    Returns
    -------
    GradientEdge

    Raises
    ------
    GradientError
        When the tensor does not require a gradient.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor(3.0, requires_grad=True)
    >>> edge = flow.autograd.graph.get_gradient_edge(x)
    >>> flow.autograd.grad(x * x, edge)
    (tensor(6.),)
    """
    tensor.refresh_view()
    if tensor._edge is None:
        raise arg_error(
            "get_gradient_edge",
            "tensor",
            expected="a tensor that requires a gradient",
            got=f"one of shape {tensor.shape} that does not",
            hint="call requires_grad_() on it before computing with it",
            kind=GradientError,
        )
    return GradientEdge(*tensor._edge)
