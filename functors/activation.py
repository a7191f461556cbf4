"""Activations for users: smooth, made of straight pieces, with weights, with noise."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, arg_error
from oneflow_lite.functors.declaring import domains as D
from oneflow_lite.functors.declaring.declare import functor, unary
from oneflow_lite.functors.declaring.domains import (
    Flag,
    Floating,
    Number,
    RealFloating,
    RealNumber,
    Scalar,
)
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

_ELU, _HARDTANH = op_expr("elu"), op_expr("hardtanh")
_EVERYWHERE = "flow functional"
_SLOPES = "x(2, 3); x(2, 30), 0.1, 0.9, True; x(2, 3), 0.5, 0.5, True"
Approximate = Annotated[str, D.choice("none", "tanh")]

_row = functools.partial(unary, domain=RealFloating, on="functional")
_inplace = functools.partial(_row, out=False, inplace=True)
_hard = functools.partial(_inplace, samples="x(2, 3) * 2")

_inplace("silu", "Return x σ(x), σ the logistic function.", domain=D.FloatingOrComplex)
mish = _inplace(
    "mish",
    "Return x tanh(softplus(x)).\n\n"
    "Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.",
    "[-1.0, 0.0, 1.0] -> tensor([-0.3034,  0.0000,  0.8651])",
)
_row("logsigmoid", "Return log(1 / (1 + exp(-x))) of each element without overflow.", out="same")


@functor("functional", out="same", samples="x(2, 3); x(2, 3), approximate='tanh'")
def gelu(input: RealFloating, approximate: Approximate = "none") -> Tensor:
    """Return x Φ(x), with Φ the distribution function of the standard normal distribution.

    Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    approximate: "tanh" puts (1 + tanh(√(2/π) (x + 0.044715 x³)))/2 in the place of Φ(x).

    >>> flow.nn.functional.gelu(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """


@functor("functional", inplace=True, twin="functional", samples="x(2, 3); x(2, 3), 0.5")
def elu(input: RealFloating, alpha: Number = 1.0) -> Tensor:
    """Return x for x > 0, else alpha (exp(x) - 1).

    >>> flow.nn.functional.elu(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.6321,  0.0000,  1.0000])
    """
    return dispatch1(_ELU, input, {"alpha": alpha, "scale": 1.0, "input_scale": 1.0})


@functor(_EVERYWHERE, inplace=True, twin=_EVERYWHERE)
def selu(input: RealFloating) -> Tensor:
    """Return 1.0507 x for x > 0, else 1.0507 · 1.6733 (exp(x) - 1).

    With these numbers, layers keep mean 0 and variance 1.

    Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """
    attrs = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805, "input_scale": 1.0}
    return dispatch1(_ELU, input, attrs)


@functor(_EVERYWHERE, inplace=True, twin=_EVERYWHERE, samples="x(2, 3); x(2, 3), 2.0")
def celu(input: RealFloating, alpha: Number = 1.0) -> Tensor:
    """Return x for x > 0, else alpha (exp(x / alpha) - 1), whose derivative is continuous.

    ArgumentError: when `alpha` is 0.
    """
    if alpha == 0:
        expected, hint = "a number other than 0", "use relu for the limit"
        raise arg_error("celu", "alpha", expected, alpha, hint, ArgumentError)
    return dispatch1(_ELU, input, {"alpha": alpha, "scale": 1.0, "input_scale": 1 / alpha})


@functor("functional", out="same", samples="x(2, 3); x(2, 3), 2.0, 3.0")
def softplus(input: RealFloating, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, a smooth relu; x where beta x is above the threshold.

    >>> flow.nn.functional.softplus(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([0.3133, 0.6931, 1.3133])
    """


@functor("functional")
def softsign(input: Floating) -> Tensor:
    """Return x / (1 + \\|x\\|)."""
    if input.is_complex():
        return input / (input.abs() + 1)
    return dispatch1(op_expr("softsign"), input)


@functor("functional")
def tanhshrink(input: Floating) -> Tensor:
    """Return x - tanh(x) of each element x."""
    return input - input.tanh()


@functor("functional", samples="x(2, 4); x(4, 3), 0")
def glu(input: RealFloating, dim: D.Dim = -1) -> Tensor:
    """Return a σ(b), where a and b are the halves of the tensor along a dimension.

    Dauphin et al., Language Modeling with Gated Convolutional Networks, 2017.

    ShapeError: when `input` has no dimension, or the dimension's size is odd.

    >>> flow.nn.functional.glu(flow.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """
    if not input.ndim or input.shape[dim] % 2:
        hint = "the two halves are the value and its gate"
        raise arg_error("glu", "input", f"an even size of dimension {dim}", input, hint)
    half = input.shape[dim] // 2
    value, gate = input.narrow(dim, 0, half), input.narrow(dim, half, half)
    return value * gate.sigmoid()


# --- Made of straight pieces ----------------------------------------------------------------------


@functor("flow Tensor functional", inplace=True, twin="flow Tensor functional")
def relu(input: RealNumber) -> Tensor:
    """Return the larger of x and 0 for each element x; the gradient at 0 is 0.

    >>> flow.relu(flow.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """


