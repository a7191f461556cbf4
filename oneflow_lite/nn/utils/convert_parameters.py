"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ShapeError, arg_error
from oneflow_lite.functors.declaring.checks import check_tensor
from oneflow_lite.functors.joining import cat
from oneflow_lite.tensors.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters in one vector; gradients flow through it.

    >>> import oneflow_lite as flow
    >>> flow.nn.utils.parameters_to_vector(flow.nn.Linear(2, 3).parameters()).shape
    (9,)
    """
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters to the elements of a vector, in order.

    The parameters become parts of the vector's memory, as in PyTorch.

    Raises
    ------
    ShapeError
        When the vector does not have as many elements as the parameters; none is changed then.
    """
    check_tensor("vector_to_parameters", "vec", vec)
    listed = list(parameters)
    total = sum(parameter.numel() for parameter in listed)
    if vec.shape != (total,):
        raise arg_error(
            "vector_to_parameters",
            "vec",
            expected=f"shape ({total},), all elements of the parameters",
            got=tuple(vec.shape),
            hint="make it with parameters_to_vector()",
            kind=ShapeError,
        )
    start = 0
    values = vec.detach()
    for parameter in listed:
        end = start + parameter.numel()
        parameter.data = values[start:end].reshape(parameter.shape).detach()
        start = end


guard_all(globals())
