"""Smooth activation functions as modules."""

from __future__ import annotations

from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.activation_piecewise import InplaceActivation
from oneflow_lite.tensor import Tensor


class SiLU(InplaceActivation):
    """x * sigmoid(x), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.SiLU()(flow.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.silu(input, self.inplace)


class SELU(InplaceActivation):
    """Scaled exponential linear unit, elementwise (Klambauer et al., 2017).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.SELU()(flow.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.selu(input, self.inplace)


class Mish(InplaceActivation):
    """x * tanh(softplus(x)), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Mish()(flow.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.mish(input, self.inplace)


class ELU(Module):
    """x where it is positive, `alpha` * (exp(x) - 1) elsewhere.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.ELU()(flow.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """x where it is positive, `alpha` * (exp(x / `alpha`) - 1) elsewhere.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.CELU()(flow.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x * P(X <= x) for X ~ N(0, 1), or with `approximate='tanh'` its approximation by tanh.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.GELU()(flow.tensor([0.0]))
    tensor([0.])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Return the option."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(`beta` * x)) / `beta`; x itself where `beta` * x exceeds `threshold`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Softplus()(flow.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """exp(x) divided by its sum over `dim`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Softmax(dim=0)(flow.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Return the dimension."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of `Softmax`, computed without overflow.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.LogSoftmax(dim=0)(flow.tensor([1.0, 1.0]))
    tensor([-0.6931, -0.6931])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Return the dimension."""
        return f"dim={self.dim}"


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Sigmoid()(flow.tensor([0.0]))
    tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent, elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Tanh()(flow.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.tanh(input)


class Softsign(Module):
    """x / (1 + |x|), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Softsign()(flow.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.softsign(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.LogSigmoid()(flow.tensor([0.0]))
    tensor([-0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.logsigmoid(input)


class Tanhshrink(Module):
    """x - tanh(x), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Tanhshrink()(flow.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.tanhshrink(input)