@functor("functional", inplace=True, twin="functional", samples="x(2, 3); x(2, 3), 2.0")
def leaky_relu(input: RealFloating, negative_slope: Number = 0.01) -> Tensor:
    """Return x for x > 0, else negative_slope x; the gradient at 0 is negative_slope."""


@functor("functional", inplace=True, twin="functional", samples="x(2, 3); x(2, 3), -0.5, 1.2")
def hardtanh(input: RealNumber, min_val: Scalar = -1.0, max_val: Scalar = 1.0) -> Tensor:
    """Return x kept between min_val and max_val; the gradient at both ends is 0.

    min_val, max_val: for a tensor of integers only their whole part counts.
    ArgumentError: when `min_val` is above `max_val`.
    """
    if min_val > max_val:
        expected, hint = f"at most max_val, {max_val}", "swap the bounds"
        raise arg_error("hardtanh", "min_val", expected, min_val, hint, ArgumentError)
    return dispatch1(_HARDTANH, input, {"min_val": min_val, "max_val": max_val})


@functor("functional", inplace=True)
def relu6(input: RealNumber) -> Tensor:
    """Return x kept between 0 and 6; the gradient at both ends is 0."""
    kind = float if input._data.dtype.kind == "f" else int
    return dispatch1(_HARDTANH, input, {"min_val": kind(0), "max_val": kind(6)})


_hard("hardsigmoid", "Return (x + 3)/6 kept between 0 and 1; the gradient at ±3 is 0.")
hardswish = _hard(
    "hardswish",
    "Return x times hardsigmoid(x); the gradient is 0 at -3 and 1 at 3.\n\n"
    "Howard et al., Searching for MobileNetV3, 2019.",
    "[-4.0, 1.0, 4.0] -> tensor([-0.0000, 0.6667, 4.0000])",
)


@functor("flow Tensor functional", out="same", samples="x(2, 3); x(2, 3), 1")
def hardshrink(input: RealFloating, lambd: Number = 0.5) -> Tensor:
    """Return x where it is outside [-lambd, lambd], else 0; the gradient at both ends is 0."""


@functor("functional", out="same", samples="x(2, 3); x(2, 3), 1")
def softshrink(input: RealFloating, lambd: D.NonNegative = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd, and 0 within; the gradient at ±lambd is 0."""


@functor(_EVERYWHERE, out=True, inplace=True, twin=_EVERYWHERE, samples="x(2, 3), 0.5, 9.0")
def threshold(input: RealNumber, threshold: Scalar, value: Scalar) -> Tensor:
    """Return x where it is above the threshold, else value; the gradient at the threshold is 0.

    value: for a tensor of integers only its whole part counts.
    """


# --- With weights or noise ------------------------------------------------------------------------


def _two_slopes(input: Tensor, slope: Tensor) -> Tensor:
    # No product of the slope and an infinite positive x, which has no part in the result.
    return relu(input) + slope * F.clamp_max(input, 0)


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
        raise arg_error("prelu", "weight", expected, weight.dtype, "convert one", DTypeError)
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        expected = f"one slope, or one for each of {channels} channels"
        raise arg_error("prelu", "weight", expected, weight, "match the input's channels")
    shape = (-1, *(1,) * (input.ndim - 2)) if input.ndim else ()
    return _two_slopes(input, weight.reshape(shape))


@functor("functional flow", inplace=True, twin=_EVERYWHERE, samples=_SLOPES)
def rrelu(
    input: RealFloating,
    lower: Number = 1 / 8,
    upper: Number = 1 / 3,
    training: Flag = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Return x for x > 0, else x times a slope: the mean of lower and upper; in training, drawn.

    Xu et al., Empirical Evaluation of Rectified Activations in Convolutional Network, 2015.

    training: draw a slope between lower and upper for each element.
    generator: draws the slopes; by default the library's own.
    ArgumentError: when `lower` is above `upper`.
    """
    if lower > upper:
        raise arg_error(
            "rrelu", "lower", f"at most upper = {upper}", lower, "swap them", ArgumentError
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    with no_grad():
        slope = F.empty(input.shape, dtype=input.dtype, device=input.device)
        slope.uniform_(lower, upper, generator=generator)
    return _two_slopes(input, slope)


@functor("functional", samples="x(2, 3); x(2, 30), 0.5, True, dim=0")
def gumbel_softmax(
    logits: RealFloating, tau: Number = 1, hard: Flag = False, eps: Number = 1e-10, dim: D.Dim = -1
) -> Tensor:
    """Draw from the Gumbel-softmax distribution, a smooth stand-in for drawing a class.

    Jang et al., Categorical Reparameterization with Gumbel-Softmax, 2017.

    logits: unnormalized logarithms of probabilities.
    tau: the temperature; near 0 the result is nearly one-hot.
    hard: return exactly one-hot vectors, with the gradient of the smooth result.
    eps: has no effect, as in PyTorch.
    """
    with no_grad():
        drawn = F.empty(logits.shape, dtype=logits.dtype, device=logits.device).exponential_()
        noise = -drawn.log()
    soft = F.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    with no_grad():  # the sum below has the value of one_hot and the gradient of soft
        one_hot = F.scatter(F.zeros_like(soft), dim, soft.argmax(dim, True), 1.0)
        rest = one_hot - soft.detach()  # forward mode looks through no_grad
    return rest + soft
