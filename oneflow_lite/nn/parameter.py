"""Parameter: a leaf tensor that a Module finds by itself; functors take it like any other."""

from __future__ import annotations

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentTypeError, bad_argument
from oneflow_lite.tensor import Tensor


class Parameter(Tensor):
    """A tensor that a `Module` registers as a parameter when it is assigned as an attribute.

    Parameters
    ----------
    data : Tensor, optional
        Shares memory with the parameter, but not its place in a graph. Empty when None.
    requires_grad : bool
        Whether gradients are computed for it.

    Raises
    ------
    ArgumentTypeError
        When `data` is not a tensor.
    DTypeError
        When a gradient is required of a tensor that is neither floating point nor complex.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Parameter(flow.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        if data is None:
            data = Tensor(0)
        if not isinstance(data, Tensor):
            raise bad_argument(
                ArgumentTypeError,
                "Parameter",
                "data",
                expected="a Tensor",
                got=type(data).__name__,
                mend="wrap the values with flow.tensor(...)",
            )
        self._data = data._data
        self._storage = data.memory
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def clear_grad(parameter: Tensor, set_to_none: bool) -> None:
    """Drop a gradient, or fill it with zeros where it is, out of any graph it belonged to."""
    grad = parameter.grad
    if grad is None:
        return
    if set_to_none:
        parameter.grad = None
        return
    if grad.requires_grad:  # made with create_graph=True: the graph keeps the old values
        grad = grad.detach().clone()
        parameter.grad = grad
    with no_grad():
        grad.zero_()
