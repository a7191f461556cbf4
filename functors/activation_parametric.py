"""Activations with weights of their own, or with noise: what users call."""

from __future__ import annotations

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, DTypeError
from oneflow_lite.functors.checks import wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Dim, Flag, Number, RealFloating
from oneflow_lite.tensor import Tensor

_ON = "functional flow"
_SLOPES = "x(2, 3); x(2, 30), 0.1, 0.9, True; x(2, 3), 0.5, 0.5, True"


def _two_slopes(input: Tensor, slope: Tensor) -> Tensor:
    # No product of the slope and an infinite positive x, which has no part in the result.
    return F.relu(input) + slope * F.clamp_max(input, 0)


@functor("functional flow Tensor", samples="x(2, 3), x(3); x(2, 3, 2), x(1); x(3), x()")
def prelu(input: RealFloating, weight: RealFloating) -> Tensor:
    """Return x for x > 0, else weight · x; the gradient at 0 is the weight.

    He et al., Delving Deep into Rectifiers, 2015.

    input: (N, C, *) where there is a weight for each channel.
    weight: of C slopes, or a single one.
    DTypeError: when an argument is not real floating, or the dtypes differ.
    ShapeError: when the weight does not fit.

    >>> flow.nn.functional.prelu(flow.tensor([-1.0, 2.0]), flow.tensor([0.5]))
    tensor([-0.5000,  2.0000])
    """
    if weight.dtype != input.dtype:
        expected = f"dtype {input.dtype}, that of the input"
        raise wrong("prelu", "weight", expected, weight.dtype, "convert one", DTypeError)
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        expected = f"one slope, or one for each of {channels} channels"
        raise wrong("prelu", "weight", expected, weight, "match the input's channels")
    shape = (-1, *(1,) * (input.ndim - 2)) if input.ndim else ()
    return _two_slopes(input, weight.reshape(shape))


@functor(_ON, inplace=True, twin=_ON, samples=_SLOPES)
def rrelu(
    input: RealFloating, lower: Number = 1 / 8, upper: Number = 1 / 3, training: Flag = False
) -> Tensor:
    """Return x for x > 0, else x times a slope drawn from [lower, upper], or their mean.

    Xu et al., Empirical Evaluation of Rectified Activations in Convolutional Network, 2015.

    training: whether slopes are drawn for each element.
    ArgumentError: when `lower` is above `upper`.
    """
    if lower > upper:
        raise wrong("rrelu", "lower", f"at most upper = {upper}", lower, "swap them", ArgumentError)
    if not training:
        return F.leaky_relu(input, (lower + upper) / 2)
    with no_grad():
        slope = F.empty(input.shape, dtype=input.dtype, device=input.device).uniform_(lower, upper)
    return _two_slopes(input, slope)


@functor("functional", samples="x(2, 3); x(2, 30), 0.5, True, dim=0")
def gumbel_softmax(
    logits: RealFloating, tau: Number = 1, hard: Flag = False, eps: Number = 1e-10, dim: Dim = -1
) -> Tensor:
    """Draw from the Gumbel-softmax distribution, a smooth stand-in for drawing a class.

    Jang et al., Categorical Reparameterization with Gumbel-Softmax, 2017.

    logits: unnormalized logarithms of probabilities.
    tau: the temperature; near 0 the result is nearly one-hot.
    hard: return exactly one-hot vectors, with the gradient of the smooth ones.
    eps: has no effect, as in PyTorch.
    """
    with no_grad():
        drawn = F.empty(logits.shape, dtype=logits.dtype, device=logits.device).exponential_()
        noise = -drawn.log()
    soft = F.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    with no_grad():
        one_hot = F.scatter(F.zeros_like(soft), dim, soft.argmax(dim, True), 1.0)
        rest = one_hot - soft
    return rest + soft
