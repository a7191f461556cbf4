"""Smooth activations: what users call."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentError, ShapeError, bad_argument
from oneflow_lite.functors.arithmetic import abs
from oneflow_lite.functors.checks import check_dim, floating, require_floating
from oneflow_lite.functors.elementwise_checks import check_number, real_floating
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.transcendental import sigmoid, tanh
from oneflow_lite.interpreter import dispatch1, dispatch2
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.tensor import Tensor

GELU = op_expr("gelu")
SILU = op_expr("silu")
ELU = op_expr("elu")
SOFTPLUS = op_expr("softplus")
MISH = op_expr("mish")
SOFTSIGN = op_expr("softsign")
LOGSIGMOID = op_expr("logsigmoid")
SUB = op_expr("sub")
MUL = op_expr("mul")

# The fixed point of Klambauer et al., Self-Normalizing Neural Networks, 2017.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@register_functor("gelu")
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """Return x Φ(x), with Φ the distribution function of the standard normal distribution.

    Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    approximate : {"none", "tanh"}
        "tanh" puts (1 + tanh(√(2/π) (x + 0.044715 x³)))/2 in the place of Φ(x).
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentError
        When `approximate` is neither.
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.gelu(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    if out is not None:
        return write_out("gelu", out, gelu, input, approximate)
    if approximate not in ("none", "tanh"):
        raise bad_argument(
            ArgumentError,
            "gelu",
            "approximate",
            expected="'none' or 'tanh'",
            got=repr(approximate),
            mend="leave it out for the exact function",
        )
    return dispatch1(GELU, real_floating("gelu", input), {"approximate": approximate})


@register_functor("silu")
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x σ(x), with σ the logistic function; also called swish.

    Parameters
    ----------
    input : Tensor
        Floating, of any shape.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    DTypeError
        When `input` is not floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.silu(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    require_floating("silu", input)
    if inplace:
        return FUNCTORS.get("silu_")(input)
    return dispatch1(SILU, input)


@register_functor("elu")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x for x > 0, else alpha (exp(x) - 1).

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    alpha : float
        Minus the limit for x → -∞.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    ArgumentTypeError
        When `alpha` is no number.
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.elu(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.6321,  0.0000,  1.0000])
    """
    real_floating("elu", input)
    alpha = check_number("elu", "alpha", alpha)
    if inplace:
        return FUNCTORS.get("elu_")(input, alpha)
    return dispatch1(ELU, input, {"alpha": alpha, "scale": 1.0, "input_scale": 1.0})


@register_functor("selu")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return 1.0507 x for x > 0, else 1.0507 · 1.6733 (exp(x) - 1).

    With these constants activations drift towards mean 0 and variance 1 (Klambauer et al.,
    Self-Normalizing Neural Networks, 2017).

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.selu(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])
    """
    real_floating("selu", input)
    if inplace:
        return FUNCTORS.get("selu_")(input)
    attrs = {"alpha": _SELU_ALPHA, "scale": _SELU_SCALE, "input_scale": 1.0}
    return dispatch1(ELU, input, attrs)


@register_functor("celu")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x for x > 0, else alpha (exp(x / alpha) - 1), whose derivative is continuous.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    alpha : float
        Minus the limit for x → -∞; not 0.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    ArgumentError
        When `alpha` is 0.
    ArgumentTypeError
        When `alpha` is no number.
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.celu(flow.tensor([-1.0, 0.0, 1.0]), alpha=2.0)
    tensor([-0.7869,  0.0000,  1.0000])
    """
    real_floating("celu", input)
    alpha = check_number("celu", "alpha", alpha)
    if alpha == 0:
        raise bad_argument(
            ArgumentError,
            "celu",
            "alpha",
            expected="a number other than 0",
            got=alpha,
            mend="use relu for the limit",
        )
    if inplace:
        return FUNCTORS.get("celu_")(input, alpha)
    return dispatch1(ELU, input, {"alpha": alpha, "scale": 1.0, "input_scale": 1 / alpha})


@register_functor("softplus")
def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, a smooth relu.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    beta : float
        How sharply it bends.
    threshold : float
        Where beta x is above it the result is x.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentTypeError
        When `beta` or `threshold` is no number.
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.softplus(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([0.3133, 0.6931, 1.3133])
    """
    if out is not None:
        return write_out("softplus", out, softplus, input, beta, threshold)
    attrs = {
        "beta": check_number("softplus", "beta", beta),
        "threshold": check_number("softplus", "threshold", threshold),
    }
    return dispatch1(SOFTPLUS, real_floating("softplus", input), attrs)


@register_functor("mish")
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x tanh(softplus(x)).

    Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.mish(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """
    real_floating("mish", input)
    if inplace:
        return FUNCTORS.get("mish_")(input)
    return dispatch1(MISH, input)


@register_functor("softsign")
def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + \\|x\\|).

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.softsign(flow.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """
    input = floating("softsign", input)
    if input.is_complex():
        return input / (abs(input) + 1)
    return dispatch1(SOFTSIGN, input)


@register_functor("logsigmoid")
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return log(1 / (1 + exp(-x))) of each element x without overflow.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.logsigmoid(flow.tensor([-1000.0, 0.0, 1.0]))
    tensor([-1.0000e+03, -6.9315e-01, -3.1326e-01])
    """
    if out is not None:
        return write_out("logsigmoid", out, logsigmoid, input)
    return dispatch1(LOGSIGMOID, real_floating("logsigmoid", input))


@register_functor("tanhshrink")
def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x) of each element x.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.tanhshrink(flow.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2384,  0.0000,  0.2384])
    """
    input = floating("tanhshrink", input)
    return dispatch2(SUB, input, tanh(input))


@register_functor("glu")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return a σ(b), where a and b are the halves of the tensor along a dimension.

    Dauphin et al., Language Modeling with Gated Convolutional Networks, 2017.

    Parameters
    ----------
    input : Tensor
        Real floating, with one dimension or more.
    dim : int
        The dimension to halve; its size is even.

    Raises
    ------
    DTypeError
        When `input` is not real floating.
    DimError
        When `dim` is out of range.
    ShapeError
        When `input` has no dimension, or the dimension's size is odd.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.glu(flow.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """
    shape = real_floating("glu", input).shape
    dim = check_dim("glu", dim, len(shape))
    if not shape or shape[dim] % 2:
        raise bad_argument(
            ShapeError,
            "glu",
            "input",
            expected=f"an even size of dimension {dim}",
            got=f"shape {shape}",
            mend="the two halves are the value and its gate",
        )
    half = shape[dim] // 2
    narrow: Any = FUNCTORS.get("narrow")
    value, gate = narrow(input, dim, 0, half), narrow(input, dim, half, half)
    return dispatch2(MUL, value, sigmoid(gate))
