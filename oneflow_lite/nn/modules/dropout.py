"""Dropout layers."""

from __future__ import annotations

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.tensor import Tensor


class Dropout(Module):
    """In training mode zeroes each element with probability `p` and scales the rest by 1/(1 - p).

    Parameters
    ----------
    p : float
        Probability of an element to be zeroed.
    inplace : bool
        Whether the input is overwritten.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Dropout(0.9).eval()(flow.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise bad_argument(
                ArgumentError,
                "Dropout",
                "p",
                expected="a probability from 0 to 1",
                got=p,
                mend="pass the share to drop",
            )
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with elements dropped, or in evaluation mode the input."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"p={self.p}, inplace={self.inplace}"
