"""Activation functions as modules."""

from __future__ import annotations

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.tensor import Tensor


class _Inplace(Module):
    """An activation whose only option is whether it overwrites its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Return the option when it is set."""
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
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


class ReLU6(_Inplace):
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


class SiLU(_Inplace):
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


class SELU(_Inplace):
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


class Mish(_Inplace):
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


class Hardsigmoid(_Inplace):
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


class Hardswish(_Inplace):
    """x * hardsigmoid(x), elementwise.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Hardswish()(flow.tensor([-4.0, 0.0, 4.0]))
    tensor([0., 0., 4.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Return nothing, as PyTorch does."""
        return ""


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
