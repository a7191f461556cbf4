"""Activation functions as modules."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, OptionError, arg_error
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import parameter
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

# --- Smooth ---------------------------------------------------------------------------------------


@layer("sigmoid")
class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise.

    >>> flow.nn.Sigmoid()(flow.tensor([0.0]))
    tensor([0.5000])
    """


@layer("logsigmoid")
class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), elementwise.

    >>> flow.nn.LogSigmoid()(flow.tensor([0.0]))
    tensor([-0.6931])
    """


@layer("tanh")
class Tanh(Module):
    """The hyperbolic tangent, elementwise.

    >>> flow.nn.Tanh()(flow.tensor([0.0]))
    tensor([0.])
    """


@layer("tanhshrink")
class Tanhshrink(Module):
    """x - tanh(x), elementwise.

    >>> flow.nn.Tanhshrink()(flow.tensor([0.0]))
    tensor([0.])
    """


@layer("softsign")
class Softsign(Module):
    """x / (1 + |x|), elementwise.

    >>> flow.nn.Softsign()(flow.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


@layer("softplus")
class Softplus(Module):
    """log(1 + exp(`beta` · x)) / `beta`; x itself where `beta` · x exceeds `threshold`.

    >>> flow.nn.Softplus()(flow.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    beta: float = 1.0
    threshold: float = 20.0


@layer("elu")
class ELU(Module):
    """x where it is positive, `alpha` · (exp(x) - 1) elsewhere.

    >>> flow.nn.ELU()(flow.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    alpha: float = 1.0
    inplace: bool = False


@layer("celu")
class CELU(Module):
    """x where it is positive, `alpha` · (exp(x / `alpha`) - 1) elsewhere.

    >>> flow.nn.CELU()(flow.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    alpha: float = 1.0
    inplace: bool = False


@layer("selu")
class SELU(Module):
    """Scaled exponential linear unit, elementwise (Klambauer et al., 2017).

    >>> flow.nn.SELU()(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 1.0507])
    """

    inplace: bool = False


@layer("silu")
class SiLU(Module):
    """x · sigmoid(x), elementwise.

    >>> flow.nn.SiLU()(flow.tensor([0.0]))
    tensor([0.])
    """

    inplace: bool = False


@layer("mish")
class Mish(Module):
    """x · tanh(softplus(x)), elementwise (Misra, 2019).

    >>> flow.nn.Mish()(flow.tensor([0.0]))
    tensor([0.])
    """

    inplace: bool = False


@layer("gelu", shows="approximate={approximate!r}")
class GELU(Module):
    """x · P(X <= x) for X ~ N(0, 1), or with `approximate="tanh"` its approximation by tanh.

    >>> flow.nn.GELU()(flow.tensor([0.0]))
    tensor([0.])
    """

    approximate: str = "none"


@layer("glu")
class GLU(Module):
    """a · sigmoid(b), where a and b are the halves of the input along `dim` (Dauphin et al., 2017).

    >>> flow.nn.GLU()(flow.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """

    dim: int = -1


# --- Of straight pieces ---------------------------------------------------------------------------


@layer("relu")
class ReLU(Module):
    """max(x, 0), elementwise.

    >>> flow.nn.ReLU()(flow.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False


@layer("leaky_relu")
class LeakyReLU(Module):
    """x where it is positive, `negative_slope` · x elsewhere.

    >>> flow.nn.LeakyReLU(0.1)(flow.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False


@layer("rrelu", also="training")
class RReLU(Module):
    """x where it is positive, slope · x elsewhere, with random slopes from `lower` to `upper`.

    In evaluation mode the slope is their mean (Xu et al., 2015).

    >>> flow.nn.RReLU(0.25, 0.75).eval()(flow.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False


@layer(shows="num_parameters={num_parameters}")
class PReLU(Module):
    """x where it is positive, weight · x elsewhere (He et al., 2015).

    num_parameters: 1, or the number of channels of an input (N, C, *).
    init: what the weights are at first.

    >>> flow.nn.PReLU(init=0.5)(flow.tensor([-1.0, 2.0])).detach()
    tensor([-0.5000,  2.0000])
    """

    num_parameters: int = 1
    init: float = 0.25
    device: InitVar[DeviceLike | None] = None
    dtype: InitVar[DTypeLike | None] = None

    def __post_init__(self, device: Any, dtype: Any) -> None:
        self.weight = parameter((self.num_parameters,), device, dtype, self.init)

    def reset_parameters(self) -> None:
        """Set the weights to `init`."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation."""
        return F.prelu(input, self.weight)


@layer("hardtanh")
class Hardtanh(Module):
    """x limited to `min_val` and `max_val`, elementwise.

    min_value, max_value: former names of the two.

    >>> flow.nn.Hardtanh()(flow.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    min_value: InitVar[float | None] = None
    max_value: InitVar[float | None] = None

    def __post_init__(self, min_value: float | None, max_value: float | None) -> None:
        for former, value, name in (
            ("min_value", min_value, "min_val"),
            ("max_value", max_value, "max_val"),
        ):
            if value is not None:
                text = f"Hardtanh(): {former} is deprecated; use {name}"
                warn_caller(text, FutureWarning)
                setattr(self, name, value)
        if not self.min_val < self.max_val:
            raise arg_error(
                "Hardtanh",
                "max_val",
                expected=f"more than min_val={self.min_val}",
                got=self.max_val,
                hint="pass the smaller bound first",
                kind=OptionError,
            )


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), elementwise.

    >>> flow.nn.ReLU6()(flow.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Return the option when it is set."""
        return "inplace=True" if self.inplace else ""


@layer("hardsigmoid", shows="")
class Hardsigmoid(Module):
    """min(max(x + 3, 0), 6) / 6, elementwise.

    >>> flow.nn.Hardsigmoid()(flow.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    inplace: bool = False


@layer("hardswish", shows="")
class Hardswish(Module):
    """x · hardsigmoid(x), elementwise (Howard et al., 2019).

    >>> flow.nn.Hardswish()(flow.tensor([-3.0, 1.5, 4.0]))
    tensor([-0.0000, 1.1250, 4.0000])
    """

    inplace: bool = False


@layer("hardshrink", shows="{lambd}")
class Hardshrink(Module):
    """x where it is outside [-`lambd`, `lambd`], 0 within.

    >>> flow.nn.Hardshrink()(flow.tensor([-1.0, 0.25]))
    tensor([-1.,  0.])
    """

    lambd: float = 0.5


@layer("softshrink", shows="{lambd}")
class Softshrink(Module):
    """x moved towards 0 by `lambd`, 0 where it is nearer than that.

    >>> flow.nn.Softshrink()(flow.tensor([-1.0, 0.25]))
    tensor([-0.5000,  0.0000])
    """

    lambd: float = 0.5


@layer("threshold")
class Threshold(Module):
    """x where it is above `threshold`, `value` elsewhere.

    >>> flow.nn.Threshold(0.5, 9.0)(flow.tensor([0.25, 1.0]))
    tensor([9., 1.])
    """

    threshold: float
    value: float
    inplace: bool = False


# --- Over a dimension -----------------------------------------------------------------------------


@layer("softmax")
class Softmax(Module):
    """exp(x) divided by its sum over `dim`.

    >>> flow.nn.Softmax(dim=0)(flow.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    dim: int | None = None


@layer("softmin")
class Softmin(Module):
    """exp(-x) divided by its sum over `dim`.

    >>> flow.nn.Softmin(dim=0)(flow.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    dim: int | None = None


@layer("log_softmax")
class LogSoftmax(Module):
    """The logarithm of `Softmax`, computed without overflow.

    >>> flow.nn.LogSoftmax(dim=0)(flow.tensor([1.0, 1.0]))
    tensor([-0.6931, -0.6931])
    """

    dim: int | None = None


class Softmax2d(Module):
    """`Softmax` over the channels of each place of an input (N, C, H, W) or (C, H, W).

    >>> flow.nn.Softmax2d()(flow.ones(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the shares."""
        if input.ndim not in (3, 4):
            raise arg_error(
                "Softmax2d",
                "input",
                expected="3 or 4 dimensions",
                got=f"shape {input.shape}",
                hint="use Softmax(dim) for others",
                kind=ArgumentError,
            )
        return F.softmax(input, -3)


guard_all(globals())
