"""Activation functions that are put together of straight lines, as modules."""

from __future__ import annotations

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.tensor import Tensor


class InplaceActivation(Module):
    """An activation whose only option is whether it overwrites its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Return the option when it is set."""
        return "inplace=True" if self.inplace else ""


class ReLU(InplaceActivation):
    """max(x, 0), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.ReLU()(flow.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.relu(input, self.inplace)


class ReLU6(InplaceActivation):
    """min(max(x, 0), 6), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.ReLU6()(flow.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.relu6(input, self.inplace)


class LeakyReLU(Module):
    """x where it is positive, `negative_slope` * x elsewhere.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.LeakyReLU(0.1)(flow.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """x limited to `min_val` and `max_val`, elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Hardtanh()(flow.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if not min_val < max_val:
            raise bad_argument(
                ArgumentError,
                "Hardtanh",
                "max_val",
                expected=f"more than min_val={min_val}",
                got=max_val,
                mend="pass the smaller bound first",
            )
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        bounds = f"min_val={self.min_val}, max_val={self.max_val}"
        return bounds + (", inplace=True" if self.inplace else "")


class Hardsigmoid(InplaceActivation):
    """min(max(x + 3, 0), 6) / 6, elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Hardsigmoid()(flow.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Return nothing, as PyTorch does."""
        return ""


class Hardswish(InplaceActivation):
    """x * hardsigmoid(x), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Hardswish()(flow.tensor([-3.0, 1.5, 4.0]))
    tensor([-0.0000, 1.1250, 4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Return nothing, as PyTorch does."""
        return ""
