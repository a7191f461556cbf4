"""Smooth activations: what users call."""

from __future__ import annotations

import functools
from typing import Annotated

from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors import domains as D
from oneflow_lite.functors.checks import wrong
from oneflow_lite.functors.declare import functor, unary
from oneflow_lite.functors.domains import Floating, Number, RealFloating
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

ELU = op_expr("elu")
Approximate = Annotated[str, D.choice("none", "tanh")]
_row = functools.partial(unary, domain=RealFloating, on="functional")
_inplace = functools.partial(_row, out=False, inplace=True)

silu = _inplace(
    "silu", "Return x σ(x), σ the logistic function; also called swish.", domain=D.FloatingOrComplex
)
mish = _inplace(
    "mish",
    "Return x tanh(softplus(x)).\n\n"
    "Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.",
    "[-1.0, 0.0, 1.0] -> tensor([-0.3034,  0.0000,  0.8651])",
)
logsigmoid = _row("logsigmoid", "Return log(1 / (1 + exp(-x))) of each element without overflow.")


@functor("functional", out=True, samples="x(2, 3); x(2, 3), approximate='tanh'")
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

    alpha: minus the limit for x → -∞.

    >>> flow.nn.functional.elu(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.6321,  0.0000,  1.0000])
    """
    return dispatch1(ELU, input, {"alpha": alpha, "scale": 1.0, "input_scale": 1.0})


@functor("flow functional", inplace=True, twin="flow functional")
def selu(input: RealFloating) -> Tensor:
    """Return 1.0507 x for x > 0, else 1.0507 · 1.6733 (exp(x) - 1).

    With these constants activations drift towards mean 0 and variance 1 (Klambauer et al.,
    Self-Normalizing Neural Networks, 2017).
    """
    attrs = {"alpha": 1.6732632423543772, "scale": 1.0507009873554805, "input_scale": 1.0}
    return dispatch1(ELU, input, attrs)


@functor("flow functional", inplace=True, twin="flow functional", samples="x(2, 3); x(2, 3), 2.0")
def celu(input: RealFloating, alpha: Number = 1.0) -> Tensor:
    """Return x for x > 0, else alpha (exp(x / alpha) - 1), whose derivative is continuous.

    alpha: minus the limit for x → -∞; not 0.
    ArgumentError: when `alpha` is 0.
    """
    if alpha == 0:
        expected, mend = "a number other than 0", "use relu for the limit"
        raise wrong("celu", "alpha", expected, alpha, mend, ArgumentError)
    return dispatch1(ELU, input, {"alpha": alpha, "scale": 1.0, "input_scale": 1 / alpha})


@functor("functional", out=True, samples="x(2, 3); x(2, 3), 2.0, 3.0")
def softplus(input: RealFloating, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, a smooth relu.

    beta: how sharply it bends.
    threshold: where beta x is above it the result is x.

    >>> flow.nn.functional.softplus(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([0.3133, 0.6931, 1.3133])
    """


@functor("functional")
def softsign(input: Floating) -> Tensor:
    """Return x / (1 + \\|x\\|)."""
    return (
        input / (input.abs() + 1) if input.is_complex() else dispatch1(op_expr("softsign"), input)
    )


@functor("functional")
def tanhshrink(input: Floating) -> Tensor:
    """Return x - tanh(x) of each element x."""
    return input - input.tanh()


@functor("functional", samples="x(2, 4); x(4, 3), 0")
def glu(input: RealFloating, dim: D.Dim = -1) -> Tensor:
    """Return a σ(b), where a and b are the halves of the tensor along a dimension.

    Dauphin et al., Language Modeling with Gated Convolutional Networks, 2017.

    dim: the dimension to halve; its size is even.
    ShapeError: when `input` has no dimension, or the dimension's size is odd.

    >>> flow.nn.functional.glu(flow.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """
    if not input.ndim or input.shape[dim] % 2:
        mend = "the two halves are the value and its gate"
        raise wrong("glu", "input", f"an even size of dimension {dim}", input, mend)
    half = input.shape[dim] // 2
    value, gate = input.narrow(dim, 0, half), input.narrow(dim, half, half)
    return value * gate.sigmoid()
